"""Each invariant of compacted and shortened logs, with the violation that it is there to find."""

import struct
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.model import TopicPartition, Uuid
from kraft_wire.sim.disk.file_nodes import FileNode
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.sim.faults.open_transactions import transactions_of_another_leader
from kraft_wire.sim.judge.data_judge import DataJudge
from kraft_wire.sim.judge.data_log_watch import DataLogWatch
from kraft_wire.sim.judge.log_watch import read_batches
from kraft_wire.sim.judge.offset_answers import EARLIEST, LATEST, MAX_TIMESTAMP, OffsetAnswers
from kraft_wire.sim.judge.partition_truth import PartitionTruth
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.upkeep_topics import rules_of
from kraft_wire.sim.workload import Workload
from kraft_wire.storage.producers.producer_state import ProducerStates
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

TOPIC_ID = Uuid(b"topic id of sixt")
NODE = 11
WALL_MS = 1_000_000
TOMBSTONE_MS = 300


class Stage:
    """One replica, the only one, of a topic of one kind: its disk and its node's memory."""

    def __init__(self, kind: str, **workload: Any) -> None:
        data = Workload(upkeep=(kind,), tombstone_ms=TOMBSTONE_MS, flushes=False, **workload)
        self.fs = SimFileSystem()
        self.directory = f"data/{kind}-0"
        self.fs.make_directory(self.directory)
        self.log = SimpleNamespace(
            log_end_offset=0,
            high_watermark=0,
            log_start_offset=0,
            segments=[object()],
            epochs=SimpleNamespace(entries=[]),
        )
        self.partition = SimpleNamespace(
            topic_id=TOPIC_ID,
            partition=0,
            topic_partition=TopicPartition(kind, 0),
            offline=False,
            is_leader=True,
            leader_epoch=0,
            log=self.log,
        )
        broker = SimpleNamespace(
            partitions={(kind, 0): self.partition},
            fetch_sessions=SimpleNamespace(sessions_count=0),
            replicas=SimpleNamespace(fetchers=None),
            _groups=None,
        )
        self.machine: Any = SimpleNamespace(
            id=NODE,
            fs=self.fs,
            life=1,
            wall_ms=WALL_MS,
            is_paused=True,  # so that nobody looks at the ISR
            node=SimpleNamespace(broker=broker),
        )
        setup = SimpleNamespace(brokers=(NODE,), data=data)
        stage: Any = SimpleNamespace(machines={NODE: self.machine}, setup=setup)
        self.judge = DataJudge(stage)
        self.truth = PartitionTruth(
            kind,
            TOPIC_ID,
            0,
            (NODE,),
            (NODE,),
            leader=NODE,
            leaders={0: NODE},
            rules=rules_of(kind, data),
        )
        self.judge.truth.partitions[TOPIC_ID, 0] = self.truth
        self.answers = OffsetAnswers(self.judge)

    def look(self, event: str = "tick") -> None:
        self.judge.after(self.machine, event)

    def segment(self, base: int, *batches: bytes, high_watermark: int | None = None) -> None:
        """Begin a segment and append batches to it; all is committed unless told.

        The roll has taken a snapshot of producers that are all idle for too long.
        """
        path = f"{self.directory}/{base:020d}.snapshot"
        self.fs.open(path, create=True).pwrite(ProducerStates().snapshot(), 0)
        file = self.fs.open(f"{self.directory}/{base:020d}.log", create=True)
        for data in batches:
            file.pwrite(data, file.size_bytes())
            last = int.from_bytes(data[23:27], "big")
            self.log.log_end_offset = int.from_bytes(data[:8], "big") + last + 1
        end = self.log.log_end_offset
        self.log.high_watermark = end if high_watermark is None else high_watermark
        self.log.segments.append(object())
        self.look()

    def compacts(self, base: int, *batches: bytes, gone: tuple[int, ...] = ()) -> None:
        """Replace a segment by one with these batches; others are merged into it."""
        path = f"{self.directory}/{base:020d}.log"
        file = self.fs.open(path + ".cleaned", create=True)
        for data in batches:
            file.pwrite(data, file.size_bytes())
        for each in gone:
            self.fs.unlink(f"{self.directory}/{each:020d}.log")
        self.fs.rename(path + ".cleaned", path)
        self.log.segments.append(object())
        self.look()

    def rolls_and_compacts(self, base: int, newest: bytes, *batches: bytes) -> None:
        """Begin a segment, and merge all before it into the first, in one event."""
        older = [each.base_offset for each in self.watch.log.segments]
        self.fs.open(f"{self.directory}/{base:020d}.log", create=True).pwrite(newest, 0)
        self.log.log_end_offset = self.log.high_watermark = base + 1
        self.compacts(0, *batches, gone=tuple(older[1:]))

    def removes(self, base: int, *, start: int) -> None:
        """Remove a segment from the front."""
        self.fs.unlink(f"{self.directory}/{base:020d}.log")
        self.log.log_start_offset = start
        self.log.segments.append(object())
        self.look()

    def dies_removing(self, *bases: int) -> None:
        """Remove segments from the front, and kill the process before the event is over."""
        for base in bases:
            self.fs.unlink(f"{self.directory}/{base:020d}.log")
        self.judge.about_to_die(self.machine)
        self.judge.stopped(self.machine)

    def starts(self, offset: int, event: str = "receive") -> None:
        """Move the log start."""
        self.log.log_start_offset = offset
        self.look(event)

    @property
    def watch(self) -> Any:
        return self.judge.watch_of(NODE, self.truth)

    def overdue(self) -> str | None:
        assert self.judge.upkeep is not None
        return self.judge.upkeep.overdue(self.watch)

    def listed(self, asked: int, *answer: int) -> None:
        before = self.answers.place(NODE, self.truth)
        timestamp, offset, epoch = answer
        self.answers.listed(self.truth, before, asked, (timestamp, offset, epoch))

    def ended(self, asked: int, *answer: int) -> None:
        before = self.answers.place(NODE, self.truth)
        epoch, end = answer
        self.answers.epoch_ended(self.truth, before, asked, (epoch, end))


