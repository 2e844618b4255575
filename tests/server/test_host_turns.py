"""Which connections a host admits, closes and waits for, turn by turn."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kraft_wire.node.limits import ListenerLimits, ServerLimits
from kraft_wire.node.outputs import Buffers, LimitsChanged, LoggedIn, Mute, RefuseLogin, Rejection
from kraft_wire.node.quotas.connection_quotas import Refusal
from kraft_wire.server.accepting import Acceptor
from kraft_wire.server.connection import Connection
from tests.server.played_host import BROKERS, CLIENTS, Played, PlayedSocket

SWEEP_SECONDS = 1.0


def test_new_connection_is_counted_and_a_closed_one_makes_room() -> None:
    played = Played(connections_per_ip_max=1)
    first = played.connect(7)
    peer = first.peer
    assert (peer.connection_id, peer.client_host, peer.client_port) == (1, "10.0.0.1", 50_000)
    assert (peer.listener, first.opened_ms, played.node.open) == (CLIENTS, 1_000, [1])
    assert 7 in played.loop.readers
    refused = played.connect(8)
    assert refused.is_closed
    assert played.lines == [("too_many_connections_from_address", 2)]
    assert not isinstance(played.connect(9, "10.0.0.2"), PlayedSocket)
    played.host.drop(first)
    played.host.drop(first)
    assert (first.is_closed, played.node.open, 7 in played.loop.readers) == (True, [3], False)
    assert played.rooms == 0
    played.loop.run_soon()
    assert played.rooms == 1
    assert not isinstance(played.connect(10), PlayedSocket)


def test_stopping_host_admits_nobody() -> None:
    played = Played()
    played.host.is_stopping = True
    assert played.connect(7).is_closed
    assert (played.lines, played.node.open) == ([("stopping", 1)], [])


def test_throttled_address_is_held_up_to_a_hundred_at_a_time() -> None:
    played = Played()
    quotas: Any = played.host.connection_quotas
    quotas.admit = lambda *_: Refusal("connection_rate_exceeded", 1_500)
    held = [played.connect(number) for number in range(101)]
    assert [each.is_closed for each in held] == [False] * 100 + [True]
    assert len(played.lines) == 101
    played.loop.run_later(1.5)
    assert all(each.is_closed for each in held)
    again = played.connect(200)
    assert not again.is_closed
    played.host.stop()
    assert again.is_closed


@pytest.mark.parametrize(("connections_max", "closed"), [(3, []), (2, [2]), (1, [2, 4])])
def test_connections_above_the_limit_that_are_idle_longest_are_closed(
    connections_max: int, closed: list[int]
) -> None:
    """KIP-402: those between brokers stay."""
    played = Played(protected=frozenset({BROKERS}), connections_max=10)
    connections = {
        number: played.connect(number, listener=BROKERS if number == 1 else CLIENTS)
        for number in (1, 2, 3, 4)
    }
    played.host.drop(connections.pop(3))
    for number, time_ms in ((1, 1_100), (4, 1_300), (2, 1_200)):
        played.at(time_ms, connections[number])
    quotas = played.host.connection_quotas
    object.__setattr__(quotas.limits, "connections_max", connections_max)
    played.host._end_excess()
    assert played.lines == [("too_many_connections", number) for number in closed]
    assert [number for number, each in connections.items() if each.is_closed] == closed


@pytest.mark.parametrize("about_login", [LoggedIn(1), RefuseLogin(1, None, Rejection("r"), 9)])
def test_login_of_a_connection_that_a_new_limit_ended_is_nobodys(
    about_login: LoggedIn | RefuseLogin,
) -> None:
    """Both are outputs of one turn: the limit is lowered, and the login's answer is ready."""
    played = Played(connections_max=2)
    played.connect(7)
    played.at(2_000, played.connect(8))
    played.node.outputs = [LimitsChanged(ServerLimits(connections_max=1)), about_login]
    played.host.settle_all()
    assert played.lines == [("too_many_connections", 1)]
    assert played.node.open == [2]


def test_refused_login_is_read_no_more_and_ends_after_its_delay() -> None:
    played = Played()
    connection = played.connect(7)
    played.node.outputs = [RefuseLogin(1, None, Rejection("bad"), 250)]
    played.host.settle_all()
    assert played.lines == [("bad", 1)]
    assert (7 in played.loop.readers, connection.is_closed) == (False, False)
    played.loop.run_later(0.25)
    assert (connection.is_closed, played.node.open) == (True, [])


@pytest.mark.parametrize(
    ("passed_ms", "requests", "is_answering", "reason"),
    [
        (10_000, 0, False, None),
        (10_001, 0, False, "handshake_timeout"),
        (10_001, 1, False, None),
        (600_000, 1, False, None),
        (600_001, 1, False, "idle"),
        (600_001, 1, True, None),
    ],
)
def test_sweep_closes_connections_whose_time_is_over(
    passed_ms: int, requests: int, is_answering: bool, reason: str | None
) -> None:
    played = Played()
    connection = played.connect(7)
    other = played.connect(8)
    connection.peer.requests_count, connection.awaits_answer = requests, is_answering
    other.peer.requests_count = 1
    played.at(1_000 + passed_ms, other)
    played.loop.run_later(SWEEP_SECONDS)
    assert (connection.is_closed, other.is_closed) == (reason is not None, False)
    assert played.lines == ([] if reason in (None, "idle") else [(reason, 1)])
    assert [delay for delay, *_ in played.loop.later] == [SWEEP_SECONDS], "it comes again"


