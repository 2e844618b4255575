"""Layers of a broker's settings, and the topic values that follow from them."""

from dataclasses import fields

import pytest

from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.broker.share_fetch.share_settings import ShareGroupSettings, ShareSettings
from kraft_wire.settings.definition import ConfigSource
from kraft_wire.settings.node_settings import NodeSettings, topic_sources, topic_values
from kraft_wire.settings.topic import TOPIC_KEYS
from kraft_wire.settings.values import InvalidConfigValue
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.snapshots.cleaning import SnapshotRetention
from tests.broker.small_broker import image_of


def test_own_dynamic_value_beats_default_beats_file_beats_built_in() -> None:
    file_only = NodeSettings({"log.cleaner.threads": "2"})
    layered = file_only.with_dynamic({"log.cleaner.threads": "3"}, {"log.cleaner.threads": "4"})
    assert file_only.integer("log.cleaner.threads") == 2
    assert [(place.value, place.source) for place in layered.sources("log.cleaner.threads")] == [
        (4, ConfigSource.DYNAMIC_BROKER),
        (3, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (2, ConfigSource.STATIC_BROKER),
        (1, ConfigSource.DEFAULT),
    ]


def test_key_that_nobody_knows_has_no_value_anywhere() -> None:
    assert NodeSettings({"no.such.key": "1"}).sources("no.such.key") == []


def test_read_only_key_ignores_dynamic_values() -> None:
    layered = NodeSettings().with_dynamic({}, {"num.partitions": "9"})
    assert layered.integer("num.partitions") == 1


def test_listeners_that_apache_changed_while_it_ran_are_not_in_force_here() -> None:
    file = NodeSettings({"listeners": "PLAINTEXT://:1"})
    layered = file.with_dynamic({}, {"listeners": "PLAINTEXT://:2"})
    assert layered.strings("listeners") == ("PLAINTEXT://:1",)
    sources = [place.source for place in layered.sources("listeners")]
    assert sources == [ConfigSource.STATIC_BROKER, ConfigSource.DEFAULT]


def test_wrong_value_in_the_file_is_refused_at_once() -> None:
    with pytest.raises(InvalidConfigValue, match=r"num\.partitions"):
        NodeSettings({"num.partitions": "0"})


def test_wrong_dynamic_value_is_passed_over() -> None:
    layered = NodeSettings().with_dynamic({}, {"log.cleaner.threads": "-1"})
    assert layered.integer("log.cleaner.threads") == 1


@pytest.mark.parametrize(
    ("file", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.minutes": "2", "log.retention.ms": "3"}, 3),
    ],
)
def test_retention_of_a_topic_follows_the_finest_broker_key(
    file: dict[str, str], retention_ms: int
) -> None:
    assert topic_values({}, NodeSettings(file))["retention.ms"] == retention_ms


def test_own_value_of_a_topic_beats_the_broker() -> None:
    settings = NodeSettings({"log.segment.bytes": "2097152"})
    own = {"segment.bytes": "1048576"}
    assert topic_values(own, settings)["segment.bytes"] == 1_048_576
    sources = [place.source for place in topic_sources(TOPIC_KEYS["segment.bytes"], own, settings)]
    assert sources == [ConfigSource.TOPIC, ConfigSource.STATIC_BROKER, ConfigSource.DEFAULT]


def test_defaults_of_the_broker_and_of_share_groups_are_those_of_their_keys() -> None:
    assert BrokerSettings() == BrokerSettings.of(NodeSettings())
    image, settings = image_of({}), BrokerSettings()
    assert ShareSettings(lambda: image, lambda: settings).of("group") == ShareGroupSettings()


def test_defaults_of_metadata_snapshots_and_logs_are_those_of_their_keys() -> None:
    node = NodeSettings()
    keys = ("metadata.max.retention.bytes", "metadata.max.retention.ms")
    assert SnapshotRetention() == SnapshotRetention(*map(node.integer, keys))
    log = LogConfig()
    defaults = topic_values({}, node)
    names = [each.name for each in fields(LogConfig) if each.name != "texts"]
    found = {name: getattr(log, name) for name in names}
    assert found == {name: defaults[name.replace("_", ".")] for name in names}
