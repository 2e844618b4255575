"""Deadlines of items of which many stop waiting early, compared with a plain table."""

from random import Random

import pytest

from kraft_wire.broker.deadlines import Deadlines


@pytest.mark.parametrize("seed", range(20))
def test_items_leave_by_deadline_then_arrival_and_at_a_stop_by_arrival(seed: int) -> None:
    chance = Random(seed)
    waiting: dict[int, int] = {}
    deadlines: Deadlines[int] = Deadlines(waiting.__contains__)
    for item in range(300):
        waiting[item] = chance.randrange(50)
        deadlines.add(waiting[item], item, len(waiting))
        if chance.random() < 0.5:
            del waiting[chance.choice(sorted(waiting))]
        if chance.random() < 0.02:
            now_ms = chance.randrange(50)
            over = sorted((due_ms, each) for each, due_ms in waiting.items() if due_ms <= now_ms)
            assert list(deadlines.due(now_ms)) == [each for _, each in over]
            for _, each in over:
                del waiting[each]
        assert deadlines.next_ms() == min(waiting.values(), default=None)
    assert len(waiting) > 3
    assert deadlines.take_all() == sorted(waiting)
    assert deadlines.next_ms() is None


@pytest.mark.parametrize("waiting", [0, 1, 10])
def test_items_that_left_are_kept_up_to_twice_the_others_and_64(waiting: int) -> None:
    still = set(range(waiting))
    deadlines: Deadlines[int] = Deadlines(still.__contains__)
    lengths = []
    for item in range(waiting + 200):
        deadlines.add(1_000 - item, item, waiting)
        lengths.append(len(deadlines))
    most = 2 * waiting + 64
    assert max(lengths) == most
    assert lengths[most - 1 : most + 1] == [most, waiting]
    assert list(deadlines.due(1_000)) == sorted(still, reverse=True)
