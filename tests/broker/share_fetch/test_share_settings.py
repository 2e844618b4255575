"""Settings of a share group: its own value within the broker's limits, else the broker's."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.broker.share_fetch.share_settings import ShareSettings
from kraft_wire.metadata.image import EMPTY_IMAGE, MetadataImage
from kraft_wire.settings.node_settings import NodeSettings

GROUP = 32
FIELDS = {
    "record.lock.duration.ms": ("record_lock_duration_ms", 20_000, 50_000, 40_000),
    "delivery.count.limit": ("delivery_count_limit", 3, 9, 7),
    "partition.max.record.locks": ("partition_max_record_locks", 300, 3_000, 700),
}
"""By key: the field, the broker's lowest and highest value, and its own."""


def image(**own: str) -> MetadataImage:
    values = {f"share.{name.replace('_', '.')}": value for name, value in own.items()}
    return replace(EMPTY_IMAGE, configs={(GROUP, "g"): values})


def broker() -> BrokerSettings:
    file: dict[str, str] = {}
    for key, (_, lowest, highest, default) in FIELDS.items():
        file |= {f"group.share.{key}": str(default)}
        file |= {f"group.share.min.{key}": str(lowest), f"group.share.max.{key}": str(highest)}
    return BrokerSettings.of(NodeSettings(file))


@pytest.mark.parametrize("key", FIELDS)
def test_an_own_value_stays_within_the_limits_of_the_broker(key: str) -> None:
    """KIP-1240: a limit that became narrower counts for groups that were set before."""
    field, lowest, highest, default = FIELDS[key]
    for own, expected in (
        (None, default),
        (lowest - 1, lowest),
        (lowest, lowest),
        (default - 1, default - 1),
        (highest, highest),
        (highest + 1, highest),
    ):
        configs = {} if own is None else {key.replace(".", "_"): str(own)}
        settings = ShareSettings(partial(image, **configs), broker)
        assert getattr(settings.of("g"), field) == expected, own
        assert getattr(settings.of("another"), field) == default


def test_a_change_of_the_metadata_or_of_the_brokers_settings_counts_at_once() -> None:
    images = [image(record_lock_duration_ms="25000"), image(record_lock_duration_ms="26000")]
    file = {"group.share.min.record.lock.duration.ms": "26500"}
    brokers = [broker(), BrokerSettings.of(NodeSettings(file))]
    settings = ShareSettings(lambda: images[0], lambda: brokers[0])
    assert settings.of("g").record_lock_duration_ms == 25_000
    del images[0]
    assert settings.of("g").record_lock_duration_ms == 26_000
    del brokers[0]
    assert settings.of("g").record_lock_duration_ms == 26_500


@pytest.mark.parametrize("text", ["many", "", "1", "99999999999"])
def test_an_own_value_that_another_release_stored_and_this_one_refuses_is_none(text: str) -> None:
    settings = ShareSettings(lambda: image(delivery_count_limit=text), broker)
    assert settings.of("g").delivery_count_limit == 7
