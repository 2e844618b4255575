"""Where a setting's value comes from, place by place: each layer, unit and old name by itself."""

import pytest

from kraft_wire.settings.broker import BROKER_KEYS
from kraft_wire.settings.definition import REQUIRED, ConfigSource, ConfigValue
from kraft_wire.settings.node_settings import NodeSettings, topic_sources, topic_values
from kraft_wire.settings.topic import TOPIC_KEYS

THREADS = "log.cleaner.threads"
BUILT_IN = ConfigSource.DEFAULT


def places(settings: NodeSettings, name: str) -> list[tuple[str, ConfigValue, ConfigSource]]:
    return [tuple(place)[:3] for place in settings.sources(name)]


def test_same_dynamic_values_give_the_same_object_and_others_another() -> None:
    two, three = {THREADS: "2"}, {THREADS: "3"}
    plain = NodeSettings()
    assert plain.with_dynamic({}, {}) is plain
    both = plain.with_dynamic(two, three)
    assert both.with_dynamic(dict(two), dict(three)) is both
    values = {}
    for cluster in ({}, two, three):
        for own in ({}, two, three):
            changed = both.with_dynamic(cluster, own)
            assert (changed is both) == (cluster is two and own is three)
            values[len(values)] = changed.integer(THREADS)
    assert list(values.values()) == [1, 2, 3, 2, 2, 3, 3, 2, 3]


def test_values_that_were_looked_up_before_a_change_are_not_kept() -> None:
    plain = NodeSettings()
    assert plain.integer(THREADS) == 1
    layered = plain.with_dynamic({THREADS: "2"}, {})
    assert layered.integer(THREADS) == 2
    assert layered.integer(THREADS) == 2
    assert plain.integer(THREADS) == 1


def test_dynamic_values_are_copied() -> None:
    cluster, own = {THREADS: "2"}, {"num.io.threads": "3"}
    layered = NodeSettings().with_dynamic(cluster, own)
    cluster.clear()
    own.clear()
    assert (layered.integer(THREADS), layered.integer("num.io.threads")) == (2, 3)


