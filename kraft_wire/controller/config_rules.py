"""Which settings a topic, a broker, a client-metrics subscription or a group may have.

Each rule takes a resource's name and the whole set of values that it would have after the change,
and raises the Refusal that Kafka's answer would carry. KIP-226 for brokers, KIP-714 for client
metrics, KIP-848 and its successors for groups.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kraft_wire.controller.client_patterns import check_client_pattern
from kraft_wire.controller.java_map import java_map_order
from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from kraft_wire.settings.broker import (
    BROKER_KEYS,
    CLUSTER_LISTENER_KEYS,
    DYNAMIC_BROKER_KEYS,
    STORE_KEYS,
    is_listener_key,
    listener_base_name,
)
from kraft_wire.settings.definition import ConfigKey, ConfigKind, ConfigValue, UpdateMode
from kraft_wire.settings.group import (
    CLIENT_METRICS_KEYS,
    CLIENT_METRICS_KEYS_AS_DEFINED,
    GROUP_KEYS,
    GROUP_KEYS_AS_DEFINED,
)
from kraft_wire.settings.log_times import LOG_TIMES, log_time_problem
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.settings.topic import TOPIC_KEYS, TOPIC_KEYS_AS_DEFINED
from kraft_wire.settings.topic_names import topic_name_problem
from kraft_wire.settings.values import InvalidConfigValue, parse_value
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = [
    "check_kind",
    "check_no_nulls",
    "check_resource",
    "check_topic_name",
    "check_topic_values",
    "keys_of",
]

Values = Mapping[str, str | None]

_INTERVAL_MS_MIN: Final = 100
_INTERVAL_MS_MAX: Final = 3_600_000
_GROUP_KINDS: Final = ("consumer", "share", "streams")
_GROUP_LIMITS: Final = (
    ("consumer", "heartbeat.interval.ms"),
    ("consumer", "session.timeout.ms"),
    ("consumer", "assignment.interval.ms"),
    ("share", "heartbeat.interval.ms"),
    ("share", "session.timeout.ms"),
    ("share", "record.lock.duration.ms"),
    ("share", "delivery.count.limit"),
    ("share", "partition.max.record.locks"),
    ("share", "assignment.interval.ms"),
    ("streams", "heartbeat.interval.ms"),
    ("streams", "session.timeout.ms"),
)
"""A group's number is between the broker's `group.<kind>.min.<key>` and `.max.<key>`.

