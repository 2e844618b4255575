"""Crashed runs of a replica that moves between two log directories (KIP-113).

Production code copies, promotes and resumes (`broker.replication.replica_copy`,
`storage.directory.future_logs`, `node.disks.future_opening`). After a crash at any change exactly
one directory has the replica's log, with every acknowledged record, whichever directory the
metadata has: the node crashes between the controller's answer and its own renames, too.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from kraft_wire.broker.partition import Partition
from kraft_wire.broker.replication.replica_copy import ReplicaCopy
from kraft_wire.model import LeaderEpoch, Offset, TopicPartition, Uuid
from kraft_wire.node.disks.future_opening import resolve_copies
from kraft_wire.sim.crash.harness import (
    DISK,
    PARTITION,
    TOPIC_ID,
    Harness,
    LogLedger,
    LogScenario,
    Outcome,
    Recorder,
    digest,
)
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.cleaning.retention import apply_retention
from kraft_wire.storage.directory.future_logs import create_future, drop_future, promote
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.directory.meta_properties import MetaProperties
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.recovery.damage import inspect
from kraft_wire.storage.recovery.repair import cut

__all__ = ["MOVE_SCENARIOS"]

_OTHER: Final = "disk/more"
_PATHS: Final = (DISK, _OTHER)
_READ_BYTES: Final = 600
_IDS: Final = {DISK: Uuid(b"1" * 16), _OTHER: Uuid(b"2" * 16)}


@dataclass(frozen=True, slots=True)
class _MoveLedger(LogLedger):
    """The promises of the log, and the directory that the metadata has for it."""

    __hash__ = None

    assigned: str = DISK


def _opened(fs: SimFileSystem, config: LogConfig, assigned: str) -> list[LogDirectory]:
    """Start: open both directories, and decide about copies."""
    directories: list[LogDirectory] = []
    for path in _PATHS:
        directory = LogDirectory.open(fs, path)
        directory.meta = MetaProperties("cluster", 1, _IDS[path])
        directory.load_logs(lambda _: config, 1)
        directories.append(directory)

    def place(partition: TopicPartition, topic_id: Uuid) -> Uuid | None:
        return _IDS[assigned]

    for directory, doomed in resolve_copies(fs, directories, place, 1):
        directory.remove_deleted(doomed)
    return directories


class _MoveHarness(Harness):
    """The writing side, over two directories; `directory` has the log."""

    def __init__(self, fs: SimFileSystem, config: LogConfig) -> None:
        super().__init__(fs, config)
        self.ledger = _MoveLedger()

    def _open(self) -> LogDirectory:
        ledger = self.ledger
        assigned = ledger.assigned if isinstance(ledger, _MoveLedger) else DISK
        self.both = _opened(self.fs, self.config, assigned)
        holders = [each for each in self.both if PARTITION in each.logs]
        return holders[0] if holders else self.both[0]

    @property
    def target(self) -> LogDirectory:
        """The directory without the log."""
        (other,) = (each for each in self.both if each is not self.directory)
        return other

    def begin(self) -> None:
        """Create the copy."""
        create_future(self.target, PARTITION, TOPIC_ID, self.config, 1)

    def copy(self, reads: int) -> None:
        """Copy some reads, less if that is all."""
        replica = self._replica()
        for _ in range(reads):
            if not replica.has_equal_end:
                replica.follow(_READ_BYTES, 1, 1)

    def finish(self) -> None:
        """Copy the rest; have the controller assign the directory; promote the copy."""
        self.copy(1_000)
        assert self._replica().has_equal_end, "all is copied"
        assert isinstance(self.ledger, _MoveLedger), self.ledger
        self.ledger = replace(self.ledger, assigned=self.target.path)
        source = self.directory
        doomed = promote(self.fs, source, self.target, PARTITION, 1)
        self.directory = self.target
        source.settle()
        source.remove_deleted(doomed)

    def cancel(self) -> None:
        """Drop the copy."""
        doomed = drop_future(self.fs, self.target, PARTITION)
        self.target.settle()
        self.target.remove_deleted(doomed)

    def _replica(self) -> ReplicaCopy:
        epoch = LeaderEpoch(self.epoch)
        logs = (self.log, self.target.futures[PARTITION])
        return ReplicaCopy(*(Partition("t", TOPIC_ID, 0, log, epoch) for log in logs))

    def restart(self) -> None:
        """Drop the process without any farewell and start again on the same disk."""
        for each in self.both:
            each.release()
        self.directory = self._open()

    def stop_cleanly_and_start(self) -> None:
        """Close both with the clean marker and start again."""
        self.ledger = replace(self.ledger, required=dict(self.appended))
        for each in self.both:
            each.close(broker_epoch=7)
        self.directory = self._open()


class _MoveScenario(LogScenario):
    """A scenario whose log moves; `sees_old`: the metadata still has the log's first directory."""

    def __init__(
        self,
        name: str,
        config: LogConfig,
        steps: Callable[[_MoveHarness], None],
        *,
        sees_old: bool = False,
    ) -> None:
        super().__init__(name, config, lambda harness: None)
        self._move = steps
        self._sees_old = sees_old

    def run(self, recorder: Recorder) -> None:
        fs = SimFileSystem()
        recorder.prepare(fs)
        harness = _MoveHarness(fs, self.config)
        recorder.watch(fs, lambda: harness.ledger)
        harness.create()
        self._move(harness)
        recorder.finish()

    def verify(self, fs: SimFileSystem, ledger: object, is_ordered: bool) -> Outcome:
        assert isinstance(ledger, _MoveLedger), ledger
        outcome = Outcome([])
        assigned = DISK if self._sees_old else ledger.assigned
        first = self._start(fs, assigned, is_ordered, outcome)
        if first is None:
            if ledger.exists and not outcome.violations:
                outcome.violations.append("the log is gone")
            return outcome
        outcome.violations += self._judge(first, ledger)
        before = digest(first)
        again = self._start(fs, assigned, is_ordered, outcome)
        if again is None or digest(again) != before:
            outcome.violations.append("a second start gives another state than the first")
        return outcome

    def _start(
        self, fs: SimFileSystem, assigned: str, is_ordered: bool, outcome: Outcome
    ) -> Log | None:
        """Start; where the log is refused, cut as an operator does; return the only log."""
        directories = _opened(fs, self.config, assigned)
        refused = [each for each in directories if PARTITION in each.damaged]
        for each in directories:
            each.release()
        if refused:
            outcome.is_refused = True
            if is_ordered:
                reason = refused[0].damaged[PARTITION]
                outcome.violations.append(f"refused although nothing is out of order: {reason}")
            for damage in inspect(fs, refused[0].path, PARTITION):
                cut(fs, refused[0].path, damage)
            directories = _opened(fs, self.config, assigned)
            for each in directories:
                each.release()
        logs = [each.logs[PARTITION] for each in directories if PARTITION in each.logs]
        if len(logs) > 1:
            outcome.violations.append("two directories have the log")
        return logs[0] if logs else None


