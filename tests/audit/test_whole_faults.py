"""Faults of epochs, of replicas against each other and of losses: whole findings and stretches."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from kraft_wire.audit.collector.run import _cores
from kraft_wire.audit.comparison import Disagreement, disagreements
from kraft_wire.audit.fault import END_OF_LOG, Fault
from kraft_wire.audit.finding import Finding
from kraft_wire.audit.layout import layout_of
from kraft_wire.audit.partition_audit import PartitionFacts, judge_partition
from kraft_wire.audit.replica import Replica, batches_of_columns, joined_batches
from kraft_wire.audit.replica_checks import check_producer, epoch_faults
from kraft_wire.audit.replica_set_checks import (
    beginning_faults,
    disagreement_fault,
    highest_watermark,
    loss_faults,
)
from kraft_wire.columnar import batch_columns, window_of
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

FILE = f"{0:020d}.log"


def batch(
    offset: int, epoch: int = 0, value: bytes = b"v", count: int = 1, sequence: int = -1
) -> bytes:
    produced = {} if sequence < 0 else {"producer_id": 5, "producer_epoch": 2}
    return bytes(
        build_batch(
            [Record(b"k", value)] * count,
            base_offset=offset,
            partition_leader_epoch=epoch,
            base_sequence=sequence,
            **produced,
        )
    )


SIZE = len(batch(0))


def replica(node: str, *parts: bytes, **facts: Any) -> Replica:
    """A replica of t-0 in one file."""
    columns = batch_columns(window_of(b"".join(parts)))
    given: dict[str, Any] = {"log_start_offset": 0, "segments": [0]} | facts
    return Replica(node, "t", 0, joined_batches([batches_of_columns(columns, 0)]), **given)


def finding(check: str, severity: Any, node: str, offset: int, position: int, text: str) -> Finding:
    return Finding(check, severity, node, "t", 0, offset, FILE, position, text)


def epochs(*values: int, **facts: Any) -> tuple[list[Fault], list[int]]:
    """The faults of batches with these epochs, and the doubtful rows."""
    own = replica("1", *(batch(at, epoch) for at, epoch in enumerate(values)), **facts)
    faults, rows = epoch_faults(own, layout_of(own).rows)
    return faults, rows.tolist()


@pytest.mark.parametrize(
    ("values", "row", "text"),
    [
        ((1, 9, 1, 1), 1, "leader epoch 9 after 1"),
        ((1, 5, 0, 5), 2, "leader epoch 0 after 5"),
        ((9, 1, 1), 0, "leader epoch 9"),
        ((1, 1, 9, 1), 2, "leader epoch 9 after 1"),
        ((1, 2, 1), 1, "leader epoch 2 after 1"),
        ((2, 3, 1), 2, "leader epoch 1 after 3"),
    ],
)
def test_epoch_that_fits_less_is_the_wrong_one(
    values: tuple[int, ...], row: int, text: str
) -> None:
    wanted = Fault(finding("epoch", "error", "1", row, row * SIZE, text), row, row + 1)
    assert epochs(*values) == ([wanted], [row])


def test_epochs_are_those_of_the_checkpoint() -> None:
    known = [(1, 0), (3, 2)]
    assert epochs(1, 1, 3, 3, leader_epochs=known) == ([], [])
    text = "leader epoch 2, the checkpoint has 3"
    wanted = Fault(finding("epoch", "error", "1", 2, 2 * SIZE, text), 2, 4)
    assert epochs(1, 1, 2, 2, leader_epochs=known) == ([wanted], [2, 3])
    assert epochs(1, 1, 3, 3, leader_epochs=[(3, 2)]) == ([], [])
    assert epochs() == ([], [])
    damaged = Finding(
        *("epoch", "error", "1", "t", 0, -1, "leader-epoch-checkpoint", -1),
        "the checkpoint is damaged: x",
    )
    assert epochs(1, 1, epochs_damage="x") == ([Fault(damaged, 0, 0)], [])


def producers(*sequences: int, **facts: Any) -> list[Finding]:
    parts = [batch(2 * at, count=2, sequence=each) for at, each in enumerate(sequences)]
    return list(check_producer(replica("1", *parts, **facts)))


LAST = (1 << 31) - 2


@pytest.mark.parametrize(
    ("sequences", "odd", "text"),
    [
        ((4, 6, 8), None, ""),
        ((LAST, 0, 2), None, ""),
        ((4, 0, 2), None, ""),
        ((4, 6, 9, 11), 2, "producer 5 epoch 2: sequence 9, not 8"),
        ((4, 7, 8, 10), 1, "producer 5 epoch 2: sequence 7, not 6"),
        ((4, 6, 7), 2, "producer 5 epoch 2: sequence 7, not 8"),
    ],
)
def test_sequence_that_does_not_follow_is_a_whole_finding(
    sequences: tuple[int, ...], odd: int | None, text: str
) -> None:
    size = len(batch(0, count=2, sequence=0))
    wanted = [] if odd is None else [finding("producer", "error", "1", 2 * odd, odd * size, text)]
    assert producers(*sequences) == wanted
    assert producers(*sequences, is_compacted=True) == []


def log(*values: bytes, epoch: int = 0) -> list[bytes]:
    return [batch(at, epoch, value) for at, value in enumerate(values)]


def differing(*replicas: Replica, watermark: int = 9) -> list[tuple[Disagreement, Fault]]:
    layouts = [layout_of(each) for each in replicas]
    by_node = {each.replica.node: each for each in layouts}
    return [
        (each, disagreement_fault(each, by_node[each.odd[0]], watermark))
        for each in disagreements(layouts)
    ]


SAME = log(b"a", b"b", b"c", b"d")


def test_other_content_is_a_whole_disagreement_and_its_fault() -> None:
    odd = log(b"a", b"x", b"y", b"d")
    ((found, fault),) = differing(replica("1", *SAME), replica("2", *odd), replica("3", *SAME))
    assert found == Disagreement(1, 2, ["2"], True, False, [0], 1)
    text = "batch of epoch 0 differs from the one that others have; so do the following ones to 2"
    assert fault == Fault(finding("log-matching", "error", "2", 1, SIZE, text), 1, 3)
    ((found, fault),) = differing(replica("1", *SAME), replica("2", *odd[:2]))
    assert found == Disagreement(1, 1, ["1", "2"], True, False, [0], 1)
    text = "batch of epoch 0 differs from the one that others have"
    assert fault == Fault(finding("log-matching", "error", "1,2", 1, SIZE, text), 1, 2)
    ((_, fault),) = differing(replica("2", *odd[:2]), replica("1", *SAME))
    assert fault.end_offset == 2, "it is the layout of the first node by name"


@pytest.mark.parametrize(("watermark", "severity"), [(4, "error"), (3, "info")])
def test_other_epochs_at_the_end_are_a_whole_fault(watermark: int, severity: Any) -> None:
    odd = [*SAME[:3], batch(3, 1, b"d")]
    pair = replica("1", *SAME), replica("2", *odd)
    ((found, fault),) = differing(*pair, watermark=watermark)
    assert found == Disagreement(3, 3, ["1", "2"], False, True, [0, 1], 3)
    text = f"leader epochs differ ([0, 1]), the high watermark is {watermark}"
    wanted = finding("divergence", severity, "1,2", 3, 3 * SIZE, text)
    assert fault == Fault(wanted, 3, END_OF_LOG)


def test_other_boundaries_are_a_whole_fault() -> None:
    odd = [SAME[0], batch(1, 0, b"b", 2), SAME[3]]
    trio = replica("1", *SAME), replica("2", *odd), replica("3", *SAME)
    first, *others = differing(*trio, watermark=3)
    found, fault = first
    assert (found.odd, found.row, others) == (["2"], 1, [])
    assert (found.first_offset, found.last_offset, found.epochs) == (1, 2, [0])
    assert (fault.first_offset, fault.end_offset) == (1, 3)
    assert fault.finding.node == "2"


def test_first_files_that_are_gone_are_a_whole_fault() -> None:
    gone = replica("1", *SAME[3:], segments=[3, 9], lost_from=1)
    text = "the log begins at 3, its leader epochs at 1"
    found = Finding("gap", "warn", "1", "t", 0, 1, f"{3:020d}.log", -1, text)
    assert beginning_faults([layout_of(gone)]) == [Fault(found, 1, 3)]
    both = [layout_of(gone), layout_of(replica("2", *SAME))]
    assert beginning_faults(both) == [Fault(replace(found, severity="error"), 1, 3)]


def losses(*replicas: Replica, isr: set[str] | None = None, reported: int = -1) -> list[Fault]:
    return loss_faults([layout_of(each) for each in replicas], isr, reported)


def lost(severity: Any, node: str, end: int, text: str, position: int = -1) -> Fault:
    return Fault(finding("below-high-watermark", severity, node, end, position, text), end)


def test_log_that_ends_too_early_is_a_whole_fault() -> None:
    whole, short = replica("1", *SAME, high_watermark=4), replica("2", *SAME[:2])
    assert highest_watermark([whole, short], 3) == 4
    assert highest_watermark([whole, short], 5) == 5
    text = "log ends at 2, the high watermark is 4"
    assert losses(whole, short) == [lost("error", "2", 2, text)]
    assert losses(whole, short, isr={"1"}) == [lost("warn", "2", 2, text)]
    assert losses(whole, short, isr={"2"}) == [lost("error", "2", 2, text)]
    assert losses(replica("1", *SAME[:2], high_watermark=2), short) == []


def test_torn_bytes_that_are_as_many_as_are_lost_are_damage() -> None:
    whole = replica("1", *SAME, high_watermark=4)
    junk = bytes([1]) * (2 * SIZE)
    torn = replica("2", *SAME[:2], junk)
    text = f"log ends at 2, the high watermark is 4; {2 * SIZE} bytes after it are not a batch"
    position = 2 * SIZE
    assert losses(whole, torn) == [Fault(finding("crc", "error", "2", 2, position, text), 2)]
    fewer = replica("2", *SAME[:2], junk[:-1])
    text = text.replace(f"{2 * SIZE} bytes", f"{2 * SIZE - 1} bytes")
    assert losses(whole, fewer) == [lost("error", "2", 2, text, position)]


def test_watermark_that_no_replica_reaches_is_one_whole_fault() -> None:
    text = "no replica reaches the high watermark 6: they end at [2, 4]"
    first, second = replica("1", *SAME), replica("2", *SAME[:2])
    assert losses(first, second, reported=6) == [lost("error", "1,2", 4, text)]
    told = replace(second, high_watermark=6)
    assert losses(first, told) == [lost("error", "2", 4, text)]
    alone = "log ends at 4, the high watermark is 6"
    assert losses(first, reported=6) == [lost("error", "1", 4, alone)]
    empty = replica("1", segments=[])
    (fault,) = losses(empty, reported=6)
    assert (fault.finding.file, fault.finding.offset) == ("", 0)


def test_judgement_names_one_fault_for_one_cause() -> None:
    """A damaged batch is also not there to be compared, and its producer is not judged."""
    damaged = SAME[1][:-1] + b"?"
    trio = [replica("1", *SAME), replica("2", SAME[0], damaged, *SAME[2:]), replica("3", *SAME)]
    facts = PartitionFacts(isr=frozenset({"1", "2", "3"}), high_watermark=4)
    judged = judge_partition(trio, facts)
    text = "wrong checksum of the batch"
    assert judged.findings() == [finding("crc", "error", "2", 1, SIZE, text)]
    assert judged.findings(("gap",)) == []
    assert [each.replica.node for each in judged.layouts] == ["1", "2", "3"]
    layout = judged.layout("2")
    assert layout is not None
    assert layout.rows.tolist() == [0, 2, 3]
    assert judged.layout("4") is None


def test_fault_that_was_found_before_explains_the_loss_behind_it() -> None:
    """A file that cannot be read to its end: what it would hold is not lost besides."""
    pair = [replica("1", *SAME), replica("2", *SAME[:2])]
    facts = PartitionFacts(isr=frozenset({"1", "2"}), high_watermark=4)
    assert len(judge_partition(pair, facts).findings()) == 1
    unread = finding("crc", "error", "2", 2, 2 * SIZE, "cannot be read")
    assert judge_partition(pair, facts, [Fault(unread, 2, END_OF_LOG)]).findings() == []
    before = [Fault(unread, 3, END_OF_LOG), Fault(unread, 2, 3)]
    assert len(judge_partition(pair, facts, before).findings()) == 1


def test_processes_are_the_cores_that_this_one_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 9)
    if hasattr(os, "sched_getaffinity"):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3})
        assert _cores() == 2
        monkeypatch.delattr(os, "sched_getaffinity")
    assert _cores() == 9
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert _cores() == 1
