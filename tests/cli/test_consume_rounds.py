"""Which records `consume` writes, and which offsets a group's member commits, round by round.

The cluster is played: logs as lists of offsets, and a clock that only pauses and reads move on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.cli.consume import reading
from kraft_wire.cli.consume.reading import Reading, read_as_member, read_partitions
from kraft_wire.cli.consume.start import Start, read_start, start_offsets, timestamp_ms
from kraft_wire.client.cluster import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kraft_wire.model import TopicPartition
from kraft_wire.wire.records.record import Record

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
EARLIEST, LATEST = Start(timestamp=EARLIEST_TIMESTAMP), Start(timestamp=LATEST_TIMESTAMP)


class Played:
    """Logs: where they begin and end, the last stable offset, and offsets of records."""

    def __init__(self) -> None:
        self.first = {A: 2, B: 0}
        self.ends = {A: 8, B: 4}
        self.stable = {A: 6, B: 4}
        self.times = {A: {5: 50, 7: 70}, B: {}}
        """Offsets of records by their time."""
        self.records = {A: [2, 3, 5, 7, 8, 9], B: [0, 1, 3]}
        """Other offsets are compacted, or markers; 8 and 9 come later."""
        self.written: list[tuple[int, int]] = []
        self.now_s = 0.0
        self.readers: list[PlayedReader] = []

    def offsets_at(
        self, wanted: dict[TopicPartition, int], *, read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        ends = self.stable if read_committed else self.ends
        found = {}
        for key, at in wanted.items():
            if at == EARLIEST_TIMESTAMP:
                found[key] = self.first[key]
            elif at == LATEST_TIMESTAMP:
                found[key] = ends[key]
            else:
                later = [offset for offset, ms in self.times[key].items() if ms >= at]
                found[key] = min(later, default=-1)
        return found

    def write(self, key: TopicPartition, record: Record) -> None:
        self.written.append((key.partition, record.offset))

    def forget(self) -> None:
        """No connection is open."""


class PlayedReader:
    """Gives up to two records of each partition in a round, which takes a second."""

    def __init__(self, cluster: Played, settings: Any, **options: Any) -> None:
        self.positions: dict[TopicPartition, int] = {}
        self.cluster, self.settings, self.options = cluster, settings, options
        cluster.readers.append(self)

    def round(self, keys: Sequence[TopicPartition]) -> Iterator[tuple[TopicPartition, Record]]:
        self.cluster.now_s += 1
        for key in keys:
            left = [each for each in self.cluster.records[key] if each >= self.positions[key]]
            for offset in left[:2]:
                self.positions[key] = offset + 1
                yield key, Record(None, b"", offset)
            if len(left) <= 2:
                self.positions[key] = max(self.positions[key], self.cluster.ends[key])


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    cluster = Played()

    def sleep(seconds: float) -> None:
        cluster.now_s += seconds
        assert cluster.now_s < 1_000, "it never ends"

    monkeypatch.setattr(reading, "PartitionsReader", PlayedReader)
    clock = SimpleNamespace(monotonic=lambda: cluster.now_s, sleep=sleep)
    monkeypatch.setattr(reading, "time", clock)
    return cluster


def wanted(start: Start = EARLIEST, **other: Any) -> Reading:
    return Reading(
        **{
            "start": start,
            "follows": False,
            "count_max": None,
            "silence_ms": None,
            "read_committed": False,
            "note": print,
            **other,
        }
    )


def read(played: Played, how: Reading) -> list[tuple[int, int]]:
    read_partitions(played, [A, B], how, played.write)  # type: ignore[arg-type]  # played
    return played.written


def test_records_up_to_the_ends_of_the_beginning_are_written(played: Played) -> None:
    assert sorted(read(played, wanted())) == [
        (0, 2),
        (0, 3),
        (0, 5),
        (0, 7),
        (1, 0),
        (1, 1),
        (1, 3),
    ]


def test_stable_records_only_are_written_to_who_reads_committed_ones(played: Played) -> None:
    found = read(played, wanted(read_committed=True))
    assert [offset for number, offset in found if number == 0] == [2, 3, 5]
    assert played.readers[0].settings.read_committed


@pytest.mark.parametrize("count", [0, 1, 3, 7])
def test_no_more_records_than_wanted_are_written(played: Played, count: int) -> None:
    assert len(read(played, wanted(count_max=count))) == count


def test_silence_is_counted_from_the_last_record(played: Played) -> None:
    """Records come in the seconds 1 to 3; nothing of five seconds is over at 8."""
    found = read(played, wanted(follows=True, silence_ms=5_000))
    assert len(found) == 9
    assert played.now_s == pytest.approx(8)
    assert played.readers[0].settings.wait_ms_max == 500
    read(played, wanted(follows=True, silence_ms=40))
    assert played.readers[1].settings.wait_ms_max == 40


def test_offsets_out_of_range_are_replaced_as_the_start_says(played: Played) -> None:
    for start, to_latest in ((EARLIEST, False), (LATEST, True), (Start(offset=3), False)):
        read(played, wanted(start, count_max=0))
        assert played.readers[-1].options["resets_to_latest"] == to_latest


class PlayedMember:
    """A member whose assignments, beats and commits a test gives."""

    def __init__(self, assigned: list[list[TopicPartition]], stays: list[bool]) -> None:
        self.assigned, self.stays = assigned, stays
        self.known: dict[TopicPartition, int] = {A: 3}
        self.done: list[Any] = []

    def join(self) -> list[TopicPartition]:
        keys = self.assigned.pop(0)
        self.done.append(keys)
        return keys

    def committed(self, keys: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return {key: self.known[key] for key in keys if key in self.known}

    def beat(self) -> bool:
        return self.stays.pop(0) if self.stays else True

    def commit(self, offsets: dict[TopicPartition, int]) -> bool:
        self.known |= offsets
        self.done.append(dict(offsets))
        return True

    def leave(self) -> None:
        self.done.append("left")


def read_in_group(
    played: Played, monkeypatch: pytest.MonkeyPatch, member: PlayedMember, how: Reading
) -> list[Any]:
    monkeypatch.setattr(reading, "GroupMember", lambda *_: member)
    read_as_member(played, SimpleNamespace(close=lambda: None), ["t"], how, played.write)  # type: ignore[arg-type]  # played
    return member.done


def test_member_goes_on_at_commits_commits_what_it_wrote_and_leaves(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the last record of a log are offsets without any: they are read, too."""
    member = PlayedMember([[A, B]], [])
    done = read_in_group(played, monkeypatch, member, wanted())
    assert sorted(played.written) == [(0, 3), (0, 5), (0, 7), (1, 0), (1, 1), (1, 3)]
    assert done[0] == [A, B]
    assert done[-2:] == [{A: 9, B: 4}, "left"]


