"""ListGroups: every group, by state and type."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.context import PARKED
from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_groups import ListGroupsRequest
from tests.broker.groups.ready_groups import harness_with_groups
from tests.broker.groups.test_share_group_heartbeat import joining, send, sharing


@pytest.mark.parametrize("version", range(6))
def test_list_shows_every_group_in_every_version(version: int) -> None:
    response = harness_with_groups().send(ListGroupsRequest(), version).response
    listed = sorted((g.group_id, g.protocol_type, g.group_state) for g in response.groups)
    states = ("Empty", "Stable") if version >= 4 else ("", "")
    assert listed == [("simple", "", states[0]), ("stable", "consumer", states[1])]
    assert {g.group_type for g in response.groups} == ({"classic"} if version >= 5 else {""})


@pytest.mark.parametrize(
    ("states", "types", "found"),
    [
        (["Stable"], [], ["stable"]),
        ([" eMPTY "], [], ["simple"]),
        (["nonsense"], [], []),
        ([], ["classic"], ["simple", "stable"]),
        ([], ["consumer"], []),
        (["Stable", "Empty"], ["Classic", "share"], ["simple", "stable"]),
    ],
)
def test_list_filters_by_state_and_type_without_regard_to_case(
    states: list[str], types: list[str], found: list[str]
) -> None:
    request = ListGroupsRequest(states_filter=states, types_filter=types)
    response = harness_with_groups().send(request, 5).response
    assert sorted(group.group_id for group in response.groups) == found


def test_a_state_that_the_isr_does_not_have_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer waits; the groups of a partition that is lost meanwhile are left out."""
    harness = sharing("member")
    shard = harness.groups.shard_of("group")
    assert not isinstance(shard, ErrorCode)
    written = shard.other_groups["group"].safe_at
    parked: list[Any] = []

    def park(_: Any, context: Any, required: Any, answer: Any) -> Any:
        parked.append((required, answer))
        return PARKED

    monkeypatch.setattr(CommitWaits, "answer_when_committed", park)
    assert not harness.send(ListGroupsRequest(), 5).is_parked, "all is committed"
    monkeypatch.setattr(harness.store, "high_watermark", lambda _: written - 1)
    assert harness.send(ListGroupsRequest(), 5).is_parked
    ((required, answer),) = parked
    assert required == {shard.log.partition: written}
    listed = answer({})
    assert [(each.group_id, each.group_state) for each in listed.groups] == [("group", "Stable")]
    assert answer({shard.log.partition: ErrorCode.NOT_COORDINATOR}).groups == []


def test_the_answer_waits_for_the_newest_record_of_all_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = sharing("member")
    send(harness, joining(group_id="younger", member_id="member"))
    shard = harness.groups.shard_of("group")
    assert not isinstance(shard, ErrorCode)
    shard.other_groups["group"].safe_at, shard.other_groups["younger"].safe_at = 5, 7
    awaited: list[Any] = []

    def park(_: Any, context: Any, required: Any, answer: Any) -> Any:
        awaited.append(required)
        return PARKED

    monkeypatch.setattr(CommitWaits, "answer_when_committed", park)
    for high_watermark in range(4, 8):
        monkeypatch.setattr(harness.store, "high_watermark", lambda _, at=high_watermark: at)
        harness.send(ListGroupsRequest(), 5)
    assert awaited == [{shard.log.partition: 7}] * 3, "below 7"
