"""Each rule about settings of topics, brokers, client metrics and groups, at its edges.

The words are those of release 4.3.1, which `test_admin_answers.py` has observed of some.
"""

import pytest

from kraft_wire.controller.config_rules import check_resource, check_topic_values, keys_of
from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from kraft_wire.settings.broker import DYNAMIC_BROKER_KEYS
from kraft_wire.settings.group import CLIENT_METRICS_KEYS, GROUP_KEYS
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.settings.topic import TOPIC_KEYS
from kraft_wire.wire.generated.error_code import ErrorCode

INVALID_REQUEST, INVALID_CONFIG = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG
SHORTEST, LONGEST = "min.compaction.lag.ms", "max.compaction.lag.ms"


def refused(
    resource: int, name: str, values: dict[str, str | None], file: dict[str, str] | None = None
) -> tuple[ErrorCode, str] | None:
    try:
        check_resource(resource, name, values, NodeSettings(file or {}))
    except Refusal as refusal:
        return refusal.error, refusal.message or ""
    return None


def test_each_kind_of_resource_has_its_keys() -> None:
    assert keys_of(TOPIC_RESOURCE) is TOPIC_KEYS
    assert keys_of(BROKER_RESOURCE) is DYNAMIC_BROKER_KEYS
    assert keys_of(CLIENT_METRICS_RESOURCE) is CLIENT_METRICS_KEYS
    assert keys_of(GROUP_RESOURCE) is GROUP_KEYS
    assert keys_of(77) == {}
    assert refused(77, "t", {}) == (INVALID_REQUEST, "Unknown resource type 77")


def test_topic_values_are_judged_in_this_order() -> None:
    """Null, unknown key, wrong value, contradiction, tiered storage: LogConfig.validate."""
    values: dict[str, str | None] = {
        "retention.ms": None,
        "segment.bytes": None,
        "no.key": "1",
        "segment.ms": "x",
        "remote.storage.enable": "true",
        SHORTEST: "2",
        LONGEST: "1",
    }
    beginnings = [
        (["retention.ms", "segment.bytes"], "Null value not supported for topic configs: "),
        (["no.key"], "Unknown topic config name: no.key"),
        (["segment.ms"], "Invalid value x for configuration segment.ms: "),
        ([SHORTEST], "conflict topic config setting min.compaction.lag.ms (2) > "),
        (["remote.storage.enable"], "Tiered Storage functionality is disabled in the broker. "),
    ]
    for names, beginning in beginnings:
        found = refused(TOPIC_RESOURCE, "t", values)
        assert found is not None
        assert (found[0], found[1][: len(beginning)]) == (INVALID_CONFIG, beginning)
        for name in names:
            del values[name]
    assert refused(TOPIC_RESOURCE, "t", values) is None


def test_all_null_values_of_a_topic_are_named() -> None:
    found = refused(TOPIC_RESOURCE, "t", {"retention.ms": None, "segment.bytes": None})
    words = "Null value not supported for topic configs: retention.ms,segment.bytes"
    assert found == (INVALID_CONFIG, words)


def test_tiered_storage_may_be_declined() -> None:
    assert refused(TOPIC_RESOURCE, "t", {"remote.storage.enable": "false"}) is None


@pytest.mark.parametrize(
    ("values", "file", "is_fine"),
    [
        ({SHORTEST: "5", LONGEST: "5"}, {}, True),
        ({SHORTEST: "6", LONGEST: "5"}, {}, False),
        ({SHORTEST: "6"}, {"log.cleaner.max.compaction.lag.ms": "6"}, True),
        ({SHORTEST: "7"}, {"log.cleaner.max.compaction.lag.ms": "6"}, False),
        ({LONGEST: "6"}, {"log.cleaner.min.compaction.lag.ms": "6"}, True),
        ({LONGEST: "5"}, {"log.cleaner.min.compaction.lag.ms": "6"}, False),
    ],
)
def test_compaction_lags_do_not_contradict_each_other(
    values: dict[str, str], file: dict[str, str], is_fine: bool
) -> None:
    if is_fine:
        check_topic_values(values, NodeSettings(file))
        return
    with pytest.raises(Refusal, match=r"^conflict topic config setting min\.compaction\.lag\.ms"):
        check_topic_values(values, NodeSettings(file))


