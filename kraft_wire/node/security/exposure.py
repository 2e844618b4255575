"""Listeners that are less protected than their address asks for, to be warned of at a start.

An address that is not of this machine alone can be reached by others. There a listener should know
its clients, or an authorizer should judge them, and passwords should be encrypted.
"""

from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final, NamedTuple

from kraft_wire.node.config.node_config import NodeConfig
from kraft_wire.node.security.mechanisms import OAUTHBEARER, PLAIN

__all__ = ["Exposure", "exposures"]

_REQUIRED: Final = "required"
_IN_PLAIN_TEXT: Final = frozenset({PLAIN, OAUTHBEARER})
"""Mechanisms that send the password or the token itself."""
_OWN_NAME: Final = "localhost"


class Exposure(NamedTuple):
    """What a listener is warned of."""

    event: str
    listener: str
    host: str


def exposures(config: NodeConfig) -> Iterator[Exposure]:
    """Yield what is worth a warning, in the order of the listeners."""
    for listener in config.all_listeners:
        if _is_own(listener.host):
            continue
        security = config.security.get(listener.name)
        tls = None if security is None else security.tls
        sasl = None if security is None else security.sasl
        is_known = sasl is not None or (tls is not None and tls.client_auth == _REQUIRED)
        if not is_known and config.authorizer is None:
            yield Exposure("listener_is_open", listener.name, listener.host)
        if sasl is not None and tls is None and not _IN_PLAIN_TEXT.isdisjoint(sasl.mechanisms):
            yield Exposure("passwords_in_plain_text", listener.name, listener.host)


def _is_own(host: str) -> bool:
    """Whether only this machine can reach an address; any name but one may be another's."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == _OWN_NAME
