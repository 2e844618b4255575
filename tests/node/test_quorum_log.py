"""What of a leader's bytes enters the metadata log: the longest good prefix, and nothing else."""

import pytest

from kraft_wire.metadata.image_draft import MetadataFault
from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.model import LeaderEpoch, Offset
from kraft_wire.node.quorum.committed import CommittedMetadata
from kraft_wire.node.quorum.quorum_log import QuorumLog
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.snapshots.store import open_snapshots
from kraft_wire.wire.generated.no_op_record import NoOpRecord
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record import Record

NO_OP = encode_record(VersionedRecord(NoOpRecord()))


def opened() -> QuorumLog:
    """A log of three records of epoch 2."""
    fs = SimFileSystem()
    directory = LogDirectory.open(fs, "disk")
    log = directory.open_metadata_log(LogConfig(), 1)
    quorum_log = QuorumLog(log, open_snapshots(fs, log))
    taken = quorum_log.append_fetched(LeaderEpoch(2), sent(0, 2, 3), 1, 1)
    assert taken == []
    return quorum_log


def sent(offset: int, epoch: int, count: int = 1, value: bytes = NO_OP) -> bytes:
    """One batch as a leader sends it."""
    records = [Record(None, value, timestamp=1)] * count
    return bytes(build_batch(records, base_offset=offset, partition_leader_epoch=epoch))


def fetched(data: bytes, leader_epoch: int = 4) -> int | None:
    """How far the log reaches after an answer; None where the replica is told that none is good."""
    quorum_log = opened()
    taken = quorum_log.append_fetched(LeaderEpoch(leader_epoch), data, 1, 1)
    assert (taken is None) == (quorum_log.log_end_offset == 3)
    return None if taken is None else int(quorum_log.log_end_offset)


def damaged(data: bytes) -> bytes:
    """Flip a bit of a timestamp: the records are as readable as before."""
    return data[:34] + bytes([data[34] ^ 1]) + data[35:]


BAD = [
    ("an older epoch", sent(3, 1)),
    ("a higher epoch than the leader's", sent(3, 5)),
    ("a gap", sent(4, 2)),
    ("what is there already", sent(2, 2)),
    ("a wrong checksum", damaged(sent(3, 2))),
    ("a record that nobody can read", sent(3, 2, 1, b"\x01\x7f\x00")),
    ("a batch that is cut", sent(3, 2)[:-1]),
    ("half a header", sent(3, 2)[:30]),
    ("nothing", b""),
]


@pytest.mark.parametrize(("what", "data"), BAD, ids=[row[0] for row in BAD])
def test_bad_beginning_appends_nothing(what: str, data: bytes) -> None:
    assert fetched(data) is None, what


@pytest.mark.parametrize(("what", "data"), BAD, ids=[row[0] for row in BAD])
def test_good_prefix_is_appended_whatever_follows(what: str, data: bytes) -> None:
    later = [sent(5, 1), sent(5, 5), sent(6, 3), sent(4, 3), damaged(sent(5, 3))]
    assert fetched(sent(3, 3, 2) + data) == 5, what
    assert [fetched(sent(3, 3, 2) + each) for each in later] == [5] * len(later)
    assert fetched(sent(3, 3, 2) + sent(5, 4)) == 6


def test_records_that_were_cut_are_not_read_back() -> None:
    quorum_log = opened()
    quorum_log.append_fetched(LeaderEpoch(3), sent(3, 3, 2), 1, 1)
    quorum_log.truncate_to(Offset(3))
    assert quorum_log.flushed_end_offset == quorum_log.log_end_offset == 3
    quorum_log.append_fetched(LeaderEpoch(4), sent(3, 4), 1, 1)
    assert quorum_log.flushed_end_offset == 3, "what was appended is not on the disk yet"
    found = [(b.base_offset, b.leader_epoch) for b in quorum_log.batches(Offset(0), Offset(4))]
    assert found == [(0, 2), (3, 4)]


def test_batch_that_went_bad_on_the_disk_while_the_node_ran_is_said_and_not_read_for_ever() -> None:
    """Only what was appended since is kept decoded: the rest is read back to be replayed."""
    quorum_log = opened()
    quorum_log.append_fetched(LeaderEpoch(2), sent(3, 2), 1, 1)
    list(quorum_log.batches(Offset(0), Offset(4)))
    segment = quorum_log.log.segments[0].file
    first_bytes = len(sent(0, 2, 3))
    segment.pwrite(b"\xff", first_bytes + 34)
    batches = quorum_log.batches(Offset(0), Offset(4))
    assert next(batches).next_offset == 3
    with pytest.raises(CorruptRecordBatch):
        next(batches)
    with pytest.raises(CorruptRecordBatch):
        list(quorum_log.control_records())


def test_batch_that_reaches_beyond_the_end_is_not_read() -> None:
    """A high watermark within a batch commits none of it: batches are atomic."""
    quorum_log = opened()
    quorum_log.append_fetched(LeaderEpoch(2), sent(3, 2, 2), 1, 1)
    for _ in range(2):  # once from memory, once read back from the disk
        for end, expected in ((2, []), (3, [0]), (4, [0])):
            quorum_log_batches = quorum_log.batches(Offset(0), Offset(end))
            assert [batch.base_offset for batch in quorum_log_batches] == expected, end
        assert [b.base_offset for b in quorum_log.batches(Offset(0), Offset(5))] == [0, 3]


def test_committed_batch_that_went_bad_is_a_fault_with_its_place() -> None:
    """The node must stop: 4.3.1 calls its fault handler, as an image without it is wrong."""
    quorum_log = opened()
    committed = CommittedMetadata(quorum_log)
    assert committed.advance(Offset(3))
    quorum_log.append_fetched(LeaderEpoch(2), sent(3, 2), 1, 1)
    list(quorum_log.batches(Offset(3), Offset(4)))
    quorum_log.log.segments[0].file.pwrite(b"\xff", len(sent(0, 2, 3)) + 34)
    with pytest.raises(MetadataFault, match=r"^the batch at 3: "):
        committed.advance(Offset(4))
    assert committed.next_offset == 3


@pytest.mark.parametrize(
    ("offset", "begins"),
    [(0, True), (1, False), (2, False), (3, True), (4, False), (5, True), (6, False), (9, False)],
)
def test_batches_begin_at_their_first_offset_and_the_next_one_at_the_end(
    offset: int, begins: bool
) -> None:
    quorum_log = opened()
    quorum_log.append_fetched(LeaderEpoch(2), sent(3, 2, 2), 1, 1)
    assert quorum_log.is_batch_start(Offset(offset)) == begins


def test_nothing_begins_before_the_log() -> None:
    quorum_log = opened()
    quorum_log.log.truncate_fully_and_start_at(Offset(7))
    quorum_log.append_fetched(LeaderEpoch(2), sent(7, 2, 2), 1, 1)
    found = [quorum_log.is_batch_start(Offset(each)) for each in range(11)]
    assert found == [each in (7, 9) for each in range(11)]
