"""What records make of the states of share partitions: merged batches, epochs, and snapshots."""

from __future__ import annotations

from random import Random

import pytest

from kraft_wire.broker.share_persister import DeliveryStateBatch, SharePartitionKey
from kraft_wire.broker.share_state.batch_merging import merged_batches
from kraft_wire.broker.share_state.state import ShareState, ShareUpdate
from kraft_wire.broker.share_state.state_table import StateTable, Tombstone
from kraft_wire.model import Offset, Uuid

Batch = tuple[int, int, int, int]
"""First and last offset, state, delivery count."""

ONE, TWO = (Uuid(bytes([each]) * 16) for each in (1, 2))
KEY, OTHER = SharePartitionKey("g", ONE, 0), SharePartitionKey("h", TWO, 3)


def batches(*given: Batch) -> list[DeliveryStateBatch]:
    return [
        DeliveryStateBatch(Offset(first), Offset(last), state, count)
        for first, last, state, count in given
    ]


@pytest.mark.parametrize(
    ("stored", "new", "start", "merged"),
    [
        ([], [], -1, []),
        ([(5, 9, 0, 1)], [], -1, [(5, 9, 0, 1)]),
        ([(5, 9, 0, 1)], [], 7, [(7, 9, 0, 1)]),
        ([(5, 9, 0, 1)], [], 9, [(9, 9, 0, 1)]),
        ([(5, 9, 0, 1)], [], 10, []),
        ([(5, 9, 0, 1)], [(12, 11, 0, 1)], 0, [(5, 9, 0, 1)]),
        ([(0, 4, 0, 1)], [(5, 9, 0, 1)], -1, [(0, 9, 0, 1)]),
        ([(0, 4, 0, 1)], [(6, 9, 0, 1)], -1, [(0, 4, 0, 1), (6, 9, 0, 1)]),
        ([(0, 4, 0, 1)], [(5, 9, 2, 1)], -1, [(0, 4, 0, 1), (5, 9, 2, 1)]),
        ([(0, 9, 0, 1)], [(3, 5, 2, 1)], -1, [(0, 2, 0, 1), (3, 5, 2, 1), (6, 9, 0, 1)]),
        ([(0, 9, 2, 1)], [(3, 5, 0, 2)], -1, [(0, 2, 2, 1), (3, 5, 0, 2), (6, 9, 2, 1)]),
        ([(0, 9, 2, 2)], [(3, 5, 4, 1)], -1, [(0, 9, 2, 2)]),
        ([(0, 5, 2, 2)], [(3, 9, 0, 1)], -1, [(0, 5, 2, 2), (6, 9, 0, 1)]),
        ([(0, 5, 0, 1)], [(3, 9, 0, 2)], -1, [(0, 2, 0, 1), (3, 9, 0, 2)]),
        ([(0, 5, 0, 1)], [(0, 5, 4, 1)], -1, [(0, 5, 4, 1)]),
        ([(0, 5, 0, 1)], [(0, 9, 4, 1)], -1, [(0, 9, 4, 1)]),
        ([(0, 5, 0, 1)], [(0, 5, 0, 1)], -1, [(0, 5, 0, 1)]),
        ([(0, 5, 0, 1), (0, 5, 0, 1)], [(3, 8, 0, 1)], 2, [(2, 8, 0, 1)]),
    ],
)
def test_of_two_states_that_with_more_deliveries_stays(
    stored: list[Batch], new: list[Batch], start: int, merged: list[Batch]
) -> None:
    """`PersisterStateBatchCombiner`: of equal counts the higher state, neighbours joined."""
    assert merged_batches(batches(*stored), batches(*new), start) == batches(*merged)


@pytest.mark.parametrize("seed", range(40))
def test_each_offset_has_the_highest_of_its_states(seed: int) -> None:
    chance = Random(seed)
    drawn: list[Batch] = []
    for _ in range(chance.randrange(1, 9)):
        first = chance.randrange(20)
        drawn.append(
            (first, first + chance.randrange(8), chance.choice((0, 2, 4)), chance.randrange(1, 4))
        )
    start, cut = chance.randrange(-1, 12), chance.randrange(len(drawn) + 1)
    expected: dict[int, tuple[int, int]] = {}
    for first, last, state, count in drawn:
        for offset in range(max(first, start), last + 1):
            expected[offset] = max(expected.get(offset, (0, 0)), (count, state))
    found = merged_batches(batches(*drawn[:cut]), batches(*drawn[cut:]), start)
    offsets = [
        (offset, (each.delivery_count, each.delivery_state))
        for each in found
        for offset in range(each.first_offset, each.last_offset + 1)
    ]
    assert offsets == sorted(expected.items())


