"""Where a reset of offsets leads: targets, partitions, and the bounds of each log."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kraft_wire.cli.groups.reset import Target, new_offsets, partitions_to_reset, read_target
from kraft_wire.cli.output import WrongInput
from kraft_wire.client.cluster import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ClusterClient,
    ClusterRefused,
)
from kraft_wire.model import TopicPartition

NOW_MS = 10_000_000_000
A, B, OTHER = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


class Logs:
    """Logs from 10 to 20 and from 0 to 5."""

    def partitions_of(self, topics: list[str]) -> dict[str, int]:
        return {name: {"a": 2, "b": 1}[name] for name in topics}

    def offsets_at(self, wanted: dict[TopicPartition, int], **_: Any) -> dict[TopicPartition, int]:
        places = {A: (10, 20), B: (0, 5)}
        return {key: places[key][at == LATEST_TIMESTAMP] for key, at in wanted.items()}


LOGS = cast("ClusterClient", Logs())
OPTIONS = [
    "--to-earliest",
    "--to-latest",
    "--to-current",
    "--to-offset",
    "--shift-by",
    "--to-datetime",
    "--by-duration",
]


def target(name: str, value: object) -> Target:
    return read_target({each: value if each == name else None for each in OPTIONS}, NOW_MS)


@pytest.mark.parametrize(
    ("text", "before_ms"),
    [
        ("PT0S", 0),
        ("PT1S", 1_000),
        ("PT2M", 120_000),
        ("PT3H", 10_800_000),
        ("P1D", 86_400_000),
        ("P1DT1H1M1S", 90_061_000),
        ("PT0.5S", 500),
        ("PT1.04S", 1_040),
        ("PT1.0009S", 1_000),
        ("P999D", NOW_MS),
    ],
)
def test_duration_counts_back_from_now_at_most_to_the_beginning(text: str, before_ms: int) -> None:
    start = target("--by-duration", text).start
    assert start is not None
    assert start.timestamp == NOW_MS - before_ms


@pytest.mark.parametrize("text", ["", "P", "PT", "1D", "P1H", "PT1D", "P--1D", "P1D2"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(WrongInput, match="is not an ISO 8601 duration"):
        target("--by-duration", text)


def test_one_target_is_given_and_zero_is_one() -> None:
    for chosen in ({}, {"--to-earliest": True, "--shift-by": 0}):
        with pytest.raises(WrongInput, match="give one of"):
            read_target(dict.fromkeys(OPTIONS) | chosen, NOW_MS)
    assert target("--shift-by", 0) == target("--to-current", True) == Target(shift=0)
    start = target("--to-offset", 0).start
    assert start is not None
    assert start.offset == 0
    ends = [target(f"--to-{name}", True).start for name in ("earliest", "latest")]
    found = [None if each is None else each.timestamp for each in ends]
    assert found == [EARLIEST_TIMESTAMP, LATEST_TIMESTAMP]


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ([], [A, OTHER]),
        (["a"], [A, B]),
        (["a:1"], [B]),
        (["a:1,0", "a:0", "a"], [A, B]),
        (["b", "a:0"], [A, OTHER]),
    ],
)
def test_partitions_are_named_once_each_and_in_order(
    texts: list[str], found: list[TopicPartition]
) -> None:
    assert partitions_to_reset(LOGS, texts, {OTHER: 3, A: 4}) == found


@pytest.mark.parametrize("text", ["a:2", "a:0,2", "b:1"])
def test_partition_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ClusterRefused, match="has no partition"):
        partitions_to_reset(LOGS, [text], {})


@pytest.mark.parametrize("text", ["a:", "a:x", "a:1,", "a:-1", "a:1:2"])
def test_what_names_no_partition_is_refused(text: str) -> None:
    with pytest.raises(WrongInput, match="is not of the form"):
        partitions_to_reset(LOGS, [text], {})


@pytest.mark.parametrize(
    ("shift", "found"), [(-9, 10), (-2, 13), (0, 15), (4, 19), (5, 20), (6, 20), (99, 20)]
)
def test_shift_stays_within_the_log(shift: int, found: int) -> None:
    assert new_offsets(LOGS, [A], {A: 15}, Target(shift=shift)) == {A: found}


def test_partition_without_an_offset_has_nothing_to_shift_and_goes_to_its_end() -> None:
    assert new_offsets(LOGS, [A, B], {A: 15}, Target(shift=0)) == {A: 15, B: 5}
    with pytest.raises(ClusterRefused, match="a-1 has no committed offset to shift"):
        new_offsets(LOGS, [A, B], {A: 15}, Target(shift=1))
