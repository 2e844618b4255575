"""The metadata log replayed record by record, and what was true from when to when. No Spark here.

Every record goes through `controller.replay`, so the end is that replay's image; beside it stands
what became of each partition (leader, ISR, ELR: KIP-631, KIP-966) and who was elected. A metadata
transaction (KIP-868) counts from the record that ends it on; one that is aborted, or open at the
end, never was.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kraft_wire.controller.image import EMPTY_IMAGE, MetadataImage, PartitionImage
from kraft_wire.controller.image_draft import ImageDraft, MetadataFault
from kraft_wire.controller.replay import replay
from kraft_wire.controller.replay_topics import change_partition
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.clear_elr_record import ClearElrRecord
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.message import Message

__all__ = ["UNKNOWN", "Change", "Election", "MetadataHistory", "Moment"]

_BEGIN: Final = 23
_END: Final = 24
_ABORT: Final = 25
_RECOVERING: Final = 1
"""The leader recovery state that an unclean election leaves (KIP-704)."""


class Moment(NamedTuple):
    """A place in the log, and the time that its record bears."""

    offset: int
    timestamp_ms: int


UNKNOWN: Final = Moment(-1, -1)
"""What a snapshot holds became so before the log that is left begins."""


class Change(NamedTuple):
    """One state of one partition, after record `since` up to and with record `until`."""

    topic: str
    topic_id: Uuid
    state: PartitionImage
    since: Moment
    until: Moment | None
    """None as long as it lasts; the record there brought the next state, or the topic's end."""


class Election(NamedTuple):
    """A leader epoch of a partition, or of the quorum itself."""

    topic: str
    topic_id: Uuid | None
    partition: int
    leader_epoch: int
    from_leader: int
    to_leader: int
    is_unclean: bool
    at: Moment


@dataclass(slots=True)
class MetadataHistory:
    """Takes records in the order of the log; a MetadataFault makes it good for nothing."""

    ended: list[Change] = field(default_factory=list)
    elections: list[Election] = field(default_factory=list)
    created: dict[Uuid, Moment] = field(default_factory=dict)
    _draft: ImageDraft = field(default_factory=lambda: ImageDraft(EMPTY_IMAGE))
    _since: dict[tuple[Uuid, int], Moment] = field(default_factory=dict)
    _held_back: list[Message] | None = None
    """The records of an open transaction."""

    def take_snapshot(self, records: Iterable[Message]) -> None:
        """Begin with a snapshot: there are no transactions, and nothing is known of before."""
        for record in records:
            self._apply(record, UNKNOWN)

    def take(self, record: Message, at: Moment) -> None:
        """Go one record on."""
        if record.RECORD_TYPE in (_BEGIN, _END, _ABORT):
            self._mark(record.RECORD_TYPE, at)
        elif self._held_back is not None:
            self._held_back.append(record)
        else:
            self._apply(record, at)

    def image(self, at: Moment, epoch: int) -> MetadataImage:
        """Return what is true after the last record."""
        return self._draft.finish(max(at.offset, -1), epoch)

    def lasting(self, image: MetadataImage) -> Iterable[Change]:
        """Yield the states that last, by topic and partition."""
        for topic in image.topics():
            for number, state in topic.partitions.items():
                since = self._since[topic.topic_id, number]
                yield Change(topic.name, topic.topic_id, state, since, None)

    def _mark(self, marker: int, at: Moment) -> None:
        if (marker == _BEGIN) != (self._held_back is None):
            raise MetadataFault(f"the transaction marker at offset {at.offset} has no counterpart")
        held_back, self._held_back = self._held_back, [] if marker == _BEGIN else None
        if marker == _END:
            for record in held_back or ():
                self._apply(record, at)

    def _apply(self, record: Message, at: Moment) -> None:
        if isinstance(record, PartitionChangeRecord):
            self._change(record, at)
        elif isinstance(record, PartitionRecord):
            replay(self._draft, record)
            self._since[record.topic_id, record.partition_id] = at
        elif isinstance(record, RemoveTopicRecord):
            self._remove(record, at)
        elif isinstance(record, ClearElrRecord):
            self._clear(record, at)
        else:
            replay(self._draft, record)
            if isinstance(record, TopicRecord):
                self.created[record.topic_id] = at

    def _change(self, record: PartitionChangeRecord, at: Moment) -> None:
        before, after = change_partition(self._draft, record)
        topic_id = record.topic_id
        name = self._draft.topic_name(topic_id)
        key = topic_id, before.partition
        self.ended.append(Change(name, topic_id, before, self._since[key], at))
        self._since[key] = at
        if after.leader_epoch != before.leader_epoch:
            self._elect(name, topic_id, before, after, at)

    def _end(self, name: str, topic_id: Uuid, state: PartitionImage, at: Moment) -> None:
        since = self._since[topic_id, state.partition]
        self.ended.append(Change(name, topic_id, state, since, at))

    def _elect(
        self, name: str, topic_id: Uuid, before: PartitionImage, after: PartitionImage, at: Moment
    ) -> None:
        is_new = after.leader >= 0 and after.leader not in before.isr
        self.elections.append(
            Election(
                name,
                topic_id,
                after.partition,
                after.leader_epoch,
                before.leader,
                after.leader,
                is_new and after.leader_recovery_state == _RECOVERING,
                at,
            )
        )

    def _remove(self, record: RemoveTopicRecord, at: Moment) -> None:
        topic_id = record.topic_id
        name = self._draft.topic_name(topic_id)
        for state in self._draft.partitions(topic_id).now.values():
            self._end(name, topic_id, state, at)
            del self._since[topic_id, state.partition]
        self.created.pop(topic_id, None)
        replay(self._draft, record)

    def _clear(self, record: ClearElrRecord, at: Moment) -> None:
        draft = self._draft
        topic_ids = [draft.topic_id(record.topic_name)] if record.topic_name else draft.topic_ids()
        before = [
            (topic_id, state)
            for topic_id in topic_ids
            for state in draft.partitions(topic_id).now.values()
        ]
        replay(draft, record)
        for topic_id, state in before:
            if draft.partitions(topic_id).get(state.partition) is not state:
                self._end(draft.topic_name(topic_id), topic_id, state, at)
                self._since[topic_id, state.partition] = at
