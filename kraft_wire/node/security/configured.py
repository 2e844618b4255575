"""The logins that a node's listeners want; a node without SASL imports none."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import RandomSource
from kraft_wire.node.config.security import ListenerSecurity
from kraft_wire.node.requests.decoding import RequestDecoder

if TYPE_CHECKING:
    from kraft_wire.node.security.logins import Logins

__all__ = ["logins_of"]


def logins_of(
    security: Mapping[str, ListenerSecurity],
    decoder_of: Callable[[str], RequestDecoder],
    image: Callable[[], MetadataImage],
    random_source: RandomSource,
) -> "Logins | None":
    """Return the logins of clients; None if no listener needs them."""
    if all(each.sasl is None for each in security.values()):
        return None
    from kraft_wire.node.security.logins import Logins

    return Logins(security, decoder_of, image, random_source)
