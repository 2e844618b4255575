"""Timers by key, against a dumb twin, and their memory."""

from __future__ import annotations

import random

import pytest

from kraft_wire.broker.coordination.timers import Timers
from kraft_wire.broker.groups.classic.timers import Timer, TimerKind


def timer(name: str) -> Timer:
    return Timer(TimerKind.MEMBER, "group", name)


def test_due_timers_come_out_by_deadline_and_then_in_the_order_they_were_set() -> None:
    timers = Timers[Timer]()
    for name, at_ms in (("c", 5), ("a", 3), ("b", 3), ("later", 9)):
        timers.schedule(timer(name), at_ms)
    due = []
    while (popped := timers.pop_due(5)) is not None:
        due.append(popped.member_id)
    assert due == ["a", "b", "c"]
    assert timers.deadline_ms() == 9


def test_a_moved_timer_fires_once_at_its_new_deadline() -> None:
    timers = Timers[Timer]()
    timers.schedule(timer("a"), 5)
    timers.schedule(timer("a"), 8)
    assert timers.pop_due(7) is None
    assert timers.pop_due(8) == timer("a")
    assert timers.pop_due(100) is None
    assert timers.deadline_ms() is None


def test_a_thousand_heartbeats_leave_one_entry() -> None:
    timers = Timers[Timer]()
    for now_ms in range(1_000):
        timers.schedule(timer("a"), now_ms + 10)
        timers.schedule(timer("b"), 2_000 - now_ms)
    assert len(timers) == 2
    assert len(timers._heap) <= 72


@pytest.mark.parametrize("seed", range(20))
def test_timers_agree_with_a_plain_dictionary(seed: int) -> None:
    random_source = random.Random(seed)
    timers, twin = Timers[Timer](), dict[Timer, int]()
    for now_ms in range(200):
        key = timer(random_source.choice("abcdef"))
        match random_source.randrange(3):
            case 0:
                timers.cancel(key)
                twin.pop(key, None)
            case _:
                at_ms = now_ms + random_source.randrange(40)
                timers.schedule(key, at_ms)
                twin[key] = at_ms
        due = set()
        while (popped := timers.pop_due(now_ms)) is not None:
            assert popped not in due
            due.add(popped)
        assert due == {key for key, at_ms in twin.items() if at_ms <= now_ms}
        twin = {key: at_ms for key, at_ms in twin.items() if key not in due}
        earliest_ms = timers.deadline_ms()
        assert (earliest_ms is None) == (not twin)
        assert earliest_ms is None or earliest_ms <= min(twin.values())
