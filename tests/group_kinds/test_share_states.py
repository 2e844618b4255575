"""What is planted in the log of share partitions is found."""

from __future__ import annotations

import pytest

from tests.group_kinds.share_states import Batch, Write, judged

KEY = ("group", b"topic", 0)
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def write(start_offset: int, *batches: Batch) -> Write:
    return Write(KEY, start_offset, batches)


FIRST = (
    write(-1),
    write(0, (0, 3, ACKNOWLEDGED, 1), (4, 4, AVAILABLE, 1), (5, 9, ACKNOWLEDGED, 1)),
    write(4),
)


def test_a_record_that_is_released_and_accepted_is_right() -> None:
    late = write(-1, (4, 4, AVAILABLE, 1))
    states = judged([*FIRST, write(10, (4, 4, ACKNOWLEDGED, 2)), late])
    assert (states.wrong, states.jumps) == ([], 0)


@pytest.mark.parametrize(
    ("planted", "wrong"),
    [
        (write(3), "group-0: starts at 3, was 4"),
        (write(4, (5, 5, AVAILABLE, 2)), "offset 5: delivery 2, was accepted with 1"),
        (write(4, (5, 5, ACKNOWLEDGED, 2)), "offset 5: delivery 2, was accepted with 1"),
        (write(4, (4, 4, ARCHIVED, 1)), "offset 4: archived with count 1"),
    ],
)
def test_what_is_wrong_is_named(planted: Write, wrong: str) -> None:
    [found] = judged([*FIRST, planted]).wrong
    assert wrong in found


def test_a_count_that_rises_by_two_is_counted() -> None:
    assert judged([*FIRST, write(4, (4, 4, ACKNOWLEDGED, 3))]).jumps == 1