def batch(offset: int, *keyed: tuple[bytes, bytes | None], time: int = 500, **more: Any) -> bytes:
    """A batch of records with keys."""
    records = [
        Record(key=key, value=value, timestamp=time, offset=offset + at)
        for at, (key, value) in enumerate(keyed)
    ]
    more.setdefault("partition_leader_epoch", 0)
    return bytes(build_batch(records, base_offset=offset, **more))


ONE = batch(0, (b"a", b"1"), (b"b", b"1"))
ONE_REDUCED = batch(0, (b"a", b"1"), last_offset=1)
TWO = batch(2, (b"b", b"2"))
ACTIVE = batch(3, (b"c", b"3"))
TOMBSTONE = batch(0, (b"a", None))
MARKED = batch(0, (b"a", None), delete_horizon_ms=WALL_MS + TOMBSTONE_MS)


def compactable(**workload: Any) -> Stage:
    """A log of which the second segment supersedes a record of the first."""
    stage = Stage("compact", **workload)
    stage.segment(0, ONE)
    stage.segment(2, TWO)
    stage.segment(3, ACTIVE)
    return stage


def with_tombstone() -> Stage:
    stage = Stage("compact")
    stage.segment(0, TOMBSTONE)
    stage.segment(1, batch(1, (b"c", b"3")))
    return stage


def the_newest_is_lost() -> None:
    compactable().compacts(0, ONE_REDUCED, gone=(2,))


def a_record_of_the_former_active_segment_is_lost() -> None:
    compactable().rolls_and_compacts(4, batch(4, (b"d", b"4")), ONE_REDUCED, TWO)


def a_record_without_a_newer_one_is_lost() -> None:
    compactable().compacts(0, batch(0, (b"b", b"1"), last_offset=1))


