"""A gap beside a difference is explained by it, unless the gap is what is grave."""

from __future__ import annotations

from kraft_wire.audit import Replica, batches_of
from kraft_wire.audit.partition_audit import PartitionFacts, audit_partition
from kraft_wire.columnar import BatchSource, batch_columns, batches_table, window_of
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

Held = list[tuple[int, bytes]]
"""Offset and value of each batch, which has one record."""


def replica(node: str, held: Held) -> Replica:
    data = b"".join(
        build_batch([Record(b"k", value)], base_offset=at, partition_leader_epoch=value == b"y")
        for at, value in held
    )
    table = batches_table(
        batch_columns(window_of(data)), BatchSource("t", 0, node, f"{0:020d}.log")
    )
    return Replica(node, "t", 0, batches_of(table), 0)


WHOLE = [(at, b"v") for at in range(8)]


def told(held: Held, high_watermark: int) -> list[tuple[str, str, str, int]]:
    """What is told of node 3 beside two nodes that have all."""
    replicas = [replica("1", WHOLE), replica("2", WHOLE), replica("3", held)]
    found = audit_partition(replicas, PartitionFacts(high_watermark=high_watermark))
    return sorted((each.check, each.severity, each.node, each.offset) for each in found)


def without(*offsets: int, other: int) -> Held:
    return [(at, b"x" if at == other else b"v") for at in range(8) if at not in offsets]


def test_difference_among_what_is_committed_explains_the_gap_beside_it() -> None:
    (found,) = told(without(4, other=5), high_watermark=8)
    assert found[:3] == ("log-matching", "error", "3")
    (found,) = told(without(5, other=4), high_watermark=8)
    assert found[:3] == ("log-matching", "error", "3")


def test_gap_that_does_not_touch_a_difference_is_told_beside_it() -> None:
    found = told(without(2, other=6), high_watermark=8)
    assert [each[0] for each in found] == ["gap", "log-matching"]


def test_gap_is_told_beside_a_difference_among_what_was_never_committed() -> None:
    """The last batch is of another leader epoch, as one that is cut when its leader comes back."""
    held = [*without(6, other=-1)[:-1], (7, b"y")]
    assert told(held, high_watermark=6) == [
        ("divergence", "info", "3", 7),
        ("gap", "error", "3", 7),
    ]
    found = told(held, high_watermark=8)
    assert [each[:3] for each in found] == [("divergence", "error", "3")]