def test_a_topic_has_a_name_that_topics_may_have() -> None:
    default = "Default topic resources are not allowed."
    assert refused(TOPIC_RESOURCE, "", {}) == (INVALID_REQUEST, default)
    found = refused(TOPIC_RESOURCE, "a b", {})
    assert found is not None
    assert found[0] is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert refused(TOPIC_RESOURCE, "a.b", {}) is None


def test_only_dynamic_keys_of_a_broker_change() -> None:
    values: dict[str, str | None] = {
        "num.partitions": "1",
        "log.cleaner.threads": "2",
        "node.id": "1",
    }
    words = "Cannot update these configs dynamically: [node.id, num.partitions]"
    for name in ("", "1"):
        assert refused(BROKER_RESOURCE, name, values) == (INVALID_REQUEST, words)
        assert refused(BROKER_RESOURCE, name, {"log.cleaner.threads": "2"}) is None
        assert refused(BROKER_RESOURCE, name, {"own.key": "x"}) is None
        assert refused(BROKER_RESOURCE, name, {"listener.name": "x"}) is None


@pytest.mark.parametrize(
    "key",
    [
        "listener.name.a.ssl.keystore.type",
        "listener.name.a.own",
        "listener.name.a.b.max.connections",
    ],
)
def test_what_concerns_one_broker_is_set_for_one(key: str) -> None:
    words = "Cannot update these configs at default cluster level, broker id must be specified: "
    found = refused(BROKER_RESOURCE, "", {"log.cleaner.threads": "2", key: "1"})
    assert found == (INVALID_REQUEST, f"{words}[{key}]")
    assert refused(BROKER_RESOURCE, "1", {"log.cleaner.threads": "2", key: "1"}) is None


@pytest.mark.parametrize(
    "key", ["max.connections", "max.connection.creation.rate", "num.network.threads"]
)
def test_limits_of_a_listener_may_be_set_for_all_brokers(key: str) -> None:
    """DynamicBrokerConfig.perBrokerConfigs of 4.3.1."""
    assert refused(BROKER_RESOURCE, "", {f"listener.name.a.{key}": "1"}) is None


def test_a_wrong_value_is_refused_before_the_level_is() -> None:
    """DynamicBrokerConfig.validateConfigs of 4.3.1."""
    values: dict[str, str | None] = {"listener.name.a.ssl.client.auth": "maybe"}
    found = refused(BROKER_RESOURCE, "", values)
    words = (
        "Invalid value maybe for configuration ssl.client.auth: "
        "String must be one of: required, requested, none"
    )
    assert found == (INVALID_REQUEST, words)


@pytest.mark.parametrize(
    ("key", "wrong", "fine", "words"),
    [
        ("log.roll.ms", ("0", "-1"), ("1",), "must be greater than or equal to 1"),
        ("log.roll.jitter.ms", ("-1",), ("0",), "must be greater than or equal to 0"),
        (
            "log.retention.ms",
            ("0",),
            ("-1", "-2", "1"),
            "must be unlimited (-1) or, greater than or equal to 1",
        ),
    ],
)
def test_times_of_a_broker_s_logs_are_as_kafka_starts_with_them(
    key: str, wrong: tuple[str, ...], fine: tuple[str, ...], words: str
) -> None:
    """KafkaConfig.validateValues of 4.3.1: a broker checks the settings that it would have."""
    for name in ("", "1"):
        for text in wrong:
            found = refused(BROKER_RESOURCE, name, {key: text})
            assert found == (INVALID_REQUEST, f"requirement failed: {key} {words}")
        for text in fine:
            assert refused(BROKER_RESOURCE, name, {key: text}) is None


@pytest.mark.parametrize(
    ("resource", "first", "second"),
    [
        (TOPIC_RESOURCE, "segment.bytes", "retention.ms"),
        (TOPIC_RESOURCE, "retention.ms", "cleanup.policy"),
        (GROUP_RESOURCE, "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"),
        (GROUP_RESOURCE, "share.session.timeout.ms", "share.isolation.level"),
    ],
)
def test_the_wrong_value_that_kafka_defines_first_is_named(
    resource: int, first: str, second: str
) -> None:
    """ConfigDef.parse of 4.3.1 reads the values in the order of its definitions."""
    for values in ({first: "x", second: "x"}, {second: "x", first: "x"}):
        found = refused(resource, "r", {**values})
        assert found is not None
        assert found[1].startswith(f"Invalid value x for configuration {first}: ")


