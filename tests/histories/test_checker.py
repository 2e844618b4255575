"""The checker finds what is planted in a sound history, of each kind, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import pytest

from tests.histories.checker import _CHECKS, find_anomalies
from tests.histories.history import History, Outcome, Poll, Seen, Sent, Transaction

A, B, C = "a-0", "a-1", "b-0"


def sound() -> History:
    """Two producers, a mover from a to b, a reader that saw all, another that was assigned anew."""
    first = Transaction("p", 1, [Sent(A, "p1", 0), Sent(A, "p2", 1), Sent(B, "p3", 0)])
    dropped = Transaction("p", 2, [Sent(A, "p4", 3), Sent(B, "p5", 2)], outcome=Outcome.ABORTED)
    unknown = Transaction("q", 1, [Sent(A, "q1", 5), Sent(B, "q2", 4)])
    mover = Transaction("m", 1, [Sent(C, "m1", 0)], [Seen(A, 0, "p1")])
    again = Transaction("m", 2, [Sent(C, "m2", 2)], [Seen(A, 1, "p2")])
    for number, each in enumerate((first, dropped, unknown, mover, again)):
        each.ending_at = 1.0 + number
    for each in (first, mover, again):
        each.outcome = Outcome.COMMITTED
    final = [Seen(A, 0, "p1"), Seen(A, 1, "p2"), Seen(A, 5, "q1"), Seen(B, 0, "p3")]
    final += [Seen(B, 4, "q2"), Seen(C, 0, "m1"), Seen(C, 2, "m2")]
    polls = [Poll((final[0], final[3]), 9), Poll((final[1],), 10), Poll((final[2], final[4]), 11)]
    other = [Poll((final[0],), 9), Poll((final[2],), 10), Poll((final[0],), 11, is_anew=True)]
    other[1] = replace(other[1], is_anew=True)
    return History([first, dropped, unknown, mover, again], {"r": polls, "s": other}, final)


def of(history: History, name: str) -> Transaction:
    return next(each for each in history.transactions if each.name == name)


def aborted_read(history: History) -> None:
    history.polls["r"].append(Poll((Seen(B, 5, "p5"),), 12, is_anew=True))


def precommitted_read(history: History) -> None:
    of(history, "q/1").ending_at = 10.5
    history.polls["s"][1] = replace(history.polls["s"][1], at=10.0)


def circular_flow(history: History) -> None:
    of(history, "p/1").moved.append(Seen(C, 0, "m1"))


def lost_write(history: History) -> None:
    history.final.remove(Seen(A, 1, "p2"))
    history.polls["r"].pop(1)
    of(history, "m/2").moved[:] = []


def unseen(history: History) -> None:
    history.final.remove(Seen(C, 2, "m2"))


def torn(history: History) -> None:
    history.final.remove(Seen(B, 4, "q2"))


def duplicate(history: History) -> None:
    history.final.append(Seen(B, 6, "p1"))


def inconsistent_offsets(history: History) -> None:
    of(history, "q/1").sent[0] = Sent(A, "q1", 1)


def moved_twice(history: History) -> None:
    of(history, "m/2").moved.append(Seen(A, 0, "p1"))


def unmoved(history: History) -> None:
    of(history, "m/1").moved.clear()


def nonmonotonic_send(history: History) -> None:
    of(history, "p/1").sent.reverse()


def nonmonotonic_poll(history: History) -> None:
    history.polls["r"].append(Poll((Seen(A, 5, "q1"),), 12))


def poll_skip(history: History) -> None:
    history.polls["r"].pop(1)


PLANTED: dict[str, Callable[[History], None]] = {
    "aborted-read": aborted_read,
    "precommitted-read": precommitted_read,
    "circular-flow": circular_flow,
    "lost-write": lost_write,
    "unseen": unseen,
    "torn": torn,
    "duplicate": duplicate,
    "inconsistent-offsets": inconsistent_offsets,
    "moved-twice": moved_twice,
    "unmoved": unmoved,
    "nonmonotonic-send": nonmonotonic_send,
    "nonmonotonic-poll": nonmonotonic_poll,
    "poll-skip": poll_skip,
}


def test_a_sound_history_has_no_anomaly() -> None:
    assert find_anomalies(sound()) == []


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_anomaly_is_found_and_no_other(kind: str) -> None:
    history = deepcopy(sound())
    PLANTED[kind](history)
    assert {each.kind for each in find_anomalies(history)} == {kind}


def test_every_kind_is_planted() -> None:
    assert set(PLANTED) == set(_CHECKS)


def test_a_write_cycle_is_allowed() -> None:
    history = sound()
    of(history, "p/1").sent.append(Sent(C, "p6", 4))
    of(history, "m/1").sent.append(Sent(A, "m3", 7))
    history.final += [Seen(C, 4, "p6"), Seen(A, 7, "m3")]
    assert find_anomalies(history) == []
