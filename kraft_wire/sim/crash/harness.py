"""The machinery of crash scenarios: the writing side with its ledger, and the judges.

A `Harness` writes into its ledger before it requests a change and after the change is reported
durable. `LogScenario.verify` and `FileScenario.verify` get a disk after a crash and the ledger of
that moment, and run production recovery: the result must hold everything acknowledged, nothing that
was never written, and must be the same a second time. Production's `repair` truncates a refused
log, as an operator would.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from kraft_wire.broker.producing.transaction_marker import TransactionMarker
from kraft_wire.model import (
    Offset,
    StorageError,
    TopicPartition,
    Uuid,
)
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.producers.producer_state import ProducerStates
from kraft_wire.storage.recovery.damage import inspect
from kraft_wire.storage.recovery.repair import cut
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch, parse_batches

__all__ = [
    "DISK",
    "PARTITION",
    "TOPIC_ID",
    "FileScenario",
    "Harness",
    "LogLedger",
    "LogScenario",
    "Outcome",
    "Recorder",
    "Scenario",
    "digest",
]

PARTITION = TopicPartition("t", 0)
TOPIC_ID = Uuid(bytes(range(16)))
DISK = "disk/logs"


@dataclass(frozen=True, slots=True)
class LogLedger:
    """The promises of the scenario's log; immutable, so that a crash can keep them."""

    __hash__ = None  # type: ignore[assignment]  # it holds dictionaries

    exists: bool = False
    allowed: Mapping[int, tuple[bytes, ...]] = field(default_factory=dict)
    required: Mapping[int, bytes] = field(default_factory=dict)
    start_offset_max: int = 0  # nothing above it may have been removed from the front
    readable_by_key: Mapping[bytes, tuple[bytes, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class Outcome:
    """The result of one recovery."""

    violations: list[str]
    is_refused: bool = False


class Harness:
    """The writing side of a scenario: production objects and the ledger, kept in step."""

    def __init__(self, fs: SimFileSystem, config: LogConfig) -> None:
        self.fs = fs
        self.config = config
        self.ledger = LogLedger()
        self.epoch = 0
        self.appended: dict[int, bytes] = {}
        self._open_values: dict[int, dict[bytes, bytes]] = {}
        """Values of open transactions, by producer id and key."""
        self.directory = self._open()

    def _open(self) -> LogDirectory:
        directory = LogDirectory.open(self.fs, DISK)
        directory.load_logs(lambda _: self.config, 1)
        return directory

    @property
    def log(self) -> Log:
        """The log under test."""
        return self.directory.logs[PARTITION]

    def create(self) -> None:
        """Create the partition; from then on it must be there."""
        self.fs.sync_directory("disk")
        self.fs.sync_directory("")
        self.directory.create_log(PARTITION, TOPIC_ID, self.config, 1)
        self.ledger = replace(self.ledger, exists=True)

    def append(
        self,
        sizes: list[int],
        *,
        producer_id: int = -1,
        key: bytes = b"k",
        is_transactional: bool = False,
    ) -> None:
        """Append one batch per size, unsynced."""
        for size in sizes:
            offset = self.log.log_end_offset
            value = bytes((offset + at) % 251 for at in range(size))
            data = build_batch(
                [Record(key, value, timestamp=1000 + offset)],
                base_offset=offset,
                partition_leader_epoch=self.epoch,
                producer_id=producer_id,
                producer_epoch=0 if producer_id >= 0 else -1,
                base_sequence=offset if producer_id >= 0 else -1,
                is_transactional=is_transactional,
            )
            if is_transactional:
                self._open_values.setdefault(producer_id, {})[key] = value
            else:
                self._make_readable({key: value})
            self._append(bytes(data))

    def end(self, producer_id: int, *, commit: bool) -> None:
        """Append the marker that ends a producer's transaction, unsynced."""
        values = self._open_values.pop(producer_id, {})
        if commit:
            self._make_readable(values)
        data = TransactionMarker(producer_id, 0, commit, 3).batch(1000 + self.log.log_end_offset)
        parse_batches(data)[0].assign(self.log.log_end_offset, self.epoch)
        self._append(bytes(data))

    def write(self, key: bytes, value: bytes | None) -> None:
        """Append one record, unsynced."""
        offset = self.log.log_end_offset
        record = Record(key, value, timestamp=1000 + offset)
        data = build_batch([record], base_offset=offset, partition_leader_epoch=self.epoch)
        self._make_readable({key: value or b""})
        self._append(bytes(data))

    def _make_readable(self, values: Mapping[bytes, bytes]) -> None:
        readable = dict(self.ledger.readable_by_key)
        for key, value in values.items():
            readable[key] = (*readable.get(key, (b"",)), value)
        self.ledger = replace(self.ledger, readable_by_key=readable)

    def _append(self, data: bytes) -> None:
        batches = parse_batches(memoryview(data))
        offset = batches[0].base_offset
        known = self.ledger.allowed.get(offset, ())
        self.ledger = replace(self.ledger, allowed={**self.ledger.allowed, offset: (*known, data)})
        self.log.append(data, batches, 1, 1000 + offset)
        self.appended[offset] = data

    def flush(self) -> None:
        """Flush; the appended records are then required."""
        self.log.flush()
        newest = {key: values[-1:] for key, values in self.ledger.readable_by_key.items()}
        self.ledger = replace(self.ledger, required=dict(self.appended), readable_by_key=newest)

    def truncate(self, offset: int) -> None:
        """Truncate; the cut records may be gone, and after the call they must be."""
        kept = {at: data for at, data in self.appended.items() if at < offset}
        self.ledger = replace(
            self.ledger,
            required={at: data for at, data in self.ledger.required.items() if at < offset},
        )
        self.log.truncate_to(Offset(offset))
        self.appended = kept
        allowed = {at: (data,) for at, data in kept.items()}
        self.ledger = replace(self.ledger, allowed=allowed)

    def restart(self) -> None:
        """Drop the process without any farewell and start again on the same disk."""
        self.directory.release()
        self.directory = self._open()

    def stop_cleanly_and_start(self) -> None:
        """Close with the clean marker and start again."""
        self.ledger = replace(self.ledger, required=dict(self.appended))
        self.directory.close(broker_epoch=7)
        self.directory = self._open()


class Recorder(Protocol):
    """Enumerates the states in which a crash may leave the disks of a run."""

    @property
    def has_enough(self) -> bool:
        """Whether enough states are recorded."""
        ...

    @property
    def sector_bytes(self) -> int:
        """The size of a sector, which reaches the disks of this run as a whole or not at all."""
        ...

    @property
    def keeps_its_word(self) -> bool:
        """Whether no safeguard is taken away."""
        ...

    def prepare(self, fs: SimFileSystem) -> None:
        """Give a new disk its sectors and its weaknesses."""
        ...

    def watch(self, fs: SimFileSystem, ledger: Callable[[], object]) -> None:
        """Enumerate at every change of a disk from now on; `ledger` returns the promises then."""
        ...

    def finish(self) -> None:
        """Enumerate at the end of a run."""
        ...


class Scenario(Protocol):
    """A run, and the judgement of a disk after a crash in it."""

    name: str

    def run(self, recorder: Recorder) -> None:
        """Do the work, in front of the recorder."""
        ...

    def verify(self, fs: SimFileSystem, ledger: object, is_ordered: bool) -> Outcome:
        """Recover twice and judge."""
        ...


class LogScenario:
    """A scenario on one partition's log."""

    def __init__(
        self,
        name: str,
        config: LogConfig,
        steps: Callable[[Harness], None],
        *,
        is_keyed: bool = False,
    ) -> None:
        self.name = name
        self.config = config
        self._steps = steps
        self._is_keyed = is_keyed

    def run(self, recorder: Recorder) -> None:
        fs = SimFileSystem()
        recorder.prepare(fs)
        harness = Harness(fs, self.config)
        recorder.watch(fs, lambda: harness.ledger)
        harness.create()
        self._steps(harness)
        recorder.finish()

    def verify(self, fs: SimFileSystem, ledger: object, is_ordered: bool) -> Outcome:
        assert isinstance(ledger, LogLedger), ledger
        outcome = Outcome([])
        directory = self._recovered(fs, is_ordered, outcome)
        log = directory.logs.get(PARTITION)
        if log is None:
            if ledger.exists and not outcome.violations:
                outcome.violations.append("the log is gone")
            directory.release()
            return outcome
        first = digest(log)
        outcome.violations += self._judge(log, ledger)
        directory.release()
        again = LogDirectory.open(fs, DISK)
        again.load_logs(lambda _: self.config, 1)
        second = again.logs.get(PARTITION)
        if second is None or digest(second) != first:
            outcome.violations.append("a second start gives another state than the first")
        again.release()
        return outcome

    def _recovered(self, fs: SimFileSystem, is_ordered: bool, outcome: Outcome) -> LogDirectory:
        """Start; where the log is refused, cut as an operator does, and start again."""
        directory = LogDirectory.open(fs, DISK)
        directory.load_logs(lambda _: self.config, 1)
        if PARTITION in directory.damaged:
            outcome.is_refused = True
            if is_ordered:
                reason = directory.damaged[PARTITION]
                outcome.violations.append(f"refused although nothing is out of order: {reason}")
            directory.release()
            for damage in inspect(fs, DISK, PARTITION):
                cut(fs, DISK, damage)
            directory = LogDirectory.open(fs, DISK)
            directory.load_logs(lambda _: self.config, 1)
            if PARTITION in directory.damaged:
                outcome.violations.append(f"cannot be cut: {directory.damaged[PARTITION]}")
        return directory

    def _judge(self, log: Log, ledger: LogLedger) -> list[str]:
        found = _read_all(log)
        wrong = [
            f"offset {offset} holds bytes that were never written there"
            for offset, (_, data) in found.items()
            if data not in ledger.allowed.get(offset, ()) and not self._is_keyed
        ]
        if self._is_keyed:
            wrong += _judge_keys(_committed(log, found), ledger)
        elif log.log_start_offset > ledger.start_offset_max:
            wrong.append(f"the log starts at {log.log_start_offset}")
        else:
            wrong += [
                f"acknowledged offset {offset} is lost"
                for offset, data in ledger.required.items()
                if offset >= log.log_start_offset and found.get(offset, (None, b""))[1] != data
            ]
        wrong += [
            f"offset {offset} has epoch {log.epochs.epoch_at(Offset(offset))} in the checkpoint"
            for offset, (batch, _) in found.items()
            if log.epochs.epoch_at(Offset(offset)) != batch.partition_leader_epoch
        ]
        if ledger.required and log.topic_id != TOPIC_ID:
            wrong.append(f"acknowledged records are of topic {log.topic_id.hex()}")
        if log.log_start_offset == 0 and not self._is_keyed:
            expected = ProducerStates()
            aborted = [expected.update(batch) for batch, _ in found.values()]
            if expected.snapshot() != log.producer_states.snapshot():
                wrong.append("the producer table is not the log's")
            indexed = log.aborted_transactions(Offset(0), log.log_end_offset)
            if indexed != [each for each in aborted if each is not None]:
                wrong.append("the transaction index is not the log's")
        return wrong


def _read_all(log: Log) -> dict[int, tuple[RecordBatch, bytes]]:
    """Read every batch through the log's own read path."""
    found: dict[int, tuple[RecordBatch, bytes]] = {}
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end:
        read = log.read(offset, 1, upper_bound=end, min_one_batch=True)
        if read.size_bytes == 0:
            break
        assert not isinstance(read.records, bytes), read
        data = read.records.read()
        (batch,) = parse_batches(memoryview(data))
        found[batch.base_offset] = (batch, data)
        offset = Offset(batch.next_offset)
    return found


def _committed(log: Log, found: Mapping[int, tuple[RecordBatch, bytes]]) -> list[RecordBatch]:
    """Return the records of a read_committed reader, by the log's transaction index and table."""
    spans = [
        (each.producer_id, each.first_offset, each.last_offset)
        for each in log.aborted_transactions(log.log_start_offset, log.log_end_offset)
    ]
    spans += [
        (each.producer_id, each.transaction_first_offset, log.log_end_offset)
        for each in log.producer_states.active_producers()
        if each.transaction_first_offset is not None
    ]
    return [
        batch
        for batch, _ in found.values()
        if not batch.is_control
        and not any(
            producer_id == batch.producer_id and first <= batch.base_offset <= last
            for producer_id, first, last in spans
        )
    ]


def _judge_keys(batches: Sequence[RecordBatch], ledger: LogLedger) -> list[str]:
    """Compaction: a reader ends up with the newest acknowledged value of each key."""
    latest: dict[bytes, bytes] = {}
    for batch in batches:
        if not batch.crc_is_valid():
            return [f"offset {batch.base_offset} holds garbage"]
        for record in batch.iter_records():
            assert record.key is not None, record
            latest[bytes(record.key)] = bytes(record.value or b"")
    return [
        f"key {key!r} reads {latest.get(key)!r:.40}"
        for key, values in ledger.readable_by_key.items()
        if latest.get(key, b"") not in values
    ]


def digest(log: Log) -> object:
    """Return all that a restart must reproduce."""
    contents = [(offset, data) for offset, (_, data) in _read_all(log).items()]
    return (
        log.log_start_offset,
        log.log_end_offset,
        contents,
        log.epochs.entries,
        log.producer_states.snapshot(),
        log.aborted_transactions(log.log_start_offset, log.log_end_offset),
    )


class FileScenario:
    """Small files that are replaced whole: the newest acknowledged value, or a later one."""

    def __init__(
        self,
        name: str,
        write: Callable[[SimFileSystem, int], None],
        read: Callable[[SimFileSystem], int],
        versions: int,
    ) -> None:
        self.name = name
        self._write = write
        self._read = read
        self._versions = versions

    def run(self, recorder: Recorder) -> None:
        fs = SimFileSystem()
        recorder.prepare(fs)
        fs.make_directory(DISK)
        fs.sync_directory("")
        fs.sync_directory("disk")
        ledger = (-1, -1)  # (acknowledged, asked for)
        recorder.watch(fs, lambda: ledger)
        for version in range(self._versions):
            ledger = (ledger[0], version)
            self._write(fs, version)
            ledger = (version, version)
        recorder.finish()

    def verify(self, fs: SimFileSystem, ledger: object, is_ordered: bool) -> Outcome:
        assert isinstance(ledger, tuple), ledger
        acknowledged, asked = ledger
        try:
            version = self._read(fs)
            again = self._read(fs)
        except StorageError as error:
            return Outcome([f"refused: {error}"], is_refused=True)
        if not acknowledged <= version <= asked or again != version:
            return Outcome([f"version {version}, acknowledged {acknowledged}, asked {asked}"])
        return Outcome([])
