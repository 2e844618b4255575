"""Join, sync, heartbeat and leave of dynamic members (KIP-62, KIP-134, KIP-394)."""

from __future__ import annotations

from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.groups.harness import Harness
from tests.broker.groups.ready_groups import harness_with_delay, stable_group, three_members
from tests.broker.groups.requests import Member, finish_rebalance


def test_the_initial_delay_lets_three_members_into_the_first_generation() -> None:
    harness = harness_with_delay()
    members = three_members(harness)
    for member in members:
        member.join()
    assert all(member.joining.is_parked for member in members)
    harness.advance(999)
    assert all(member.joining.is_parked for member in members)
    harness.advance(2_001)
    leader = finish_rebalance(*members)
    assert harness.group("group").generation_id == 1
    assert len(leader.joining.response.members) == 3
    followers = [member for member in members if member is not leader]
    assert all(member.joining.response.members == [] for member in followers)


def test_each_newcomer_extends_the_initial_delay_up_to_the_rebalance_timeout() -> None:
    harness = harness_with_delay()
    first = Member(harness, rebalance_timeout_ms=2_500)
    first.join()
    for n in range(3):
        harness.advance(700)
        Member(harness, client_id=f"late-{n}", rebalance_timeout_ms=2_500).join()
    assert first.joining.is_parked
    harness.advance(2_500 - 2_100)
    assert first.joining.error == ErrorCode.NONE
    assert first.joining.response.generation_id == 1


def test_without_a_delay_a_second_member_starts_a_rebalance_that_waits_for_the_first() -> None:
    harness = Harness()
    first, second = Member(harness, client_id="a"), Member(harness, client_id="b")
    first.join()
    harness.settle()
    finish_rebalance(first)
    second.join()
    assert second.joining.is_parked
    assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    first.join()
    finish_rebalance(first, second)
    assert harness.group("group").generation_id == 2
    assert first.heartbeat() == ErrorCode.NONE


def test_a_member_that_does_not_rejoin_in_time_is_left_behind() -> None:
    harness = harness_with_delay()
    _, (first, second, third) = stable_group(harness)
    third.join_once()
    if not third.joining.is_parked:
        # A follower that repeats itself is only told its generation.
        first.join_once()
        third.join_once()
    harness.advance(1)
    for _ in range(4):
        second.heartbeat()
        harness.advance(7_600)
    assert second.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert third.joined().generation_id == 2
    assert len(harness.group("group").members) == 2


def test_a_silent_member_is_removed_when_its_session_ends_and_the_others_rebalance() -> None:
    harness = harness_with_delay()
    leader, members = stable_group(harness)
    silent = next(member for member in members if member is not leader)
    others = [member for member in members if member is not silent]
    harness.advance(6_000)
    assert [member.heartbeat() for member in others] == [ErrorCode.NONE] * 2
    harness.advance(4_000)
    assert [member.heartbeat() for member in others] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    assert silent.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    for member in others:
        member.join()
    finish_rebalance(*others)
    assert len(harness.group("group").members) == 2


def test_a_given_id_that_nobody_uses_expires_and_lets_the_join_phase_end() -> None:
    harness = Harness()
    first = Member(harness, client_id="a")
    first.join()
    harness.settle()
    finish_rebalance(first)
    lost = Member(harness, client_id="lost")
    assert lost.join_once().error == ErrorCode.MEMBER_ID_REQUIRED
    assert list(harness.group("group").pending_members) == [lost.joining.response.member_id]
    first.join()
    assert first.joining.is_parked
    harness.advance(10_000)
    assert first.joined().generation_id == 2
    assert harness.group("group").pending_members == {}
    lost.member_id = lost.joining.response.member_id
    assert lost.join_once().error == ErrorCode.UNKNOWN_MEMBER_ID


def test_members_that_never_sync_are_removed_after_the_rebalance_timeout() -> None:
    harness = harness_with_delay()
    first, second = Member(harness, client_id="a"), Member(harness, client_id="b")
    for member in (first, second):
        member.join()
    harness.advance(3_000)
    leader, lazy = (first, second) if first.joined().members else (second, first)
    lazy.joined()
    leader.joined()
    leader.sync({leader.member_id: b"x"})
    assert leader.syncing.error == ErrorCode.NONE
    for _ in range(5):
        harness.advance(6_000)
        lazy.heartbeat()
        leader.heartbeat()
    assert lazy.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_leader_that_repeats_its_join_starts_a_rebalance() -> None:
    harness = harness_with_delay()
    leader, members = stable_group(harness)
    leader.join_once()
    assert leader.joining.is_parked
    followers = [member for member in members if member is not leader]
    assert [m.heartbeat() for m in followers] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2


