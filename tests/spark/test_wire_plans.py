"""Plans over a cluster of prepared answers: partitions, bounds, micro-batches, and what is lost."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from kraft_wire.client import BrokerConnectionError
from kraft_wire.client.cluster import ClusterClient, ClusterRefused
from kraft_wire.model import TopicPartition
from kraft_wire.spark import PipelineError
from kraft_wire.spark.kraftwire import wire_stream as stream_module
from kraft_wire.spark.kraftwire import wire_tasks as tasks_module
from kraft_wire.spark.kraftwire.partitioner import key_hashes
from kraft_wire.spark.kraftwire.wire_offsets import (
    PartitionRange,
    asking,
    bounded,
    prorated,
    split_ranges,
    subscribed,
)
from kraft_wire.spark.kraftwire.wire_options import WireOptions, parse_wire_options
from kraft_wire.spark.kraftwire.wire_stream import WireStreamReader
from kraft_wire.spark.kraftwire.wire_tasks import WirePartition, WireReader

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
EARLIEST, LATEST = -2, -1
GO_ON = "; set failOnDataLoss to false to continue without the lost records"
Offsets = dict[TopicPartition, int]


class Cluster:
    """Two topics; an offset for a time is the number of hundreds in it."""

    def __init__(self) -> None:
        self.topics = {"a": 2, "b": 1}
        self.starts: Offsets = {A0: 1, A1: 0, B0: 2}
        self.ends: Offsets = {A0: 10, A1: 20, B0: 30}
        self.asked: list[tuple[Mapping[TopicPartition, int], bool]] = []
        self.is_closed = False

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.is_closed = True

    def topic_names(self) -> list[str]:
        return [*self.topics]

    def partitions_of(self, topics: list[str]) -> dict[str, int]:
        assert topics, "nothing is asked about no topic"
        return {name: self.topics[name] for name in topics}

    def offsets_at(
        self, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> Offsets:
        if wanted:
            self.asked.append((wanted, read_committed))
        found = {EARLIEST: self.starts, LATEST: self.ends}
        return {
            key: found[at][key] if at < 0 else (at // 100 if at < 1000 else -1)
            for key, at in wanted.items()
        }


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    for module in (stream_module, tasks_module):
        monkeypatch.setattr(module, "ClusterClient", lambda settings: made)
    return made


def options(streaming: bool = False, **given: str) -> WireOptions:
    chosen = {} if {"assign", "subscribePattern"} & given.keys() else {"subscribe": "b,a,b"}
    named = {name.replace("_", "."): value for name, value in given.items()}
    raw = {"kafka.bootstrap.servers": "x:1", **chosen, **named}
    return parse_wire_options(raw, streaming=streaming)


def line_of(call: Any) -> str:
    with pytest.raises((PipelineError, ClusterRefused)) as refused:
        call()
    return str(refused.value)


def keys_of(cluster: Cluster, **given: str) -> list[TopicPartition]:
    return subscribed(cast(ClusterClient, cluster), options(**given))


def test_partitions_are_those_that_are_chosen_in_order(cluster: Cluster) -> None:
    assert keys_of(cluster) == [A0, A1, B0]
    assert keys_of(cluster, subscribePattern="[ax]") == [A0, A1]
    assert keys_of(cluster, subscribePattern="a.") == []
    assert keys_of(cluster, assign='{"b":[0],"a":[1]}') == [A1, B0]
    assert line_of(lambda: keys_of(cluster, assign='{"b":[0],"a":[2,1]}')) == (
        "option assign: a-2 does not exist, a has 2 partitions"
    )


def ends(cluster: Cluster, end: str = "starting", **given: str) -> Offsets:
    parsed = options(**given)
    bound = parsed.starting if end == "starting" else parsed.ending
    return bounded(cast(ClusterClient, cluster), parsed, bound, [A0, A1, B0])


ALL = '{{"a":{{"0":{},"1":{}}},"b":{{"0":{}}}}}'


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {A0: 1, A1: 0, B0: 2}),
        ({"startingOffsets": ALL.format(5, -2, 7)}, {A0: 5, A1: 0, B0: 7}),
        ({"startingTimestamp": "300"}, {A0: 3, A1: 3, B0: 3}),
        ({"startingOffsetsByTimestamp": ALL.format(300, 400, 0)}, {A0: 3, A1: 4, B0: 0}),
        (
            {
                "startingOffsetsByTimestamp": ALL.format(300, 1000, 500),
                "startingOffsetsByTimestampStrategy": "latest",
            },
            {A0: 3, A1: 20, B0: 5},
        ),
    ],
)
def test_begin_of_each_partition(cluster: Cluster, given: dict[str, str], found: Offsets) -> None:
    assert ends(cluster, **given) == found
    assert not any(committed for _, committed in cluster.asked)
    cluster.asked.clear()
    assert ends(cluster, kafka_isolation_level="read_committed", **given) == found
    assert all(committed for _, committed in cluster.asked)


def test_end_of_each_partition(cluster: Cluster) -> None:
    assert ends(cluster, "ending") == cluster.ends
    assert ends(cluster, "ending", endingOffsets=ALL.format(-1, 4, -1)) == {A0: 10, A1: 4, B0: 30}
    late = {A0: 10, A1: 20, B0: 30}
    assert ends(cluster, "ending", endingTimestamp="1000") == late
    assert ends(cluster, "ending", endingTimestamp="999") == dict.fromkeys(late, 9)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (
            {"startingOffsets": '{"a":{"0":5},"b":{"0":1}}'},
            "option startingOffsets: a-1 is read too and must be named; -2 is the earliest offset,"
            " -1 the latest",
        ),
        (
            {"startingOffsetsByTimestamp": ALL.format(1, 2, '3,"1":4')},
            "option startingOffsetsByTimestamp: b-1 is not among the partitions that are read",
        ),
        (
            {"startingTimestamp": "1000"},
            "option startingTimestamp: a-0 has no record at 1000 or later; set"
            " startingOffsetsByTimestampStrategy to latest to begin at its end",
        ),
    ],
)
def test_begin_that_cannot_be_found_is_refused(
    cluster: Cluster, given: dict[str, str], line: str
) -> None:
    assert line_of(lambda: ends(cluster, **given)) == line


@pytest.mark.parametrize("kind", [ClusterRefused, BrokerConnectionError])
def test_refusals_of_a_cluster_are_lines(kind: type[Exception]) -> None:
    def ask() -> None:
        with asking():
            raise kind("why")

    assert line_of(ask) == "why"


def ranges(*sizes: int) -> list[PartitionRange]:
    return [PartitionRange(TopicPartition("t", n), 5, 5 + size) for n, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "least", "most", "bounds"),
    [
        ((3, 0, 4), None, None, [(0, 5, 8), (2, 5, 9)]),
        ((3, 4), 2, None, [(0, 5, 8), (1, 5, 9)]),
        ((3, 7), None, 3, [(0, 5, 8), (1, 5, 7), (1, 7, 9), (1, 9, 12)]),
        ((2, 6), 3, None, [(0, 5, 7), (1, 5, 8), (1, 8, 11)]),
        ((2,), 5, None, [(0, 5, 6), (0, 6, 7)]),
    ],
)
def test_ranges_are_divided_into_whole_parts(
    sizes: tuple[int, ...], least: int | None, most: int | None, bounds: list[tuple[int, int, int]]
) -> None:
    found = split_ranges(ranges(*sizes), least, most)
    assert [(each.key.partition, each.start, each.end) for each in found] == bounds


def test_limit_is_shared_by_backlog_with_at_least_one_offset() -> None:
    asked: list[list[TopicPartition]] = []

    def earliest(keys: list[TopicPartition]) -> Offsets:
        asked.append(keys)
        return dict.fromkeys(keys, 4)

    found = prorated({A0: 0, A1: 7}, {A0: 90, A1: 7, B0: 14}, 10, earliest)
    assert (found, asked) == ({A0: 9, A1: 7, B0: 5}, [[B0]])
    assert prorated({A0: 0, A1: 0}, {A0: 99, A1: 1}, 10, earliest) == {A0: 9, A1: 1}
    assert prorated({A0: 0}, {A0: 5}, 10, earliest) == {A0: 5}
    assert len(asked) == 1


def test_batch_query_is_planned_once_and_its_patience_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, settings = Cluster(), []

    def connect(given: Any) -> Cluster:
        settings.append(given.deadline_seconds)
        return made

    monkeypatch.setattr(tasks_module, "ClusterClient", connect)
    reader = WireReader(options(), pa.schema([]))
    parts = [cast(WirePartition, each).part for each in reader.partitions()]
    assert parts == [(A0, 1, 10), (A1, 0, 20), (B0, 2, 30)]
    brief = options(kafka_default_api_timeout_ms="2000", endingOffsets=ALL.format(1, 0, 2))
    (nothing,) = WireReader(brief, pa.schema([])).partitions()
    assert cast(WirePartition, nothing).part is None
    assert settings == [15.0, 2.0]
    assert made.is_closed


def stream(cluster: Cluster, **given: str) -> WireStreamReader:
    return WireStreamReader(options(streaming=True, **given), pa.schema([]))


FROM = {"startingOffsets": "earliest"}
BEGUN = {"a": {"0": 1, "1": 0}, "b": {"0": 2}}
ENDED = {"a": {"0": 10, "1": 20}, "b": {"0": 30}}


@pytest.mark.parametrize(
    ("given", "kind", "number"),
    [
        ({}, ReadAllAvailable, None),
        ({"minOffsetsPerTrigger": "5"}, ReadMinRows, 5),
        ({"maxOffsetsPerTrigger": "7"}, ReadMaxRows, 7),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "7"}, ReadMaxRows, 7),
    ],
)
def test_limit_of_a_trigger_is_that_of_the_options(
    cluster: Cluster, given: dict[str, str], kind: type, number: int | None
) -> None:
    limit: Any = stream(cluster, **given).getDefaultReadLimit()
    assert type(limit) is kind
    if number is not None:
        assert next(iter(vars(limit).values())) == number


def test_stream_goes_from_its_start_to_the_ends(cluster: Cluster) -> None:
    reader = stream(cluster, **FROM)
    assert reader.initialOffset() == BEGUN
    cluster.starts = {A0: 5, A1: 5, B0: 5}
    assert reader.initialOffset() == BEGUN, "it is asked for once"
    assert reader.latestOffset(BEGUN, ReadAllAvailable()) == ENDED
    assert reader.latestOffset(BEGUN, ReadMaxRows(9)) == {"a": {"0": 2, "1": 3}, "b": {"0": 6}}
    cluster.ends = {A0: 11, A1: 20, B0: 30}
    assert reader.reportLatestOffset() == {"a": {"0": 11, "1": 20}, "b": {"0": 30}}
    reader.prepareForTriggerAvailableNow()
    cluster.ends = {A0: 99, A1: 99, B0: 99}
    assert reader.latestOffset(BEGUN, ReadAllAvailable())["a"] == {"0": 11, "1": 20}
    reader.stop()
    assert cluster.is_closed


def test_stream_from_the_end_has_an_empty_first_micro_batch(cluster: Cluster) -> None:
    reader = stream(cluster)
    start = reader.initialOffset()
    assert start == ENDED
    cluster.ends = {A0: 11, A1: 21, B0: 31}
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    assert reader.latestOffset(start, ReadAllAvailable())["b"] == {"0": 31}
    restarted = stream(cluster)
    assert restarted.latestOffset(start, ReadAllAvailable())["b"] == {"0": 31}


def test_too_few_offsets_wait_for_more_or_for_the_delay(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr(stream_module, "time", SimpleNamespace(monotonic=lambda: now_s))
    reader = stream(cluster, minOffsetsPerTrigger="10", maxTriggerDelay="2s", **FROM)
    limit = reader.getDefaultReadLimit()
    near = {"a": {"0": 8, "1": 17}, "b": {"0": 26}}
    assert reader.latestOffset(near, limit) == ENDED, "the first trigger does not wait"
    assert reader.latestOffset(near, limit) == near
    cluster.ends = {A0: 11, A1: 20, B0: 30}
    assert reader.latestOffset(near, limit)["a"] == {"0": 11, "1": 20}
    cluster.ends = {A0: 10, A1: 20, B0: 30}
    now_s = 101.999
    assert reader.latestOffset(near, limit) == near
    now_s = 102.0
    assert reader.latestOffset(near, limit) == ENDED


def planned(reader: WireStreamReader, start: Any, end: Any) -> list[object]:
    return [cast(WirePartition, each).part for each in reader.partitions(start, end)]


def test_micro_batch_has_the_ranges_between_two_offsets(cluster: Cluster) -> None:
    reader = stream(cluster, **FROM)
    assert planned(reader, BEGUN, ENDED) == [(A0, 1, 10), (A1, 0, 20), (B0, 2, 30)]
    end = {"a": {"0": 10, "1": 0}}
    assert planned(reader, {"a": {"0": 10}}, end) == [], "a-1 is new, and has nothing"


@pytest.mark.parametrize(
    ("start", "end", "lines", "parts"),
    [
        (BEGUN, {"a": ENDED["a"]}, ["b-0 does not exist any more"], [(A0, 1, 10), (A1, 0, 20)]),
        (
            {"a": {"0": 12, "1": 0}},
            {"a": ENDED["a"]},
            ["a-0 ended at 12 and now ends at 10"],
            [(A1, 0, 20)],
        ),
        (
            {"a": ENDED["a"]},
            ENDED,
            ["b-0 appeared with its records before 2 deleted"],
            [(B0, 2, 30)],
        ),
    ],
)
def test_loss_ends_a_stream_or_is_told_and_passed_over(
    cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
    start: Any,
    end: Any,
    lines: list[str],
    parts: list[object],
) -> None:
    reader = stream(cluster, **FROM)
    assert line_of(lambda: reader.partitions(start, end)) == lines[0] + GO_ON
    loose = stream(cluster, failOnDataLoss="false", **FROM)
    assert planned(loose, start, end) == parts
    assert capsys.readouterr().err.splitlines() == [f"kraftwire: {line}" for line in lines]


def test_end_that_went_back_is_asked_for_again_for_a_while(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Patience:
        def __init__(self, seconds: float) -> None:
            assert seconds == 2.0
            self.pauses = 0

        @property
        def is_over(self) -> bool:
            return self.pauses == 3

        def pause(self) -> None:
            self.pauses += 1
            if self.pauses == catches_up:
                cluster.ends = {A0: 15, A1: 20, B0: 30}

    monkeypatch.setattr(stream_module, "RetryDeadline", Patience)
    ahead = {"a": {"0": 12, "1": 0}, "b": {"0": 2}}
    catches_up = 2
    assert stream(cluster, **FROM).latestOffset(ahead, ReadAllAvailable())["a"]["0"] == 15
    cluster.ends, catches_up = {A0: 10, A1: 20, B0: 30}, 9
    assert stream(cluster, **FROM).latestOffset(ahead, ReadAllAvailable()) == ENDED


def test_hashes_of_no_keys_are_none() -> None:
    assert key_hashes(pa.array([], pa.binary())).tolist() == []