def test_a_wrong_dynamic_value_leaves_the_other_places() -> None:
    settings = NodeSettings({THREADS: "4"}).with_dynamic({THREADS: "3"}, {THREADS: "-1"})
    assert places(settings, THREADS) == [
        (THREADS, 3, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (THREADS, 4, ConfigSource.STATIC_BROKER),
        (THREADS, 1, BUILT_IN),
    ]


def test_a_wrong_own_value_of_a_topic_leaves_the_brokers() -> None:
    settings = NodeSettings({"log.segment.bytes": "2097152"})
    found = topic_sources(TOPIC_KEYS["segment.bytes"], {"segment.bytes": "x"}, settings)
    assert [(each.name, each.value, each.source) for each in found] == [
        ("log.segment.bytes", 2_097_152, ConfigSource.STATIC_BROKER),
        ("log.segment.bytes", 1_073_741_824, BUILT_IN),
    ]


def test_a_key_without_default_has_no_place_until_it_is_set() -> None:
    required = [name for name, key in BROKER_KEYS.items() if key.default is REQUIRED]
    null = [name for name, key in BROKER_KEYS.items() if key.default is None]
    assert required
    assert null
    settings = NodeSettings()
    for name in (*required, *null):
        assert [place for place in settings.sources(name) if place.name == name] == []
        assert settings.value(name) is None
    assert settings.values().keys() == BROKER_KEYS.keys()


def test_typed_values() -> None:
    settings = NodeSettings({"log.retention.check.interval.ms": "7"})
    assert settings.integer("log.retention.check.interval.ms") == 7
    assert settings.number("log.cleaner.min.cleanable.ratio") == 0.5
    assert settings.number("num.partitions") == 1
    assert settings.boolean("auto.create.topics.enable") is True
    assert settings.text("metadata.log.dir") is None
    unset = [name for name, key in BROKER_KEYS.items() if key.default is None and key.kind == 7]
    for name in unset:
        assert settings.strings(name) == ()
    with pytest.raises(AssertionError):
        settings.integer("auto.create.topics.enable")
    with pytest.raises(AssertionError):
        settings.number("auto.create.topics.enable")
    with pytest.raises(AssertionError):
        settings.value("no.such.key")


def test_synonyms_stand_behind_the_key_itself() -> None:
    settings = NodeSettings({"log.retention.minutes": "5", "log.retention.ms": "70"})
    assert places(settings, "log.retention.ms") == [
        ("log.retention.ms", 70, ConfigSource.STATIC_BROKER),
        ("log.retention.minutes", 5, ConfigSource.STATIC_BROKER),
        ("log.retention.hours", 168, BUILT_IN),
    ]
    for name, other, value in (
        ("log.roll.ms", "log.roll.hours", 168),
        ("log.roll.jitter.ms", "log.roll.jitter.hours", 0),
        ("log.flush.interval.ms", "log.flush.scheduler.interval.ms", (1 << 63) - 1),
    ):
        assert places(NodeSettings(), name) == [(other, value, BUILT_IN)]


@pytest.mark.parametrize(
    ("file", "topic_key", "value"),
    [
        ({"log.roll.jitter.hours": "0"}, "segment.jitter.ms", 0),
        ({"log.roll.jitter.hours": "1"}, "segment.jitter.ms", 3_600_000),
        ({"log.roll.jitter.ms": "1"}, "segment.jitter.ms", 1),
        ({"log.roll.hours": "2"}, "segment.ms", 7_200_000),
        ({"log.retention.minutes": "1"}, "retention.ms", 60_000),
        ({"log.retention.minutes": "-1"}, "retention.ms", -1),
        ({"log.retention.ms": "-1"}, "retention.ms", -1),
        ({"log.retention.bytes": "0"}, "retention.bytes", 0),
        ({"log.cleanup.policy": "compact,delete"}, "cleanup.policy", ("compact", "delete")),
        ({"compression.type": "zstd"}, "compression.type", "zstd"),
        ({"log.preallocate": "true"}, "preallocate", True),
        ({"log.cleaner.min.cleanable.ratio": "0.25"}, "min.cleanable.dirty.ratio", 0.25),
    ],
)
def test_a_brokers_value_reaches_its_topics_in_their_unit(
    file: dict[str, str], topic_key: str, value: ConfigValue
) -> None:
    found = topic_sources(TOPIC_KEYS[topic_key], {}, NodeSettings(file))
    assert (found[0].value, found[0].source) == (value, ConfigSource.STATIC_BROKER)
    assert found[-1].source is BUILT_IN
    assert topic_values({}, NodeSettings(file))[topic_key] == value


def test_the_default_of_a_topic_is_named_as_the_brokers_coarsest_key() -> None:
    settings = NodeSettings()
    for key, name in (
        ("retention.ms", "log.retention.hours"),
        ("segment.ms", "log.roll.hours"),
        ("segment.jitter.ms", "log.roll.jitter.hours"),
        ("segment.bytes", "log.segment.bytes"),
        ("leader.replication.throttled.replicas", "leader.replication.throttled.replicas"),
    ):
        (found,) = topic_sources(TOPIC_KEYS[key], {}, settings)
        assert (found.name, found.source) == (name, BUILT_IN)


def test_internal_keys_of_topics_have_only_the_value_that_the_topic_sets() -> None:
    internal = [name for name, key in TOPIC_KEYS.items() if key.internal]
    usual = topic_values({}, NodeSettings())
    assert [usual[name] for name in internal] == [None] != []
    own = topic_values({"internal.segment.bytes": "2000"}, NodeSettings())
    assert own["internal.segment.bytes"] == 2_000


def test_node_id_and_its_old_name_stand_for_each_other() -> None:
    for file in ({"node.id": "7"}, {"broker.id": "7"}, {"node.id": "7", "broker.id": "7"}):
        settings = NodeSettings(file)
        assert (settings.integer("node.id"), settings.integer("broker.id")) == (7, 7)
        assert settings.file_values == {"node.id": "7", "broker.id": "7"}
    assert NodeSettings({THREADS: "2"}).file_values == {THREADS: "2"}