def test_a_follower_with_new_metadata_starts_a_rebalance() -> None:
    harness = harness_with_delay()
    leader, members = stable_group(harness)
    follower = next(member for member in members if member is not leader)
    follower.topics = ("topic", "another")
    follower.join_once()
    assert follower.joining.is_parked
    assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_waiting_syncs_are_told_to_rejoin_when_the_generation_is_abandoned() -> None:
    harness = harness_with_delay()
    first, second = Member(harness, client_id="a"), Member(harness, client_id="b")
    for member in (first, second):
        member.join()
    harness.advance(3_000)
    leader, follower = (first, second) if first.joined().members else (second, first)
    follower.joined()
    leader.joined()
    follower.sync()
    assert follower.syncing.is_parked
    leader.leave()
    assert follower.syncing.error == ErrorCode.REBALANCE_IN_PROGRESS


def test_the_protocol_with_most_votes_among_common_ones_is_chosen() -> None:
    harness = harness_with_delay()
    votes = [("sticky", "range", "only-first"), ("range", "sticky"), ("sticky", "range")]
    members = [Member(harness, client_id=f"{n}", protocols=p) for n, p in enumerate(votes)]
    for member in members:
        member.join()
    harness.advance(4_000)
    assert {member.joined().protocol_name for member in members} == {"sticky"}


def test_a_protocol_that_one_member_lacks_is_not_chosen_however_many_prefer_it() -> None:
    harness = harness_with_delay()
    votes = [("new", "old"), ("new", "old"), ("old",)]
    members = [Member(harness, client_id=f"{n}", protocols=p) for n, p in enumerate(votes)]
    for member in members:
        member.join()
    harness.advance(4_000)
    assert {member.joined().protocol_name for member in members} == {"old"}


def test_our_bound_on_a_group_refuses_given_ids_members_and_assignments() -> None:
    harness = Harness(group_memory_max_bytes=8_000)
    given = [Member(harness).join_once().error for _ in range(20)]
    assert given[0] == ErrorCode.MEMBER_ID_REQUIRED
    assert given[-1] == ErrorCode.GROUP_MAX_SIZE_REACHED
    huge = Member(harness, group_id="huge", metadata={"range": bytes(8_000)})
    assert huge.join_once().error == ErrorCode.GROUP_MAX_SIZE_REACHED
    assigning = Member(harness, group_id="assigning")
    assigning.join()
    harness.settle()
    assigning.joined()
    assigning.sync({assigning.member_id: bytes(8_000)})
    assert assigning.syncing.error == ErrorCode.GROUP_MAX_SIZE_REACHED
    assigning.join()
    finish_rebalance(assigning)
    assert assigning.heartbeat() == ErrorCode.NONE


def test_our_bound_on_all_memory_refuses_new_groups_and_serves_the_others() -> None:
    harness = Harness(group_coordinator_memory_max_bytes=20_000)
    first = Member(harness, group_id="first")
    first.join()
    harness.settle()
    finish_rebalance(first)
    errors = [Member(harness, group_id=f"{n}").join_once().error for n in range(20)]
    assert errors[0] == ErrorCode.MEMBER_ID_REQUIRED
    assert errors[-1] == ErrorCode.POLICY_VIOLATION
    first.join_once()
    finish_rebalance(first)
    harness.advance(601_000)
    assert Member(harness, group_id="later").join_once().error == ErrorCode.MEMBER_ID_REQUIRED


def test_an_assignment_that_cannot_be_stored_makes_the_group_rebalance() -> None:
    harness = Harness()
    member = Member(harness)
    member.join()
    harness.settle()
    member.joined()
    harness.store.refusals = [ErrorCode.NOT_ENOUGH_REPLICAS]
    member.sync({member.member_id: b"x"})
    assert member.syncing.error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert harness.group("group").state.value == "PreparingRebalance"
    member.join()
    finish_rebalance(member)


def test_a_group_that_cannot_be_stored_does_not_come_to_be() -> None:
    harness = Harness()
    harness.store.refusals = [ErrorCode.KAFKA_STORAGE_ERROR]
    member = Member(harness)
    assert member.join_once().error == ErrorCode.NOT_COORDINATOR
    assert member.join_once().error == ErrorCode.MEMBER_ID_REQUIRED


def test_a_superseded_request_of_the_same_member_is_answered_too() -> None:
    harness = harness_with_delay()
    member = Member(harness)
    member.join()
    member.member_id = next(iter(harness.group("group").members))
    before = member.joining
    member.join_once()
    assert before.error == ErrorCode.REBALANCE_IN_PROGRESS
    assert member.joining.is_parked
    harness.advance(2_000)
    assert member.joined().generation_id == 1


def test_a_new_member_whose_client_is_gone_is_removed_after_five_minutes() -> None:
    harness = Harness()
    first = Member(harness, client_id="a", session_timeout_ms=1_800_000)
    first.join()
    harness.settle()
    finish_rebalance(first)
    gone = Member(harness, client_id="b", rebalance_timeout_ms=3_600_000)
    gone.join()
    assert gone.joining.is_parked
    harness.advance(299_999)
    assert gone.joining.is_parked
    harness.advance(1)
    assert gone.joining.error == ErrorCode.UNKNOWN_MEMBER_ID