def a_value_is_another_one() -> None:
    compactable().compacts(0, batch(0, (b"a", b"x"), last_offset=1))


def the_time_changed() -> None:
    compactable().compacts(0, batch(0, (b"a", b"1"), time=501, last_offset=1))


def the_largest_time_is_that_of_a_removed_record() -> None:
    stage = Stage("compact")
    records = [
        Record(key=b"a", value=b"1", timestamp=500, offset=0),
        Record(key=b"b", value=b"1", timestamp=600, offset=1),
    ]
    stage.segment(0, bytes(build_batch(records, base_offset=0, partition_leader_epoch=0)))
    stage.segment(2, TWO)
    stage.segment(3, ACTIVE)
    kept = build_batch(
        records[:1], base_offset=0, partition_leader_epoch=0, last_offset=1, max_timestamp=600
    )
    stage.compacts(0, bytes(kept))


def the_timestamp_type_changed() -> None:
    stage = Stage("append-time")
    stage.segment(0, batch(0, (b"a", b"1"), (b"b", b"1"), log_append_time=WALL_MS))
    stage.segment(2, batch(2, (b"b", b"2"), log_append_time=WALL_MS))
    stage.segment(3, batch(3, (b"c", b"2"), log_append_time=WALL_MS))
    stage.compacts(0, batch(0, (b"a", b"1"), time=WALL_MS, last_offset=1))


def the_last_offset_is_lost() -> None:
    compactable().compacts(0, batch(0, (b"a", b"1")))


def the_leader_epoch_changed() -> None:
    compactable().compacts(0, batch(0, (b"a", b"1"), last_offset=1, partition_leader_epoch=1))


def the_last_of_a_producer_is_lost() -> None:
    stage = Stage("compact")
    sent: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
    stage.segment(0, batch(0, (b"b", b"1"), **sent))
    stage.segment(1, batch(1, (b"b", b"2")))
    stage.segment(2, batch(2, (b"c", b"2")))
    stage.compacts(0)


def a_marker_is_lost_before_its_data() -> None:
    stage = Stage("compact")
    sent: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "is_transactional": True}
    data = batch(0, (b"b", b"1"), base_sequence=0, **sent)
    commit = Record(key=bytes([0, 0, 0, 1]), value=bytes(6), timestamp=0)
    more: dict[str, Any] = {"partition_leader_epoch": 0, "is_control": True, "delete_horizon_ms": 0}
    marker = build_batch([commit], base_offset=1, **more, **sent)
    stage.segment(0, data, bytes(marker))
    stage.segment(2, batch(2, (b"c", b"3")))
    stage.compacts(0, data)


def a_tombstone_is_lost_at_once() -> None:
    with_tombstone().compacts(0)


def a_tombstone_is_lost_before_its_horizon() -> None:
    stage = with_tombstone()
    stage.compacts(0, MARKED)
    stage.machine.wall_ms += TOMBSTONE_MS
    stage.compacts(0)


def a_tombstone_has_no_horizon() -> None:
    with_tombstone().compacts(0, TOMBSTONE)


def a_horizon_is_too_early() -> None:
    with_tombstone().compacts(0, batch(0, (b"a", None), delete_horizon_ms=WALL_MS))


def a_batch_is_invented() -> None:
    stage = compactable()
    stage.compacts(0, ONE, batch(1, (b"z", b"z")))


def what_is_not_committed_is_compacted() -> None:
    stage = Stage("compact")
    stage.segment(0, ONE)
    stage.segment(2, TWO, high_watermark=2)
    stage.segment(3, ACTIVE, high_watermark=2)
    stage.compacts(2)


def what_an_open_transaction_holds_is_compacted() -> None:
    stage = Stage("compact")
    left_open = transactions_of_another_leader(0, 0, 7, 1, is_append_time=False)
    stage.segment(0, left_open)
    stage.segment(1, batch(1, (b"b", b"1")))
    stage.segment(2, TWO)
    stage.segment(3, ACTIVE)
    stage.compacts(1)