def test_timer_is_armed_for_a_sooner_deadline_only() -> None:
    played = Played()
    delays = []
    for due_ms in (3_000, 5_000, 2_000, 2_000, 500):
        played.node.due_ms = due_ms
        before = len(played.loop.later)
        played.host.settle_all()
        delays.append([delay for delay, *_ in played.loop.later[before:]])
    assert delays == [[2.0], [], [1.0], [], [0.0]]
    assert played.loop.cancelled == [2.0, 1.0]


def test_stop_closes_answered_connections_and_waits_for_others() -> None:
    played = Played()
    idle, asked, unsent, muted = (played.connect(number) for number in (1, 2, 3, 4))
    asked.awaits_answer = True
    cast(Connection, unsent).answered(cast(Buffers, [b"x"]), 1)
    muted.mute(True, 1_000)
    assert played.host.close_idle() == 2
    assert [each.is_closed for each in (idle, asked, unsent, muted)] == [True, False, False, True]
    assert (asked.is_last_answer, unsent.is_last_answer) == (True, True)


def test_throttled_client_was_last_active_when_its_throttling_began_and_ended() -> None:
    played = Played()
    connection = played.connect(7)
    for is_muted, now_ms in ((True, 2_000), (False, 9_000)):
        played.time_ms = now_ms
        played.node.outputs = [Mute(connection.peer.connection_id, is_muted=is_muted)]
        played.host.settle_all()
        assert (connection.is_muted, connection.last_active_ms) == (is_muted, now_ms)


class Accepting:
    """An acceptor of a played host."""

    def __init__(self, **limits: Any) -> None:
        self.played = Played(**limits)
        self.sock = PlayedSocket(99)
        loop: Any = self.played.loop
        self.acceptor = Acceptor(self.played.host, loop, CLIENTS, cast(Any, self.sock))
        self.acceptor.listen(50)

    @property
    def is_watching(self) -> bool:
        return 99 in self.played.loop.readers

    def arrive(self, *numbers: int) -> list[PlayedSocket]:
        """Let connections wait in the backlog, and call the acceptor."""
        socks = [PlayedSocket(number) for number in numbers]
        self.sock.accepts += [(each, ("10.0.0.1", 1)) for each in socks]
        self.played.loop.readers[99]()
        return socks

    @property
    def accepted(self) -> list[int]:
        return [each.transport.fileno() for each in self.played.host.connections.values()]


def test_acceptor_takes_64_connections_in_a_turn() -> None:
    accepting = Accepting()
    assert (accepting.sock.backlog, accepting.is_watching) == (50, True)
    accepting.arrive(*range(100, 170))
    assert accepting.accepted == list(range(100, 164))
    accepting.played.loop.readers[99]()
    assert accepting.accepted == list(range(100, 170))


def test_connection_without_room_waits_and_stops_its_listener() -> None:
    accepting = Accepting(listeners={CLIENTS: ListenerLimits(1, 1_000)})
    accepting.arrive(1, 2, 3)
    assert (accepting.accepted, accepting.is_watching) == ([1], False)
    fields = {"listener": CLIENTS, "reason": "max.connections"}
    assert accepting.played.lines == [("accept_delayed", fields)]
    accepting.acceptor.resume()
    assert accepting.accepted == [1]
    accepting.played.host.drop(next(iter(accepting.played.host.connections.values())))
    accepting.acceptor.resume()
    assert (accepting.accepted, accepting.is_watching) == ([2], True)
    accepting.acceptor.resume()
    assert accepting.accepted == [2]


@pytest.mark.parametrize("early_ms", [0, 1])
def test_connection_above_the_rate_waits_for_its_time(early_ms: int) -> None:
    accepting = Accepting()
    quotas: Any = accepting.played.host.connection_quotas
    quotas.delay_ms = lambda listener, now_ms: 250
    accepting.arrive(1)
    fields = {"listener": CLIENTS, "reason": "max.connection.creation.rate"}
    assert accepting.played.lines == [("accept_delayed", fields)]
    assert (accepting.accepted, accepting.is_watching) == ([], False)
    accepting.played.at(1_250 - early_ms)
    accepting.played.loop.run_later(0.25)
    assert (accepting.accepted, accepting.is_watching) == ([] if early_ms else [1], not early_ms)


def test_acceptor_without_descriptors_rests_and_others_are_passed_over() -> None:
    accepting = Accepting()
    accepting.sock.accepts = [ConnectionAbortedError()]
    accepting.arrive(1)
    assert (accepting.accepted, accepting.is_watching) == ([], True)
    accepting.sock.accepts.insert(0, OSError(24, "Too many open files"))
    accepting.played.loop.readers[99]()
    fields = {"listener": CLIENTS, "reason": "Too many open files"}
    assert accepting.played.lines == [("accept_failed", fields)]
    assert not accepting.is_watching
    accepting.played.loop.run_later(0.1)
    assert accepting.is_watching
    accepting.played.loop.readers[99]()
    assert accepting.accepted == [1]


def test_closed_acceptor_ends_the_connection_that_waits() -> None:
    accepting = Accepting(listeners={CLIENTS: ListenerLimits(0, 1_000)})
    (waiting,) = accepting.arrive(1)
    accepting.acceptor.close()
    assert (waiting.is_closed, accepting.sock.is_closed, accepting.is_watching) == (
        True,
        True,
        False,
    )
    accepting.acceptor.resume()
    assert accepting.accepted == []
