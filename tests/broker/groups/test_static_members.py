"""Static membership: KIP-345, sentence by sentence, and KIP-814 for a restarted leader."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.broker.coordination.log import Appended
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.leave_group import LeaveGroupRequest, MemberIdentity
from tests.broker.groups.harness import Harness
from tests.broker.groups.requests import Member, finish_rebalance


def static_group(harness: Harness, count: int = 2) -> tuple[Member, Member]:
    """Return leader and follower of a stable group of static members."""
    members = [
        Member(harness, client_id="client", instance_id=f"instance-{n}") for n in range(count)
    ]
    for member in members:
        member.join_once()
    harness.advance(3_000)
    leader = finish_rebalance(*members)
    follower = next(member for member in members if member is not leader)
    return leader, follower


def delayed() -> Harness:
    return Harness(group_initial_rebalance_delay_ms=1_000)


def restarted(member: Member, **changes: object) -> Member:
    """Return the same instance after a restart: it has forgotten its member id."""
    fresh = Member(member.door, client_id=member.client_id, instance_id=member.instance_id)
    for name, value in changes.items():
        setattr(fresh, name, value)
    return fresh


def test_a_static_member_joins_without_asking_for_an_id_first() -> None:
    harness = delayed()
    member = Member(harness, instance_id="instance")
    assert member.join_once().is_parked
    harness.advance(2_000)
    assert member.joined().member_id.startswith("instance-")


@pytest.mark.parametrize("version", range(5, 10))
def test_a_restarted_follower_gets_a_new_id_and_causes_no_rebalance(version: int) -> None:
    harness = delayed()
    leader, follower = static_group(harness)
    fresh = restarted(follower, join_version=version)
    fresh.join_once()
    response = fresh.joined()
    assert response.member_id != follower.member_id
    assert (response.generation_id, response.leader) == (1, leader.member_id)
    assert (response.members, response.skip_assignment) == ([], False)
    assert bytes(fresh.sync().response.assignment) == follower.member_id.encode()
    assert leader.heartbeat() == ErrorCode.NONE


def test_a_restarted_leader_skips_the_assignment_since_v9() -> None:
    harness = delayed()
    leader, follower = static_group(harness)
    fresh = restarted(leader)
    fresh.join_once()
    response = fresh.joined()
    assert response.skip_assignment
    assert response.leader == response.member_id
    assert sorted(m.group_instance_id for m in response.members) == ["instance-0", "instance-1"]
    assert fresh.sync().error == ErrorCode.NONE
    assert follower.heartbeat() == ErrorCode.NONE


@pytest.mark.parametrize("version", range(5, 9))
def test_a_restarted_leader_is_told_its_former_self_as_leader_before_v9(version: int) -> None:
    harness = delayed()
    leader, _ = static_group(harness)
    fresh = restarted(leader, join_version=version)
    fresh.join_once()
    assert fresh.joined().leader == leader.member_id
    assert fresh.joining.response.members == []
    assert harness.group("group").leader_id == fresh.member_id


def test_the_former_self_of_a_restarted_member_is_fenced_everywhere() -> None:
    harness = delayed()
    _, follower = static_group(harness)
    restarted(follower).join_once()
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert follower.heartbeat() == fenced
    assert follower.sync().error == fenced
    assert follower.join_once().error == fenced
    harness.create_topic("topic")
    assert follower.commit() == fenced
    assert [m.error_code for m in follower.leave().response.members] == [fenced]


def test_a_parked_join_of_the_former_self_is_answered_fenced() -> None:
    harness = delayed()
    first, second = Member(harness, instance_id="one"), Member(harness, instance_id="one")
    first.join_once()
    second.join_once()
    assert first.joining.error == ErrorCode.FENCED_INSTANCE_ID
    assert second.joining.is_parked
    harness.advance(2_000)
    assert second.joined().generation_id == 1


def test_a_parked_sync_of_the_former_self_is_answered_fenced_and_the_group_rebalances() -> None:
    harness = delayed()
    members = [Member(harness, instance_id=f"instance-{n}") for n in range(2)]
    for member in members:
        member.join_once()
    harness.advance(3_000)
    leader, follower = sorted(members, key=lambda member: not member.joined().members)
    follower.sync()
    assert follower.syncing.is_parked
    fresh = restarted(follower)
    fresh.join_once()
    assert follower.syncing.error == ErrorCode.FENCED_INSTANCE_ID
    assert fresh.joining.is_parked
    assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_restarted_member_with_other_protocols_makes_the_group_rebalance() -> None:
    harness = delayed()
    protocols = ("range", "sticky")
    members = [Member(harness, instance_id=f"instance-{n}", protocols=protocols) for n in range(2)]
    for member in members:
        member.join_once()
    harness.advance(3_000)
    leader = finish_rebalance(*members)
    follower = next(member for member in members if member is not leader)
    fresh = restarted(follower, protocols=("sticky",))
    fresh.join_once()
    assert fresh.joining.is_parked
    assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    leader.join_once()
    assert leader.joined().protocol_name == "sticky"


def test_a_restart_that_cannot_be_stored_leaves_everything_as_it_was() -> None:
    harness = delayed()
    leader, follower = static_group(harness)
    harness.store.refusals = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    fresh = restarted(follower)
    assert fresh.join_once().error == ErrorCode.NOT_COORDINATOR
    assert fresh.joining.response.member_id == ""
    assert follower.heartbeat() == ErrorCode.NONE
    assert leader.heartbeat() == ErrorCode.NONE
    assert bytes(follower.sync().response.assignment) == follower.member_id.encode()


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.NOT_COORDINATOR])
def test_what_became_of_an_overtaken_restart_is_nothing_to_the_next_one(
    error: ErrorCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The instance restarts again before the ISR has its first new member id."""
    harness = delayed()
    _, follower = static_group(harness)
    commits: list[Any] = []

    def append(partition: int, records: Any, at: Any, *_: Any) -> Appended:
        harness.store.append(partition, records, at)
        return Appended(ErrorCode.NONE, harness.store.end_offset(partition))

    def wait(
        _: CommitWaits, partition: int, offset: int, at: Any, committed: Any, *__: Any
    ) -> None:
        commits.append(lambda error: committed(error, at))

    monkeypatch.setattr(harness.store, "append_for_later", append)
    monkeypatch.setattr(CommitWaits, "await_commit", wait)
    overtaken, newest = restarted(follower), restarted(follower)
    assert overtaken.join_once().is_parked
    assert newest.join_once().is_parked
    assert overtaken.joining.error == ErrorCode.FENCED_INSTANCE_ID
    first, second = commits
    first(error)
    assert newest.joining.is_parked
    second(ErrorCode.NONE)
    assert newest.joined().error_code == ErrorCode.NONE
    assert newest.heartbeat() == ErrorCode.NONE


