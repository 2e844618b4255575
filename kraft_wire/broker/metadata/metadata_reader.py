"""The needs of a handler that only describes metadata, and also serves a controller's listener."""

from collections.abc import Mapping
from typing import Protocol

from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.metadata.image import MetadataImage

__all__ = ["MetadataReader"]


class MetadataReader(Protocol):
    """A reader of the metadata in a node of either role (`Broker` is one)."""

    @property
    def node_id(self) -> int:
        """`node.id`."""
        ...

    @property
    def image(self) -> MetadataImage:
        """The committed metadata."""
        ...

    @property
    def settings(self) -> BrokerSettings:
        """The node's settings under the dynamic values of the image."""
        ...

    @property
    def listener_protocols(self) -> Mapping[str, str]:
        """The security protocol of each listener; one that is not named is PLAINTEXT."""
        ...
