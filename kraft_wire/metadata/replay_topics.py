"""Replays topics and partitions: their replicas, leaders and ISRs.

KIP-631, KIP-704 (recovery), KIP-858 (directories), KIP-966 (eligible leader replicas). Called
through the table in `replay.py`; which change is due is not decided here.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from kraft_wire.metadata.image import TOPIC_RESOURCE, PartitionImage
from kraft_wire.metadata.image_draft import ImageDraft, MetadataFault

if TYPE_CHECKING:
    from kraft_wire.wire.generated.clear_elr_record import ClearElrRecord
    from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
    from kraft_wire.wire.generated.partition_record import PartitionRecord
    from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
    from kraft_wire.wire.generated.topic_record import TopicRecord

__all__ = [
    "UNCHANGED_LEADER",
    "add_partition",
    "add_topic",
    "change_partition",
    "clear_elr",
    "merge_partition",
    "remove_topic",
]

T = TypeVar("T")

UNCHANGED_LEADER: Final = -2
"""PartitionChangeRecord's leader when the record does not elect one."""


def add_topic(draft: ImageDraft, record: "TopicRecord") -> None:
    """A topic; its partitions follow as separate records."""
    assert record.RECORD_TYPE == 2, record
    draft.add_topic(record.name, record.topic_id)
    assert draft.topic_name(record.topic_id) == record.name


def remove_topic(draft: ImageDraft, record: "RemoveTopicRecord") -> None:
    """The deletion of a topic, its partitions and its configuration."""
    assert record.RECORD_TYPE == 9, record
    name = draft.remove_topic(record.topic_id)
    assert name, record
    draft.configs.drop((TOPIC_RESOURCE, name))


def add_partition(draft: ImageDraft, record: "PartitionRecord") -> PartitionImage:
    """One partition of an existing topic; return it."""
    assert record.RECORD_TYPE == 3, record
    partitions = draft.partitions(record.topic_id)
    if record.partition_id in partitions.now:
        name = draft.topic_name(record.topic_id)
        raise MetadataFault(f"partition {name}-{record.partition_id} already exists")
    added = PartitionImage(
        partition=record.partition_id,
        replicas=tuple(record.replicas),
        isr=tuple(record.isr),
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        leader_recovery_state=record.leader_recovery_state,
        removing_replicas=tuple(record.removing_replicas),
        adding_replicas=tuple(record.adding_replicas),
        directories=tuple(record.directories),
        eligible_leader_replicas=tuple(record.eligible_leader_replicas or ()),
        last_known_elr=tuple(record.last_known_elr or ()),
    )
    partitions.put(record.partition_id, added)
    assert partitions.get(added.partition) is added
    return added


def change_partition(draft: ImageDraft, record: "PartitionChangeRecord") -> PartitionImage:
    """New ISR, leader, replicas or directories of one partition; return the changed partition."""
    assert record.RECORD_TYPE == 5, record
    partitions = draft.partitions(record.topic_id)
    before = partitions.get(record.partition_id)
    if before is None:
        name = draft.topic_name(record.topic_id)
        raise MetadataFault(f"unknown partition {name}-{record.partition_id}")
    after = merge_partition(before, record)
    partitions.put(record.partition_id, after)
    return after


def merge_partition(before: PartitionImage, record: "PartitionChangeRecord") -> PartitionImage:
    """Return a partition after a change: null members stay, each change raises partition_epoch.

    The leader epoch rises exactly when the record names a leader, even the same one.
    """
    elects = record.leader != UNCHANGED_LEADER
    after = PartitionImage(
        partition=before.partition,
        replicas=_changed(record.replicas, before.replicas),
        isr=_changed(record.isr, before.isr),
        leader=record.leader if elects else before.leader,
        leader_epoch=before.leader_epoch + (1 if elects else 0),
        partition_epoch=before.partition_epoch + 1,
        leader_recovery_state=(
            before.leader_recovery_state
            if record.leader_recovery_state < 0
            else record.leader_recovery_state
        ),
        removing_replicas=_changed(record.removing_replicas, before.removing_replicas),
        adding_replicas=_changed(record.adding_replicas, before.adding_replicas),
        directories=_changed(record.directories, before.directories),
        eligible_leader_replicas=_changed(
            record.eligible_leader_replicas, before.eligible_leader_replicas
        ),
        last_known_elr=_changed(record.last_known_elr, before.last_known_elr),
    )
    assert after.partition == before.partition
    assert after.partition_epoch > before.partition_epoch
    return after


def clear_elr(draft: ImageDraft, record: "ClearElrRecord") -> None:
    """Drop the eligible leader replicas of one topic, or of all when no name is given."""
    assert record.RECORD_TYPE == 28, record
    topic_ids = [draft.topic_id(record.topic_name)] if record.topic_name else draft.topic_ids()
    for topic_id in topic_ids:
        partitions = draft.partitions(topic_id)
        for number, partition in list(partitions.now.items()):
            if partition.eligible_leader_replicas or partition.last_known_elr:
                cleared = partition._replace(
                    eligible_leader_replicas=(),
                    last_known_elr=(),
                    partition_epoch=partition.partition_epoch + 1,
                )
                partitions.put(number, cleared)
                assert cleared.partition == number, cleared


def _changed(new: "Sequence[T] | None", old: tuple[T, ...]) -> tuple[T, ...]:
    return old if new is None else tuple(new)