def _move(harness: _MoveHarness) -> None:
    for size in (500, 450, 700):
        harness.append([size], producer_id=5)
        harness.flush()
    harness.begin()
    harness.copy(1)
    harness.epoch = 2
    harness.append([300, 900])
    harness.flush()
    harness.copy(2)
    harness.append([60], producer_id=5)
    harness.finish()
    harness.append([90], producer_id=5)
    harness.flush()
    harness.directory.checkpoint()


def _move_there_and_back(harness: _MoveHarness) -> None:
    harness.append([500, 300])
    harness.flush()
    harness.directory.checkpoint()
    harness.begin()
    harness.finish()
    harness.append([200])
    harness.flush()
    harness.begin()
    harness.copy(1)
    harness.restart()
    harness.finish()
    harness.append([80])
    harness.flush()
    harness.stop_cleanly_and_start()


def _truncate_meanwhile(harness: _MoveHarness) -> None:
    for size in (500, 450, 700, 60):
        harness.append([size], producer_id=5)
        harness.flush()
    harness.begin()
    harness.copy(10)
    harness.truncate(2)
    harness.epoch = 3
    harness.append([350, 90])
    harness.flush()
    harness.copy(1)
    harness.restart()
    harness.append([70])
    harness.flush()
    harness.finish()


def _delete_records_meanwhile(harness: _MoveHarness) -> None:
    for size in (500, 450, 700, 60, 300):
        harness.append([size])
        harness.flush()
    harness.begin()
    harness.copy(2)
    log = harness.log
    log.update_high_watermark(log.log_end_offset)
    harness.ledger = replace(harness.ledger, start_offset_max=4)
    log.advance_log_start_offset(Offset(4))
    harness.directory.checkpoint()
    harness.finish()
    apply_retention(harness.log, 1)
    harness.append([90])
    harness.flush()


def _cancel(harness: _MoveHarness) -> None:
    harness.append([500, 300])
    harness.flush()
    harness.begin()
    harness.copy(1)
    harness.stop_cleanly_and_start()
    harness.cancel()
    harness.append([200])
    harness.flush()
    harness.begin()
    harness.finish()


_SMALL: Final = LogConfig(flush_messages=1, segment_bytes=1400, index_interval_bytes=300)

MOVE_SCENARIOS: Final = [
    _MoveScenario("move to another directory", _SMALL, _move),
    _MoveScenario("move unknown to the metadata", _SMALL, _move, sees_old=True),
    _MoveScenario("move there and back", _SMALL, _move_there_and_back),
    _MoveScenario("truncate while moving", _SMALL, _truncate_meanwhile),
    _MoveScenario("delete records while moving", _SMALL, _delete_records_meanwhile),
    _MoveScenario("cancel a move, then move", _SMALL, _cancel),
]
