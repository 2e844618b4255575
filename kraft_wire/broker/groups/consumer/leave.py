"""Members that go: they leave, leave for a while, or their time is over."""

from collections.abc import Sequence
from dataclasses import replace

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.epochs import epoch_after
from kraft_wire.broker.coordination.log import Appended, CoordinatorRecord
from kraft_wire.broker.groups.consumer.checks import LEFT_FOR_A_WHILE
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.member import AssignedPartitions, ConsumerMember
from kraft_wire.broker.groups.consumer.migration.downgrade import (
    Downgrade,
    downgrade,
    is_downgrade_due,
)
from kraft_wire.broker.groups.consumer.records import (
    current_assignment_record,
    epoch_record,
    member_tombstones,
    regex_tombstone,
)
from kraft_wire.broker.groups.consumer.subscriptions import (
    resolved_regexes,
    subscriber_count,
    subscriptions,
)
from kraft_wire.broker.groups.consumer.timers import timers_of
from kraft_wire.broker.groups.consumer.write import write
from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["leave_for_a_while", "remove_members"]


def remove_members(
    shard: GroupShard, group: ConsumerGroup, members: Sequence[ConsumerMember], at: ClockReading
) -> Appended:
    """Remove members: their partitions are free, and the group's epoch rises.

    The group becomes a classic one (`downgrade`) if only classic members are left.
    """
    gone = [each.member_id for each in members]
    if is_downgrade_due(shard, group, gone):
        left = [each for each in group.members.values() if each.member_id not in gone]
        targets = dict(group.targets.items())
        return downgrade(shard, Downgrade(group, left, targets, {}, (), rebalances=True), at)
    appended = write(shard, group, _removal(shard, group, members), at)
    if appended.error is ErrorCode.NONE:
        for member_id in gone:
            for timer in timers_of(group.group_id, member_id):
                shard.timers.cancel(timer)
    return appended


def leave_for_a_while(
    shard: GroupShard, group: ConsumerGroup, member: ConsumerMember, at: ClockReading
) -> Appended:
    """Keep a static member's partitions until it is back, or its session is over."""
    leaving = replace(
        member,
        member_epoch=LEFT_FOR_A_WHILE,
        assigned=_at_epoch_0(member.assigned),
        pending_revocation=JavaHashMap(),
    )
    return write(shard, group, [current_assignment_record(group.group_id, leaving)], at)


def _removal(
    shard: GroupShard, group: ConsumerGroup, members: Sequence[ConsumerMember]
) -> list[CoordinatorRecord]:
    gone = [each.member_id for each in members]
    records = [each for member_id in gone for each in member_tombstones(group.group_id, member_id)]
    unused = _unused_regexes(group, members)
    records += [regex_tombstone(group.group_id, each) for each in unused]
    left = [each for each in group.members.values() if each.member_id not in gone]
    topics = subscriptions(left, resolved_regexes(group, unused))
    image = shard.env.image()
    group.is_metadata_due(image)  # notes a change, whose topics the hash has
    metadata_hash = shard.env.topic_hashes.group_hash(topics.names, image)
    return [*records, epoch_record(group.group_id, epoch_after(group.epoch), metadata_hash)]


def _unused_regexes(group: ConsumerGroup, gone: Sequence[ConsumerMember]) -> list[str]:
    """Return the regular expressions that only members use that go."""
    users: dict[str, int] = {}
    for member in gone:
        if member.subscribed_topic_regex:
            regex = member.subscribed_topic_regex
            users[regex] = users.get(regex, 0) + 1
    return [regex for regex, count in users.items() if count == subscriber_count(group, regex)]


def _at_epoch_0(assigned: AssignedPartitions) -> AssignedPartitions:
    """Return partitions as if they had been given before every epoch (KIP-1251)."""
    reset: AssignedPartitions = JavaHashMap()
    for topic_id, partitions in assigned.items():
        epochs: JavaHashMap[int, int] = JavaHashMap()
        for partition in partitions:
            epochs[partition] = 0
        reset[topic_id] = epochs
    return reset
