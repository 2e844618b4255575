"""A member of a classic group by its requests: ids, generations, heartbeats, and leaving."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.client.cluster import ClusterRefused, ClusterSettings
from kraft_wire.client.group_member import GroupMember
from kraft_wire.client.range_assignment import assignment_bytes, subscription_bytes
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kraft_wire.wire.generated.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from kraft_wire.wire.generated.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kraft_wire.wire.generated.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.client.test_producing import no_time

OURS = [TopicPartition("t", 0), TopicPartition("t", 1)]


class Group:
    """The cluster, and the coordinator of a group, whose answers a test chooses."""

    group = "g"

    def __init__(self) -> None:
        self.settings = ClusterSettings(("nowhere:1",), deadline_seconds=5)
        self.asked: list[Any] = []
        self.errors: dict[type, list[int]] = {}
        self.generation = 4
        self.leader = "another"
        self.now = 100.0

    def partitions_of(self, topics: list[str]) -> dict[str, int]:
        return dict.fromkeys(topics, 3)

    def send(self, request: Any, response: type, code: Any, **bounds: Any) -> Any:
        self.asked.append(request)
        answer = self.answer(request)
        assert isinstance(answer, response)
        assert code(answer) == getattr(answer, "error_code", code(answer))
        return answer

    def answer(self, request: Any) -> Any:
        left = self.errors.get(type(request), [])
        error = left.pop(0) if left else 0
        if isinstance(request, JoinGroupRequest):
            if error:
                return JoinGroupResponse(error_code=error, member_id="given")
            self.generation += 1
            members = [
                JoinGroupResponseMember(member_id=each, metadata=subscription_bytes(["t"]))
                for each in ("given", "other")
            ]
            return JoinGroupResponse(
                member_id=request.member_id or "fresh",
                leader=self.leader,
                generation_id=self.generation,
                protocol_name="range",
                members=members if self.leader == "given" else [],
            )
        if isinstance(request, SyncGroupRequest):
            return SyncGroupResponse(error_code=error, assignment=assignment_bytes(OURS))
        if isinstance(request, HeartbeatRequest):
            return HeartbeatResponse(error_code=error)
        if isinstance(request, OffsetCommitRequest):
            parts = [OffsetCommitResponsePartition(partition_index=0, error_code=error)]
            return OffsetCommitResponse(
                topics=[OffsetCommitResponseTopic(name="t", partitions=parts)]
            )
        assert isinstance(request, LeaveGroupRequest), request
        return LeaveGroupResponse(error_code=error)

    def of(self, kind: type) -> list[Any]:
        return [each for each in self.asked if isinstance(each, kind)]


def member_of(group: Group) -> GroupMember:
    return GroupMember(group, group, ["t"], lambda: group.now)  # type: ignore[arg-type]  # played


def joined(group: Group) -> GroupMember:
    """A member that was given its id first, as from version 4 on."""
    group.errors[JoinGroupRequest] = [E.MEMBER_ID_REQUIRED]
    member = member_of(group)
    assert member.join() == OURS
    return member


def test_member_comes_back_with_the_id_that_it_was_given() -> None:
    group = Group()
    joined(group)
    assert [each.member_id for each in group.of(JoinGroupRequest)] == ["", "given"]
    first = group.of(JoinGroupRequest)[0]
    assert (first.session_timeout_ms, first.rebalance_timeout_ms) == (45_000, 60_000)
    (sync,) = group.of(SyncGroupRequest)
    assert (sync.member_id, sync.generation_id) == ("given", 5)
    assert sync.assignments == [], "the leader is another one"


def test_leader_assigns_by_range_and_nobody_else() -> None:
    group = Group()
    group.leader = "given"
    joined(group)
    (sync,) = group.of(SyncGroupRequest)
    assert {each.member_id: each.assignment for each in sync.assignments} == {
        "given": assignment_bytes(OURS),
        "other": assignment_bytes([TopicPartition("t", 2)]),
    }


@pytest.mark.parametrize("error", [E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION])
@pytest.mark.parametrize("where", [JoinGroupRequest, SyncGroupRequest])
def test_member_that_is_forgotten_joins_as_a_new_one(where: type, error: E) -> None:
    group = Group()
    member = joined(group)
    group.errors[where] = [error]
    with no_time():
        assert member.join() == OURS
    assert [each.member_id for each in group.of(JoinGroupRequest)][-2:] == ["given", ""]


def test_member_keeps_its_id_in_a_rebalance() -> None:
    group = Group()
    member = joined(group)
    group.errors[SyncGroupRequest] = [E.REBALANCE_IN_PROGRESS]
    with no_time():
        assert member.join() == OURS
    assert [each.member_id for each in group.of(JoinGroupRequest)][-2:] == ["given", "given"]
    assert group.of(SyncGroupRequest)[-1].generation_id == 7


def test_heartbeats_are_three_seconds_apart() -> None:
    group = Group()
    member = joined(group)
    for now, count in ((100.0, 0), (102.9, 0), (103.0, 1), (103.1, 1), (105.9, 1), (106.0, 2)):
        group.now = now
        assert member.beat()
        assert len(group.of(HeartbeatRequest)) == count, now
    beat = group.of(HeartbeatRequest)[0]
    assert (beat.group_id, beat.member_id, beat.generation_id) == ("g", "given", 5)
    assert member.join() == OURS
    assert member.beat(), "a join counts as one"
    assert len(group.of(HeartbeatRequest)) == 2


@pytest.mark.parametrize(
    ("error", "next_id"),
    [
        (E.REBALANCE_IN_PROGRESS, "given"),
        (E.UNKNOWN_MEMBER_ID, ""),
        (E.ILLEGAL_GENERATION, ""),
    ],
)
@pytest.mark.parametrize("where", [HeartbeatRequest, OffsetCommitRequest])
def test_member_that_must_join_again_is_told_so(where: type, error: E, next_id: str) -> None:
    group = Group()
    member = joined(group)
    group.errors[where] = [error]
    group.now += 60
    is_member = member.beat() if where is HeartbeatRequest else member.commit({OURS[0]: 3})
    assert not is_member
    member.join()
    assert group.of(JoinGroupRequest)[-1].member_id == next_id


def test_commit_names_the_member_and_its_generation() -> None:
    group = Group()
    member = joined(group)
    assert member.commit({})
    assert member.commit({OURS[0]: 3})
    (commit,) = group.of(OffsetCommitRequest)
    assert (commit.member_id, commit.generation_id_or_member_epoch) == ("given", 5)
    assert commit.topics[0].partitions[0].committed_offset == 3


@pytest.mark.parametrize("where", [JoinGroupRequest, SyncGroupRequest, HeartbeatRequest])
def test_permanent_error_is_said(where: type) -> None:
    group = Group()
    member = joined(group)
    group.errors[where] = [E.GROUP_AUTHORIZATION_FAILED]
    group.now += 60
    act = member.beat if where is HeartbeatRequest else member.join
    with pytest.raises(ClusterRefused, match=r"group g: .*GROUP_AUTHORIZATION_FAILED"):
        act()


def test_rebalance_without_end_is_given_up_at_the_deadline() -> None:
    group = Group()
    group.errors[JoinGroupRequest] = [E.REBALANCE_IN_PROGRESS] * 99
    with no_time(), pytest.raises(ClusterRefused, match="not joined: REBALANCE_IN_PROGRESS"):
        member_of(group).join()


def test_member_leaves_once_and_only_if_it_has_joined() -> None:
    group = Group()
    member_of(group).leave()
    assert group.asked == []
    member = joined(group)
    member.leave()
    member.leave()
    (leave,) = group.of(LeaveGroupRequest)
    assert (leave.group_id, leave.member_id) == ("g", "given")
