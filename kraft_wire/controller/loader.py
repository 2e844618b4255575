"""Turns the metadata log into images: batch by batch, with metadata transactions.

KIP-868: records between BeginTransaction and EndTransaction become visible together; an
AbortTransaction throws them away. Records that stand before the Begin in the same batch count at
once. Transactions are not nested and never in a snapshot.

Not here: reading the log (node), deciding what is committed (the quorum).
"""

from collections.abc import Sequence
from typing import Final

from kraft_wire.controller.image import EMPTY_IMAGE, MetadataImage
from kraft_wire.controller.image_draft import ImageDraft, MetadataFault
from kraft_wire.controller.replay import replay
from kraft_wire.wire.message import Message

__all__ = ["MetadataLoader"]

_BEGIN: Final = 23
_END: Final = 24
_ABORT: Final = 25


class MetadataLoader:
    """Holds the image of all finished batches, and the draft of an open transaction.

    A MetadataFault is final: what was half applied is not undone, the node has to stop.
    """

    def __init__(self, image: MetadataImage = EMPTY_IMAGE) -> None:
        assert image.offset >= -1, image.offset
        self.image = image
        """What readers may see: no record of an open transaction is in it."""
        self.last_offset = image.offset
        """Offset of the last record seen, those of an open transaction included."""
        self._transaction: ImageDraft | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction was begun and neither ended nor aborted."""
        return self._transaction is not None

    def replay_snapshot(self, records: Sequence[Message], offset: int, epoch: int) -> MetadataImage:
        """Begin anew with a snapshot's records; `offset` is that of the last record it covers."""
        assert offset >= 0, offset
        draft = ImageDraft(EMPTY_IMAGE)
        for record in records:
            replay(draft, record)
        self._transaction = None
        self.last_offset = offset
        self.image = draft.finish(offset, epoch)
        assert self.image.offset == offset
        return self.image

    def replay_batch(
        self, records: Sequence[Message], base_offset: int, epoch: int
    ) -> MetadataImage:
        """Apply one batch of the log and return the image that is visible now.

        Offsets only grow: a batch that is not behind the last one is the caller's mistake.
        """
        assert base_offset > self.last_offset, (base_offset, self.last_offset)
        draft = self._transaction or ImageDraft(self.image)
        for offset, record in enumerate(records, base_offset):
            self.last_offset = offset
            if record.RECORD_TYPE in (_BEGIN, _END, _ABORT):
                draft = self._mark(record.RECORD_TYPE, draft, epoch)
            else:
                replay(draft, record)
        if not self.in_transaction:
            self.image = draft.finish(self.last_offset, epoch)
        assert self.image.offset <= self.last_offset
        return self.image

    def _mark(self, marker: int, draft: ImageDraft, epoch: int) -> ImageDraft:
        """Follow a transaction's marker and return the draft that the next records change."""
        if (marker == _BEGIN) == self.in_transaction:
            what = "begins inside another" if self.in_transaction else "ends that did not begin"
            raise MetadataFault(f"at offset {self.last_offset} a metadata transaction {what}")
        assert marker in (_BEGIN, _END, _ABORT), marker
        if marker == _BEGIN:
            self.image = draft.finish(self.last_offset, epoch)
            self._transaction = ImageDraft(self.image)
            return self._transaction
        assert draft is self._transaction, "records of a transaction change its own draft"
        self._transaction = None
        return draft if marker == _END else ImageDraft(self.image)
