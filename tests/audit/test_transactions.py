"""Transaction indexes, producer snapshots, markers and hanging transactions of log directories."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from kraft_wire.audit.collector import plan_audit, run_audit
from kraft_wire.audit.finding import CHECKS, Finding
from kraft_wire.broker.transactions.records import transaction_record, transaction_tombstone
from kraft_wire.broker.transactions.states import TransactionState
from kraft_wire.broker.transactions.transactional_id import TransactionMetadata
from kraft_wire.model import TopicPartition, Uuid
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import parse_batches
from tests.storage.making import batch_bytes, marker_bytes

TOPIC_ID = Uuid(bytes(range(1, 17)))
NOW_MS = 360_000_000


class Directory:
    """An entry of `log.dirs` with a partition of data, and one of `__transaction_state`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._logs = LogDirectory.open(OsFileSystem(), str(path))
        self.data = self._create("t")
        self.states = self._create("__transaction_state")

    def _create(self, topic: str) -> Log:
        config = LogConfig(segment_bytes=1_000_000)
        return self._logs.create_log(TopicPartition(topic, 0), TOPIC_ID, config, 1)

    def write(self, producer_id: int, *, is_transactional: bool = True) -> None:
        end = self.data.log_end_offset
        sequence = (
            0
            if (known := self.data.producer_states.get(producer_id)) is None
            else (known.last_sequence + 1)
        )
        self.add(
            batch_bytes(
                end, producer_id=producer_id, sequence=sequence, transactional=is_transactional
            )
        )

    def end(self, producer_id: int, *, abort: bool, epoch: int = 0) -> None:
        end = self.data.log_end_offset
        marker = marker_bytes(end, producer_id=producer_id, abort=abort, producer_epoch=epoch)
        self.add(marker)

    def add(self, data: bytes) -> None:
        """Append a batch to the partition of data."""
        self._append(self.data, data)

    def coordinate(
        self, name: str, producer_id: int, state: TransactionState, start_ms: int = 0
    ) -> None:
        """Write a record of a transactional id."""
        is_open = state is TransactionState.ONGOING
        partitions = {TopicPartition("t", each): None for each in (7, 0) if is_open}
        metadata = TransactionMetadata(
            producer_id=producer_id,
            producer_epoch=0,
            timeout_ms=60_000,
            state=state,
            partitions=partitions,
            start_ms=start_ms,
        )
        self._record(*transaction_record(name, metadata, 2))

    def forget(self, name: str) -> None:
        self._record(*transaction_tombstone(name))

    def _record(self, key: bytes, value: bytes | None) -> None:
        record = Record(key, value, timestamp=NOW_MS)
        end = self.states.log_end_offset
        batch = build_batch([record], base_offset=end, partition_leader_epoch=0)
        self._append(self.states, bytes(batch))

    def _append(self, log: Log, data: bytes) -> None:
        log.append(data, parse_batches(data), 0, NOW_MS)

    def audit(self) -> list[Finding]:
        """Stop the node, and audit what it left."""
        self.data.update_high_watermark(self.data.log_end_offset)
        self._logs.close(broker_epoch=1)
        return audited(self.path)

    def file(self, name: str) -> Path:
        return self.path / "t-0" / name


def audited(path: Path) -> list[Finding]:
    plan = plan_audit([str(path)])
    found = run_audit(plan, [each for each in CHECKS if each != "hanging"], processes=1)
    hanging = plan.hanging_findings(found.outcome, CHECKS, NOW_MS)
    return [*found.findings, *hanging]


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path)


def with_three_segments(directory: Directory) -> None:
    """Aborts in each segment, one while another transaction is open; one is open at the end."""
    directory.write(1)
    directory.write(2)
    directory.end(1, abort=True)
    directory.write(5, is_transactional=False)
    directory.data.roll(1)
    directory.end(2, abort=True)
    directory.write(1)
    directory.data.roll(1)
    directory.end(1, abort=False)
    directory.write(2)
    directory.end(2, abort=True)
    directory.write(3)
    directory.coordinate("open", 3, TransactionState.ONGOING, NOW_MS)


def test_a_directory_without_a_fault_has_no_finding(directory: Directory) -> None:
    with_three_segments(directory)
    assert directory.audit() == []
    assert len(list(directory.path.glob("t-0/*.txnindex"))) == 3
    assert len(list(directory.path.glob("t-0/*.snapshot"))) == 3


