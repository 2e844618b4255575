"""What is planted in the records that a reader finds is named by the scenarios' expectation."""

from __future__ import annotations

from typing import cast

import pytest

from tests.clients.transactions.driver import Driver, Record
from tests.clients.transactions.scenarios import ScenarioFailed, World, moved_wrongly

FOUND: list[Record] = [(0, 0, "a"), (1, 0, "b"), (0, 2, "c")]
WANTED = ["a", "b", "c"]


def world(*maybe: list[str]) -> World:
    driver = cast(Driver, None)
    return World(driver, lambda topic, partitions: None, "w", driver, maybe=list(maybe))


def test_every_value_once_and_in_order_is_right() -> None:
    world().expect(FOUND, WANTED)
    world(["d", "e"]).expect(FOUND, WANTED)
    world(["d", "e"]).expect([*FOUND, (0, 3, "d"), (1, 1, "e")], WANTED)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (FOUND[:2], "1 records too few: ['c']"),
        ([*FOUND, (0, 3, "c")], "1 records too many: ['c']"),
        ([*FOUND, (0, 3, "aborted")], "1 records too many: ['aborted']"),
        ([FOUND[2], FOUND[1], FOUND[0]], "offsets of 0 in order"),
        ([*FOUND, (0, 3, "d")], "1 of 2 of an unknown outcome"),
    ],
    ids=["lost", "twice", "aborted", "order", "torn"],
)
def test_what_is_wrong_is_named(found: list[Record], told: str) -> None:
    with pytest.raises(ScenarioFailed) as failed:
        world(["d", "e"]).expect(found, WANTED)
    assert told in str(failed.value)


def test_what_was_moved_twice_or_not_is_named() -> None:
    words = moved_wrongly([*FOUND, (0, 3, "a")], [*WANTED, "d"])
    assert words == "twice: 1 ['a'], lost: 1 ['d'] of 4"
