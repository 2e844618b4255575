"""Which batches of the metadata log can be decoded, and as what."""

import pytest

from kraft_wire.metadata.image_draft import MetadataFault
from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.node.quorum.quorum_log import read_batch
from kraft_wire.wire.generated.no_op_record import NoOpRecord
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.corruption import InvalidRecord
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch

NO_OP = encode_record(VersionedRecord(NoOpRecord()))


def batch_of(*values: bytes | None) -> RecordBatch:
    records = [Record(None, value, 7 + at, 50 + at) for at, value in enumerate(values)]
    data = bytearray(build_batch(records, base_offset=7, partition_leader_epoch=3))
    return RecordBatch(memoryview(data))


def test_batch_keeps_its_place_epoch_and_time() -> None:
    found = read_batch(batch_of(NO_OP, NO_OP))
    assert (found.base_offset, found.next_offset, found.leader_epoch) == (7, 9, 3)
    assert [type(record) for record in found.records] == [NoOpRecord, NoOpRecord]


@pytest.mark.parametrize("value", [None, b"", b"\x00", NO_OP[:-1]])
def test_value_that_is_no_record_is_refused(value: bytes | None) -> None:
    for values in ((value,), (NO_OP, value), (value, NO_OP)):
        with pytest.raises(MetadataFault):
            read_batch(batch_of(*values))


@pytest.mark.parametrize(("count", "last_delta"), [(2, 2), (1, 1), (2, 0), (0, -1), (-1, -2)])
def test_batch_with_a_gap_is_refused(count: int, last_delta: int) -> None:
    """The metadata log is not compacted: every offset has its record, and a batch has one."""
    batch = batch_of(NO_OP, NO_OP)
    batch.records_count, batch.last_offset_delta = count, last_delta
    with pytest.raises(InvalidRecord, match=f"{count} records at 7 leave a gap"):
        read_batch(batch)
