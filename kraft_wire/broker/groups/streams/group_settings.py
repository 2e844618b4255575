"""Settings of one streams group (KIP-1071): its own value, else the broker's (`own_settings`)."""

from kraft_wire.broker.groups.environment import GroupEnvironment
from kraft_wire.broker.groups.own_settings import own_integer, within
from kraft_wire.broker.groups.streams.assignors.spec import NUM_STANDBY_REPLICAS

__all__ = [
    "assignment_configs",
    "assignment_interval_ms",
    "heartbeat_interval_ms",
    "initial_rebalance_delay_ms",
    "session_timeout_ms",
]


def session_timeout_ms(env: GroupEnvironment, group_id: str) -> int:
    """Return the silence after which a member of the group is removed."""
    broker = env.settings()
    return within(
        own_integer(env, group_id, "streams.session.timeout.ms"),
        broker.group_streams_session_timeout_ms,
        broker.group_streams_min_session_timeout_ms,
        broker.group_streams_max_session_timeout_ms,
    )


def heartbeat_interval_ms(env: GroupEnvironment, group_id: str) -> int:
    """Return the heartbeat interval that members of the group are given."""
    broker = env.settings()
    return within(
        own_integer(env, group_id, "streams.heartbeat.interval.ms"),
        broker.group_streams_heartbeat_interval_ms,
        broker.group_streams_min_heartbeat_interval_ms,
        broker.group_streams_max_heartbeat_interval_ms,
    )


def assignment_interval_ms(env: GroupEnvironment, group_id: str) -> int:
    """Return the least time between two targets; the broker's own value may be dynamic, too."""
    broker = env.settings()
    return within(
        own_integer(env, group_id, "streams.assignment.interval.ms"),
        broker.group_streams_assignment_interval_ms,
        broker.group_streams_min_assignment_interval_ms,
        broker.group_streams_max_assignment_interval_ms,
    )


def initial_rebalance_delay_ms(env: GroupEnvironment, group_id: str) -> int:
    """Return how long a group that was empty waits for more members; it has no limits."""
    own = own_integer(env, group_id, "streams.initial.rebalance.delay.ms")
    return env.settings().group_streams_initial_rebalance_delay_ms if own is None else own


def assignment_configs(env: GroupEnvironment, group_id: str) -> dict[str, str]:
    """Return what the assignor is given; a change raises the group's epoch."""
    broker = env.settings()
    own = own_integer(env, group_id, "streams.num.standby.replicas")
    replicas = broker.group_streams_num_standby_replicas
    if own is not None:
        replicas = min(own, broker.group_streams_max_standby_replicas)
    return {NUM_STANDBY_REPLICAS: str(replicas)}
