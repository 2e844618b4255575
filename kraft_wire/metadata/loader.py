"""Turns the metadata log into images: batch by batch, with metadata transactions.

KIP-868: records between BeginTransaction and EndTransaction become visible together; an
AbortTransaction discards them. Records before the Begin in the same batch apply at once.
Transactions are not nested and never in a snapshot.

Not here: reading the log (node), deciding what is committed (the quorum).
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kraft_wire.metadata.delta import MetadataDelta, Touched
from kraft_wire.metadata.image import EMPTY_IMAGE, MetadataImage
from kraft_wire.metadata.image_draft import ImageDraft, MetadataFault
from kraft_wire.metadata.replay import replay
from kraft_wire.wire.message import Message

__all__ = ["MetadataLoader", "SnapshotReplay"]

_BEGIN: Final = 23
_END: Final = 24
_ABORT: Final = 25


class SnapshotReplay:
    """A snapshot that is replayed in steps; its image is available only after `finish`."""

    def __init__(self) -> None:
        self._draft = ImageDraft(EMPTY_IMAGE)

    def take(self, records: Iterable[Message]) -> None:
        """Apply the next records; after a MetadataFault this object must not be used."""
        assert not self._draft.is_finished, "an image is never changed"
        for record in records:
            replay(self._draft, record)

    def finish(self, offset: int, epoch: int) -> MetadataImage:
        """Return the image; `offset` is that of the last record that the snapshot covers."""
        assert offset >= 0, offset
        return self._draft.finish(offset, epoch)


class MetadataLoader:
    """Holds the image of all finished batches, and the draft of an open transaction.

    A MetadataFault is final: a partly applied batch is not undone, and the node must stop.
    """

    def __init__(self, image: MetadataImage = EMPTY_IMAGE, *, in_transaction: bool = False) -> None:
        """Begin with an image; an open transaction can only end with an abort."""
        assert image.offset >= -1, image.offset
        self._image = image
        self._draft: ImageDraft | None = None
        """Whole batches that are in no image yet; reading `image` makes one."""
        self._epoch = image.epoch
        self.last_offset = image.offset
        """Offset of the last record seen, those of an open transaction included."""
        self._transaction = ImageDraft(image) if in_transaction else None
        self._taken = EMPTY_IMAGE
        """The image up to which changes were taken."""
        self._touched: Touched | None = None
        """Keys that may have changed since; None for everything."""

    @property
    def image(self) -> MetadataImage:
        """The visible image: it has no record of an open transaction."""
        if self._draft is not None:
            self._image = self._finished(self._draft, self._epoch)
            self._draft = None
        assert self._image.offset <= self.last_offset
        return self._image

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._transaction is not None

    def take_delta(self) -> MetadataDelta:
        """Return the changes since the previous call; the first call compares with an empty image.

        Only one reader may call it, whenever it takes the image. Before its first call no keys are
        collected.
        """
        before, image = self._taken, self.image
        touched = self._touched
        self._taken, self._touched = image, Touched()
        if touched is None:
            return MetadataDelta.between(before, image)
        return touched.delta(before, image)

    def replay_snapshot(self, records: Iterable[Message], offset: int, epoch: int) -> MetadataImage:
        """Load a snapshot's records; `offset` is that of the last record it covers.

        The records are taken one by one, so that a large snapshot need not be in memory as a whole.
        """
        snapshot = SnapshotReplay()
        snapshot.take(records)
        self.begin_with(snapshot.finish(offset, epoch))
        assert self.last_offset == offset, (self.last_offset, offset)
        return self.image

    def begin_with(self, image: MetadataImage) -> None:
        """Load the image of a snapshot."""
        self._transaction = self._draft = self._touched = None
        self.last_offset, self._image = image.offset, image
        assert self.image is image

    def replay_batch(
        self, records: Sequence[Message], base_offset: int, epoch: int
    ) -> MetadataImage:
        """Apply one batch of the log and return the image that is visible now; see `take_batch`."""
        self.take_batch(records, base_offset, epoch)
        assert self.last_offset == base_offset + len(records) - 1 or not records, self.last_offset
        return self.image

    def take_batch(self, records: Sequence[Message], base_offset: int, epoch: int) -> None:
        """Apply one batch of the log; batches without a read of `image` in between share one image.

        Offsets only grow: the caller must pass a batch that follows the last one.
        """
        assert base_offset > self.last_offset, (base_offset, self.last_offset)
        draft = self._transaction or self._draft or ImageDraft(self._image)
        self._draft = None
        for offset, record in enumerate(records, base_offset):
            self.last_offset = offset
            if record.RECORD_TYPE in (_BEGIN, _END, _ABORT):
                draft = self._mark(record.RECORD_TYPE, draft, epoch)
            else:
                replay(draft, record)
        if self.in_transaction:
            return
        if draft.features.touched:  # the offset of this very batch becomes the features' epoch
            self._image = self._finished(draft, epoch)
        else:
            self._draft, self._epoch = draft, epoch

    def _finished(self, draft: ImageDraft, epoch: int) -> MetadataImage:
        """Return the image of a draft, and collect the keys that it changed."""
        assert draft.base is self._image, "a draft is of the newest image"
        if self._touched is not None:
            self._touched.add(draft)
        return draft.finish(self.last_offset, epoch)

    def _mark(self, marker: int, draft: ImageDraft, epoch: int) -> ImageDraft:
        """Apply a transaction's marker and return the draft for the next records."""
        if (marker == _BEGIN) == self.in_transaction:
            what = "begins inside another" if self.in_transaction else "ends that did not begin"
            raise MetadataFault(f"at offset {self.last_offset} a metadata transaction {what}")
        assert marker in (_BEGIN, _END, _ABORT), marker
        if marker == _BEGIN:
            self._image = self._finished(draft, epoch)
            self._transaction = ImageDraft(self._image)
            return self._transaction
        assert draft is self._transaction, "records of a transaction change its own draft"
        self._transaction = None
        return draft if marker == _END else ImageDraft(self._image)
