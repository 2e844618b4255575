"""Settings of a share group: its own value within the broker's limits, else the broker's."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.broker.share_fetch.share_settings import ShareSettings, duration_ms
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


NUMBERS = st.integers(0, 999)


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.integers(0, 999))
def test_a_duration_is_the_sum_of_its_parts(
    days: int, hours: int, minutes: int, seconds: int, millis: int
) -> None:
    """`Duration.parse` of Java for what a group's reset may be; Python's own sum."""
    expected = timedelta(
        days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=millis
    )
    text = f"P{days}DT{hours}H{minutes}M{seconds}.{millis:03}S"
    assert duration_ms(text) == expected // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT1M", 60_000),
        ("P1D", 86_400_000),
        ("PT0.5S", 500),
        ("pt2h", 7_200_000),
        ("PT1.0009S", 1_000),
    ],
)
def test_parts_that_are_not_there_are_0(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


@pytest.mark.parametrize("text", ["many", "", "1", "99999999999"])
def test_an_own_value_that_another_release_stored_and_this_one_refuses_is_none(text: str) -> None:
    settings = ShareSettings(lambda: image(delivery_count_limit=text), broker)
    assert settings.of("g").delivery_count_limit == 7