@pytest.mark.parametrize("name", ["1", ""])
def test_a_key_of_stores_needs_the_prefix_of_a_listener(name: str) -> None:
    """KIP-226: these words come before those about the default level, as in Kafka."""
    words = "These security configs can be dynamically updated only per-listener using the listener"
    found = refused(BROKER_RESOURCE, name, {"log.cleaner.threads": "2", "ssl.key.password": "1"})
    assert found == (INVALID_REQUEST, f"{words} prefix: [ssl.key.password]")


@pytest.mark.parametrize("key", ["log.cleaner.threads", "listener.name.a.log.cleaner.threads"])
def test_a_wrong_value_of_a_broker_is_refused(key: str) -> None:
    found = refused(BROKER_RESOURCE, "1", {key: "x"})
    words = "Invalid value x for configuration log.cleaner.threads: Not a number of type INT"
    assert found == (INVALID_REQUEST, words)


@pytest.mark.parametrize(
    ("text", "is_fine"),
    [("99", False), ("100", True), ("3600000", True), ("3600001", False)],
)
def test_client_metrics_are_pushed_at_most_ten_times_a_second(text: str, is_fine: bool) -> None:
    found = refused(CLIENT_METRICS_RESOURCE, "s", {"interval.ms": text, "metrics": "a"})
    words = (
        f"Invalid value {text} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
    )
    assert found == (None if is_fine else (INVALID_REQUEST, words))


def test_client_metrics_of_no_name_or_of_unknown_keys_are_refused() -> None:
    nameless = refused(CLIENT_METRICS_RESOURCE, "", {"interval.ms": "100"})
    assert nameless == (INVALID_REQUEST, "Subscription name can't be empty")
    unknown = refused(CLIENT_METRICS_RESOURCE, "s", {"interval.ms": "100", "no.key": "1"})
    assert unknown == (INVALID_REQUEST, "Unknown client metrics configuration: no.key")


def test_errors_of_client_metrics_in_order() -> None:
    """4.3.1's ClientMetricsConfigs, and its ClientTelemetryTest for a value of the wrong form."""
    values: dict[str, str | None] = {"match": "wrong", "interval.ms": "bbb", "no.key": "1"}
    found = refused(CLIENT_METRICS_RESOURCE, "s", values)
    assert found == (INVALID_REQUEST, "Unknown client metrics configuration: no.key")
    del values["no.key"]
    found = refused(CLIENT_METRICS_RESOURCE, "s", values)
    words = "Invalid value bbb for configuration interval.ms: Not a number of type INT"
    assert found == (INVALID_CONFIG, words)
    values["interval.ms"] = "1"
    found = refused(CLIENT_METRICS_RESOURCE, "s", values)
    words = "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)"
    assert found == (INVALID_REQUEST, words)
    values["interval.ms"] = "100"
    found = refused(CLIENT_METRICS_RESOURCE, "s", values)
    assert found == (INVALID_CONFIG, "Illegal client matching pattern: wrong")


def test_every_pattern_of_client_metrics_is_looked_at() -> None:
    good = "client_software_name=a"
    assert refused(CLIENT_METRICS_RESOURCE, "s", {"match": good}) is None
    for text in (f"{good},no_selector=b", f"no_selector=b,{good}", "client_software_name"):
        assert refused(CLIENT_METRICS_RESOURCE, "s", {"match": text}) is not None
    assert refused(CLIENT_METRICS_RESOURCE, "s", {"metrics": "no_selector=b"}) is None


LIMITS = [
    *(
        (f"{kind}.{key}", low, high)
        for kind in ("consumer", "share", "streams")
        for key, low, high in (
            ("heartbeat.interval.ms", 5_000, 15_000),
            ("session.timeout.ms", 45_000, 60_000),
            ("assignment.interval.ms", 0, 15_000),
        )
    ),
    ("share.record.lock.duration.ms", 15_000, 60_000),
    ("share.delivery.count.limit", 2, 10),
    ("share.partition.max.record.locks", 100, 4_000),
]


