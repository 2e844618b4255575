"""Average throttle times: 4.3.1's `Avg` over two samples of 30 s, noted by the quota that asks."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.node.metrics.quota_metrics import quota_metrics
from kraft_wire.node.quotas.levels import levels_of
from kraft_wire.node.quotas.meters import Meters
from kraft_wire.node.quotas.throttle_times import AverageTime, ThrottleTimes
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from tests.apache.source_judge import answers_of
from tests.node.quotas.throttled_node import PRODUCER, ThrottledDoor

HERE = Path(__file__).parent
BEGIN_MS = 1_700_000_000_000
STORIES = 60
CLIENT = ("ANONYMOUS", "")
BYTES, FETCHED, TIME = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATION = "controller_mutation_rate"
PERMISSIVE = 5
"""A version of CreateTopics that is done although the quota is overdrawn (KIP-599)."""


def steps(chance: random.Random) -> list[tuple[int, int | None]]:
    """Moments, each with a time to record, or None to measure."""
    now_ms, made = BEGIN_MS, []
    for _ in range(60):
        now_ms += chance.choice((0, 1, 900, 14_999, 29_999, 30_000, 59_999, 60_000, 90_001))
        time_ms = chance.choice((None, 1, chance.randrange(1, 100_000)))
        made.append((now_ms, time_ms))
    return made


@pytest.mark.java
def test_averages_are_those_of_apaches_sensors() -> None:
    chance = random.Random(124)
    lines, ours = [], []
    for _ in range(STORIES):
        lines.append("new")
        average = AverageTime()
        for now_ms, time_ms in steps(chance):
            if time_ms is None:
                lines.append(str(now_ms))
                ours.append(average.measure(now_ms))
            else:
                lines.append(f"{time_ms} {now_ms}")
                average.record(time_ms, now_ms)
    theirs = [float(each) for each in answers_of(HERE / "AverageJudge.java", lines).split()]
    assert [float("nan") if each is None else each for each in ours] == pytest.approx(
        theirs, rel=1e-12, nan_ok=True
    )
    assert len({each for each in ours if each is not None}) > STORIES


def test_an_average_lasts_for_a_minute() -> None:
    meters = Meters(AverageTime)
    meters.levels = levels_of({(("user", "ANONYMOUS"),): {BYTES: 5.0}})[BYTES]
    times = ThrottleTimes(meters)
    times.record("ANONYMOUS", "c1", 100, BEGIN_MS)
    times.record("ANONYMOUS", "c2", 300, BEGIN_MS + 1_000)
    assert times.averages(9, BEGIN_MS + 60_999) == {CLIENT: 200.0}
    assert times.averages(9, BEGIN_MS + 61_000) == {}


def shown(door: ThrottledDoor) -> dict[str, dict[Any, float]]:
    """The averages that are not empty, by kind."""
    suffix = "_throttle_time"
    return {
        each.name.removeprefix("kafka_server_").removesuffix(suffix): dict(each.values.items())
        for each in quota_metrics(door.node, door.now_ms)
        if each.name.endswith(suffix) and each.values
    }


def test_the_quota_that_asks_for_more_notes_the_throttle_time() -> None:
    """KIP-124: bytes and time of one request; the answer names the longer time of both."""
    door = ThrottledDoor()
    for key, value in ((BYTES, 1_000), (FETCHED, 1_000), (TIME, 1)):
        door.set_quota(key, value, user="ANONYMOUS", client="")
    assert shown(door) == {}
    first, _ = door.produce(20_000)
    assert shown(door) == {"produce": {CLIENT: first.throttle_time_ms}}
    door.advance(first.throttle_time_ms)
    answer = door.fetch()
    assert answer.throttle_time_ms > 0
    assert shown(door).pop("fetch") == {CLIENT: answer.throttle_time_ms}
    door.advance(120_000)
    assert shown(door) == {}
    door.produce(1)
    door.spend(PRODUCER, 5.0)
    late, _ = door.produce(1)
    assert late.throttle_time_ms > 0
    assert shown(door) == {"request": {CLIENT: late.throttle_time_ms}}


def test_a_throttled_fetch_is_noted_by_its_own_quota_alone() -> None:
    door = ThrottledDoor()
    for _ in range(5):
        door.produce(3_000)
    door.set_quota(FETCHED, 1_000, user="ANONYMOUS", client="")
    answer = door.fetch()
    assert answer.throttle_time_ms > 0
    assert shown(door) == {"fetch": {CLIENT: answer.throttle_time_ms}}


def test_changes_of_topics_are_told_their_time_where_time_asks_for_less() -> None:
    """KIP-124: of several throttle times the client is told the longest."""
    door = ThrottledDoor()
    for key in (TIME, MUTATION):
        door.set_quota(key, 1, user="ANONYMOUS", client="")
    door.produce(1)
    door.spend(PRODUCER, 5.0)
    topic = CreatableTopic(name="many", num_partitions=40, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=0)
    answer = door.send(request, PERMISSIVE, connection=9).response
    assert answer.throttle_time_ms == 29_000, "40 of 11 tokens, one a second"
    assert shown(door) == {"controllermutation": {CLIENT: 29_000}}


def test_an_unanswered_produce_and_changes_of_topics_are_noted() -> None:
    door = ThrottledDoor()
    door.set_quota(BYTES, 1_000, user="ANONYMOUS", client="")
    door.produce(20_000, acks=0)
    [average] = shown(door)["produce"].values()
    assert average > 0
    door.set_quota(MUTATION, 1, user="ANONYMOUS", client="")
    topic = CreatableTopic(name="many", num_partitions=40, replication_factor=1)
    answer = door.send(CreateTopicsRequest(topics=[topic], timeout_ms=0), PERMISSIVE).response
    assert answer.throttle_time_ms > 0
    assert shown(door)["controllermutation"] == {CLIENT: answer.throttle_time_ms}