def test_a_restart_survives_a_restart_of_the_coordinator() -> None:
    harness = delayed()
    _, follower = static_group(harness)
    fresh = restarted(follower)
    fresh.join_once()
    fresh.joined()
    fresh.door = harness.restart()
    assert fresh.heartbeat() == ErrorCode.NONE
    follower.door = fresh.door
    assert follower.heartbeat() == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_misses_a_rebalance_keeps_its_place() -> None:
    harness = delayed()
    leader, follower = static_group(harness)
    leader.rebalance_timeout_ms = follower.rebalance_timeout_ms = 5_000
    leader.join_once()
    assert leader.joining.is_parked
    for _ in range(4):
        harness.advance(7_600)
        if not leader.joining.is_parked:
            break
        follower.heartbeat()
    assert {m.group_instance_id for m in leader.joined().members} == {"instance-0", "instance-1"}
    assert harness.group("group").static_members["instance-1"]


def test_a_static_member_is_removed_when_its_session_ends() -> None:
    harness = delayed()
    leader, follower = static_group(harness)
    harness.advance(6_000)
    leader.heartbeat()
    harness.advance(4_000)
    assert follower.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_join_phase_that_no_static_member_comes_to_goes_on() -> None:
    harness = delayed()
    leader, follower = static_group(harness)
    passing = Member(harness, client_id="dynamic", rebalance_timeout_ms=100)
    passing.join()
    passing.member_id = list(harness.group("group").members)[-1]
    passing.leave()
    assert passing.joining.error == ErrorCode.UNKNOWN_MEMBER_ID
    for _ in range(10):
        harness.advance(7_000)
        assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        assert follower.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    follower.join_once()
    harness.advance(7_000)
    leader.heartbeat()
    harness.advance(23_000)
    assert follower.joined().generation_id == 2
    assert follower.joining.response.leader == follower.member_id