def what_is_too_young_is_compacted() -> None:
    stage = compactable(compaction_lag_ms=WALL_MS)
    stage.compacts(0, ONE_REDUCED)


def an_aborted_record_supersedes_another() -> None:
    stage = Stage("compact")
    stage.segment(0, batch(0, (b"k2", b"1")))
    data = transactions_of_another_leader(-1, 0, 7, 2, is_append_time=False)
    batches, _ = read_batches(data, 0, FileNode(b""))
    stage.truth.producers[7] = (0, 1)
    first, marker = batches[2:4]  # the one that is aborted, and its marker
    index = stage.fs.open(f"{stage.directory}/{1:020d}.txnindex", create=True)
    entry = (7, first.base_offset, marker.base_offset, marker.end_offset)
    index.pwrite(struct.pack(">hqqqq", 0, *entry), 0)
    stage.segment(1, first.data, marker.data)
    at = stage.log.log_end_offset
    stage.segment(at, batch(at, (b"c", b"3")))
    stage.compacts(0)


def the_log_start_falls() -> None:
    stage = compactable()
    stage.truth.start = 2
    stage.starts(2, "tick")
    stage.starts(1, "tick")


def the_log_start_passes_the_high_watermark() -> None:
    stage = Stage("keep-bytes")
    stage.segment(0, ONE, high_watermark=0)
    stage.truth.starts_ordered.append(1)
    stage.starts(1)


def the_log_start_moves_unasked() -> None:
    stage = Stage("keep-bytes")
    stage.segment(0, ONE)
    stage.truth.starts_ordered.append(2)
    stage.starts(1)


def a_segment_goes_that_is_young() -> None:
    stage = Stage("keep-ms", retention_ms=100)
    stage.segment(0, batch(0, (b"a", b"1"), time=WALL_MS - 100))
    stage.segment(1, batch(1, (b"a", b"1"), time=WALL_MS))
    stage.removes(0, start=1)


def a_segment_goes_that_is_within_the_size() -> None:
    stage = Stage("keep-bytes", retention_bytes=len(ONE) + len(TWO) - 1)
    stage.segment(0, ONE)
    stage.segment(2, TWO)
    stage.removes(0, start=2)


def a_segment_goes_that_is_not_committed() -> None:
    stage = Stage("keep-bytes", retention_bytes=0)
    stage.segment(0, ONE, high_watermark=0)
    stage.segment(2, TWO, high_watermark=0)
    stage.removes(0, start=0)


def a_compacted_log_is_cut_from_the_front() -> None:
    compactable(retention_bytes=0).removes(0, start=2)


def the_time_is_not_the_leaders() -> None:
    stage = Stage("append-time")
    stage.segment(0, batch(0, (b"a", b"1"), log_append_time=WALL_MS - 1))


def the_time_is_the_producers() -> None:
    stage = Stage("append-time")
    stage.segment(0, batch(0, (b"a", b"1"), time=WALL_MS))


def a_segment_goes_on_behind_a_full_index() -> None:
    """Room for 4 entries: the first of 5 batches has none, and the sixth finds no room."""
    stage = Stage("keep-bytes", segment_batches=2)
    stage.segment(0, *(batch(each, (b"a", b"1")) for each in range(5)))
    stage.segment(5, *(batch(each, (b"a", b"1")) for each in range(5, 11)))


def the_end_is_another_one() -> None:
    compactable().listed(LATEST, -1, 3, 0)


def the_earliest_is_another_one() -> None:
    compactable().listed(EARLIEST, -1, 1, 0)


def the_first_at_a_time_is_another_one() -> None:
    compactable().listed(500, 500, 1, 0)


def the_largest_time_is_another_one() -> None:
    compactable().listed(MAX_TIMESTAMP, 500, 2, 0)


