"""Timers by key and of many shards, against dumb twins, and their memory."""

from __future__ import annotations

import random

import pytest

from kraft_wire.broker.coordination.timers import ShardTimers, Timers
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


@pytest.mark.parametrize("seed", range(20))
def test_deadline_of_all_shards_agrees_with_a_look_at_each(seed: int) -> None:
    random_source = random.Random(seed)
    shards, served = [Timers[Timer]() for _ in range(5)], dict[Timers[Timer], None]()
    all_timers = ShardTimers()
    for now_ms in range(400):
        timers = random_source.choice(shards)
        key = timer(random_source.choice("abc"))
        match random_source.randrange(8):
            case 0 if timers in served:
                all_timers.remove(timers)
                del served[timers]
            case 1 if timers not in served:
                all_timers.add(timers)
                served[timers] = None
            case 2:
                timers.cancel(key)
            case 3:
                timers.pop_due(now_ms)
            case _:
                timers.schedule(key, now_ms + random_source.randrange(40))
        deadlines = [each.deadline_ms() for each in served]
        assert all_timers.deadline_ms() == min(
            (at_ms for at_ms in deadlines if at_ms is not None), default=None
        )


def test_deadline_of_all_shards_is_known_without_a_look_at_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    all_timers, shards = ShardTimers(), [Timers[Timer]() for _ in range(50)]
    for at_ms, timers in enumerate(shards):
        all_timers.add(timers)
        timers.schedule(timer("a"), 100 + at_ms)
    assert all_timers.deadline_ms() == 100
    monkeypatch.setattr(ShardTimers, "_compare_all", pytest.fail)  # nothing has moved away
    for at_ms, timers in enumerate(shards):
        timers.schedule(timer("b"), 90 - at_ms)
        timers.schedule(timer("a"), 500)
        assert all_timers.deadline_ms() == 90 - at_ms