def state(
    *, leader: int = 3, epoch: int = 5, write_ms: int = 100, create_ms: int = 90
) -> ShareState:
    return ShareState(2, epoch, leader, 10, 0, batches((10, 12, 0, 1)), create_ms, write_ms)


def update(leader: int = 3, start: int = -1) -> ShareUpdate:
    return ShareUpdate(2, leader, start, 7, batches((12, 13, 2, 1)))


@pytest.mark.parametrize(
    ("given", "leader", "start", "merged"),
    [
        (update(), 3, 10, [(10, 11, 0, 1), (12, 13, 2, 1)]),
        (update(-1, 11), 3, 11, [(11, 11, 0, 1), (12, 13, 2, 1)]),
        (update(4, 0), 4, 0, [(10, 11, 0, 1), (12, 13, 2, 1)]),
        (update(2, 13), 2, 13, [(13, 13, 2, 1)]),
    ],
)
def test_update_changes_what_it_says(
    given: ShareUpdate, leader: int, start: int, merged: list[Batch]
) -> None:
    expected = ShareState(2, 5, leader, start, 7, batches(*merged), 90, 100)
    assert state().updated(given) == expected
    again = state().again(300)
    assert again == ShareState(3, 5, 3, 10, 0, batches((10, 12, 0, 1)), 90, 300)


def known(table: StateTable) -> tuple[int, int, int]:
    """Leader epoch, state epoch and number of updates, which later calls are compared with."""
    entry = table.entries[KEY]
    return entry.known_leader_epoch, entry.known_state_epoch, entry.updates_count


def test_known_epochs_never_fall_and_a_due_snapshot_begins_a_new_count() -> None:
    table = StateTable(lambda: 2)
    table.apply(KEY, state(), 0)
    assert known(table) == (3, 5, 0)
    table.apply(KEY, update(4), 1)
    assert known(table) == (4, 5, 1)
    table.apply(KEY, state(leader=2, epoch=6), 2)
    assert (known(table), table.entries[KEY].state) == ((4, 6, 1), state(leader=2, epoch=6))
    table.apply(KEY, update(3), 3)
    assert known(table) == (4, 6, 2)
    table.apply(KEY, state(leader=5, epoch=4), 4)
    assert known(table) == (5, 6, 0)
    table.apply(KEY, Tombstone.TOMBSTONE, 5)
    table.apply(KEY, Tombstone.TOMBSTONE, 6)
    assert table.entries == {}


def test_update_without_a_snapshot_is_a_state_of_its_own() -> None:
    table = StateTable(lambda: 2)
    table.apply(KEY, update(4, 11), 0)
    assert known(table) == (4, -(1 << 31), 1)
    assert table.entries[KEY].state == ShareState(2, 0, 4, 11, 7, batches((12, 13, 2, 1)), 0, 0)


def test_log_is_needed_from_the_oldest_of_the_newest_snapshots_on() -> None:
    table = StateTable(lambda: 2)
    needed = table.needed.first_needed
    assert needed() is None
    table.apply(KEY, state(), 0)
    assert needed() is None, "nothing is below the first offset"
    table.apply(OTHER, state(), 3)
    table.apply(KEY, update(), 4)
    assert needed() is None
    table.apply(KEY, state(), 5)
    assert needed() == 3
    table.apply(OTHER, Tombstone.TOMBSTONE, 6)
    assert needed() == 5
    table.apply(KEY, state(), 7)
    assert needed() == 7
    assert table.keys_of([TWO]) == []
    assert table.keys_of([TWO, ONE]) == [KEY]


@pytest.mark.parametrize(
    ("wall_ms", "cold"), [(199, []), (200, [KEY]), (249, [KEY]), (250, [KEY, OTHER])]
)
def test_cold_states_are_written_again_if_any_was_written_since_its_creation(
    wall_ms: int, cold: list[SharePartitionKey]
) -> None:
    table = StateTable(lambda: 2)
    table.apply(KEY, state(write_ms=100, create_ms=90), 0)
    table.apply(OTHER, state(write_ms=150, create_ms=140), 1)
    assert table.cold_snapshots(1_000, 100) == []
    table.apply(OTHER, state(write_ms=150, create_ms=150), 2)
    found = table.cold_snapshots(wall_ms, 100)
    assert [key for key, _ in found] == cold
    for key, snapshot in found:
        assert snapshot == table.entries[key].state.again(wall_ms)
