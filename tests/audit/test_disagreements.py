"""Where replicas differ, against a twin that looks at one offset after another."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_wire.audit import Replica, batches_of
from kraft_wire.audit.comparison import disagreements
from kraft_wire.audit.layout import layout_of
from kraft_wire.columnar import BatchSource, batch_columns, batches_table, window_of
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record


class Batch(NamedTuple):
    """One batch of a replica."""

    base: int
    count: int
    epoch: int
    value: bytes

    @property
    def last(self) -> int:
        return self.base + self.count - 1


def replica(node: str, held: list[Batch]) -> Replica:
    data = b"".join(
        build_batch(
            [Record(b"k", each.value)] * each.count,
            base_offset=each.base,
            partition_leader_epoch=each.epoch,
        )
        for each in held
    )
    first = held[0].base if held else 0
    place = BatchSource("t", 0, node, f"{first:020d}.log")
    return Replica(
        node, "t", 0, batches_of(batches_table(batch_columns(window_of(data)), place)), first
    )


def log(counts: list[int], begin: int, changes: list[tuple[int, str]]) -> list[Batch]:
    """Batches of these sizes from 0 on, those that begin below `begin` left out, some changed."""
    held, base = [], 0
    kinds = {at % len(counts): kind for at, kind in changes}
    for at, count in enumerate(counts):
        kind = kinds.get(at, "")
        epoch = 1 if kind == "epoch" else 0
        value = b"other" if kind == "value" else b"value"
        sizes = [1] * count if kind == "split" else [count]
        for size in sizes:
            held.append(Batch(base, size, epoch, value))
            base += size
    return [each for each in held if each.base >= begin]


COUNTS = st.lists(st.integers(1, 3), min_size=1, max_size=8)
CHANGES = st.lists(
    st.tuples(st.integers(0, 7), st.sampled_from(["value", "epoch", "split"])), max_size=2
)
OF_A_REPLICA = st.tuples(st.sampled_from([0, 0, 2, 5]), st.integers(1, 8), CHANGES)


def identities(held: dict[str, list[Batch]], offset: int) -> dict[str, Batch]:
    """By node the batch that holds an offset; of one that began before, only where it began."""
    return {
        node: each if each.base == offset else Batch(each.base, 0, each.epoch, b"")
        for node, batches in held.items()
        for each in batches
        if each.base <= offset <= each.last
    }


def check(held: dict[str, list[Batch]]) -> None:
    """Compare what is found with the twin: at each batch that begins anywhere."""
    found = disagreements([layout_of(replica(node, each)) for node, each in held.items()])
    bases = sorted({each.base for batches in held.values() for each in batches})
    there = {base: identities(held, base) for base in bases}
    differing = [base for base in bases if len(set(there[base].values())) > 1]
    covered = [
        base for base in bases if any(f.first_offset <= base <= f.last_offset for f in found)
    ]
    assert set(differing) <= set(covered), (differing, found)
    for each in found:
        assert {each.first_offset, each.last_offset} <= set(differing), (differing, found)
        counted = Counter(there[each.first_offset].values())
        usual, count = counted.most_common(1)[0]
        is_majority = 2 * count > sum(counted.values())
        odd = [
            node
            for node, batch in there[each.first_offset].items()
            if not is_majority or batch != usual
        ]
        assert each.odd == sorted(odd)
        for base in covered:  # no batch on which replicas agree lies between
            is_inside = each.first_offset < base < each.last_offset
            assert not is_inside or base in differing or len(there[base]) < 2, (base, found)


@settings(max_examples=150, deadline=None)
@given(COUNTS, st.lists(OF_A_REPLICA, min_size=2, max_size=4))
def test_disagreements_are_where_two_replicas_hold_different_batches(
    counts: list[int], replicas: list[tuple[int, int, list[tuple[int, str]]]]
) -> None:
    """Replicas begin and end anywhere, so that any two may differ where the others have nothing."""
    check(
        {
            str(node): log(counts[:length], begin, changes)
            for node, (begin, length, changes) in enumerate(replicas, 1)
        }
    )


def test_two_replicas_differ_behind_the_end_and_before_the_start_of_the_third() -> None:
    whole = [1] * 8
    for at in range(8):
        for begin, length in ((0, 4), (4, 8), (2, 6), (0, 0)):
            held = {
                "1": log(whole, 0, []),
                "2": log(whole, 0, [(at, "value")]),
                "3": log(whole[:length], begin, []) if length else [],
            }
            check(held)
            layouts = [layout_of(replica(node, each)) for node, each in held.items()]
            (found,) = disagreements(layouts)
            assert (found.first_offset, found.last_offset) == (at, at)
            assert found.odd == (["2"] if begin <= at < length else ["1", "2"])
