"""Key and trust stores of listeners that are exchanged while the node runs (KIP-226).

A change of this node's settings as a broker names them with the prefix of a listener. A broker
reads and checks the stores before the request goes to the controller, so that an unusable one is
refused; they are exchanged when the change is committed. What a controller's own listener is asked
is not checked before, as in Kafka: the node keeps its stores and logs why. New connections use
exchanged stores at once, open ones continue. Naming the same file again reads it again; files are
not watched.

Not here: files and certificates (the host's side, `tls.exchange`), requests (`own_settings`).
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import BROKER_RESOURCE
from kraft_wire.model import ReportEvent
from kraft_wire.node.config.listener_values import ListenerValues
from kraft_wire.node.config.node_config import NodeConfig
from kraft_wire.node.config.security import TlsSettings
from kraft_wire.node.config.sources import ConfigError
from kraft_wire.node.config.tls_reading import read_tls
from kraft_wire.node.event_log import Line
from kraft_wire.settings.broker import STORE_KEYS, is_listener_key, listener_base_name

__all__ = ["StoreChanges", "StoreHost"]

_PLACE: Final = "the broker's settings"


class StoreHost(Protocol):
    """The host's side: reads stores, and uses them for new connections."""

    def problem(self, listener: str, tls: TlsSettings) -> str | None:
        """Return why a listener cannot use these stores, None if it can."""

    def exchange(self, listener: str, tls: TlsSettings, *, is_start: bool) -> str | None:
        """Use stores from now on; return why not, and keep the present ones then."""


class StoreChanges:
    """Changes of the stores of one broker's listeners."""

    def __init__(self, config: NodeConfig, report: ReportEvent) -> None:
        assert config.reader is not None, "a listener has TLS"
        self._reader = config.reader
        self._own = BROKER_RESOURCE, str(config.node_id)
        self._listeners = {
            name: each.sasl is not None
            for name, each in config.security.items()
            if each.tls is not None
        }
        """Names of the TLS listeners, and whether they have SASL too."""
        self._report = report
        self._host: StoreHost | None = None
        self._values: Mapping[str, str] = {}
        """This broker's committed values of stores."""

    def attach(self, host: StoreHost) -> None:
        """Use the host from now on, at first for the values that are already committed."""
        self._host = host
        if self._values:
            self._exchange(self._values, is_start=True)

    # -- requests --------------------------------------------------------------------------------

    def problem(self, values: Mapping[str, str], touched: Sequence[str]) -> str | None:
        """Return why this broker cannot use the stores that it would have, None if it can.

        `values` are its settings after a change of the keys `touched`.
        """
        stores = [name for name in touched if _is_store(name)]
        if not stores or self._host is None:
            return None
        wanted = _stores(values)
        for listener in self._listeners:
            if any(_listener_of(name) == listener.lower() for name in stores):
                problem = self._read_and_check(listener, wanted)
                if problem is not None:
                    return problem
        return None

    def _read_and_check(self, listener: str, values: Mapping[str, str]) -> str | None:
        assert self._host is not None, "asked by the caller"
        try:
            tls = self._settings(listener, values)
        except ConfigError as error:
            return str(error)
        return self._host.problem(listener, tls)

    # -- committed changes -----------------------------------------------------------------------

    def publish(self, delta: MetadataDelta) -> None:
        """Exchange stores that a committed change has named, also if its values are the same."""
        if self._own not in delta.named_configs:
            return
        before, self._values = self._values, _stores(delta.after.config(*self._own))
        if self._host is not None and (before or self._values):
            self._exchange({**before, **self._values}, is_start=False)

    def _exchange(self, named: Mapping[str, str], *, is_start: bool) -> None:
        assert self._host is not None, "there is no exchange without a host"
        for listener in self._listeners:
            if all(_listener_of(name) != listener.lower() for name in named):
                continue
            try:
                tls = self._settings(listener, self._values)
                problem = self._host.exchange(listener, tls, is_start=is_start)
            except ConfigError as error:
                problem = str(error)
            if problem is None:
                self._report("stores_exchanged", listener=listener)
            else:
                self._report("stores_not_exchanged", listener=listener, reason=Line(problem))

    def _settings(self, listener: str, values: Mapping[str, str]) -> TlsSettings:
        reader = ListenerValues(self._reader.beneath(values, _PLACE), listener)
        return read_tls(reader, has_sasl=self._listeners[listener], is_served=True)


def _stores(values: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in values.items() if _is_store(name)}


def _is_store(name: str) -> bool:
    return is_listener_key(name) and listener_base_name(name) in STORE_KEYS


def _listener_of(name: str) -> str:
    return name.split(".", 3)[2]
