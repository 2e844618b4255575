"""Durations from the limit on are logged, and all are counted."""

from __future__ import annotations

import pytest

from kraft_wire.node.event_log import EventLog
from kraft_wire.node.events.host_events import HostEvents

SLOW_MS = 500


def events() -> tuple[HostEvents, list[str]]:
    lines: list[str] = []
    return HostEvents(EventLog(lines.append), SLOW_MS, lambda: 0), lines


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
