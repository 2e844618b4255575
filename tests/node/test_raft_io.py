"""The replica of a node takes one event after the other."""

from collections import deque
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kraft_wire.node.quorum.raft_io import RaftIo
from kraft_wire.raft.events import Event, TimerFired


def test_event_within_a_step_is_a_mistake_of_ours() -> None:
    """What a step leads to is taken behind it: the replica's state is half changed until then."""
    io = RaftIo.__new__(RaftIo)
    io._is_stepping, io.steps_count, io._events = False, 0, deque()

    def step(event: Event, now_ms: int) -> list[object]:
        io.take(event, now_ms, 0)
        return []

    quorum = SimpleNamespace(role=None)
    io.replica = cast(Any, SimpleNamespace(quorum=quorum, step=step))
    with pytest.raises(AssertionError):
        io.take(TimerFired(), 1, 1)
    assert io.steps_count == 1
