"""The judge of clusters sees files beside sealed segments that are spoilt, each in each field."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

import pytest

from kraft_wire.model import Offset
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.storage.cleaning.cleaner import compact
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.records.batch_builder import build_batch
from tests.sim.test_upkeep_judge import Stage
from tests.storage.making import append, batch_bytes, marker_bytes, open_at

INDEX = Struct(">ii")
TIMES = Struct(">qi")
ABORTED = Struct(">hqqqq")
PRODUCERS = Struct(">qhiqiqiq")
PRODUCERS_HEAD_BYTES = 10
SEALED = f"{0:020d}"
ACTIVE = f"{7:020d}"


class Filled:
    """A log of one sealed and one active segment, in front of the judge."""

    def __init__(self, kind: str = "keep-bytes") -> None:
        self.stage = Stage(kind)
        self.log = open_at(
            self.stage.fs, LogConfig(index_interval_bytes=0), directory=self.stage.directory
        )
        self.stage.log = self.stage.partition.log = self.log

    def fill(self) -> Filled:
        """Two producers: an aborted transaction, an open one, and times that do not grow."""
        for data in (
            batch_bytes(0, timestamp=900, producer_id=1, sequence=0, transactional=True),
            batch_bytes(1, count=2, timestamp=800, producer_id=2, sequence=0, transactional=True),
            batch_bytes(3, timestamp=950, producer_id=1, sequence=1, transactional=True),
            marker_bytes(4, producer_id=1, abort=True, timestamp=950),
            batch_bytes(5, count=2, timestamp=700, producer_id=1, sequence=2),
        ):
            append(self.log, data)
        self.log.roll(1)
        append(self.log, batch_bytes(7, timestamp=1000))
        self.log.update_high_watermark(Offset(3))
        return self

    def look(self) -> None:
        self.stage.look()

    def starts_again(self) -> None:
        """The process is another one, on the same disk."""
        self.stage.judge.stopped(self.stage.machine)
        self.look()

    def rewrite(self, name: str, change: Callable[[bytes], bytes]) -> None:
        """Change what a file holds."""
        path = f"{self.stage.directory}/{name}"
        data = change(self.stage.fs.read(path))
        file = self.stage.fs.open(path)
        file.truncate(0)
        file.pwrite(data, 0)


def changed(form: Struct, row: int, field: int, *, head: int = 0) -> Callable[[bytes], bytes]:
    """A file with one field of one entry one larger."""

    def change(data: bytes) -> bytes:
        entries = [list(each) for each in form.iter_unpack(data[head:])]
        entries[row][field] += 1
        body = b"".join(form.pack(*each) for each in entries)
        if not head:
            return body
        checked = data[6:head] + body
        return data[:2] + crc32c(checked).to_bytes(4, "big") + checked

    return change


def without_last(form: Struct) -> Callable[[bytes], bytes]:
    """A file that lacks its last entry."""
    return lambda data: data[: -form.size]


PRODUCER_FIELDS = ("epoch", "sequence", "offset", "delta", "time", "coordinator epoch", "start")
SPOILT: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "an offset": (".index", changed(INDEX, 1, 0)),
    "a position": (".index", changed(INDEX, 2, 1)),
    "an index without its end": (".index", without_last(INDEX)),
    "half an entry": (".index", lambda data: data + b"\0"),
    "a time": (".timeindex", changed(TIMES, 0, 0)),
    "the offset of a time": (".timeindex", changed(TIMES, 0, 1)),
    "times without the largest": (".timeindex", without_last(TIMES)),
    "no aborted transaction": (".txnindex", lambda data: b""),
    "an aborted producer": (".txnindex", changed(ABORTED, 0, 1)),
    "an aborted start": (".txnindex", changed(ABORTED, 0, 2)),
    "an aborted end": (".txnindex", changed(ABORTED, 0, 3)),
    "an aborted last stable offset": (".txnindex", changed(ABORTED, 0, 4)),
}


@pytest.mark.parametrize("is_start", [False, True], ids=["roll", "start"])
@pytest.mark.parametrize("what", SPOILT)
def test_spoilt_index_is_seen(what: str, is_start: bool) -> None:
    suffix, change = SPOILT[what]
    filled = Filled().fill()
    if is_start:
        filled.look()
        filled.stage.judge.stopped(filled.stage.machine)
    filled.rewrite(SEALED + suffix, change)
    with pytest.raises(Violation, match=f"S69 FilesAreTheLog.*{suffix}"):
        filled.look()


@pytest.mark.parametrize("row", [0, 1], ids=["idle", "in a transaction"])
@pytest.mark.parametrize("field", range(len(PRODUCER_FIELDS)), ids=PRODUCER_FIELDS)
def test_spoilt_producer_snapshot_is_seen(field: int, row: int) -> None:
    filled = Filled().fill()
    change = changed(PRODUCERS, row, field + 1, head=PRODUCERS_HEAD_BYTES)
    filled.rewrite(f"{ACTIVE}.snapshot", change)
    with pytest.raises(Violation, match=r"S69 FilesAreTheLog.*snapshot"):
        filled.look()


def test_roll_takes_a_producer_snapshot() -> None:
    filled = Filled()
    append(filled.log, batch_bytes(0))
    filled.look()
    filled.log.roll(1)
    append(filled.log, batch_bytes(1))
    filled.stage.fs.unlink(f"{filled.stage.directory}/{1:020d}.snapshot")
    with pytest.raises(Violation, match=r"S69 FilesAreTheLog.*was not taken"):
        filled.look()


def rolled_again(log: Log) -> None:
    log.roll(1)
    append(log, batch_bytes(8, timestamp=2000))


def cut_and_sealed_again(log: Log) -> None:
    log.truncate_to(Offset(3))
    append(log, batch_bytes(3, timestamp=990, epoch=1))
    log.roll(1)
    append(log, batch_bytes(4, timestamp=980, epoch=1))


@pytest.mark.parametrize("step", [rolled_again, cut_and_sealed_again])
def test_true_files_are_right(step: Callable[[Log], None]) -> None:
    filled = Filled().fill()
    filled.look()
    step(filled.log)
    filled.look()
    filled.starts_again()
    assert filled.stage.judge.looked["S69 FilesAreTheLog"] > 10


def test_compacted_files_are_right() -> None:
    filled = Filled("compact")
    filled.fill()
    append(filled.log, marker_bytes(8, producer_id=2, abort=False))
    filled.log.roll(1)
    filled.log.update_high_watermark(filled.log.log_end_offset)
    filled.look()
    compact(filled.stage.fs, filled.log, filled.log.log_start_offset, 10_000)
    filled.look()
    filled.starts_again()
    filled.rewrite(f"{SEALED}.txnindex", lambda data: b"")
    filled.starts_again()  # the data of the aborted transaction are gone


def test_a_replica_may_have_copied_a_marker_that_was_emptied() -> None:
    """It does not take the marker's epoch, as in Kafka (seed 6000126)."""
    filled = Filled("compact")
    append(filled.log, batch_bytes(0, producer_id=1, sequence=0, transactional=True))
    append(filled.log, marker_bytes(1, producer_id=1, abort=False))
    emptied = build_batch(
        [],
        base_offset=2,
        last_offset=2,
        partition_leader_epoch=0,
        producer_id=1,
        producer_epoch=5,
        is_control=True,
    )
    append(filled.log, bytes(emptied))
    filled.log.update_high_watermark(filled.log.log_end_offset)
    filled.look()
    filled.log.roll(1)
    filled.look()
    assert filled.stage.judge.looked["S69 FilesAreTheLog"] > 0
