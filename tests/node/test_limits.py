"""Who may connect, and for how long a connection may be silent, idle or slow."""

from dataclasses import replace

import pytest

from kraft_wire.node.limits import (
    RequestMemory,
    ServerLimits,
    Waiting,
    overdue,
    server_limits,
)
from kraft_wire.node.quotas.connection_quotas import ConnectionQuotas, Refusal
from kraft_wire.settings.node_settings import NodeSettings

LIMITS = ServerLimits(
    idle_ms=600_000,
    handshake_ms=10_000,
    read_bytes_per_second_min=1_024,
    connections_max=5,
    connections_per_ip_max=3,
)


def test_an_address_has_a_share_of_the_connections() -> None:
    quotas = ConnectionQuotas(LIMITS)
    assert [quotas.admit("ONE", "a", second * 1000) for second in range(4)] == [
        None,
        None,
        None,
        Refusal("too_many_connections_from_address"),
    ]
    assert quotas.admit("ONE", "b", 5_000) is None
    assert quotas.has_room("ONE")
    assert quotas.admit("ONE", "c", 6_000) is None
    assert not quotas.has_room("ONE")
    quotas.released("ONE", "a")
    assert quotas.has_room("ONE")
    assert quotas.admit("ONE", "a", 8_000) is None


def test_other_limits_count_what_is_connected_already() -> None:
    quotas = ConnectionQuotas(LIMITS)
    for second, host in enumerate("aaabb"):
        assert quotas.admit("ONE", host, second * 1000) is None
    quotas.limits = replace(LIMITS, connections_max=6, connections_per_ip_max=2)
    assert quotas.excess_count == 0
    assert quotas.admit("ONE", "b", 6_000) == Refusal("too_many_connections_from_address")
    assert quotas.admit("ONE", "c", 7_000) is None
    quotas.limits = replace(LIMITS, connections_max=2)
    assert quotas.excess_count == 4
    assert not quotas.has_room("ONE")


@pytest.mark.parametrize(("largest", "metadata", "found"), [(9, 5, 5), (5, 9, 5), (9, 9, 9)])
def test_no_request_is_larger_than_the_largest_frame(
    largest: int, metadata: int, found: int
) -> None:
    entries = {"socket.request.max.bytes": largest, "request.metadata.max.bytes": metadata}
    limits = server_limits(NodeSettings({key: f"{value}00000" for key, value in entries.items()}))
    assert limits.frame_bytes_max == largest * 100_000
    assert limits.metadata_frame_bytes_max == found * 100_000


def test_limits_are_read_from_the_settings_within_what_is_possible() -> None:
    settings = NodeSettings({"max.connections": "700", "max.connections.per.ip": "7"})
    assert server_limits(settings).connections_max == 700
    assert server_limits(settings, 500).connections_max == 500
    assert server_limits(settings, 500).connections_per_ip_max == 7
    assert server_limits(settings, 500).connections_possible == 500
    assert server_limits(NodeSettings()) == ServerLimits()


def waiting(**facts: int) -> Waiting:
    known = {
        "opened_ms": 0,
        "last_active_ms": 0,
        "frame_began_ms": -1,
        "held_bytes": 0,
        "unsent_bytes": 0,
    }
    return Waiting(**(known | {"requests_count": 1} | facts))


@pytest.mark.parametrize(
    ("connection", "now_ms", "reason"),
    [
        (waiting(requests_count=0), 10_000, None),
        (waiting(requests_count=0), 10_001, "handshake_timeout"),
        (waiting(), 600_000, None),
        (waiting(), 600_001, "idle"),
        (waiting(unsent_bytes=1), 600_001, "answers_not_taken"),
        (waiting(last_active_ms=500_000), 600_001, None),
        (waiting(frame_began_ms=100, held_bytes=0), 10_100, None),
        (waiting(frame_began_ms=100, held_bytes=0), 11_100, "too_slow"),
        (waiting(frame_began_ms=100, held_bytes=1_024), 11_100, None),
        (waiting(frame_began_ms=100, held_bytes=1_024), 12_100, "too_slow"),
    ],
)
def test_time_is_up_for_the_silent_the_idle_and_the_slow(
    connection: Waiting, now_ms: int, reason: str | None
) -> None:
    assert overdue(connection, LIMITS, now_ms) == reason


def test_a_request_beyond_the_memory_of_all_waits_until_others_are_answered() -> None:
    memory = RequestMemory(bytes_max=100)
    assert memory.reserve(1, 60)
    assert memory.reserve(1, 60), "asked again about the same bytes"
    assert not memory.reserve(2, 50)
    assert memory.is_starved(2)
    assert memory.used_bytes == 110
    assert memory.release(3) == [], "it held nothing"
    assert memory.release(1) == [2]
    assert not memory.is_starved(2)
    assert memory.release(2) == []
    assert memory.used_bytes == 0


def test_a_request_larger_than_the_memory_of_all_does_not_wait_for_itself() -> None:
    memory = RequestMemory(bytes_max=100)
    assert memory.reserve(1, 500)


def test_requests_that_outgrow_the_memory_together_go_on_one_after_the_other() -> None:
    """Each waits for the others: else nothing large would be read ever again, by nobody."""
    memory = RequestMemory(bytes_max=100)
    assert [memory.reserve(each, 25) for each in range(4)] == [True] * 4
    assert [memory.reserve(each, 60) for each in range(4)] == [False, False, False, True]
    assert memory.release(3) == [0]
    assert memory.reserve(0, 70), "nobody else goes on"
    assert memory.release(4) == []
    assert memory.release(2) == []
    assert memory.release(0) == [1]
    assert memory.release(1) == []
    assert memory.used_bytes == 0


def test_a_waiting_connection_that_is_gone_is_not_called_on() -> None:
    memory = RequestMemory(bytes_max=100)
    assert memory.reserve(1, 90)
    assert not memory.reserve(2, 90)
    assert memory.release(2) == []
    assert memory.release(1) == []