In the order in which 4.3.1 looks at them; the last one comes after the standby replicas.
"""
_LAST_GROUP_LIMIT: Final = ("streams", "assignment.interval.ms")
_STANDBY_REPLICAS: Final = "streams.num.standby.replicas"
_STANDBY_REPLICAS_MAX: Final = "group.streams.max.standby.replicas"


def check_resource(resource_type: int, name: str, values: Values, settings: NodeSettings) -> None:
    """Raise a Refusal for invalid new values of a resource; its existence is not checked."""
    assert _RULES.keys() == _KEYS.keys(), "each kind of resource has keys and a rule"
    rule = _RULES.get(resource_type)
    if rule is None:
        raise _unknown_kind(resource_type)
    rule(name, values, settings)


def check_kind(resource_type: int) -> None:
    """Refuse a resource of a type that a broker does not know: INVALID_REQUEST."""
    if resource_type not in _RULES:
        raise _unknown_kind(resource_type)


def _unknown_kind(resource_type: int) -> Refusal:
    assert resource_type not in _RULES, resource_type
    return Refusal(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")


def keys_of(resource_type: int) -> Mapping[str, ConfigKey]:
    """Return the keys of a resource type; empty for an unknown type."""
    return _KEYS.get(resource_type, {})


def check_topic_name(name: str) -> None:
    """Refuse a name that no topic may have: INVALID_TOPIC_EXCEPTION."""
    problem = topic_name_problem(name)
    if problem is not None:
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def check_no_nulls(names: Sequence[str]) -> None:
    """Refuse the keys of a topic that have null as their value: INVALID_CONFIG."""
    assert not isinstance(names, str), names
    if names:
        words = f"Null value not supported for topic configs: {','.join(names)}"
        raise Refusal(ErrorCode.INVALID_CONFIG, words)


def check_topic_values(values: Values, settings: NodeSettings) -> None:
    """Refuse unknown keys, values of the wrong form, and values that contradict each other.

    Errors, all INVALID_CONFIG, first match wins: null, unknown key, wrong value,
    `min.compaction.lag.ms` above `max.compaction.lag.ms`, tiered storage.
    """
    check_no_nulls([name for name, value in values.items() if value is None])
    for name in java_map_order(values):
        if name not in TOPIC_KEYS:
            raise Refusal(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    parsed = _all_parsed(TOPIC_KEYS, TOPIC_KEYS_AS_DEFINED, values)
    shortest = parsed.get(
        "min.compaction.lag.ms", settings.value("log.cleaner.min.compaction.lag.ms")
    )
    longest = parsed.get(
        "max.compaction.lag.ms", settings.value("log.cleaner.max.compaction.lag.ms")
    )
    assert isinstance(shortest, int)
    assert isinstance(longest, int)
    if shortest > longest:
        raise Refusal(
            ErrorCode.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > "
            f"max.compaction.lag.ms ({longest})",
        )
    if parsed.get("remote.storage.enable"):
        raise Refusal(
            ErrorCode.INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )


def _check_topic(name: str, values: Values, settings: NodeSettings) -> None:
    if not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    check_topic_name(name)
    check_topic_values(values, settings)


def _check_broker(name: str, values: Values, settings: NodeSettings) -> None:
    """Refuse non-dynamic keys, wrong values, and keys of one broker for all (KIP-226).

    Unknown keys are skipped. Errors, all INVALID_REQUEST, first match wins.
    """
    fixed = [key for key in values if key in BROKER_KEYS and key not in DYNAMIC_BROKER_KEYS]
    if fixed:
        words = f"Cannot update these configs dynamically: [{', '.join(java_map_order(fixed))}]"
        raise Refusal(ErrorCode.INVALID_REQUEST, words)
    bare = [key for key in values if key in STORE_KEYS]
    if bare:
        words = (
            "These security configs can be dynamically updated only per-listener using the "
            f"listener prefix: [{', '.join(java_map_order(bare))}]"
        )
        raise Refusal(ErrorCode.INVALID_REQUEST, words)
    parsed = {}
    for key, text in values.items():
        known = DYNAMIC_BROKER_KEYS.get(listener_base_name(key) if is_listener_key(key) else key)
        if known is not None:
            parsed[key] = _parsed(known, text, ErrorCode.INVALID_REQUEST)
    assert parsed.keys() <= values.keys(), parsed
    own = [key for key in values if _concerns_one_broker(key)]
    if own and not name:
        words = (
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"[{', '.join(java_map_order(own))}]"
        )
        raise Refusal(ErrorCode.INVALID_REQUEST, words)
    for key in LOG_TIMES:
        value = parsed.get(key)
        problem = log_time_problem(key, value) if isinstance(value, int) else None
        if problem is not None:
            raise Refusal(ErrorCode.INVALID_REQUEST, f"requirement failed: {problem}")


def _concerns_one_broker(name: str) -> bool:
    known = DYNAMIC_BROKER_KEYS.get(name)
    assert known is None or known.scope is not UpdateMode.READ_ONLY, name
    if is_listener_key(name):
        return listener_base_name(name) not in CLUSTER_LISTENER_KEYS
    return known is not None and known.scope is UpdateMode.PER_BROKER


def _check_client_metrics(name: str, values: Values, settings: NodeSettings) -> None:
    """Refuse a subscription (KIP-714).

    Errors, first match wins: INVALID_REQUEST for no name and an unknown key, INVALID_CONFIG for a
    value of the wrong form, INVALID_REQUEST for an interval out of bounds, INVALID_CONFIG for a
    pattern.
    """
    if not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for key in java_map_order(values):
        if key not in CLIENT_METRICS_KEYS:
            words = f"Unknown client metrics configuration: {key}"
            raise Refusal(ErrorCode.INVALID_REQUEST, words)
    parsed = _all_parsed(CLIENT_METRICS_KEYS, CLIENT_METRICS_KEYS_AS_DEFINED, values)
    interval_ms = parsed.get("interval.ms", _INTERVAL_MS_MIN)
    assert isinstance(interval_ms, int)
    if not _INTERVAL_MS_MIN <= interval_ms <= _INTERVAL_MS_MAX:
        words = (
            f"Invalid value {interval_ms} for interval.ms, interval must be between "
            f"{_INTERVAL_MS_MIN} and {_INTERVAL_MS_MAX} (1 hour)"
        )
        raise Refusal(ErrorCode.INVALID_REQUEST, words)
    patterns = parsed.get("match", ())
    assert isinstance(patterns, tuple)
    for pattern in patterns:
        check_client_pattern(pattern)


def _check_group(name: str, values: Values, settings: NodeSettings) -> None:
    if not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    for key in values:
        if key not in GROUP_KEYS:
            raise Refusal(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {key}")
    parsed = _all_parsed(GROUP_KEYS, GROUP_KEYS_AS_DEFINED, values)
    numbers = {
        key: value
        for key, value in parsed.items()
        if isinstance(value, int) and not isinstance(value, bool)
    }
    assert numbers.keys() <= GROUP_KEYS.keys(), numbers
    for kind, key in _GROUP_LIMITS:
        _check_group_limit(kind, key, numbers, settings)
    _check_standby_replicas(numbers, settings)
    _check_group_limit(*_LAST_GROUP_LIMIT, numbers, settings)
    for kind in _GROUP_KINDS:
        _check_session_outlives_heartbeat(kind, numbers, settings)


def _check_group_limit(
    kind: str, key: str, numbers: Mapping[str, int], settings: NodeSettings
) -> None:
    assert kind in _GROUP_KINDS, kind
    number = numbers.get(f"{kind}.{key}")
    if number is None:
        return
    assert f"{kind}.{key}" in GROUP_KEYS, key
    lowest, highest = f"group.{kind}.min.{key}", f"group.{kind}.max.{key}"
    words = None
    if number < settings.integer(lowest):
        words = f"{kind}.{key} must be greater than or equal to {lowest}"
    elif number > settings.integer(highest):
        words = f"{kind}.{key} must be less than or equal to {highest}"
    if words is not None:
        raise Refusal(ErrorCode.INVALID_CONFIG, words)


def _check_standby_replicas(numbers: Mapping[str, int], settings: NodeSettings) -> None:
    number = numbers.get(_STANDBY_REPLICAS, 0)
    assert number >= 0, "checked by its definition"
    if number > settings.integer(_STANDBY_REPLICAS_MAX):
        words = f"{_STANDBY_REPLICAS} must be less than or equal to {_STANDBY_REPLICAS_MAX}"
        raise Refusal(ErrorCode.INVALID_CONFIG, words)


def _check_session_outlives_heartbeat(
    kind: str, numbers: Mapping[str, int], settings: NodeSettings
) -> None:
    session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    assert kind in _GROUP_KINDS, kind
    session_ms = numbers.get(session, settings.integer(f"group.{session}"))
    heartbeat_ms = numbers.get(heartbeat, settings.integer(f"group.{heartbeat}"))
    if session_ms <= heartbeat_ms:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"{session} must be greater than {heartbeat}")


def _all_parsed(
    keys: Mapping[str, ConfigKey], as_defined: Sequence[str], values: Values
) -> dict[str, ConfigValue]:
    """Return typed values; INVALID_CONFIG for the wrong one that 4.3.1 defines first."""
    assert len(keys) == len(as_defined), "a key is missing from the order"
    parsed = {
        name: _parsed(keys[name], values[name], ErrorCode.INVALID_CONFIG)
        for name in as_defined
        if name in values
    }
    assert len(parsed) == len(values), "unknown keys are refused before"
    return parsed


def _parsed(key: ConfigKey, text: str | None, error: ErrorCode) -> ConfigValue:
    assert error in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST), error
    try:
        return parse_value(key, text)
    except InvalidConfigValue as problem:
        shown = problem
        if key.kind is ConfigKind.PASSWORD:  # the value must not come back in an answer or a log
            shown = InvalidConfigValue(key.name, "[hidden]", problem.reason)
        raise Refusal(error, str(shown)) from problem


_RULES: Final[dict[int, Callable[[str, Values, NodeSettings], None]]] = {
    TOPIC_RESOURCE: _check_topic,
    BROKER_RESOURCE: _check_broker,
    CLIENT_METRICS_RESOURCE: _check_client_metrics,
    GROUP_RESOURCE: _check_group,
}

_KEYS: Final[dict[int, Mapping[str, ConfigKey]]] = {
    TOPIC_RESOURCE: TOPIC_KEYS,
    BROKER_RESOURCE: DYNAMIC_BROKER_KEYS,
    CLIENT_METRICS_RESOURCE: CLIENT_METRICS_KEYS,
    GROUP_RESOURCE: GROUP_KEYS,
}