@pytest.mark.parametrize("version", range(3, 6))
def test_an_administrator_removes_a_static_member_by_its_instance_id(version: int) -> None:
    harness = delayed()
    leader, follower = static_group(harness)
    leaving = [
        MemberIdentity(group_instance_id=follower.instance_id),
        MemberIdentity(group_instance_id="nobody"),
    ]
    request = LeaveGroupRequest(group_id="group", members=leaving)
    response = harness.send(request, version).response
    assert [m.error_code for m in response.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert follower.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("member_id", "instance_id", "error"),
    [
        ("made-up", "instance-0", ErrorCode.FENCED_INSTANCE_ID),
        ("made-up", "stranger", ErrorCode.UNKNOWN_MEMBER_ID),
        ("made-up", None, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_what_a_wrong_identity_is_answered(
    member_id: str, instance_id: str | None, error: ErrorCode
) -> None:
    harness = delayed()
    static_group(harness)
    harness.create_topic("topic")
    stranger = Member(harness, member_id=member_id, instance_id=instance_id, generation_id=1)
    assert stranger.heartbeat() == error
    assert stranger.sync().error == error
    assert stranger.join_once().error == error
    assert stranger.commit() == error
    assert stranger.leave().response.members[0].error_code == error


def test_an_instance_id_beside_a_given_id_is_answered_unknown_server_error() -> None:
    harness = Harness()
    dynamic = Member(harness)
    dynamic.join_once()
    mixed = Member(harness, member_id=dynamic.joining.response.member_id, instance_id="instance")
    assert mixed.join_once().error == ErrorCode.UNKNOWN_SERVER_ERROR


def test_static_members_with_a_rebalance_timeout_of_zero_do_not_spin() -> None:
    harness = delayed()
    leader, follower = static_group(harness)
    passing = Member(harness, client_id="dynamic", rebalance_timeout_ms=0)
    for member in harness.group("group").members.values():
        member.rebalance_timeout_ms = 0
    passing.join()
    passing.member_id = list(harness.group("group").members)[-1]
    passing.leave()
    harness.settle()
    assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    harness.advance(9_999)
    assert follower.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def with_a_restarted_follower(harness: Harness) -> tuple[Member, Member]:
    """A group whose leader has synced, and whose follower came back before it did."""
    members = [
        Member(harness, instance_id=f"instance-{n}", rebalance_timeout_ms=9_000) for n in range(2)
    ]
    for member in members:
        member.join_once()
    harness.advance(3_000)
    leader, follower = sorted(members, key=lambda member: not member.joined().members)
    leader.sync({member.member_id: b"x" for member in members})
    fresh = restarted(follower, rebalance_timeout_ms=9_000)
    fresh.join_once()
    fresh.joined()
    return leader, fresh


def test_a_restarted_member_owes_the_sync_that_its_former_self_owed() -> None:
    harness = delayed()
    leader, fresh = with_a_restarted_follower(harness)
    harness.advance(5_000)
    assert fresh.sync().error == ErrorCode.NONE
    for _ in range(2):
        assert [m.heartbeat() for m in (leader, fresh)] == [ErrorCode.NONE] * 2
        harness.advance(5_000)


def test_a_restarted_member_that_never_syncs_leaves_as_its_former_self_would_have() -> None:
    """`rebalance.timeout.ms` after the generation began, although it heartbeats."""
    harness = delayed()
    leader, fresh = with_a_restarted_follower(harness)
    harness.advance(6_000)
    assert [m.heartbeat() for m in (leader, fresh)] == [ErrorCode.NONE] * 2
    harness.advance(3_000)
    assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert fresh.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_members_that_repeat_their_join_before_the_assignment_are_told_the_generation() -> None:
    """The leader too, with all members: it may have missed the answer (`onJoinGroup`)."""
    harness = delayed()
    members = [Member(harness, instance_id=f"instance-{n}") for n in range(2)]
    for member in members:
        member.join_once()
    harness.advance(3_000)
    told = [(member.joined(), member.generation_id) for member in members]
    for member, (first, generation_id) in zip(members, told, strict=True):
        member.join_once()
        again = member.joined()
        assert member.generation_id == generation_id
        assert (again.leader, again.members) == (first.leader, first.members)
    finish_rebalance(*members)
