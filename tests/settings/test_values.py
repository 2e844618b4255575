"""Text to value and back, by Kafka's rules; refusals in Kafka's words."""

from dataclasses import replace

import pytest

from kraft_wire.settings.broker import BROKER_KEYS
from kraft_wire.settings.definition import ConfigKey, ConfigKind, ConfigValue
from kraft_wire.settings.group import GROUP_KEYS
from kraft_wire.settings.topic import TOPIC_KEYS
from kraft_wire.settings.values import InvalidConfigValue, format_value, parse_value


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retention.ms", " 1000 ", 1000),
        ("retention.ms", "+7", 7),
        ("preallocate", "TRUE", True),
        ("cleanup.policy", "compact , delete", ("compact", "delete")),
        ("cleanup.policy", "", ()),
        ("cleanup.policy", "delete,delete", ("delete",)),
        ("min.cleanable.dirty.ratio", "1e-1", 0.1),
        ("compression.gzip.level", "-1", -1),
        ("leader.replication.throttled.replicas", "*", ("*",)),
        ("leader.replication.throttled.replicas", "0:1,1:2", ("0:1", "1:2")),
    ],
)
def test_text_of_a_topic_key_is_parsed_as_kafka_does(
    name: str, text: str, value: ConfigValue
) -> None:
    assert parse_value(TOPIC_KEYS[name], text) == value


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        (
            TOPIC_KEYS["retention.ms"],
            "-5",
            "Invalid value -5 for configuration retention.ms: Value must be at least -1",
        ),
        (
            TOPIC_KEYS["retention.ms"],
            "1_000",
            "Invalid value 1_000 for configuration retention.ms: Not a number of type LONG",
        ),
        (
            TOPIC_KEYS["segment.bytes"],
            "2147483648",
            "Invalid value 2147483648 for configuration segment.bytes: Not a number of type INT",
        ),
        (
            TOPIC_KEYS["compression.gzip.level"],
            "10",
            "Invalid value 10 for configuration compression.gzip.level: "
            "Value must be between 1 and 9 or equal to -1",
        ),
        (
            TOPIC_KEYS["preallocate"],
            "yes",
            "Invalid value yes for configuration preallocate: "
            "Expected value to be either true or false",
        ),
        (
            TOPIC_KEYS["message.timestamp.type"],
            "never",
            "Invalid value never for configuration message.timestamp.type: "
            "String must be one of: CreateTime, LogAppendTime",
        ),
        (
            TOPIC_KEYS["cleanup.policy"],
            "compact,,delete",
            "Configuration 'cleanup.policy' values must not be empty.",
        ),
        (
            TOPIC_KEYS["cleanup.policy"],
            "shrink,,delete",
            "Configuration 'cleanup.policy' values must not be empty.",
        ),
        (
            TOPIC_KEYS["cleanup.policy"],
            "delete, shrink",
            "Invalid value shrink for configuration cleanup.policy: "
            "String must be one of: compact, delete",
        ),
        (
            TOPIC_KEYS["leader.replication.throttled.replicas"],
            "0:1,x",
            "Invalid value [0:1, x] for configuration leader.replication.throttled.replicas: "
            "leader.replication.throttled.replicas must be the literal '*' or a list of replicas "
            "in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
        (
            TOPIC_KEYS["retention.ms"],
            " x ",
            "Invalid value  x  for configuration retention.ms: Not a number of type LONG",
        ),
        (
            TOPIC_KEYS["preallocate"],
            "\u00a0true",
            "Invalid value \u00a0true for configuration preallocate: "
            "Expected value to be either true or false",
        ),
        (
            BROKER_KEYS["process.roles"],
            "",
            "Configuration 'process.roles' must not be empty. "
            "Valid values include: [broker, controller]",
        ),
        (
            BROKER_KEYS["listeners"],
            "",
            "Configuration 'listeners' must not be empty. "
            "Valid values include: any non-empty value",
        ),
    ],
)
def test_wrong_value_is_refused_with_key_value_and_reason(
    key: ConfigKey, text: str, message: str
) -> None:
    with pytest.raises(InvalidConfigValue) as refusal:
        parse_value(key, text)
    assert str(refusal.value) == message


@pytest.mark.parametrize("text", ["latest", "by_duration:PT1H", "by_duration:P1DT2.5S"])
def test_share_group_start_is_a_name_or_a_duration(text: str) -> None:
    assert parse_value(GROUP_KEYS["share.auto.offset.reset"], text) == text
    with pytest.raises(InvalidConfigValue):
        parse_value(GROUP_KEYS["share.auto.offset.reset"], f"{text} P")


@pytest.mark.parametrize(
    ("kind", "bits"), [(ConfigKind.SHORT, 16), (ConfigKind.INT, 32), (ConfigKind.LONG, 64)]
)
def test_whole_numbers_are_those_of_their_java_type(kind: ConfigKind, bits: int) -> None:
    key = replace(TOPIC_KEYS["retention.ms"], kind=kind, valid=None)
    lowest, highest = -(1 << bits - 1), (1 << bits - 1) - 1
    for number in (lowest, lowest + 1, -1, 0, highest):
        assert parse_value(key, str(number)) == number
    assert parse_value(key, f"+{highest}") == highest
    for number in (lowest - 1, highest + 1):
        with pytest.raises(InvalidConfigValue, match=f"Not a number of type {kind.name}"):
            parse_value(key, str(number))


def test_digits_without_end_are_refused_without_being_converted() -> None:
    with pytest.raises(InvalidConfigValue):
        parse_value(TOPIC_KEYS["retention.ms"], "9" * 1_000_000)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (1e-7, "1.0E-7"),
        (True, "true"),
        (("a", "b"), "a,b"),
        (None, None),
        (1e7, "1.0E7"),
        (9_999_999.5, "9999999.5"),
        (123_456_789.5, "1.234567895E8"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (-12_500_000.0, "-1.25E7"),
        (-0.0, "-0.0"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_value_is_written_as_java_writes_it(value: ConfigValue, text: str | None) -> None:
    assert format_value(value) == text