def test_a_producer_is_as_its_snapshot_has_it_after_a_wrap_and_a_new_epoch(
    directory: Directory,
) -> None:
    """KIP-98: sequence 0 follows 2^31 - 1. KIP-890: a marker may have the next epoch."""
    directory.add(batch_bytes(0, count=2, producer_id=1, sequence=(1 << 31) - 1))
    directory.write(2)
    directory.end(2, abort=False, epoch=1)
    assert directory.audit() == []


def test_an_aborted_transaction_is_stable_up_to_the_oldest_open_one(directory: Directory) -> None:
    for producer_id in (1, 2, 3):
        directory.write(producer_id)
    directory.end(3, abort=True)
    directory.coordinate("first", 1, TransactionState.ONGOING, NOW_MS)
    directory.coordinate("second", 2, TransactionState.ONGOING, NOW_MS)
    assert directory.audit() == []


Spoil = Callable[[Directory], None]


def put(name: str, *entries: tuple[int, ...]) -> Spoil:
    def spoil(directory: Directory) -> None:
        directory.file(name).write_bytes(b"".join(struct.pack(">hqqqq", 0, *e) for e in entries))

    return spoil


def remove(name: str) -> Spoil:
    return lambda directory: directory.file(name).unlink()


def exchange(first: str, second: str) -> Spoil:
    def spoil(directory: Directory) -> None:
        content = directory.file(second).read_bytes()
        directory.file(first).write_bytes(content)

    return spoil


def flip(name: str) -> Spoil:
    def spoil(directory: Directory) -> None:
        content = bytearray(directory.file(name).read_bytes())
        content[-1] ^= 1
        directory.file(name).write_bytes(content)

    return spoil


def cut(name: str) -> Spoil:
    def spoil(directory: Directory) -> None:
        directory.file(name).write_bytes(directory.file(name).read_bytes()[:-1])

    return spoil


FIRST, SECOND, THIRD, END = (f"{base:020d}" for base in (0, 4, 6, 10))


@pytest.mark.parametrize(
    ("spoil", "check", "file", "detail"),
    [
        (remove(f"{FIRST}.txnindex"), "index", f"{FIRST}.txnindex", "(1, 0, 2, 1) is missing"),
        (put(f"{SECOND}.txnindex", (2, 0, 4, 5)), "index", f"{SECOND}.txnindex", "matches no"),
        (put(f"{SECOND}.txnindex", (2, 1, 4, 9)), "index", f"{SECOND}.txnindex", "matches no"),
        (put(f"{THIRD}.txnindex", (2, 7, 8, 9), (1, 5, 9, 9)), "index", f"{THIRD}.txnindex", "no"),
        (cut(f"{FIRST}.txnindex"), "index", f"{FIRST}.txnindex", "33 bytes are not whole entries"),
        (flip(f"{SECOND}.snapshot"), "producer", f"{SECOND}.snapshot", "CRC"),
        (
            exchange(f"{THIRD}.snapshot", f"{SECOND}.snapshot"),
            *(
                "producer",
                f"{THIRD}.snapshot",
                "producer 1: (0, 0, 0, -1), the log has (0, 1, 5, 5)",
            ),
        ),
        (
            exchange(f"{END}.snapshot", f"{THIRD}.snapshot"),
            *("producer", f"{END}.snapshot", "producer 1: (0, 1, 5, 5), the log has (0, 1, 5, -1)"),
        ),
    ],
)
def test_a_fault_is_told_once_with_its_file(
    directory: Directory, spoil: Spoil, check: str, file: str, detail: str
) -> None:
    with_three_segments(directory)
    directory.audit()
    spoil(directory)
    (finding,) = audited(directory.path)
    assert (finding.check, finding.severity, finding.file) == (check, "error", file)
    assert detail in finding.detail


ENTRY = struct.Struct(">qhiqiqiq")
"""`ProducerStateManager`: id, epoch, last sequence and offset, delta, time, coordinator, first."""


def keep_producers(name: str, *kept: int) -> Spoil:
    """Write a producer snapshot again, with some of its producers."""

    def spoil(directory: Directory) -> None:
        content = directory.file(name).read_bytes()
        rows = [row for row in ENTRY.iter_unpack(content[10:]) if row[0] in kept]
        body = struct.pack(">i", len(rows)) + b"".join(ENTRY.pack(*row) for row in rows)
        directory.file(name).write_bytes(content[:2] + struct.pack(">I", crc32c(body)) + body)

    return spoil


