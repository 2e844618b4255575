"""Replicas of one partition against each other: the odd one is named, once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_wire.audit import (
    Replica,
    batches_of,
    check_below_high_watermark,
    check_divergence,
    check_gap,
    check_log_matching,
)
from kraft_wire.audit.layout import layout_of
from kraft_wire.audit.replica_set_checks import beginning_faults
from kraft_wire.columnar import BatchSource, batch_columns, batches_table, window_of
from kraft_wire.columnar.log_windows import Status
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record


def replica(
    node: str,
    values: list[bytes],
    high_watermark: int = -1,
    epoch: int = 0,
    behind: bytes = b"",
    **facts: bool,
) -> Replica:
    """A replica of one record a batch; `epoch` is that of the batches behind the first one.

    `behind`: bytes behind the batches.
    """
    data = b"".join(
        build_batch(
            [Record(b"k", value)], base_offset=at, partition_leader_epoch=epoch if at else 0
        )
        for at, value in enumerate(values)
    )
    table = batches_table(
        batch_columns(window_of(data + behind)), BatchSource("t", 0, node, f"{0:020d}.log")
    )
    return Replica(node, "t", 0, batches_of(table), 0, high_watermark, **facts)


SAME = [b"a", b"b", b"c"]
OTHER = [b"a", b"x", b"c"]


def test_equal_replicas_match_and_so_do_shorter_ones() -> None:
    assert list(check_log_matching([replica("1", SAME), replica("2", SAME[:2])])) == []
    assert list(check_log_matching([replica("1", [])])) == []


def test_odd_one_of_three_is_named_and_both_of_two() -> None:
    (found,) = check_log_matching([replica("1", SAME), replica("2", OTHER), replica("3", SAME)])
    assert (found.node, found.offset, found.severity) == ("2", 1, "error")
    assert found.position == replica("2", OTHER).batches.position[1]
    (found,) = check_log_matching([replica("1", SAME), replica("2", OTHER)])
    assert found.node == "1,2"


def test_compacted_replicas_may_differ() -> None:
    pair = [replica("1", SAME, is_compacted=True), replica("2", OTHER, is_compacted=True)]
    assert list(check_log_matching(pair)) == []


def test_replica_that_ends_below_the_high_watermark_lost_data() -> None:
    trio = [replica("1", SAME, 3), replica("2", SAME[:2], 2), replica("3", SAME[:1])]
    found = list(check_below_high_watermark(trio, {"1", "2"}))
    assert [(each.node, each.severity, each.offset) for each in found] == [
        ("2", "error", 2),
        ("3", "warn", 1),
    ]
    assert list(check_below_high_watermark([replica("1", SAME, 1)], {"1"})) == []


def test_log_that_ends_below_its_own_start_lost_data() -> None:
    short = replace(replica("1", SAME), log_start_offset=5)
    (found,) = check_below_high_watermark([short], {"1"})
    assert (found.check, found.node, found.offset) == ("below-high-watermark", "1", 3)
    assert list(check_gap(short)) == []


def test_loss_is_that_of_the_replica_that_shows_what_was_committed() -> None:
    pair = [replace(replica("1", SAME), log_start_offset=5), replica("2", SAME[:2])]
    (found,) = check_below_high_watermark(pair, {"1", "2"})
    assert (found.node, found.offset, found.severity) == ("1", 3, "error")


@pytest.mark.parametrize(
    ("isr", "severity"), [({"1"}, "error"), (set(), "warn"), ({"7"}, "error"), (None, "error")]
)
def test_replica_whose_directory_has_no_node_id_may_be_of_the_isr(
    isr: set[str] | None, severity: str
) -> None:
    short = replica("old-disk", SAME, 4)
    (found,) = check_below_high_watermark([short], isr)
    assert found.severity == severity


@pytest.mark.parametrize(
    ("start_of_other", "severity"), [(None, "warn"), (2, "error"), (3, "warn"), (4, "warn")]
)
def test_first_files_that_are_gone_are_an_error_where_another_replica_has_them(
    start_of_other: int | None, severity: str
) -> None:
    gone = replace(replica("1", SAME), segments=[3, 9], lost_from=0)
    layouts = [layout_of(gone)]
    if start_of_other is not None:
        layouts.append(layout_of(replace(replica("2", SAME), log_start_offset=start_of_other)))
    (fault,) = beginning_faults(layouts)
    assert (fault.finding.severity, fault.finding.node, fault.finding.offset) == (severity, "1", 0)
    assert fault.finding.file == f"{3:020d}.log"


def test_other_boundaries_or_epochs_are_an_error_below_the_high_watermark() -> None:
    joined = b"".join(
        build_batch(records, base_offset=base, partition_leader_epoch=epoch)
        for base, epoch, records in (
            (0, 0, [Record(b"k", b"a")]),
            (1, 1, [Record(b"k", b"b"), Record(b"k", b"c")]),
        )
    )
    table = batches_table(
        batch_columns(window_of(joined)), BatchSource("t", 0, "3", f"{0:020d}.log")
    )
    other = Replica("3", "t", 0, batches_of(table), 0)
    trio = [replica("1", SAME), replica("2", SAME), other]
    (found,) = check_divergence(trio, 2)
    assert (found.node, found.offset, found.severity) == ("3", 1, "error")
    (found,) = check_divergence(trio, 1)
    assert found.severity == "info"
    assert list(check_log_matching(trio)) == []


def test_leader_epoch_alone_that_differs_is_named() -> None:
    """No checksum covers it, and it decides where a replica is cut (KIP-101)."""
    trio = [replica("1", SAME, epoch=4), replica("2", SAME, epoch=3), replica("3", SAME, epoch=4)]
    (found,) = check_divergence(trio, 3)
    assert (found.node, found.offset, found.severity) == ("2", 1, "error")
    assert "leader epochs differ ([3, 4])" in found.detail
    assert list(check_log_matching(trio)) == []


def test_watermark_that_no_replica_reaches_is_one_finding() -> None:
    pair = [replica("1", SAME, 9), replica("2", SAME[:2], 2)]
    (found,) = check_below_high_watermark(pair, {"1", "2"})
    assert (found.node, found.offset, found.severity) == ("1", 3, "error")
    (found,) = check_below_high_watermark([replica("1", SAME)], None, reported=4)
    assert found.severity == "error"


def test_bytes_behind_an_end_that_are_as_long_as_what_others_have_are_damaged() -> None:
    """The batches are not lost then: their bytes are there, and are no batch."""
    whole, short = replica("1", SAME, 3), replica("2", SAME[:2], 3)
    sizes = whole.batches.size_bytes
    for more, check in ((0, "crc"), (1, "below-high-watermark")):
        torn = replica("2", SAME[:2], 3, behind=bytes(int(sizes[2]) + more))
        (found,) = check_below_high_watermark([whole, torn], {"1", "2"})
        assert (found.check, found.node, found.offset) == (check, "2", 2)
        assert found.position == int(sizes[:2].sum())
        assert f"{int(sizes[2]) + more} bytes after it are not a batch" in found.detail
    (found,) = check_below_high_watermark([whole, short], {"1", "2"})
    assert (found.check, found.position) == ("below-high-watermark", -1)


def test_bytes_are_compared_with_whole_logs_only() -> None:
    """A torn log does not show how many bytes follow an offset."""
    four = [*SAME, b"d"]
    size = int(replica("1", SAME).batches.size_bytes[2])
    whole = replica("1", four, 4)
    torn = replica("2", SAME, 4, behind=bytes(7))
    short = replica("3", SAME[:2], 4, behind=bytes(size))
    found = list(check_below_high_watermark([whole, torn, short], {"1", "2", "3"}))
    assert [(each.check, each.node) for each in found] == [
        ("below-high-watermark", "2"),
        ("below-high-watermark", "3"),
    ]


def test_bytes_are_not_compared_with_those_around_a_damaged_batch() -> None:
    """Neither its bytes nor those behind it show how many the second replica must have."""
    four = replica("1", [*SAME, b"d"], 4)
    status = four.batches.status.copy()
    status[2] = Status.CRC
    damaged = replace(four, batches=replace(four.batches, status=status))
    for sizes in (four.batches.size_bytes[2:3], four.batches.size_bytes[2:4]):
        short = replica("2", SAME[:2], 4, behind=bytes(int(sizes.sum())))
        (found,) = check_below_high_watermark([damaged, short], {"1", "2"})
        assert (found.check, found.node) == ("below-high-watermark", "2")
