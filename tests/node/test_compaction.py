"""The order in which a node compacts its logs: the dirtiest first, and every log has its turn."""

from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_wire.model import Offset, StorageError, TopicPartition, Uuid
from kraft_wire.node.disks import compaction
from kraft_wire.node.disks.compaction import LogCleaner
from kraft_wire.node.disks.log_store import NodeLogStore, drop_copy
from kraft_wire.node.disks.maintenance import Maintenance
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.sim.disk.files import DiskFault, SimFileSystem
from kraft_wire.storage.cleaning.cleanable import Cleanable
from kraft_wire.storage.directory.future_logs import create_future
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from tests.storage.making import append, batch_bytes, marker_bytes
from tests.storage.test_unreadable_records import spoilt

BACKOFF_MS = 15_000
WALL_MS = 1_000_000
CONFIG = LogConfig(segment_bytes=300, cleanup_policy=("compact",))
RATIO = CONFIG.min_cleanable_dirty_ratio
HANGING = 7
"""The producer of transactions that nobody ends."""


class Disk(SimFileSystem):
    """A disk that has no room for what is written to some paths."""

    full_paths: tuple[str, ...] = ()
    broken_paths: tuple[str, ...] = ()

    def enter(self, operation: str, path: str) -> DiskFault | None:
        if operation == "write" and any(part in path for part in self.broken_paths):
            self.fault = (self.calls_count, DiskFault.EIO)
        if operation == "write" and any(part in path for part in self.full_paths):
            self.fault = (self.calls_count, DiskFault.ENOSPC)
        return super().enter(operation, path)


class Cleaning:
    """The log directories of a node and its periodic tasks, without the node."""

    def __init__(self, directories: int = 1, **texts: str) -> None:
        self.fs = Disk()
        paths = [f"d{at}" for at in range(directories)]
        self.directories = [LogDirectory.open(self.fs, path) for path in paths]
        node_settings = NodeSettings(texts)
        self.failures: list[tuple[TopicPartition, StorageError]] = []
        self.lines: list[tuple[str, dict[str, object]]] = []
        """Name and fields of each line of the periodic tasks."""
        self.store = NodeLogStore(
            self.fs, self.directories, node_settings, lambda name, **fields: None, self._offline
        )
        self.maintenance = Maintenance(
            self.fs, self.store, node_settings, 0, self._failed, lambda: True, self._report
        )
        self.now_ms = 0

    def _report(self, name: str, **fields: object) -> None:
        self.lines.append((name, fields))

    def _offline(self, directory: LogDirectory) -> None:
        raise AssertionError(directory.offline)

    def _failed(self, partition: TopicPartition, error: StorageError) -> None:
        self.failures.append((partition, error))
        assert self.store.failed(partition, error) == []

    def log(self, name: str, at: int = 0, config: LogConfig = CONFIG) -> Log:
        directory = self.directories[at]
        partition = TopicPartition(name, 0)
        return directory.create_log(partition, Uuid(name.encode().ljust(16)[:16]), config, 1)

    def offset(self, name: str) -> int:
        """The cleaner offset of a log, 0 where it was never compacted."""
        partition = TopicPartition(name, 0)
        return max(each.cleaner_offsets.get(partition, 0) for each in self.directories)

    def tick(self) -> list[str]:
        """Let the interval of the cleaner pass once; return the logs that were compacted."""
        before = {name: self.offset(name) for name in self.names()}
        self.now_ms += BACKOFF_MS
        self.maintenance.tick(self.now_ms, WALL_MS)
        return [name for name in self.names() if self.offset(name) > before[name]]

    def names(self) -> list[str]:
        return [name.topic for each in self.directories for name in each.logs]


def write(log: Log, count: int, *, producer_id: int = -1, keys: int = 2) -> None:
    """Append records of few keys, three to a segment; all of them are committed."""
    for at in range(count):
        append(
            log,
            batch_bytes(
                log.log_end_offset,
                key=b"%d" % (at % keys),
                timestamp=1_000,
                producer_id=producer_id,
                sequence=at if producer_id >= 0 else -1,
                transactional=producer_id >= 0,
            ),
        )
    log.update_high_watermark(log.log_end_offset)


def with_hanging_transaction(log: Log) -> None:
    """Open a transaction inside a segment, which is sealed behind it."""
    write(log, 1)
    write(log, 1, producer_id=HANGING)
    write(log, 7)
    assert log.segments[0].base_offset < log.last_stable_offset < log.segments[1].base_offset


def with_small_isr(log: Log) -> None:
    """Keep the high watermark inside a sealed segment, as an ISR below its minimum does."""
    write(log, 9)
    log.high_watermark = Offset(1)
    assert log.last_stable_offset == 1 < log.segments[1].base_offset


