"""The checker of histories: what can be explained is, and planted anomalies are found."""

import random

import pytest

from kraft_wire.sim.judge.linearizable import Call, find_order


def write(begin: int, end: int | None, value: str) -> Call:
    return Call(begin, end, True, value)


def read(begin: int, end: int, value: str | None) -> Call:
    return Call(begin, end, False, value)


EXPLAINED = {
    "nothing": [],
    "read before any write": [read(0, 1, None)],
    "one after the other": [write(0, 1, "a"), read(2, 3, "a")],
    "read during a write, new": [write(0, 5, "a"), read(1, 2, "a")],
    "read during a write, old": [write(0, 5, "a"), read(1, 2, None)],
    "unknown write happened": [write(0, None, "a"), read(9, 10, "a")],
    "unknown write never happened": [write(0, None, "a"), read(9, 10, None)],
    "unknown write happens late": [
        *(write(0, None, "a"), write(1, 2, "b"), read(3, 4, "b"), read(5, 6, "a")),
    ],
    "two writes at a time": [write(0, 9, "a"), write(1, 8, "b"), read(10, 11, "a")],
}
ANOMALIES = {
    "lost write": [write(0, 1, "a"), read(2, 3, None)],
    "stale read": [write(0, 1, "a"), write(2, 3, "b"), read(4, 5, "a")],
    "value from nowhere": [read(0, 1, "x")],
    "read from the future": [read(0, 1, "a"), write(2, 3, "a")],
    "flicker": [write(0, 9, "a"), read(1, 2, "a"), read(3, 4, None)],
    "two readers disagree": [
        *(write(0, 9, "a"), write(0, 9, "b"), read(1, 2, "a"), read(3, 4, "b"), read(5, 6, "a")),
    ],
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_history_is_explained(name: str) -> None:
    order = find_order(EXPLAINED[name])
    assert order is not None
    value = None
    for call in order:
        if call.is_write:
            value = call.value
        assert call.value == value


@pytest.mark.parametrize("name", ANOMALIES)
def test_anomaly_is_found(name: str) -> None:
    assert find_order(ANOMALIES[name]) is None


def real_history(draw: random.Random, clients: int = 4, calls: int = 40) -> list[Call]:
    """Calls on a real register: each takes effect at a moment between its ends."""
    moments = []
    free = [0] * clients
    for number in range(calls):
        client = draw.randrange(clients)
        begin = free[client] + draw.randrange(1, 9)
        end = begin + draw.randrange(1, 20)
        free[client] = end
        moments.append((draw.randrange(begin, end + 1), begin, end, draw.random() < 0.5, number))
    history, value = [], None
    for _, begin, end, is_write, number in sorted(moments):
        if is_write:
            value = str(number)
        history.append(Call(begin, end, is_write, value))
    return history


@pytest.mark.parametrize("seed", range(60))
def test_real_history_is_never_an_alarm_and_a_planted_anomaly_always_is(seed: int) -> None:
    draw = random.Random(seed)
    history = real_history(draw)
    assert find_order(history) is not None
    written = [call for call in history if call.is_write]
    last = max((call.end or 0 for call in history), default=0)
    overwritten = min(written, key=lambda call: call.end or 0)
    later = [call for call in written if call.begin > (overwritten.end or 0)]
    if later:
        assert find_order([*history, read(last + 1, last + 2, overwritten.value)]) is None
    assert find_order([*history, read(last + 1, last + 2, "never")]) is None
