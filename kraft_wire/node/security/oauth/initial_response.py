"""The client's first message of OAUTHBEARER (RFC 7628, KIP-342), by the grammar of Kafka's server.

Bytes that are not UTF-8 are replaced, as there, and then match nothing. Of several pairs with one
key the last one counts. The authorization id stays as sent, with `=2C` and `=3D`.
"""

import re
from typing import Final, NamedTuple

from kraft_wire.node.security.mechanisms import LoginRefused

__all__ = ["InitialResponse", "parse_initial_response"]

_SASL_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIR: Final = "[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_RESPONSE: Final = re.compile(
    rf"n,(?:a=(?P<authzid>{_SASL_NAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01"
)
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)


class InitialResponse(NamedTuple):
    """What a client shows."""

    authzid: str
    """Whom it wants to act as, empty if it does not say."""
    token: str

    def __repr__(self) -> str:
        return f"InitialResponse({self.authzid!r}, a token)"


def parse_initial_response(message: bytes) -> InitialResponse:
    """Return the parts of a first message. Errors: LoginRefused, with Kafka's usual text."""
    found = _RESPONSE.fullmatch(message.decode("utf-8", "replace"))
    if found is None:
        raise LoginRefused
    pairs = dict(pair.split("=", 1) for pair in found["pairs"].split("\x01") if pair)
    auth = _AUTH.fullmatch(pairs.get("auth", ""))
    if auth is None or auth["scheme"].lower() != "bearer":
        raise LoginRefused
    return InitialResponse(found["authzid"] or "", auth["token"])
