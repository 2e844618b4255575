"""The walk over the offsets of one replica, batch by batch, against rows written by hand.

A row is a batch of 100 bytes: base offset, last offset, and its status where that is not OK.
"""

from __future__ import annotations

import numpy as np
import pytest

from kraft_wire.audit.fault import END_OF_LOG
from kraft_wire.audit.replica import Batches, Replica
from kraft_wire.audit.walk import Walk
from kraft_wire.columnar.log_windows import Status

OK, CRC, GARBAGE = Status.OK, Status.CRC, Status.GARBAGE
Row = tuple[int, int] | tuple[int, int, Status]


def walked(
    *rows: Row, start: int = 0, compacted: bool = False, segments: tuple[int, ...] = (0,)
) -> Walk:
    def column(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(values, np.int64)

    statuses = [row[2] if len(row) == 3 else OK for row in rows]
    names = [name for name in Batches.__slots__ if name != "is_control"]
    known = {
        "segment": [segments[0]] * len(rows) if segments else [0] * len(rows),
        "position": [100 * at for at in range(len(rows))],
        "size_bytes": [100] * len(rows),
        "base_offset": [row[0] for row in rows],
        "last_offset": [row[1] for row in rows],
        "status": [int(status) for status in statuses],
    }
    batches = Batches(
        **{name: column(known.get(name, [-1] * len(rows))) for name in names},
        is_control=np.zeros(len(rows), np.bool_),
    )
    replica = Replica("1", "t", 0, batches, start, is_compacted=compacted, segments=list(segments))
    return Walk(replica, np.flatnonzero(batches.is_valid))


def found(walk: Walk) -> tuple[list[tuple[int, int, int]], list[int], int]:
    """Steps as (row, first, end), the rows to believe, and the end of the log."""
    steps = [(step.row, step.first, step.end) for step in walk.steps]
    return steps, walk.sound.tolist(), walk.log_end_offset


def details(walk: Walk) -> list[str]:
    return [step.detail for step in walk.steps]


def test_batches_that_follow_each_other_are_sound() -> None:
    assert found(walked((0, 1), (2, 4), (5, 5))) == ([], [0, 1, 2], 6)
    assert found(walked((0, 0))) == ([], [0], 1)
    assert found(walked((5, 6), (7, 7), segments=(5,), start=6)) == ([], [0, 1], 8)
    assert found(walked((0, 1), (2, 3), start=2)) == ([], [0, 1], 4)


def test_log_without_batches_ends_where_it_starts() -> None:
    assert found(walked(segments=())) == ([], [], 0)
    assert found(walked(segments=(), start=7)) == ([], [], 7)
    assert found(walked(segments=(4,))) == ([], [], 4)
    assert found(walked(segments=(4,), start=7)) == ([], [], 7)
    assert found(walked(segments=(4, 9), start=7)) == ([], [], 7)
    assert found(walked(segments=(4, 9), start=3, compacted=True)) == ([], [], 9)
    assert found(walked(segments=(4, 9), start=11, compacted=True)) == ([], [], 11)


def test_hole_is_one_step() -> None:
    walk = walked((0, 1), (4, 5), (6, 6))
    assert found(walk) == ([(1, 2, 4)], [0, 1, 2], 7)
    assert details(walk) == ["batch begins at 4, the previous one ends before 2"]
    assert found(walked((3, 4), (5, 5))) == ([(0, 0, 3)], [0, 1], 6)
    assert found(walked((0, 0), (2, 2), (4, 4))) == ([(1, 1, 2), (2, 3, 4)], [0, 1, 2], 5)


def test_compacted_log_may_have_holes_and_does_not_go_back() -> None:
    assert found(walked((0, 1), (4, 5), (9, 9), compacted=True)) == ([], [0, 1, 2], 10)
    assert found(walked((3, 4), compacted=True)) == ([], [0], 5)
    steps, sound, end = found(walked((0, 5), (3, 4), (9, 9), compacted=True))
    assert steps == [(1, 3, 9)]
    assert (sound, end) == ([0, 2], 10)


def test_after_damage_any_later_offset_may_follow() -> None:
    assert found(walked((0, 1), (2, 3, CRC), (7, 8))) == ([], [0, 2], 9)
    assert found(walked((2, 3, CRC), (7, 8), (9, 9))) == ([], [1, 2], 10)
    steps, sound, end = found(walked((0, 5), (6, 6, CRC), (3, 4), (7, 7)))
    assert steps == [(2, 3, 7)]
    assert (sound, end) == ([0, 3], 8)


def test_wrong_base_offset_is_told_alone_where_the_next_batch_shows_what_it_was() -> None:
    walk = walked((0, 1), (12, 14), (5, 6))
    assert found(walk) == ([(1, 2, 5)], [0, 2], 7)
    assert details(walk) == ["batch begins at 12, expected 2"]
    walk = walked((0, 4), (2, 3), (7, 7))
    assert found(walk) == ([(1, 5, 7)], [0, 2], 8)
    walk = walked((10, 11), (2, 3))
    assert found(walk) == ([(0, 0, 2)], [1], 4)


def test_batch_behind_garbage_is_the_same_fault_as_that() -> None:
    assert found(walked((0, 1), (2, 2, GARBAGE), (50, 51), (4, 5), (6, 6))) == (
        [],
        [0, 3, 4],
        7,
    )
    steps, sound, end = found(walked((0, 1), (2, 2, CRC), (50, 51), (4, 5), (6, 6)))
    assert [step[:1] for step in steps] == [(2,)]
    assert (sound, end) == ([0, 3, 4], 7)


@pytest.mark.parametrize("offset", [3, 4, 9])
def test_batch_beyond_those_that_follow_it_stands_alone(offset: int) -> None:
    walk = walked((0, 1), (2, 9), (offset, offset), (4, 5), (10, 10), compacted=True)
    assert walk.steps
    assert 1 not in walk.sound.tolist() or 3 not in walk.sound.tolist()


def test_batch_that_others_follow_up_to_its_own_end_stands_alone() -> None:
    walk = walked((0, 1), (9, 9), (3, 4), (9, 10), compacted=True)
    assert found(walk) == ([(1, 2, 3)], [0, 2, 3], 11)
    behind = walked((0, 1), (9, 9), (3, 4), (10, 11), compacted=True)
    assert found(behind) != found(walk)
    assert found(behind)[1] == [0, 1, 3]


def test_compacted_batch_whose_base_is_too_large_is_named() -> None:
    walk = walked((0, 1), (20, 21), (4, 5), (8, 9), compacted=True)
    assert found(walk) == ([(1, 2, 4)], [0, 2, 3], 10)
    walk = walked((0, 1), (20, 21), (4, 5), compacted=True)
    assert found(walk) == ([(1, 2, 4)], [0, 2], 6)
    walk = walked((0, 1), (20, 21), (22, 23), compacted=True)
    assert found(walk) == ([], [0, 1, 2], 24)
    walk = walked((0, 1), (4, 6), (3, 3), (8, 9), compacted=True)
    assert found(walk) == ([(2, 7, 8)], [0, 1, 3], 10)
    walk = walked((0, 1), (4, 6), (3, 3), (9, 9), compacted=True)
    assert found(walk) == ([(2, 3, 9)], [0, 1, 3], 10)


def test_batches_that_go_back_are_one_step_up_to_where_the_log_goes_on() -> None:
    walk = walked((0, 1), (2, 3), (0, 1), (2, 3), (4, 5))
    assert found(walk) == ([(2, 0, 4)], [0, 1, 4], 6)
    assert details(walk) == ["batch begins at 0, the previous one ends before 4"]
    walk = walked((0, 1), (2, 3), (0, 0), (1, 1), (6, 7))
    assert found(walk) == ([(2, 0, 6)], [0, 1, 4], 8)
    assert found(walked((0, 3), (1, 1))) == ([(1, 1, END_OF_LOG)], [0], 4)
    assert found(walked((0, 3), (1, 8))) == ([(1, 1, END_OF_LOG)], [0], 9)


@pytest.mark.parametrize(
    ("back", "steps", "sound"),
    [
        ([(2, 3)], [(1, 2, 8)], [0, 2, 1, 3]),
        ([(6, 7)], [(1, 2, 8)], [0, 2, 1, 3]),
        ([(2, 7)], [(1, 2, 8)], [0, 2, 1, 3]),
        ([(2, 3), (5, 5)], [(1, 2, 8)], [0, 2, 3, 1, 4]),
        ([(1, 3)], [(1, 2, 8), (2, 1, 10)], [0, 1, 3]),
        ([(6, 8)], [(1, 2, 8), (2, 6, 10)], [0, 1, 3]),
        ([(1, 3), (5, 5)], [(1, 2, 8), (2, 1, 10)], [0, 1, 4]),
        ([(3, 3), (6, 8)], [(1, 2, 8), (2, 3, 10)], [0, 1, 4]),
    ],
)
def test_batches_that_fill_a_hole_are_the_same_fault(
    back: list[Row], steps: list[tuple[int, int, int]], sound: list[int]
) -> None:
    walk = walked((0, 1), (8, 9), *back, (10, 11))
    assert found(walk) == (steps, sound, 12)


def test_log_that_ends_before_its_start_lost_its_end_or_was_hit() -> None:
    """Two batches that follow each other are an end that was lost; one alone was hit."""
    assert found(walked((0, 1), (2, 3), start=9)) == ([], [0, 1], 4)
    walk = walked((0, 1), start=9)
    assert found(walk) == ([(0, 9, END_OF_LOG)], [], 9)
    assert details(walk) == ["batch begins at 0, but the log starts at 9"]
    assert found(walked((0, 1), (2, 3, CRC), start=9)) == ([], [0], 9)
    assert found(walked((0, 8), start=9)) == ([], [0], 9)
