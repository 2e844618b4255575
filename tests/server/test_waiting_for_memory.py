"""What a connection that waits for memory does when there is some, and when the host wakes up."""

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from kraft_wire.node.limits import ServerLimits
from kraft_wire.node.outputs import Peer, Rejection
from kraft_wire.node.quotas.connection_quotas import Refusal
from kraft_wire.server import host as host_module
from kraft_wire.server.connection import Connection
from kraft_wire.server.host import Host

NOW_MS = 5_000


class Watching:
    """A host that notes whether its connection is read from."""

    def __init__(self) -> None:
        self.limits = ServerLimits()
        self.wishes: list[bool] = []

    def watch_reads(self, connection: Connection, wanted: bool) -> None:
        self.wishes.append(wanted)


@pytest.mark.parametrize("awaits_answer", [False, True])
def test_reading_goes_on_with_memory_unless_a_request_is_with_the_node(awaits_answer: bool) -> None:
    host = Watching()
    transport = cast(Any, SimpleNamespace(has_pending=False, close=lambda: None))
    connection = Connection(
        cast(Any, host), transport, Peer(1, "127.0.0.1", 50_000, "PLAINTEXT"), 0
    )
    connection._watch_reads(False)
    connection.awaits_answer = awaits_answer
    connection.memory_is_free()
    assert host.wishes == ([False] if awaits_answer else [False, True])
    connection.close()
    connection.memory_is_free()
    assert host.wishes[-1] is False


class Timer:
    """Remembers when the host wants to be woken."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        self.cancelled = 0

    def call_later(self, delay: float, call: Any, *_: object) -> "Timer":
        self.delays.append(delay)
        return self

    def cancel(self) -> None:
        self.cancelled += 1


@pytest.mark.parametrize(
    ("deadlines", "delays", "cancelled"),
    [
        ([NOW_MS + 250], [0.25], 0),
        ([NOW_MS + 250, NOW_MS + 250], [0.25], 0),
        ([NOW_MS + 250, NOW_MS + 400], [0.25], 0),
        ([NOW_MS + 250, NOW_MS + 249], [0.25, 0.249], 1),
        ([NOW_MS - 30], [0.0], 0),
    ],
)
def test_host_wakes_up_at_the_soonest_deadline_that_its_node_has(
    deadlines: list[int],
    delays: list[float],
    cancelled: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_module, "now_ms", lambda: NOW_MS)
    timer = Timer()
    limits = ServerLimits()
    config = SimpleNamespace(limits=limits, security={}, links={}, protected_listeners=())
    node = SimpleNamespace(config=config, deadline_ms=lambda: NOW_MS)
    host = Host(
        cast(Any, node),
        cast(asyncio.AbstractEventLoop, timer),
        cast(Any, SimpleNamespace(event=None)),
        print,
    )
    timer.delays.clear()
    for deadline in deadlines:
        node.deadline_ms = lambda deadline=deadline: deadline
        host._finish_wake_up()
    assert (timer.delays, timer.cancelled) == (delays, cancelled)


def test_refused_sockets_are_held_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """KIP-612: the others are closed at once, so that descriptors are left."""
    monkeypatch.setattr(host_module, "_HELD_MAX", 2)
    closed: list[int] = []
    held: set[Any] = set()
    logged: list[Rejection] = []
    log = SimpleNamespace(rejected=lambda peer, why, now_ms: logged.append(why))
    host = cast(
        Any,
        SimpleNamespace(log=log, now_ms=lambda: NOW_MS, _held=held, _loop=Timer(), _end_held=None),
    )
    for number, held_ms in enumerate((0, 700, 700, 700, 0)):
        sock = Mock(close=partial(closed.append, number))
        refused = Refusal("connection_rate_exceeded", held_ms)
        Host._refuse(host, cast(Any, sock), cast(Any, None), refused)
    assert (closed, len(held), host._loop.delays) == ([0, 3, 4], 2, [0.7, 0.7])
    assert len(logged) == 5
    Host._end_held(host, next(iter(held)))
    again = Mock()
    Host._refuse(host, again, cast(Any, None), Refusal("connection_rate_exceeded", 700))
    assert again in held, "a socket whose time is over leaves its place to another"
    assert (len(closed), len(held)) == (4, 2)


@pytest.mark.parametrize(
    ("awaits_answer", "is_muted", "unsent_bytes", "stays"),
    [
        (False, False, 0, False),
        (True, False, 0, True),
        (True, True, 0, False),
        (False, False, 1, True),
        (False, True, 1, True),
    ],
)
def test_stopping_host_keeps_connections_with_requests_or_answers(
    awaits_answer: bool, is_muted: bool, unsent_bytes: int, stays: bool
) -> None:
    connection = SimpleNamespace(
        awaits_answer=awaits_answer,
        is_muted=is_muted,
        unsent_bytes=unsent_bytes,
        is_last_answer=False,
    )
    connections = {1: connection}
    host = cast(Any, SimpleNamespace(connections=connections, drop=lambda _: connections.clear()))
    assert Host.close_idle(host) == len(connections) == stays
    assert connection.is_last_answer == stays
