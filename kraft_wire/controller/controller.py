"""The controller: requests in, records and the answer that is due once they are committed.

`handle` decides by the image alone and changes nothing. Whoever hosts the controller appends the
records to the metadata log as one atomic batch, waits until they are committed and replayed, calls
`publish` with the new image, and only then sends the answer. A quorum of one commits at once; the
place of a larger one is between `handle` and `publish`.

Not here: the log, replication, sessions of brokers that live elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kraft_wire.controller.image import BROKER_RESOURCE, EMPTY_IMAGE, MetadataImage
from kraft_wire.controller.records import VersionedRecord
from kraft_wire.controller.refusal import BATCH_RECORDS_MAX
from kraft_wire.model import Chance
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.message import Message

__all__ = ["Controller", "ControllerContext", "ControllerResult"]


class ControllerContext(Protocol):
    """What a handler may know about a request (`broker.context.RequestContext` has it)."""

    @property
    def api_version(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ControllerResult:
    """What a request leads to: an atomic batch, and the answer for when it is committed."""

    response: Message
    records: Sequence[VersionedRecord] = field(default=())
    """Empty when nothing changes: then the answer is due at once."""


class Controller:
    """The active controller's view: the image at the end of the log, and its own settings."""

    def __init__(
        self,
        *,
        node_id: int,
        settings: NodeSettings,
        chance: Chance,
        image: MetadataImage = EMPTY_IMAGE,
    ) -> None:
        assert node_id >= 0, node_id
        self.node_id = node_id
        self.chance = chance
        self.image = image
        self._file_settings = settings
        self.settings = self._layered(image)
        """The node's settings under the dynamic values of the image."""

    def handle(
        self, context: ControllerContext, request: Message, now_ms: int, wall_ms: int
    ) -> ControllerResult:
        """Decide what a request leads to. Its API and version must be of `api_table`.

        Neither clock is read by today's APIs; quotas, sessions and tokens will.
        """
        from kraft_wire.controller.api_table import handler

        assert now_ms >= 0, now_ms
        assert wall_ms >= 0, wall_ms
        result = handler(request.API_KEY)(self, context, request)
        assert len(result.records) <= BATCH_RECORDS_MAX, len(result.records)
        return result

    def publish(self, image: MetadataImage) -> None:
        """Take the image that the committed log gives."""
        assert image.offset >= self.image.offset, (image.offset, self.image.offset)
        if image.configs is not self.image.configs:
            self.settings = self._layered(image)
        self.image = image

    def _layered(self, image: MetadataImage) -> NodeSettings:
        layered = self._file_settings.with_dynamic(
            image.config(BROKER_RESOURCE, ""), image.config(BROKER_RESOURCE, str(self.node_id))
        )
        assert layered.file_values == self._file_settings.file_values
        return layered
