"""Settings of one share group (KIP-932): its own value, else the broker's (`own_settings`)."""

from kraft_wire.broker.groups.environment import GroupEnvironment
from kraft_wire.broker.groups.own_settings import own_integer, within

__all__ = ["assignment_interval_ms", "heartbeat_interval_ms", "session_timeout_ms"]


def session_timeout_ms(env: GroupEnvironment, group_id: str) -> int:
    """Return the silence after which a member of the group is removed."""
    broker = env.settings()
    return within(
        own_integer(env, group_id, "share.session.timeout.ms"),
        broker.group_share_session_timeout_ms,
        broker.group_share_min_session_timeout_ms,
        broker.group_share_max_session_timeout_ms,
    )


def heartbeat_interval_ms(env: GroupEnvironment, group_id: str) -> int:
    """Return the heartbeat interval that members of the group are given."""
    broker = env.settings()
    return within(
        own_integer(env, group_id, "share.heartbeat.interval.ms"),
        broker.group_share_heartbeat_interval_ms,
        broker.group_share_min_heartbeat_interval_ms,
        broker.group_share_max_heartbeat_interval_ms,
    )


def assignment_interval_ms(env: GroupEnvironment, group_id: str) -> int:
    """Return the least time between two targets; the broker's own value may be dynamic, too."""
    broker = env.settings()
    return within(
        own_integer(env, group_id, "share.assignment.interval.ms"),
        broker.group_share_assignment_interval_ms,
        broker.group_share_min_assignment_interval_ms,
        broker.group_share_max_assignment_interval_ms,
    )
