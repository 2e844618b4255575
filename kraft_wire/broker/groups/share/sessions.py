"""Time in share groups: the sessions of members, also of those that a load finds."""

from typing import Final

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.group_settings import session_timeout_ms
from kraft_wire.broker.groups.share.leave import remove_member
from kraft_wire.broker.groups.share.session_timer import ShareSession
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["renew_session", "session_over", "share_group_loaded"]

_RETRY_MS: Final = 500
"""Pause before an operation that could not be written is tried again."""


def renew_session(shard: GroupShard, group_id: str, member_id: str, at: ClockReading) -> None:
    """Give a member a whole session from now on."""
    deadline_ms = at.now_ms + session_timeout_ms(shard.env, group_id)
    shard.timers.schedule(ShareSession(group_id, member_id), deadline_ms)


def session_over(shard: GroupShard, session: ShareSession, at: ClockReading) -> None:
    """Remove a member that was silent too long; one that is gone does nothing."""
    group = shard.other_groups.get(session.group_id)
    member = group.members.get(session.member_id) if isinstance(group, ShareGroup) else None
    if member is None:
        return
    assert isinstance(group, ShareGroup), group
    if remove_member(shard, group, member, at).error is not ErrorCode.NONE:
        shard.timers.schedule(session, at.now_ms + _RETRY_MS)


def share_group_loaded(shard: GroupShard, group: ShareGroup, at: ClockReading) -> None:
    """Give every member a whole session, and every initialisation the time of a new one."""
    group.noted_at_ms = at.now_ms
    for member_id in group.members:
        renew_session(shard, group.group_id, member_id, at)
