"""Members that go: they leave, or a deadline of theirs is over."""

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.epochs import epoch_after
from kraft_wire.broker.coordination.log import Appended
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.member import StreamsMember
from kraft_wire.broker.groups.streams.records import epoch_record, member_tombstones
from kraft_wire.broker.groups.streams.timers import timers_of
from kraft_wire.broker.groups.streams.write import write
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["remove_member"]


def remove_member(
    shard: GroupShard, group: StreamsGroup, member: StreamsMember, at: ClockReading
) -> Appended:
    """Remove a member, and raise the group's epoch."""
    records = [
        *member_tombstones(group.group_id, member.member_id),
        epoch_record(
            group.group_id,
            epoch_after(group.epoch),
            group.metadata_hash,
            group.validated_topology_epoch,
            group.assignment_configs,
        ),
    ]
    appended = write(shard, group, records, at)
    if appended.error is ErrorCode.NONE:
        for timer in timers_of(group.group_id, member.member_id):
            shard.timers.cancel(timer)
    return appended
