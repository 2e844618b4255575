"""Settings of one consumer group (KIP-848): its own value, else the broker's (`own_settings`)."""

from kraft_wire.broker.groups.environment import GroupEnvironment
from kraft_wire.broker.groups.own_settings import own_integer, within

__all__ = ["assignment_interval_ms", "heartbeat_interval_ms", "session_timeout_ms"]


def session_timeout_ms(env: GroupEnvironment, group_id: str) -> int:
    """Return the silence after which a member of the group is removed."""
    broker = env.settings()
    return within(
        own_integer(env, group_id, "consumer.session.timeout.ms"),
        broker.group_consumer_session_timeout_ms,
        broker.group_consumer_min_session_timeout_ms,
        broker.group_consumer_max_session_timeout_ms,
    )


def heartbeat_interval_ms(env: GroupEnvironment, group_id: str) -> int:
    """Return the heartbeat interval that members of the group are given."""
    broker = env.settings()
    return within(
        own_integer(env, group_id, "consumer.heartbeat.interval.ms"),
        broker.group_consumer_heartbeat_interval_ms,
        broker.group_consumer_min_heartbeat_interval_ms,
        broker.group_consumer_max_heartbeat_interval_ms,
    )


def assignment_interval_ms(env: GroupEnvironment, group_id: str) -> int:
    """Return the least time between two targets; the broker's own value may be dynamic, too."""
    broker = env.settings()
    return within(
        own_integer(env, group_id, "consumer.assignment.interval.ms"),
        broker.group_consumer_assignment_interval_ms,
        broker.group_consumer_min_assignment_interval_ms,
        broker.group_consumer_max_assignment_interval_ms,
    )
