"""Deadlines of streams groups that come when there is nothing to do any more."""

from __future__ import annotations

import pytest

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.streams.sessions import streams_timer_due
from kraft_wire.broker.groups.streams.timers import StreamsTimer, StreamsTimerKind
from tests.broker.groups.harness import Harness
from tests.broker.groups.requests import Member
from tests.broker.groups.test_offsets import loaded
from tests.broker.groups.test_streams_group_heartbeat import (
    group_in,
    send,
    staying,
    streaming,
)


def due(harness: Harness, kind: StreamsTimerKind, group_id: str, member_id: str) -> None:
    """Let a timer's deadline pass."""
    at = ClockReading(harness.now_ms, harness.wall_ms)
    streams_timer_due(loaded(harness), StreamsTimer(kind, group_id, member_id), at)


@pytest.mark.parametrize("kind", StreamsTimerKind)
@pytest.mark.parametrize(
    ("group_id", "member_id"), [("gone", "member"), ("classic", "member"), ("group", "gone")]
)
def test_deadline_of_what_is_gone_changes_nothing(
    kind: StreamsTimerKind, group_id: str, member_id: str
) -> None:
    """Also that of a first rebalance whose targets a heartbeat has computed."""
    harness = streaming("member")
    Member(harness, group_id="classic").commit()
    written = harness.store.records()
    due(harness, kind, group_id, member_id)
    assert harness.store.records() == written
    assert list(group_in(harness).members) == ["member"]


def test_time_to_give_tasks_back_ends_for_the_epoch_in_which_it_began() -> None:
    harness = streaming("member")
    group = group_in(harness)
    epoch = group.members["member"].member_epoch
    for began in (epoch - 1, epoch + 1):
        group.revocation_epochs["member"] = began
        due(harness, StreamsTimerKind.REBALANCE, "group", "member")
        assert "member" in group.members
    group.revocation_epochs["member"] = epoch
    due(harness, StreamsTimerKind.REBALANCE, "group", "member")
    assert group_in(harness).is_empty


def test_member_that_left_has_no_deadlines() -> None:
    harness = streaming("a", "b")
    timers = loaded(harness).timers
    for kind in (StreamsTimerKind.SESSION, StreamsTimerKind.REBALANCE):
        timers.schedule(StreamsTimer(kind, "group", "a"), harness.now_ms + 1_000)
    assert send(harness, staying(-1, member_id="a")).error == 0
    left = [
        (kind, member)
        for kind in StreamsTimerKind
        for member in "ab"
        if StreamsTimer(kind, "group", member) in timers
    ]
    assert left == [(StreamsTimerKind.SESSION, "b")]