def the_epoch_of_the_start_is_the_leaders() -> None:
    stage = Stage("keep-bytes")
    stage.segment(0, ONE)
    stage.truth.leaders[1], stage.truth.leader_epoch, stage.partition.leader_epoch = NODE, 1, 1
    stage.segment(2, batch(2, (b"b", b"2"), partition_leader_epoch=1))
    stage.listed(EARLIEST, -1, 0, 1)


def an_epoch_ends_elsewhere() -> None:
    stage = Stage("keep-bytes")
    stage.segment(0, ONE)
    stage.truth.leaders[1], stage.truth.leader_epoch, stage.partition.leader_epoch = NODE, 1, 1
    stage.segment(2, batch(2, (b"b", b"2"), partition_leader_epoch=1))
    stage.ended(0, 0, 3)


def a_segment_goes_that_is_young_before_the_process_dies() -> None:
    stage = Stage("keep-ms", retention_ms=100)
    stage.segment(0, batch(0, (b"a", b"1"), time=WALL_MS - 100))
    stage.segment(1, batch(1, (b"a", b"1"), time=WALL_MS))
    stage.dies_removing(0)


PLANTED: list[tuple[str, Callable[[], None]]] = [
    ("S50 CompactionKeeps", the_newest_is_lost),
    ("S50 CompactionKeeps", a_record_without_a_newer_one_is_lost),
    ("S50 CompactionKeeps", a_record_of_the_former_active_segment_is_lost),
    ("S50 CompactionKeeps", a_value_is_another_one),
    ("S50 CompactionKeeps", the_time_changed),
    ("S50 CompactionKeeps", the_largest_time_is_that_of_a_removed_record),
    ("S50 CompactionKeeps", the_timestamp_type_changed),
    ("S50 CompactionKeeps", the_last_offset_is_lost),
    ("S50 CompactionKeeps", the_leader_epoch_changed),
    ("S50 CompactionKeeps", the_last_of_a_producer_is_lost),
    ("S50 CompactionKeeps", a_marker_is_lost_before_its_data),
    ("S50 CompactionKeeps", a_tombstone_is_lost_at_once),
    ("S50 CompactionKeeps", a_tombstone_is_lost_before_its_horizon),
    ("S50 CompactionKeeps", a_tombstone_has_no_horizon),
    ("S50 CompactionKeeps", a_horizon_is_too_early),
    ("S50 CompactionKeeps", a_batch_is_invented),
    ("S50 CompactionKeeps", an_aborted_record_supersedes_another),
    ("S51 CompactionBounds", what_is_not_committed_is_compacted),
    ("S51 CompactionBounds", what_an_open_transaction_holds_is_compacted),
    ("S51 CompactionBounds", what_is_too_young_is_compacted),
    ("S52 LogStartMonotone", the_log_start_falls),
    ("S52 LogStartMonotone", the_log_start_passes_the_high_watermark),
    ("S53 RetentionAllowed", the_log_start_moves_unasked),
    ("S53 RetentionAllowed", a_segment_goes_that_is_young),
    ("S53 RetentionAllowed", a_segment_goes_that_is_young_before_the_process_dies),
    ("S53 RetentionAllowed", a_segment_goes_that_is_within_the_size),
    ("S53 RetentionAllowed", a_segment_goes_that_is_not_committed),
    ("S53 RetentionAllowed", a_compacted_log_is_cut_from_the_front),
    ("S54 AppendTime", the_time_is_not_the_leaders),
    ("S54 AppendTime", the_time_is_the_producers),
    ("S74 SegmentsRoll", a_segment_goes_on_behind_a_full_index),
    ("S55 OffsetAnswers", the_end_is_another_one),
    ("S55 OffsetAnswers", the_earliest_is_another_one),
    ("S55 OffsetAnswers", the_first_at_a_time_is_another_one),
    ("S55 OffsetAnswers", the_largest_time_is_another_one),
    ("S56 EpochOfOffset", the_epoch_of_the_start_is_the_leaders),
    ("S56 EpochOfOffset", an_epoch_ends_elsewhere),
]


