"""The logins that a node's listeners want; a node without SASL imports none."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kraft_wire.metadata.delegation_tokens import secret_key
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import RandomSource
from kraft_wire.node.config.node_config import NodeConfig
from kraft_wire.node.requests.decoding import RequestDecoder

if TYPE_CHECKING:
    from kraft_wire.node.security.logins import Logins

__all__ = ["logins_of"]


def logins_of(
    config: NodeConfig,
    decoder_of: Callable[[str], RequestDecoder],
    image: Callable[[], MetadataImage],
    random_source: RandomSource,
) -> "Logins | None":
    """Return the logins of clients; None if no listener needs them."""
    if all(each.sasl is None for each in config.security.values()):
        return None
    from kraft_wire.node.security.logins import Logins

    secret = secret_key(config.settings)
    return Logins(config.security, decoder_of, image, random_source, secret)
