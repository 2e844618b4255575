"""Durations from the limit on are logged, and all are counted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.node.event_log import EventLog
from kraft_wire.node.events.host_events import HostEvents
from kraft_wire.node.limits import RequestMemory
from kraft_wire.node.outputs import Peer
from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest
from kraft_wire.wire.generated.join_group import JoinGroupRequest
from kraft_wire.wire.generated.share_acknowledge import ShareAcknowledgeRequest
from kraft_wire.wire.generated.share_fetch import ShareFetchRequest
from kraft_wire.wire.generated.sync_group import SyncGroupRequest

SLOW_MS = 500


def events() -> tuple[HostEvents, list[str]]:
    lines: list[str] = []
    return HostEvents(EventLog(lines.append), SLOW_MS, lambda: 0), lines


def answer_after(
    host: HostEvents, seconds: float, *, client_id: str | None = "me", host_name: str = "10.0.0.7"
) -> None:
    """Have one Heartbeat answered after a time."""
    peer = Peer(1, host_name, 9, "CLIENT", client_id=client_id)
    host.received(peer, bytearray(HeartbeatRequest.API_KEY.to_bytes(2, "big")), 10.0)
    host.answered(peer, 100, 10.0 + seconds)


@pytest.mark.parametrize(("seconds", "is_told"), [(0.4, False), (0.5, True), (2.0, True)])
def test_slow_flush_is_told_with_its_time(seconds: float, is_told: bool) -> None:
    host, lines = events()
    host.flush_began(7, 10.0)
    host.flush_ended(7, 10.0 + seconds)
    assert sum(host.flushes.buckets) == 1
    assert len(lines) == is_told
    assert all(f"slow_flush client=- ms={seconds * 1_000:.0f}" in each for each in lines), lines


@pytest.mark.parametrize(("seconds", "is_told"), [(0.4, False), (0.5, True)])
def test_call_that_blocks_the_thread_is_told(seconds: float, is_told: bool) -> None:
    host, lines = events()
    host.worked("tick", 1.0, 1.0 + seconds)
    assert len(lines) == is_told
    assert all("slow_operation client=- operation=tick ms=500" in each for each in lines), lines


@pytest.mark.parametrize(("seconds", "is_told"), [(0.4, False), (0.5, True)])
def test_request_that_blocks_the_thread_is_told_and_charged(seconds: float, is_told: bool) -> None:
    host, lines = events()
    spent: list[float] = []
    charge: Any = SimpleNamespace(spend=lambda seconds, now_ms: spent.append(seconds))
    host.served(Peer(1, "127.0.0.1", 9, "CLIENT", charge=charge), 1.0, 1.0 + seconds)
    host.served(Peer(2, "127.0.0.1", 9, "CLIENT"), 1.0, 1.0)
    assert spent == [pytest.approx(seconds)]
    assert len(lines) == is_told
    assert all("slow_operation client=- operation=request ms=500" in each for each in lines), lines


@pytest.mark.parametrize(
    ("api_key", "is_told"),
    [
        (FetchRequest.API_KEY, False),
        (ShareFetchRequest.API_KEY, False),
        (JoinGroupRequest.API_KEY, False),
        (SyncGroupRequest.API_KEY, False),
        (HeartbeatRequest.API_KEY, True),
        (ShareAcknowledgeRequest.API_KEY, True),
    ],
)
def test_request_that_may_not_wait_is_told_when_it_took_long(api_key: int, is_told: bool) -> None:
    host, lines = events()
    peer = Peer(1, "127.0.0.1", 9, "CLIENT", client_id="me")
    host.received(peer, bytearray(api_key.to_bytes(2, "big")), 1.0)
    host.answered(peer, 100, 1.5)
    assert len(lines) == is_told
    assert all("client_id=me ms=500" in each for each in lines), lines


@pytest.mark.parametrize(("seconds", "ms"), [(0.499, None), (0.5, 500), (2.0, 2_000)])
@pytest.mark.parametrize(("client_id", "shown"), [("me", "me"), (None, "-"), ("", "-")])
def test_slow_request_is_logged_from_the_limit_on_with_its_api_and_client(
    seconds: float, ms: int | None, client_id: str | None, shown: str
) -> None:
    host, lines = events()
    answer_after(host, seconds, client_id=client_id)
    slow = f"WARN network slow_request client=10.0.0.7 api=Heartbeat client_id={shown} ms={ms}\n"
    assert lines == ([] if ms is None else [slow])


def test_slow_requests_of_an_address_are_ten_lines_a_second_and_a_count() -> None:
    """The count follows the second: with the next line, or without one by a tick."""
    lines: list[str] = []
    log, clock = EventLog(lines.append), [5_000]
    host = HostEvents(log, SLOW_MS, lambda: clock[0])
    count = "WARN network lines_suppressed client=10.0.0.7 lines=slow_request count={}\n"
    for _ in range(13):
        answer_after(host, 0.5)
    clock[0] = 5_999
    answer_after(host, 0.5)
    answer_after(host, 0.5, host_name="10.0.0.8")
    log.tick(5_999)
    assert [each.split()[3] for each in lines] == ["client=10.0.0.7"] * 10 + ["client=10.0.0.8"]
    clock[0] = 6_000
    for _ in range(12):
        answer_after(host, 0.5)
    assert lines[11] == count.format(4)
    assert len(lines) == 11 + 1 + 10
    log.tick(6_999)
    assert len(lines) == 11 + 1 + 10
    log.tick(7_000)
    log.tick(8_000)
    assert lines[22:] == [count.format(2)]


def test_request_is_counted_once() -> None:
    host, lines = events()
    peer = Peer(1, "127.0.0.1", 9, "CLIENT")
    host.received(peer, bytearray(HeartbeatRequest.API_KEY.to_bytes(2, "big")), 1.0)
    figures = peer.figures
    assert figures is not None
    host.answered(peer, 100, 1.25)
    host.answered(peer, 100, 9.0)
    assert (sum(figures.buckets), figures.seconds) == (1, 0.25)
    assert lines == []


def test_flush_that_ends_twice_is_not_slow_the_second_time() -> None:
    host, lines = events()
    host.flush_began(7, 10.0)
    host.flush_ended(7, 10.1)
    host.flush_ended(7, 20.0)
    assert lines == []


def test_lines_name_the_connection_and_the_memory() -> None:
    lines: list[str] = []
    log = EventLog(lines.append)
    log.set_level("DEBUG")
    host = HostEvents(log, SLOW_MS, lambda: 0)
    peer = Peer(1, "10.0.0.7", 9, "CLIENT", client_id="me")
    peer.requests_count = 3
    host.connection("connection_closed", peer)
    memory = RequestMemory(1_000)
    memory.used_bytes = 900
    host.starving(peer, memory)
    closed, starving = lines
    assert "client=10.0.0.7:9 listener=CLIENT client_id=me requests=3" in closed
    assert "request_memory_exhausted client=10.0.0.7 used_bytes=900 allowed_bytes=1000" in starving