@pytest.mark.parametrize("stop", [with_hanging_transaction, with_small_isr])
def test_a_log_that_cannot_be_cleaned_does_not_keep_others_from_it(stop: object) -> None:
    assert callable(stop)
    cleaning = Cleaning()
    stopped = cleaning.log("a")
    stop(stopped)
    write(cleaning.log("__consumer_offsets"), 12)
    compacted = [cleaning.tick() for _ in range(50)]
    assert compacted[0] == ["__consumer_offsets"]
    assert compacted[1:] == [[]] * 49, "nothing else can be cleaned"
    assert cleaning.offset("a") == 0
    if stop is with_hanging_transaction:
        append(stopped, marker_bytes(stopped.log_end_offset, producer_id=HANGING, abort=True))
    stopped.update_high_watermark(stopped.log_end_offset)
    assert cleaning.tick() == ["a"], "it goes on as soon as it can"


def test_the_dirtiest_log_of_all_directories_is_first() -> None:
    cleaning = Cleaning(directories=2)
    shares = {"third": (3, 6), "first": (0, 6), "fourth": (6, 9), "second": (3, 9)}
    for at, (name, (clean, dirty)) in enumerate(shares.items()):
        log = cleaning.log(name, at % 2)
        if clean:
            write(log, clean, keys=clean)
            log.roll(1)
            cleaning.directories[at % 2].cleaner_offsets[log.topic_partition] = Offset(clean)
        write(log, dirty)
        log.roll(1)
    assert [cleaning.tick() for _ in range(5)] == [["first"], ["second"], ["third"], ["fourth"], []]


def test_an_overdue_log_is_compacted_below_the_ratio() -> None:
    cleaning = Cleaning()
    lagging = replace(CONFIG, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=1_000)
    write(cleaning.log("overdue", config=lagging), 9)
    write(cleaning.log("young", config=replace(lagging, max_compaction_lag_ms=WALL_MS)), 9)
    assert [cleaning.tick() for _ in range(3)] == [["overdue"], [], []]


def test_a_log_without_room_for_its_pass_does_not_keep_others_from_theirs() -> None:
    cleaning = Cleaning()
    write(cleaning.log("big"), 30, keys=30)
    cleaning.fs.full_paths = ("big-0/",)
    for name in "abc":
        log = cleaning.log(name)
        write(log, 3, keys=3)
        log.roll(1)
        cleaning.directories[0].cleaner_offsets[log.topic_partition] = Offset(3)
        write(log, 6)
        log.roll(1)
    compacted = [cleaning.tick() for _ in range(8)]
    assert sorted(name for names in compacted for name in names) == ["a", "b", "c"]
    assert len(cleaning.failures) >= 2, "it is tried again"
    cleaning.fs.full_paths = ()
    after = [cleaning.tick() for _ in range(2)]
    assert ["big"] in after


def test_a_full_directory_costs_one_attempt_a_call_and_other_directories_go_on() -> None:
    cleaning = Cleaning(directories=2)
    for at in range(6):
        write(cleaning.log(f"full{at}", 0), 9)
    other = cleaning.log("other", 1)
    write(other, 3)
    other.roll(1)
    cleaning.fs.full_paths = (".cleaned",)
    cleaning.tick()
    attempts = [partition.topic for partition, _ in cleaning.failures]
    assert attempts == ["full0", "other"]
    cleaning.fs.full_paths = ("d0/full",)
    assert cleaning.tick() == ["other"]


def test_a_directory_that_breaks_in_a_pass_is_left_alone_and_others_go_on() -> None:
    cleaning = Cleaning(directories=2)
    for at in range(3):
        write(cleaning.log(f"broken{at}", 0), 9)
    other = cleaning.log("other", 1)
    write(other, 3)
    other.roll(1)
    cleaning.fs.broken_paths = ("d0/broken",)
    attempts: list[str] = []

    def failed(partition: TopicPartition, error: StorageError) -> None:
        attempts.append(partition.topic)
        cleaning.directories[0].offline = error

    cleaner = LogCleaner(cleaning.fs, failed)
    assert cleaner.run(cleaning.directories, WALL_MS)
    assert (attempts, cleaning.offset("other")) == (["broken0"], 3)


def test_unreadable_records_do_not_keep_others_from_being_compacted() -> None:
    cleaning = Cleaning()
    for name in ("a", "b"):
        log = cleaning.log(name)
        append(log, spoilt(batch_bytes(0)))
        write(log, 9)
    write(cleaning.log("c"), 9)
    assert [cleaning.tick() for _ in range(20)] == [["c"]] + [[]] * 19
    assert [partition.topic for partition, _ in cleaning.failures] == ["a", "b"]


def test_a_node_that_is_told_not_to_clean_compacts_nothing() -> None:
    cleaning = Cleaning(**{"log.cleaner.enable": "false"})
    write(cleaning.log("a"), 9)
    assert cleaning.tick() == []
    assert cleaning.directories[0].cleaner_offsets == {}


def test_a_process_that_dies_in_a_pass_leaves_no_log_that_the_next_start_refuses() -> None:
    """The cleaner checkpoint allows gaps before the first one, also if the policy then changes."""
    cleaning = Cleaning()
    log = cleaning.log("a")
    write(log, 9, keys=9)
    write(log, 9)
    log.flush()
    cleaning.fs.sync_directory("")
    disks: list[SimFileSystem] = []
    cleaning.fs.before_change = lambda: disks.append(
        cleaning.fs.crashed([atom.number for atom in cleaning.fs.pending_atoms()])
    )
    assert cleaning.tick() == ["a"]
    assert len(disks) > 9
    for disk in disks:
        again = LogDirectory.open(disk, "d0")
        again.load_logs(lambda _: LogConfig(), 1)
        assert again.damaged == {}