@pytest.mark.parametrize(("key", "low", "high"), LIMITS)
def test_a_number_of_a_group_lies_between_the_brokers_limits(key: str, low: int, high: int) -> None:
    kind, name = key.split(".", 1)
    raised = {f"group.{kind}.min.{name}": str(low + 1)}
    for fine, file in ((low, {}), (high, {}), (low + 1, raised)):
        assert refused(GROUP_RESOURCE, "g", {key: str(fine)}, file) is None
    below = refused(GROUP_RESOURCE, "g", {key: str(low)}, raised)
    words = f"{key} must be greater than or equal to group.{kind}.min.{name}"
    assert below == (INVALID_CONFIG, words)
    above = refused(GROUP_RESOURCE, "g", {key: str(high + 1)})
    words = f"{key} must be less than or equal to group.{kind}.max.{name}"
    assert above == (INVALID_CONFIG, words)


def test_standby_replicas_of_a_group_are_limited_by_the_broker() -> None:
    """Seen on a node of 4.3.1."""
    key, limit = "streams.num.standby.replicas", "group.streams.max.standby.replicas"
    assert refused(GROUP_RESOURCE, "g", {key: "2"}) is None
    words = f"{key} must be less than or equal to {limit}"
    assert refused(GROUP_RESOURCE, "g", {key: "3"}) == (INVALID_CONFIG, words)
    assert refused(GROUP_RESOURCE, "g", {key: "3"}, {limit: "3"}) is None


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_a_session_outlives_a_heartbeat(kind: str) -> None:
    """Of what a group does not set, the broker's value counts."""
    session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
    file = {
        f"group.{kind}.min.session.timeout.ms": "100",
        f"group.{kind}.min.heartbeat.interval.ms": "100",
        f"group.{kind}.session.timeout.ms": "7000",
        f"group.{kind}.heartbeat.interval.ms": "6000",
    }
    words = f"{session} must be greater than {heartbeat}"
    for values, is_fine in (
        ({session: "200", heartbeat: "199"}, True),
        ({session: "200", heartbeat: "200"}, False),
        ({session: "6001"}, True),
        ({session: "6000"}, False),
        ({heartbeat: "6999"}, True),
        ({heartbeat: "7000"}, False),
    ):
        found = refused(GROUP_RESOURCE, "g", {**values}, file)
        assert found == (None if is_fine else (INVALID_CONFIG, words))


def test_limits_of_a_group_are_looked_at_kind_by_kind() -> None:
    """GroupConfig.validateValues of 4.3.1: heartbeats, sessions, then the rest of each kind."""
    words = {
        "consumer.heartbeat.interval.ms": "must be greater than or equal to",
        "consumer.session.timeout.ms": "must be greater than or equal to",
        "share.heartbeat.interval.ms": "must be greater than or equal to",
        "share.session.timeout.ms": "must be greater than or equal to",
        "streams.heartbeat.interval.ms": "must be greater than or equal to",
        "streams.num.standby.replicas": "must be less than or equal to",
        "streams.assignment.interval.ms": "must be less than or equal to",
    }
    values: dict[str, str | None] = dict.fromkeys(reversed(words), "1")
    values["streams.num.standby.replicas"] = "9"
    values["streams.assignment.interval.ms"] = "99999"
    for key, beginning in words.items():
        found = refused(GROUP_RESOURCE, "g", values)
        assert found is not None
        assert found[1].startswith(f"{key} {beginning}")
        del values[key]


def test_an_unknown_key_of_a_group_is_refused_before_a_wrong_value() -> None:
    """GroupConfig.validate of 4.3.1."""
    found = refused(GROUP_RESOURCE, "g", {"consumer.session.timeout.ms": "x", "no.key": "1"})
    assert found == (INVALID_CONFIG, "Unknown group config name: no.key")


def test_groups_of_no_name_or_of_unknown_keys_are_refused() -> None:
    default = "Default group resources are not allowed."
    assert refused(GROUP_RESOURCE, "", {}) == (INVALID_REQUEST, default)
    unknown = refused(GROUP_RESOURCE, "g", {"no.key": "1"})
    assert unknown == (INVALID_CONFIG, "Unknown group config name: no.key")
    wrong = refused(GROUP_RESOURCE, "g", {"consumer.session.timeout.ms": "x"})
    assert wrong is not None
    assert wrong[0] is INVALID_CONFIG
    flag = {"share.renew.acknowledge.enable": "true", "share.auto.offset.reset": "earliest"}
    assert refused(GROUP_RESOURCE, "g", {**flag}) is None