@pytest.mark.parametrize(("invariant", "plant"), PLANTED, ids=[p.__name__ for _, p in PLANTED])
def test_planted_violation_is_found(invariant: str, plant: Callable[[], None]) -> None:
    with pytest.raises(Violation) as found:
        plant()
    assert found.value.invariant == invariant


def test_what_compaction_may_do_is_no_violation() -> None:
    stage = compactable()
    stage.compacts(0, ONE_REDUCED)
    stage.compacts(0, ONE_REDUCED, TWO, gone=(2,))
    assert stage.judge.marks["log compacted"] == 2
    assert stage.judge.marks["segments merged"] == 1
    assert stage.judge.upkeep is not None
    stage.judge.upkeep.compare(stage.watch)


def test_the_active_segment_may_be_sealed_and_compacted_in_one_event() -> None:
    """What was appended before the pass may supersede what was there (seed 9620617)."""
    stage = Stage("compact")
    stage.segment(0, ONE)
    stage.segment(2, TWO)
    new = batch(3, (b"a", b"3"))
    stage.rolls_and_compacts(4, batch(4, (b"d", b"4")), TWO, new)
    assert stage.judge.marks["log compacted"] == 1


def test_a_merged_segment_may_have_more_batches_than_a_full_index() -> None:
    """The limit holds for the batches that a leader has appended (seed 9620617)."""
    stage = Stage("compact", segment_batches=1)
    for offset in range(4):
        stage.segment(offset, batch(offset, (b"%d" % offset, b"1")))
    merged = [batch(offset, (b"%d" % offset, b"1")) for offset in range(6)]
    stage.rolls_and_compacts(6, batch(6, (b"d", b"4")), *merged)
    assert stage.judge.marks["log compacted"] == 1


def test_a_tombstone_goes_behind_its_horizon() -> None:
    stage = with_tombstone()
    stage.compacts(0, MARKED)
    stage.machine.wall_ms += TOMBSTONE_MS + 1
    stage.compacts(0)
    assert stage.judge.marks["tombstone removed"] == 1


def test_what_retention_may_do_is_no_violation() -> None:
    stage = Stage("keep-ms", retention_ms=100)
    stage.segment(0, batch(0, (b"a", b"1"), time=WALL_MS - 101))
    stage.segment(1, batch(1, (b"a", b"1"), time=WALL_MS))
    stage.removes(0, start=1)
    stage.truth.starts_ordered.append(-1)
    stage.starts(2)
    assert stage.truth.start == 2


def test_records_are_deleted_up_to_the_high_watermark_of_a_restarted_leader() -> None:
    """It lags behind what was committed while too few replicas are in sync (seed 5000549)."""
    stage = Stage("keep-bytes")
    stage.segment(0, ONE)
    stage.segment(2, TWO)
    stage.dies_removing()
    stage.log.high_watermark = 2
    stage.look()
    stage.truth.starts_ordered.append(-1)
    stage.starts(2)
    assert stage.truth.start == 2 < stage.truth.end


@pytest.mark.parametrize("is_offline", [False, True], ids=["killed", "stopped by its disk"])
def test_what_a_process_removed_before_it_died_is_no_violation(is_offline: bool) -> None:
    """The next process begins at the first segment that is left (seeds 510004, 5000315)."""
    stage = Stage("keep-bytes", retention_bytes=0)
    stage.segment(0, ONE)
    stage.segment(2, TWO)
    stage.partition.offline = is_offline
    stage.dies_removing(0)
    stage.partition.offline = False
    stage.starts(2, "link_frame")
    assert stage.truth.start == 2


