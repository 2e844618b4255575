"""The metadata log replayed record by record into states with their intervals. No Spark here.

Every record goes through `metadata.replay`, so the last state is that replay's image. The states of
each partition (leader, ISR, ELR: KIP-631, KIP-966) are kept in `partition_states`. A metadata
transaction (KIP-868) takes effect at the record that ends it; one that is aborted, or open at the
end, has no effect.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kraft_wire.metadata.image import EMPTY_IMAGE, MetadataImage
from kraft_wire.metadata.image_draft import ImageDraft, MetadataFault
from kraft_wire.metadata.replay import replay
from kraft_wire.metadata.replay_topics import add_partition, change_partition
from kraft_wire.spark.metadata.partition_states import UNKNOWN, OffsetAndTimestamp, PartitionStates
from kraft_wire.wire.generated.clear_elr_record import ClearElrRecord
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.message import Message

__all__ = ["MetadataHistory", "QuorumElection"]

_BEGIN: Final = 23
_END: Final = 24
_ABORT: Final = 25


class QuorumElection(NamedTuple):
    """A leader epoch of the metadata quorum."""

    leader_epoch: int
    from_leader: int
    to_leader: int
    at: OffsetAndTimestamp


@dataclass(slots=True)
class MetadataHistory:
    """Takes records in the order of the log; a MetadataFault makes it good for nothing."""

    partitions: PartitionStates = field(default_factory=PartitionStates)
    elections: list[QuorumElection] = field(default_factory=list)
    _draft: ImageDraft = field(default_factory=lambda: ImageDraft(EMPTY_IMAGE))
    _held_back: list[Message] | None = None
    """The records of an open transaction."""
    _image: MetadataImage | None = None
    """The image at the end; no record is taken after it."""

    def take_snapshot(self, records: Iterable[Message]) -> None:
        """Begin with a snapshot: it has no transactions, and the time before is unknown."""
        for record in records:
            self._apply(record, UNKNOWN)

    def take(self, record: Message, at: OffsetAndTimestamp) -> None:
        """Take one record."""
        if record.RECORD_TYPE in (_BEGIN, _END, _ABORT):
            self._mark(record.RECORD_TYPE, at)
        elif self._held_back is not None:
            self._held_back.append(record)
        else:
            self._apply(record, at)

    def image(self, at: OffsetAndTimestamp, epoch: int) -> MetadataImage:
        """Return the image after the last record."""
        assert at.offset >= -1, at
        if self._image is None:
            self._image = self._draft.finish(at.offset, epoch)
        assert (self._image.offset, self._image.epoch) == (at.offset, epoch), at
        return self._image

    def _mark(self, marker: int, at: OffsetAndTimestamp) -> None:
        if (marker == _BEGIN) != (self._held_back is None):
            raise MetadataFault(f"the transaction marker at offset {at.offset} has no counterpart")
        held_back, self._held_back = self._held_back, [] if marker == _BEGIN else None
        if marker == _END:
            for record in held_back or ():
                self._apply(record, at)

    def _apply(self, record: Message, at: OffsetAndTimestamp) -> None:
        draft, partitions = self._draft, self.partitions
        if isinstance(record, PartitionChangeRecord):
            partitions.add(record.topic_id, change_partition(draft, record), at)
        elif isinstance(record, PartitionRecord):
            partitions.add(record.topic_id, add_partition(draft, record), at)
        elif isinstance(record, RemoveTopicRecord):
            for state in draft.partitions(record.topic_id).now.values():
                partitions.end(record.topic_id, state, at)
            replay(draft, record)
        elif isinstance(record, ClearElrRecord):
            self._clear(record, at)
        else:
            replay(draft, record)
            if isinstance(record, TopicRecord):
                partitions.create(record.name, record.topic_id, at)

    def _clear(self, record: ClearElrRecord, at: OffsetAndTimestamp) -> None:
        draft = self._draft
        topic_ids = [draft.topic_id(record.topic_name)] if record.topic_name else draft.topic_ids()
        before = [
            (topic_id, state)
            for topic_id in topic_ids
            for state in draft.partitions(topic_id).now.values()
        ]
        replay(draft, record)
        for topic_id, state in before:
            cleared = draft.partitions(topic_id).get(state.partition)
            if cleared is not None and cleared is not state:
                self.partitions.add(topic_id, cleared, at)
