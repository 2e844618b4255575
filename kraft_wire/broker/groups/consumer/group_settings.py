"""Settings of one consumer group: its own value, else the broker's, within the broker's limits.

KIP-848; KIP-1240: a stored value outside the limits that the broker has now counts as the nearest
limit.
"""

from kraft_wire.broker.groups.environment import GroupEnvironment
from kraft_wire.metadata.image import GROUP_RESOURCE
from kraft_wire.settings.group import GROUP_KEYS
from kraft_wire.settings.values import InvalidConfigValue, parse_value

__all__ = ["assignment_interval_ms", "heartbeat_interval_ms", "session_timeout_ms"]


def session_timeout_ms(env: GroupEnvironment, group_id: str) -> int:
    """Return the silence after which a member of the group is removed."""
    broker = env.settings()
    return _within(
        _own(env, group_id, "consumer.session.timeout.ms"),
        broker.group_consumer_session_timeout_ms,
        broker.group_consumer_min_session_timeout_ms,
        broker.group_consumer_max_session_timeout_ms,
    )


def heartbeat_interval_ms(env: GroupEnvironment, group_id: str) -> int:
    """Return the heartbeat interval that members of the group are given."""
    broker = env.settings()
    return _within(
        _own(env, group_id, "consumer.heartbeat.interval.ms"),
        broker.group_consumer_heartbeat_interval_ms,
        broker.group_consumer_min_heartbeat_interval_ms,
        broker.group_consumer_max_heartbeat_interval_ms,
    )


def assignment_interval_ms(env: GroupEnvironment, group_id: str) -> int:
    """Return the least time between two targets; the broker's own value may be dynamic, too."""
    broker = env.settings()
    return _within(
        _own(env, group_id, "consumer.assignment.interval.ms"),
        broker.group_consumer_assignment_interval_ms,
        broker.group_consumer_min_assignment_interval_ms,
        broker.group_consumer_max_assignment_interval_ms,
    )


def _within(own: int | None, default: int, lowest: int, highest: int) -> int:
    """Return the group's own value or the broker's, within the broker's limits."""
    value = default if own is None else own
    return max(lowest, min(value, highest))


def _own(env: GroupEnvironment, group_id: str, key: str) -> int | None:
    """Return the group's own value, None without one; another release may have stored a bad one."""
    text = env.image().config(GROUP_RESOURCE, group_id).get(key)
    if text is None:
        return None
    try:
        value = parse_value(GROUP_KEYS[key], text)
    except InvalidConfigValue:
        return None
    assert isinstance(value, int), (key, value)
    return value
