"""The judge of what was promised must see each wrong, and only those of the brokers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

import pytest

from tests.replicas.load import KINDS, Load, Order, Pace, numbers_in, partition_of, value_of
from tests.replicas.promises import judge_read_along, judge_writer
from tests.replicas.reading import Stored

IDEMPOTENT, PLAIN = 0, len(KINDS) - 1
(REPEATING,) = (number for number, each in enumerate(KINDS) if each.may_repeat)


class Promised(Load):
    """A producer that has sent nothing, and has promises all the same."""

    def _send_all(self) -> None:
        raise AssertionError("nothing is there to send to")


def promised(writer: int, offsets: list[int]) -> Load:
    """A producer that was promised these offsets of its records, all in one partition."""
    load = Promised(Order(writer, "nowhere:1", "t", 1, len(offsets), Pace(), Path("no.log")))
    load.sent = load.acknowledged = len(offsets)
    for number, offset in enumerate(offsets):
        load.offsets[number] = offset
    return load


def read(writer: int, numbers: Iterable[int]) -> dict[int, Stored]:
    """What is read back: records of one writer in partition 0."""
    stored = Stored()
    for number in numbers:
        stored.take(value_of(writer, number))
    return {0: stored}


def one_epoch(_partition: int, _offset: int) -> tuple[int, int]:
    """Who wrote all of it."""
    return 7, 0


def test_every_record_is_looked_for_in_the_partition_that_it_went_to() -> None:
    for partition in range(3):
        sent_there = [each for each in range(95) if partition_of(each, 3) == partition]
        assert list(numbers_in(partition, 3, 95)) == sent_there


def test_what_was_promised_and_is_there_is_no_problem() -> None:
    written, problems = judge_writer(
        promised(IDEMPOTENT, [0, 1, -1]), read(IDEMPOTENT, [0, 1, 2]), one_epoch
    )
    assert (written.lost, written.duplicated, written.out_of_order, problems) == (0, 0, 0, [])


@pytest.mark.parametrize("offset", [2, -1])
def test_an_acknowledged_record_that_is_missing_is_lost(offset: int) -> None:
    load = promised(IDEMPOTENT, [0, 1, offset])
    written, problems = judge_writer(load, read(IDEMPOTENT, [0, 1]), one_epoch)
    assert (written.lost, len(problems)) == (1, 1)


def test_a_record_at_another_offset_than_was_promised_is_lost() -> None:
    load = promised(IDEMPOTENT, [0, 1])
    stored = read(IDEMPOTENT, [0])
    stored[0].take(value_of(PLAIN, 7))
    stored[0].take(value_of(IDEMPOTENT, 1))
    written, problems = judge_writer(load, stored, one_epoch)
    assert (written.lost, len(problems)) == (1, 1)


def test_a_record_that_nobody_was_promised_may_be_missing() -> None:
    written, problems = judge_writer(
        promised(IDEMPOTENT, [0, -2]), read(IDEMPOTENT, [0]), one_epoch
    )
    assert (written.lost, problems) == (0, [])


def test_a_duplicate_is_a_problem_of_an_idempotent_producer_only() -> None:
    numbers = [0, 1, 0, 1, 2]
    for writer, expected in ((IDEMPOTENT, 2), (PLAIN, 0)):
        written, problems = judge_writer(
            promised(writer, [0, 1, 4]), read(writer, numbers), one_epoch
        )
        assert (written.duplicated, written.lost, len(problems)) == (2, 0, expected)


@pytest.mark.parametrize("writer", range(len(KINDS)))
@pytest.mark.parametrize(
    ("writers", "duplicated"),
    [
        pytest.param([(7, 0), (7, 1)], 0, id="another epoch"),
        pytest.param([(7, 0), (7, 0)], 1, id="the same epoch"),
        pytest.param([(7, 0), (8, 1)], 1, id="another producer"),
        pytest.param([(7, 0), (7, 1), (7, 1)], 1, id="twice under the second epoch"),
    ],
)
def test_a_copy_under_another_epoch_is_the_clients_own_where_it_may_repeat(
    writer: int, writers: list[tuple[int, int]], duplicated: int
) -> None:
    load, copies = promised(writer, [0]), len(writers) - 1
    stored = read(writer, [0] * len(writers))
    written, problems = judge_writer(load, stored, lambda _, offset: writers[offset])
    if writer != REPEATING:
        duplicated = copies
    assert (written.duplicated, written.repeated) == (duplicated, copies - duplicated)
    assert bool(problems) == (duplicated > 0 and writer != PLAIN)


def test_a_record_behind_a_later_one_is_a_problem_of_an_idempotent_producer_only() -> None:
    for writer, expected in ((IDEMPOTENT, 1), (PLAIN, 0)):
        written, problems = judge_writer(promised(writer, [1, 0]), read(writer, [1, 0]), one_epoch)
        assert (written.out_of_order, len(problems)) == (1, expected)


def test_a_record_that_was_shown_and_is_another_now_is_a_problem() -> None:
    shown = read(PLAIN, [0, 1])
    assert judge_read_along(shown, read(PLAIN, [0, 1, 2])) == []
    assert len(judge_read_along(shown, read(PLAIN, [0, 2]))) == 1
    assert shown[0].checksums[1] == crc32(value_of(PLAIN, 1))


def test_a_record_that_was_shown_and_is_not_there_is_a_problem() -> None:
    (problem,) = judge_read_along(read(PLAIN, [0, 1, 2]), read(PLAIN, [0, 1]))
    assert "1 records behind 2" in problem
