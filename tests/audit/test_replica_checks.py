"""Each proposition about one replica: silent on a clean log, one finding a fault."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kraft_wire.audit import (
    Finding,
    Replica,
    batches_of,
    check_crc,
    check_epoch,
    check_gap,
    check_producer,
)
from kraft_wire.audit.replica_checks import epoch_faults
from kraft_wire.columnar import BatchSource, batch_columns, batches_table, window_of
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

CHECKS = (check_crc, check_gap, check_epoch, check_producer)


def batch(offset: int, epoch: int = 0, sequence: int | None = None) -> bytes:
    records = [Record(b"k", b"v%d" % at, at) for at in (offset, offset + 1)]
    return bytes(
        build_batch(
            records,
            base_offset=offset,
            partition_leader_epoch=epoch,
            producer_id=5,
            producer_epoch=0,
            base_sequence=offset if sequence is None else sequence,
        )
    )


FIRST = [batch(0), batch(2), batch(4)]
SECOND = [batch(6), batch(8, 1), batch(10, 1), batch(12, 1)]


def findings(
    first: list[bytes] = FIRST, second: list[bytes] = SECOND, **facts: object
) -> list[Finding]:
    tables = [
        batches_table(
            batch_columns(window_of(b"".join(parts))), BatchSource("t", 0, "1", f"{base:020d}.log")
        )
        for base, parts in ((6, second), (0, first))
    ]
    given: dict[str, object] = {"log_start_offset": 0} | facts
    replica = Replica("1", "t", 0, batches_of(pa.concat_tables(tables)), **given)  # type: ignore[arg-type]  # facts of a test
    return [finding for check in CHECKS for finding in check(replica)]


def names(found: list[Finding]) -> list[tuple[str, str, int]]:
    return [(each.check, each.severity, each.offset) for each in found]


def test_clean_log_has_no_findings() -> None:
    assert findings() == []
    assert findings(leader_epochs=[(0, 0), (1, 8)]) == []
    assert findings([], []) == []


def test_turned_bit_is_one_finding_with_its_place() -> None:
    bad = bytearray(SECOND[1])
    bad[-1] ^= 1
    (found,) = findings(second=[SECOND[0], bytes(bad), *SECOND[2:]])
    assert (found.check, found.severity, found.offset) == ("crc", "error", 8)
    assert (found.file, found.position) == (f"{6:020d}.log", len(SECOND[0]))


def test_torn_end_is_a_warning_at_the_end_of_the_log_and_an_error_before() -> None:
    assert names(findings(second=[*SECOND, b"\0" * 30])) == [("crc", "warn", 14)]
    assert names(findings(first=[*FIRST, b"\0" * 30])) == [("crc", "error", 6)]


def test_torn_end_is_an_error_where_an_empty_segment_follows() -> None:
    """The node has begun a segment since: its crash did not leave these bytes."""
    torn = [*SECOND, b"\0" * 30]
    assert names(findings(second=torn, segments=[0, 6])) == [("crc", "warn", 14)]
    assert names(findings(second=torn, segments=[0, 6, 14])) == [("crc", "error", 14)]


def test_bytes_before_the_first_batch_are_at_the_start_of_the_log() -> None:
    found = findings(first=[b"\0" * 30, *FIRST[1:]], log_start_offset=2)
    assert names(found) == [("crc", "error", 2)]


def test_missing_batch_is_one_gap_also_at_a_seam() -> None:
    assert names(findings(second=[SECOND[0], *SECOND[2:]])) == [("gap", "error", 10)]
    assert names(findings(first=FIRST[:2])) == [("gap", "error", 6)]
    assert names(findings(second=SECOND[1:])) == [("gap", "error", 8)]


def test_gap_below_the_log_start_is_a_warning_and_in_a_compacted_topic_none() -> None:
    below = findings(first=[FIRST[0], FIRST[2]], log_start_offset=6)
    assert names(below) == [("gap", "warn", 4)]
    for start, severity in ((3, "error"), (4, "warn")):
        above = findings(first=[FIRST[0], FIRST[2]], log_start_offset=start)
        assert names(above) == [("gap", severity, 4)], "the last lost offset is 3"
    assert findings(first=[FIRST[0], FIRST[2]], is_compacted=True) == []
    back = findings(first=[FIRST[0], FIRST[2], FIRST[1]], is_compacted=True)
    assert names(back) == [("gap", "error", 2)]


def test_epoch_that_goes_back_or_differs_from_the_checkpoint_is_one_finding() -> None:
    assert names(findings(first=[batch(0, 3), *FIRST[1:]])) == [("epoch", "error", 0)]
    (found,) = findings(first=[FIRST[0], batch(2, 3), FIRST[2]])
    assert names([found]) == [("epoch", "error", 2)]
    assert found.detail == "leader epoch 3 after 0"
    (found,) = findings(leader_epochs=[(0, 0), (1, 10)])
    assert names([found]) == [("epoch", "error", 8)]
    assert found.detail == "leader epoch 1, the checkpoint has 0"
    inside = findings(leader_epochs=[(0, 0), (1, 9)])
    assert names(inside) == [("epoch", "error", 8)]
    assert findings(leader_epochs=[(0, 3), (1, 8)], log_start_offset=3) == []


def test_a_wrong_epoch_spans_the_batches_that_have_it() -> None:
    first, second = [FIRST[0], batch(2, 3), FIRST[2]], [batch(6), batch(8, 4), batch(10, 1)]
    table = batches_table(
        batch_columns(window_of(b"".join([*first, *second]))),
        BatchSource("t", 0, "1", f"{0:020d}.log"),
    )
    checkpoint = [(0, 0), (1, 10)]
    replica = Replica("1", "t", 0, batches_of(table), log_start_offset=0, leader_epochs=checkpoint)
    rows = np.arange(len(replica.batches.leader_epoch))
    faults, _ = epoch_faults(replica, rows)
    assert [(each.first_offset, each.end_offset) for each in faults] == [(2, 4), (8, 10)]


def test_sequence_that_jumps_is_one_finding_and_wraps_around() -> None:
    jumped = [SECOND[0], batch(8, 1, 90), batch(10, 1, 92), batch(12, 1, 94)]
    assert names(findings(second=jumped)) == [("producer", "error", 8)]
    top = (1 << 31) - 1
    wrapped = [batch(0, 0, top - 3), batch(2, 0, top - 1), batch(4, 0, 0)]
    assert findings(wrapped, [batch(6, 0, 2)]) == []
    forgotten = [SECOND[0], batch(8, 1, 0), batch(10, 1, 2), batch(12, 1, 4)]
    assert findings(second=forgotten) == []


def test_sequence_of_one_batch_is_one_finding() -> None:
    for wrong in (12, 9):
        second = [batch(6), batch(8, 1, wrong), batch(10, 1), batch(12, 1)]
        assert names(findings(second=second)) == [("producer", "error", 8)]
    last = [*SECOND[:-1], batch(12, 1, 20)]
    assert names(findings(second=last)) == [("producer", "error", 12)]


def test_wrong_length_is_one_finding_with_what_it_leaves_over() -> None:
    short = bytearray(SECOND[1])
    short[11] -= 2
    assert names(findings(second=[SECOND[0], bytes(short), *SECOND[2:]])) == [("crc", "error", 8)]


def test_wrong_base_offset_is_one_finding_wherever_the_batch_stands() -> None:
    for at in range(3):
        wrong = bytearray(FIRST[at])
        wrong[6] ^= 1
        batches = [*FIRST[:at], bytes(wrong), *FIRST[at + 1 :]]
        assert names(findings(first=batches)) == [("gap", "error", 2 * at + 256)]
    negative = bytearray(FIRST[0])
    negative[0] ^= 0x80
    alone = findings(first=[bytes(negative)], second=[], log_start_offset=1)
    assert [each.check for each in alone] == ["gap"]


def test_batches_out_of_order_are_one_finding() -> None:
    swapped = [SECOND[1], SECOND[0], *SECOND[2:]]
    assert names(findings(second=swapped)) == [("gap", "error", 8)]


def test_batches_that_go_back_belong_to_a_hole_only_where_they_fit_into_it() -> None:
    """The hole is from 8 to 11. Below it, above it and partly within it are faults beside it."""
    begin = [batch(6), *(batch(offset, 1) for offset in (12, 14, 16))]
    end = [batch(18, 1), batch(20, 1)]
    for offset in (8, 10):
        assert names(findings(second=[*begin, batch(offset, 1), *end])) == [("gap", "error", 12)]
    for offset in (4, 7, 11, 12, 14):
        found = findings(second=[*begin, batch(offset, 1), *end])
        assert names(found) == [("gap", "error", 12), ("gap", "error", offset)]


def test_segments_under_each_others_names_are_one_finding() -> None:
    assert names(findings(first=SECOND, second=FIRST)) == [("gap", "error", 6)]
    assert names(findings(second=FIRST)) == [("gap", "error", 0)]


def test_segments_of_a_compacted_log_under_each_others_names_are_one_finding() -> None:
    """Compaction may remove the offset of the name, so that only the order of segments shows it."""
    (found,) = findings(first=SECOND[1:], second=FIRST[1:], is_compacted=True)
    assert (found.check, found.severity) == ("gap", "error")
    assert f"swapped with that of {6:020d}.log" in found.detail
    assert findings(first=FIRST[1:], second=SECOND[1:], is_compacted=True) == []


def test_log_of_deleted_records_is_clean() -> None:
    assert findings(log_start_offset=14) == []
    assert findings([], [], log_start_offset=6) == []