@dataclass(frozen=True)
class Drawn:
    """A log as it is drawn: counts of records, and shares of the log in 100."""

    at: int
    clean: int
    dirty: int
    watermark: int
    start: int
    policy: str
    hanging: int | None


DRAWN = st.builds(
    Drawn,
    at=st.integers(0, 1),
    clean=st.integers(0, 9),
    dirty=st.integers(0, 12),
    watermark=st.integers(0, 100),
    start=st.sampled_from([0, 0, 30, 60, 100]),
    policy=st.sampled_from(["compact", "compact", "compact", "delete"]),
    hanging=st.one_of(st.none(), st.integers(0, 20)),
)


def made(cleaning: Cleaning, name: str, drawn: Drawn) -> Log:
    """A log whose cleaner offset, high watermark, open transaction and start are anywhere."""
    log = cleaning.log(name, drawn.at, replace(CONFIG, cleanup_policy=(drawn.policy,)))
    count = drawn.clean + drawn.dirty
    if drawn.hanging is not None and drawn.hanging < count:
        write(log, drawn.hanging)
        write(log, 1, producer_id=HANGING)
    write(log, count - log.log_end_offset)
    if drawn.clean:
        offsets = cleaning.directories[drawn.at].cleaner_offsets
        offsets[log.topic_partition] = Offset(drawn.clean)
    log.high_watermark = Offset(log.log_end_offset * drawn.watermark // 100)
    log.advance_log_start_offset(Offset(log.high_watermark * drawn.start // 100))
    return log


def dirty_share(cleaning: Cleaning, log: Log) -> float | None:
    """Judge from the files alone how dirty a log is; None for one that is not due.

    A file is clean below the cleaner offset, and can be cleaned if no record of it is at the last
    stable offset or behind it; the last file never is.
    """
    fs, directory = cleaning.fs, log.directory
    bases = sorted(int(name[:20]) for name in fs.names(directory) if name.endswith(".log"))
    cleaned_to = max(cleaning.offset(log.topic_partition.topic), log.log_start_offset)
    clean, dirty = 0, 0
    for base, end in pairwise(bases):
        size = fs.open(f"{directory}/{base:020d}.log").size_bytes()
        if end - 1 < cleaned_to:
            clean += size
        elif end - 1 < log.last_stable_offset:
            dirty += size
    if not log.config.is_compacted or dirty == 0 or dirty / (clean + dirty) <= RATIO:
        return None
    return dirty / (clean + dirty)


@settings(max_examples=60, deadline=None)
@given(st.lists(DRAWN, min_size=1, max_size=5))
def test_each_call_compacts_the_dirtiest_log_until_none_is_due(drawn: list[Drawn]) -> None:
    cleaning = Cleaning(directories=2)
    logs = {f"log{at}": made(cleaning, f"log{at}", each) for at, each in enumerate(drawn)}
    for _ in range(len(logs) + 1):
        shares = {name: dirty_share(cleaning, log) for name, log in logs.items()}
        due = {name: share for name, share in shares.items() if share is not None}
        compacted = cleaning.tick()
        assert len(compacted) == min(1, len(due)), (due, compacted)
        assert all(due.get(name) == max(due.values()) for name in compacted), (due, compacted)
    assert all(dirty_share(cleaning, log) is None for log in logs.values())


@pytest.mark.parametrize("broken", ["a", "b", "c"])
def test_a_log_whose_indexes_cannot_be_read_keeps_no_other_from_its_turn(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaning, failures = Cleaning(), []
    for name in ("a", "b", "c"):
        write(cleaning.log(name), 12)
    usual = compaction.cleanable_part

    def part(log: Log, checkpoint: Offset, wall_ms: int) -> Cleanable:
        if log.topic_partition.topic == broken:
            raise StorageError("read", "d0", "EIO")
        return usual(log, checkpoint, wall_ms)

    monkeypatch.setattr(compaction, "cleanable_part", part)
    cleaner = LogCleaner(cleaning.fs, lambda partition, error: failures.append(partition.topic))
    assert [cleaner.run(cleaning.directories, WALL_MS) for _ in range(3)] == [True, True, False]
    assert failures == [broken] * 3
    assert [name for name in "abc" if not cleaning.offset(name)] == [broken]


def test_replica_that_moves_to_another_directory_waits_until_the_move_is_over() -> None:
    """As in Kafka (`LogManager.abortAndPauseCleaning`): its copy has the records of before."""
    cleaning = Cleaning(2)
    write(cleaning.log("a"), 12)
    partition = TopicPartition("a", 0)
    topic_id = cleaning.directories[0].logs[partition].topic_id
    create_future(cleaning.directories[1], partition, topic_id, CONFIG, 1)
    assert [cleaning.tick() for _ in range(3)] == [[]] * 3
    drop_copy(cleaning.store, cleaning.fs, partition)
    assert cleaning.tick() == ["a"]