def test_a_deposed_leader_answers_by_its_own_log() -> None:
    """Where its log begins with what it has not committed, another leader has committed more."""
    stage = Stage("keep-bytes", retention_bytes=0)
    stage.segment(0, ONE)
    stage.segment(2, TWO, high_watermark=2)
    stage.removes(0, start=2)
    data = batch(2, (b"c", b"3"), partition_leader_epoch=1)
    (committed,), _ = read_batches(data, 0, FileNode(b""))
    stage.truth.commit(committed, NODE + 1)
    stage.listed(EARLIEST, -1, 2, 0)


def test_answers_that_follow_from_the_log_are_right() -> None:
    stage = Stage("keep-bytes")
    stage.segment(0, ONE)
    stage.truth.leaders[1], stage.truth.leader_epoch, stage.partition.leader_epoch = NODE, 1, 1
    stage.segment(2, batch(2, (b"b", b"2"), time=700, partition_leader_epoch=1))
    stage.listed(LATEST, -1, 3, 1)
    stage.listed(EARLIEST, -1, 0, 0)
    stage.listed(501, 700, 2, 1)
    stage.listed(701, -1, -1, -1)
    stage.listed(MAX_TIMESTAMP, 700, 2, 1)
    stage.ended(0, 0, 2)
    stage.ended(1, 1, 3)
    stage.ended(2, -1, -1)


@pytest.mark.parametrize("is_empty", [True, False])
def test_leader_may_lack_a_batch_only_where_it_has_none_before(is_empty: bool) -> None:
    stage = Stage("compact")
    if not is_empty:
        stage.segment(0, batch(0, (b"b", b"0")), high_watermark=0)
    log = stage.judge.watch_of(NODE, stage.truth).log
    assert stage.judge.is_gone_from_leader(stage.truth, log.end_offset) == is_empty


@pytest.mark.parametrize("is_first_open", [True, False])
def test_compaction_may_stop_at_a_removed_record_of_an_open_transaction(
    is_first_open: bool,
) -> None:
    """L9: of two open transactions, the first may lie below the log start."""
    first = transactions_of_another_leader(0, 0, 7, 1, is_append_time=False)
    second = transactions_of_another_leader(3, 0, 8, 1, is_append_time=False)
    stage = Stage("compact-delete", retention_bytes=0)
    stage.segment(0, first if is_first_open else batch(0, (b"b", b"0")))
    stage.segment(1, batch(1, (b"a", b"0")))
    stage.segment(2, batch(2, (b"a", b"1")))
    stage.segment(3, second)
    stage.segment(stage.log.log_end_offset, batch(stage.log.log_end_offset, (b"c", b"0")))
    stage.removes(0, start=1)
    stage.truth.rules = replace(stage.truth.rules, retention_bytes=-1)
    assert (stage.overdue() is None) == is_first_open


def test_what_is_due_and_not_done_is_told() -> None:
    """L9: compaction and retention that do nothing."""
    assert compactable().overdue() is not None
    assert compactable(dirty_percent=50).overdue() is None
    assert compactable(compaction_lag_ms=WALL_MS).overdue() is None
    for lag_ms, is_due in ((0, True), (1, False)):  # the file's age is not known
        emptied = Stage("compact", compaction_lag_ms=lag_ms)
        emptied.segment(0, batch(0, (b"a", b"0")))
        emptied.segment(1, batch(1, (b"a", b"1")), batch(2, (b"a", b"2")))
        emptied.segment(3, ACTIVE)
        emptied.compacts(0)
        assert (emptied.overdue() is not None) == is_due
    sized = Stage("keep-bytes", retention_bytes=len(TWO))
    sized.segment(0, ONE)
    sized.segment(2, TWO)
    assert sized.overdue() is not None
    timed = Stage("keep-ms", retention_ms=0)
    timed.segment(0, ONE)
    assert timed.overdue() is not None
    timed.log.high_watermark = 1
    timed.judge.watches[NODE][TOPIC_ID, 0].state = (2, 1, 0, True)
    assert timed.overdue() is None


def test_log_without_a_segment_has_none_for_the_judge() -> None:
    """A process may die while its log begins again elsewhere."""
    assert DataLogWatch("data/t-0").segments == ()
