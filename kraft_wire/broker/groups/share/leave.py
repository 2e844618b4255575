"""Members that go: they leave, or their session is over."""

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.epochs import epoch_after
from kraft_wire.broker.coordination.log import Appended
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.member import ShareMember
from kraft_wire.broker.groups.share.records import epoch_record, member_tombstones
from kraft_wire.broker.groups.share.session_timer import ShareSession
from kraft_wire.broker.groups.share.write import write
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["remove_member"]


def remove_member(
    shard: GroupShard, group: ShareGroup, member: ShareMember, at: ClockReading
) -> Appended:
    """Remove a member, and raise the group's epoch."""
    left = [
        name
        for name, count in group.subscribers.items()
        if count > (name in member.subscribed_topic_names)
    ]
    metadata_hash = shard.env.topic_hashes.group_hash(left, shard.env.image())
    records = member_tombstones(group.group_id, member.member_id)
    records.append(epoch_record(group.group_id, epoch_after(group.epoch), metadata_hash))
    appended = write(shard, group, records, at)
    if appended.error is ErrorCode.NONE:
        group.keep_metadata_due(shard.env.image())
        shard.timers.cancel(ShareSession(group.group_id, member.member_id))
    return appended