def test_an_open_transaction_is_in_each_snapshot_and_an_idle_producer_may_be_gone(
    directory: Directory,
) -> None:
    """A producer expires when it was idle for `transactional.id.expiration.ms`; 3 has a batch."""
    with_three_segments(directory)
    directory.audit()
    keep_producers(f"{END}.snapshot", 3)(directory)
    assert audited(directory.path) == []
    keep_producers(f"{END}.snapshot")(directory)
    (finding,) = audited(directory.path)
    assert (finding.check, finding.severity, finding.file) == (
        "producer",
        "error",
        f"{END}.snapshot",
    )
    assert (finding.offset, finding.detail) == (9, "the open transaction of producer 3 is missing")


def test_the_index_of_the_last_segment_may_lag(directory: Directory) -> None:
    """A killed node has written it no further than its last save; recovery makes it anew."""
    with_three_segments(directory)
    directory.audit()
    remove(f"{THIRD}.txnindex")(directory)
    assert audited(directory.path) == []


def test_an_entry_that_lacks_before_another_is_missing_in_the_last_segment_too(
    directory: Directory,
) -> None:
    """Entries are saved in the order of the log: only the newest ones may lag."""
    for _ in range(2):
        directory.write(1)
        directory.end(1, abort=True)
    assert directory.audit() == []
    put(f"{FIRST}.txnindex", (1, 2, 3, 4))(directory)
    (finding,) = audited(directory.path)
    assert finding.detail == "the aborted transaction (1, 0, 1, 2) is missing"


def test_a_wrong_entry_is_told_with_its_place_in_the_index(directory: Directory) -> None:
    with_three_segments(directory)
    directory.audit()
    put(f"{THIRD}.txnindex", (2, 7, 8, 9), (1, 5, 9, 9))(directory)
    (finding,) = audited(directory.path)
    assert (finding.offset, finding.position) == (9, 34)


def test_a_log_without_its_first_records_is_judged_by_what_began_in_the_rest(
    directory: Directory,
) -> None:
    """Of producer 2 a transaction began in the records that are gone, and another one later."""
    with_three_segments(directory)
    directory.data.roll(1)
    directory.data.update_high_watermark(directory.data.log_end_offset)
    directory.data.remove_first_segments(1)
    assert directory.audit() == []
    remove(f"{THIRD}.txnindex")(directory)
    (finding,) = audited(directory.path)
    assert finding.detail == "the aborted transaction (2, 7, 8, 9) is missing"


def test_a_marker_that_ends_nothing_is_a_note(directory: Directory) -> None:
    directory.write(1)
    directory.end(1, abort=False)
    directory.end(1, abort=False)
    (finding,) = directory.audit()
    assert finding.detail == "the marker of producer 1 ends no open transaction"
    directory.end(9, abort=True)
    (finding,) = directory.audit()
    assert (finding.check, finding.severity, finding.offset) == ("marker", "info", 2)
    assert finding.detail == "the marker of producer 1 ends no open transaction, and 1 later ones"


def test_a_transaction_that_no_coordinator_knows_hangs(directory: Directory) -> None:
    for producer_id in (1, 2, 3, 4):
        directory.write(producer_id)
    directory.coordinate("known", 1, TransactionState.ONGOING)
    directory.coordinate("ended", 2, TransactionState.ONGOING)
    directory.coordinate("ended", 2, TransactionState.COMPLETE_ABORT)
    directory.coordinate("gone", 3, TransactionState.ONGOING)
    directory.forget("gone")
    found = directory.audit()
    assert [(each.severity, each.offset) for each in found] == [
        ("info", 0),
        ("warn", 1),
        ("warn", 2),
        ("warn", 3),
    ]
    assert {each.check for each in found} == {"hanging"}
    assert found[0].detail == (
        "open transaction of known (Ongoing), producer 1 epoch 0, is older than its timeout"
    )
    assert "whose ended lacks this partition" in found[1].detail
    assert "which belongs to no transactional id" in found[3].detail


def test_a_transaction_with_new_data_does_not_hang_however_long_ago_it_began(
    directory: Directory,
) -> None:
    """The coordinator's records that were read may be older than the data."""
    directory.write(1)
    directory.add(batch_bytes(1, producer_id=1, sequence=1, transactional=True, timestamp=NOW_MS))
    directory.coordinate("other", 2, TransactionState.COMPLETE_ABORT)
    assert directory.audit() == []


def test_without_the_coordinators_records_nothing_is_said_to_hang(directory: Directory) -> None:
    directory.write(1)
    directory.audit()
    for file in directory.path.glob("__transaction_state-0/*"):
        file.unlink()
    (directory.path / "__transaction_state-0").rmdir()
    assert audited(directory.path) == []