def test_member_that_ends_within_a_round_commits_what_it_wrote(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = PlayedMember([[A]], [])
    done = read_in_group(played, monkeypatch, member, wanted(count_max=1))
    assert (played.written, done) == ([(0, 3)], [[A], {A: 4}, "left"])


def test_member_commits_before_it_joins_again_and_nothing_that_it_lost(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = PlayedMember([[A, B], [B]], [False])
    done = read_in_group(played, monkeypatch, member, wanted())
    assert done == [[A, B], {A: 6, B: 2}, [B], {B: 4}, "left"]
    assert sorted(played.written) == [(0, 3), (0, 5), (1, 0), (1, 1), (1, 3)], "each once"


def test_member_commits_every_five_seconds_and_waits_where_it_has_no_partition(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    played.records[A] = list(range(2, 40))
    played.ends[A] = 40
    member = PlayedMember([[A], [], [A]], [True] * 11 + [False] + [True] * 10 + [False])
    done = read_in_group(played, monkeypatch, member, wanted(follows=True, count_max=30))
    commits = [each for each in done if isinstance(each, dict)]
    assert commits[:3] == [{A: 13}, {A: 23}, {A: 27}], "after 5 and 10 seconds, and 12 beats"
    assert commits[3] == {}, "nothing was read in between"
    assert done.count([A]) == 2
    assert len(played.written) == 30


def test_start_of_each_partition_is_within_its_log(played: Played) -> None:
    def starts(text: str, *, read_committed: bool = False) -> tuple[int, int]:
        found = start_offsets(
            played,  # type: ignore[arg-type]  # played
            [A, B],
            read_start(text),
            read_committed=read_committed,
        )
        return found[A], found[B]

    assert starts("earliest") == starts("beginning") == (2, 0)
    assert starts("latest") == starts("end") == (8, 4)
    assert starts("latest", read_committed=True) == (6, 4)
    assert starts("5") == starts("+5") == (5, 5)
    assert starts("-3") == (5, 1)
    assert starts("-3", read_committed=True) == (3, 1)
    assert starts("-7") == (2, 0), "no earlier than the log"
    assert starts("@60") == (7, 4), "the end without a later record"
    assert starts("@60", read_committed=True) == (7, 4)
    assert starts("@80", read_committed=True) == (6, 4)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1700000000123", 1_700_000_000_123),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14T22:13:20.123", 1_700_000_000_123),
        ("2023-11-14T22:13:20+01:00", 1_699_996_400_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14", 1_699_920_000_000),
        ("1969-12-31T23:00:00", 0),
    ],
)
def test_time_without_a_zone_is_utc_wherever_the_command_runs(
    text: str, ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        for zone in ("UTC", "Asia/Tokyo", "XYZ+5"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            assert timestamp_ms(text) == ms
    finally:
        monkeypatch.undo()
        time.tzset()
