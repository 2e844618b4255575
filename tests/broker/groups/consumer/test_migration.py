"""Groups change their protocol while they have members: what the walks of `test_mixed_walks` lack.

The walks compare answers and records with Apache's. Here are refusals with their texts, appends
that fail, time, and loads.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kraft_wire.broker.context import PARKED
from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.broker.coordination.log import Appended
from kraft_wire.broker.groups.consumer.offset_checks import check_commit
from kraft_wire.wire.generated.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from kraft_wire.wire.generated.consumer_protocol_subscription import ConsumerProtocolSubscription
from kraft_wire.wire.generated.consumer_protocol_subscription import TopicPartition as Owned
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.leave_group import LeaveGroupRequest, MemberIdentity
from kraft_wire.wire.generated.list_groups import ListGroupsRequest
from kraft_wire.wire.generated.offset_commit import OffsetCommitRequest
from tests.broker.groups.harness import Harness
from tests.broker.groups.requests import Member, subscription
from tests.broker.groups.test_consumer_group_heartbeat import (
    assigned,
    group_in,
    joining,
    send,
    staying,
    with_topic,
)


def assignment(*partitions: int, user_data: bytes | None = None, version: int = 3) -> bytes:
    body = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic="topic", partitions=list(partitions))],
        user_data=user_data,
    )
    return version.to_bytes(2, "big") + bytes(body.encode(version))


def given(member: Member) -> list[int]:
    """Return the partitions in a member's SyncGroup answer."""
    data = member.syncing.response.assignment
    decoded = ConsumerProtocolAssignment.decode(data, 0, 2)[0]
    return [each for topic in decoded.assigned_partitions for each in topic.partitions]


def classic_group(harness: Harness, *shares: bytes, **fields: Any) -> list[Member]:
    """Return the members of a stable group, the leader first, with their assignments."""
    members = [Member(harness, client_id=f"client-{n}", **fields) for n, _ in enumerate(shares)]
    first, *others = members
    first.join()
    harness.settle()
    for member in others:
        member.join()
    if others:  # the first one has a generation of its own by now
        first.joined()
        first.join_once()
        harness.settle()
    for member in members:
        member.joined()
    leader = next(each for each in members if each.joining.response.members)
    by_id = {each.member_id: share for each, share in zip(members, shares, strict=True)}
    for member in (*(each for each in members if each is not leader), leader):
        member.sync(by_id if member is leader else None)
    assert [each.syncing.error for each in members] == [0] * len(members)
    return members


def one_classic(partitions: int = 3, **settings: Any) -> tuple[Harness, Member]:
    """Return a stable classic group of one member, which has all partitions."""
    harness = with_topic(partitions, **settings)
    (member,) = classic_group(harness, assignment(*range(partitions)))
    return harness, member


def batches_since(harness: Harness, before: int) -> list[list[tuple[int, bool]]]:
    return [
        [(each.key[1], each.value is None) for each in batch.records() if each.key is not None]
        for batch in harness.store.batches(0)[before:]
    ]


def rejoin(member: Member, *owned: int) -> None:
    """Join again as a cooperative client does: it says what it owns."""
    body = ConsumerProtocolSubscription(topics=["topic"], owned_partitions=[])
    if owned:
        body.owned_partitions = [Owned(topic="topic", partitions=list(owned))]
    data = b"\x00\x03" + bytes(body.encode(3))
    member.metadata = dict.fromkeys(member.protocols, data)
    member.join_once()
    member.joined()
    member.sync()


# --- Up and down -----------------------------------------------------------------------------


def test_a_group_rolls_up_and_down_with_its_partitions() -> None:
    """848-MIG-01, 848-MIG-05, 848-MIG-07, 848-MIG-08, 848-MIG-09, 848-MIG-12."""
    harness, classic = one_classic(4)
    before = len(harness.store.batches(0))
    joined = send(harness, joining(member_id="modern"))
    assert (joined.response.member_epoch, joined.response.assignment.topic_partitions) == (2, [])
    (batch,) = batches_since(harness, before)
    assert [kind for kind, _ in batch] == [2, 5, 3, 7, 6, 8, 5, 3, 7, 7, 6, 8]
    assert [is_gone for _, is_gone in batch] == [True] + [False] * 11
    assert classic.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    rejoin(classic, 0, 1, 2, 3)
    assert (classic.generation_id, given(classic)) == (1, [0, 1])
    assert classic.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    rejoin(classic, 0, 1)
    assert (classic.generation_id, given(classic)) == (2, [0, 1])
    assert classic.heartbeat() == ErrorCode.NONE
    assert assigned(send(harness, staying(2, member_id="modern"))) == [2, 3]
    before = len(harness.store.batches(0))
    assert send(harness, staying(-1, member_id="modern")).error == ErrorCode.NONE
    (batch,) = batches_since(harness, before)
    assert [kind for kind, _ in batch] == [8, 8, 7, 7, 6, 5, 5, 4, 3, 2]
    assert [is_gone for _, is_gone in batch] == [True] * 9 + [False]
    assert classic.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    classic.join_once()
    harness.settle()
    assert classic.joined().generation_id == 3
    assert harness.group("group").members[classic.member_id].assignment == assignment(0, 1)


def test_a_downgrade_is_read_by_the_next_coordinator() -> None:
    """848-MIG-12: also where the log still has what was there before."""
    harness, classic = one_classic()
    send(harness, joining(member_id="modern"))
    loaded = harness.restart()
    assert [each.member_id for each in group_in(loaded).members.values()].count("modern") == 1
    send(harness, staying(-1, member_id="modern"))
    group = harness.restart().group("group")
    assert (group.state.value, group.generation_id) == ("Stable", 2)
    assert list(group.members) == [classic.member_id]


def test_a_group_of_classic_members_only_is_listed_as_what_it_is() -> None:
    """848-MIG-12, 848-ADMIN-04: without downgrades it stays a consumer group."""
    harness, classic = one_classic(group_consumer_migration_policy="Upgrade")
    send(harness, joining(member_id="modern"))
    send(harness, staying(-1, member_id="modern"))
    (listed,) = harness.send(ListGroupsRequest(), 5).response.groups
    assert (listed.group_type, listed.group_state) == ("consumer", "Assigning")
    assert classic.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    classic.join_once()
    assert classic.joined().generation_id == 3


# --- Refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["disabled", "DOWNGRADE"])
def test_a_policy_forbids_the_upgrade(policy: str) -> None:
    """848-HB-13, 848-MIG-02."""
    harness, classic = one_classic(group_consumer_migration_policy=policy)
    answer = send(harness, joining(member_id="modern")).response
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert answer.error_message == refused("online upgrade is disabled.")
    assert classic.heartbeat() == ErrorCode.NONE


def test_only_the_policy_disabled_keeps_classic_members_out() -> None:
    """848-MIG-02, 848-MIG-07."""
    for policy, error in (("disabled", 23), ("upgrade", 0), ("downgrade", 0)):
        harness = with_topic(group_consumer_migration_policy=policy)
        send(harness, joining(member_id="modern"))
        assert Member(harness).join().error == error


def refused(reason: str) -> str:
    return f"Cannot upgrade classic group group to consumer group because {reason}"


def test_another_protocol_type_or_too_many_members_refuse_the_upgrade() -> None:
    """848-MIG-03."""
    harness = with_topic(group_consumer_max_size=1)
    classic_group(harness, assignment(0), assignment(1))
    answer = send(harness, joining(member_id="modern")).response
    assert answer.error_message == refused(
        "the group size exceeds the consumer group maximum size."
    )
    harness = with_topic()
    classic_group(harness, b"", protocol_type="connect")
    answer = send(harness, joining(member_id="modern")).response
    assert answer.error_message == refused("the group does not use the consumer embedded protocol.")


@pytest.mark.parametrize(
    ("share", "error", "reason"),
    [
        (b"\x00", 69, "the embedded consumer protocol is malformed."),
        (
            assignment(0, user_data=b"mine"),
            69,
            "an unsupported custom assignor is in use. Please refer to the documentation or "
            "switch to a default assignor before re-attempting the upgrade.",
        ),
    ],
)
def test_assignments_that_cannot_be_taken_over_refuse_the_upgrade(
    share: bytes, error: int, reason: str
) -> None:
    """848-MIG-04."""
    harness = with_topic()
    (classic,) = classic_group(harness, share)
    answer = send(harness, joining(member_id="modern")).response
    assert (answer.error_code, answer.error_message) == (error, refused(reason))
    assert classic.heartbeat() == ErrorCode.NONE
    harness.check_memory()


def test_a_leader_that_gave_a_partition_twice_refuses_the_upgrade() -> None:
    """848-MIG-04, 848-RECON-07: no partition is owned by two members."""
    harness = with_topic(group_consumer_assignors=("range",))
    classic_group(harness, assignment(0, 1), assignment(1, 2))
    assert send(harness, joining(member_id="modern")).error == ErrorCode.UNKNOWN_SERVER_ERROR
    harness.check_memory()


@pytest.mark.parametrize("other_topics", [["topic"], ["topic", "other"]])
@pytest.mark.parametrize("partition", [-1, 3])
def test_partitions_that_do_not_exist_fail_the_assignor_and_nothing_else(
    partition: int, other_topics: list[str]
) -> None:
    """848-ASSIGN-11: -1 without text, and nothing is written."""
    harness = with_topic()
    (classic,) = classic_group(harness, assignment(0, 1, 2, partition))
    before = len(harness.store.batches(0))
    request = joining(member_id="modern", subscribed_topic_names=other_topics)
    answer = send(harness, request).response
    assert (answer.error_code, answer.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert batches_since(harness, before) == []
    assert classic.heartbeat() == ErrorCode.NONE
    harness.check_memory()


def test_members_that_wait_are_told_to_join_again() -> None:
    """848-MIG-06: joins and syncs."""
    harness, leader = one_classic()
    late = Member(harness, client_id="late")
    late.join()
    assert late.joining.is_parked
    send(harness, joining(member_id="modern"))
    assert late.joining.error == ErrorCode.REBALANCE_IN_PROGRESS
    harness, leader = one_classic()
    late = Member(harness, client_id="late")
    late.join()
    leader.join_once()
    harness.settle()
    late.joined()
    late.sync()
    assert late.syncing.is_parked
    send(harness, joining(member_id="modern"))
    assert late.syncing.error == ErrorCode.REBALANCE_IN_PROGRESS


def test_classic_members_must_share_a_protocol() -> None:
    """848-MIG-11: free choice if there is none."""
    harness = with_topic()
    send(harness, joining(member_id="modern"))
    assert Member(harness, protocols=("sticky",)).join().error == ErrorCode.NONE
    refused_one = Member(harness, protocols=("range",)).join()
    assert refused_one.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert Member(harness, protocols=("range", "sticky")).join().error == ErrorCode.NONE


def test_a_refused_classic_member_gets_no_id() -> None:
    """Kafka's own ConsumerProtocolMigrationTest; a group of the classic kind repeats the id."""
    harness, leader = one_classic()
    send(harness, joining(member_id="modern"))
    leader.protocols = ("connect",)
    refused_one = leader.join_once()
    assert refused_one.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert refused_one.response.member_id == ""


# --- Appends ---------------------------------------------------------------------------------


def test_nothing_changes_if_a_conversion_cannot_be_written() -> None:
    """848-REC-03, 848-MIG-01, 848-MIG-12."""
    harness, classic = one_classic()
    harness.store.refusals.append(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert send(harness, joining(member_id="modern")).error == 15
    assert classic.heartbeat() == ErrorCode.NONE
    send(harness, joining(member_id="modern"))
    harness.store.refusals.append(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert send(harness, staying(-1, member_id="modern")).error == 15
    assert len(group_in(harness).members) == 2
    harness.check_memory()


def test_a_session_that_ends_while_nothing_can_be_written_ends_later() -> None:
    """848-MIG-12."""
    harness, classic = one_classic()
    classic.session_timeout_ms = 10_000
    send(harness, joining(member_id="modern"))
    classic.session_timeout_ms = 300_000
    rejoin(classic)
    harness.store.refusals.append(ErrorCode.NOT_ENOUGH_REPLICAS)
    harness.advance(45_200)
    assert len(group_in(harness).members) == 2
    harness.advance(500)
    assert list(harness.group("group").members) == [classic.member_id]


@pytest.mark.parametrize("error", [None, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_classic_members_are_answered_once_the_isr_has_it(
    error: ErrorCode | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """848-REC-08, 848-MIG-07, 848-MIG-08: join, sync and leave."""
    harness, classic = one_classic()
    send(harness, joining(member_id="modern"))
    store = harness.store
    parked: list[Any] = []
    append = store.append_for_later

    def append_without_isr(partition: int, *rest: Any) -> Appended:
        return Appended(append(partition, *rest).error, store.end_offset(partition))

    def park(_: Any, context: Any, required: Any, answer: Any) -> Any:
        parked.append((required, answer))
        return PARKED

    monkeypatch.setattr(store, "append_for_later", append_without_isr)
    monkeypatch.setattr(store, "high_watermark", lambda _: 0)
    monkeypatch.setattr(CommitWaits, "answer_when_committed", park)
    for send_it in (classic.join_once, classic.sync, classic.leave):
        assert send_it().is_parked
        ((required, answer),) = parked
        assert required == {0: store.end_offset(0)}
        answered = answer({} if error is None else {0: error})
        assert answered.error_code == (error or ErrorCode.NONE)
        if classic.member_id in group_in(harness).members:
            classic.generation_id = group_in(harness).members[classic.member_id].member_epoch
        parked.clear()


# --- Time ------------------------------------------------------------------------------------


def test_a_classic_member_has_its_own_session() -> None:
    """848-MIG-10, 848-TIME-01."""
    harness, classic = one_classic()
    send(harness, joining(member_id="modern"))
    harness.advance(9_000)
    classic.heartbeat()
    harness.advance(9_999)
    assert classic.member_id in group_in(harness).members
    harness.advance(1)
    assert [each.member_id for each in group_in(harness).members.values()] == ["modern"]


@pytest.mark.parametrize("stops_at", ["join", "sync"])
def test_a_classic_member_must_join_and_sync_in_its_rebalance_timeout(stops_at: str) -> None:
    """848-MIG-10."""
    harness = with_topic()
    (classic,) = classic_group(
        harness, assignment(0, 1, 2), rebalance_timeout_ms=2_000, session_timeout_ms=60_000
    )
    send(harness, joining(member_id="modern"))
    if stops_at == "join":
        assert classic.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    else:
        classic.join_once()
        assert classic.joined().generation_id == 2
    harness.advance(1_000)
    classic.heartbeat()  # it is told again, and has no more time for that
    harness.advance(999)
    assert classic.member_id in group_in(harness).members
    harness.advance(1)
    assert classic.member_id not in group_in(harness).members


def test_a_classic_member_that_joined_and_synced_in_time_stays() -> None:
    """848-MIG-10: 4.3.1 cancels both timers, the one to join with the JoinGroup request."""
    harness = with_topic()
    (classic,) = classic_group(
        harness, assignment(0, 1, 2), rebalance_timeout_ms=2_000, session_timeout_ms=60_000
    )
    send(harness, joining(member_id="modern"))
    assert classic.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    rejoin(classic)
    harness.advance(2_000)
    assert classic.member_id in group_in(harness).members


def test_each_request_of_a_classic_member_renews_its_session() -> None:
    """848-MIG-10, 848-TIME-01: JoinGroup and SyncGroup, too, as in 4.3.1."""
    harness = with_topic()
    (classic,) = classic_group(
        harness, assignment(0, 1, 2), rebalance_timeout_ms=60_000, session_timeout_ms=10_000
    )
    send(harness, joining(member_id="modern"))
    harness.advance(9_000)
    classic.join_once()
    classic.joined()
    harness.advance(9_000)
    classic.sync()
    harness.advance(9_999)
    assert classic.member_id in group_in(harness).members
    harness.advance(1)
    assert classic.member_id not in group_in(harness).members


def test_a_classic_member_that_is_silent_from_the_upgrade_on_is_removed() -> None:
    """848-MIG-07, 848-TIME-01: after its own session."""
    harness = with_topic()
    silent, _ = classic_group(harness, assignment(0, 1), assignment(2))
    send(harness, joining(member_id="modern"))
    harness.advance(9_999)
    assert silent.member_id in group_in(harness).members
    harness.advance(1)
    assert list(group_in(harness).members) == ["modern"]


def test_a_static_member_that_brings_the_classic_protocol_back_has_a_session() -> None:
    """848-MIG-13: the group becomes a classic one without a rebalance."""
    harness = with_topic()
    classic_group(harness, assignment(0, 1, 2), instance_id="instance")
    send(harness, joining(member_id="modern", instance_id="instance"))
    again = Member(harness, instance_id="instance")
    again.join_once()
    again.joined()
    harness.advance(9_999)
    assert list(harness.group("group").members) == [again.member_id]
    harness.advance(1)
    assert not harness.group("group").members


def test_as_many_members_change_the_protocol_as_the_other_kind_may_have() -> None:
    """848-MIG-01, 848-MIG-12: 4.3.1 refuses only more than the limit of the other kind."""
    harness, _ = one_classic(group_consumer_max_size=1)
    assert send(harness, joining(member_id="modern")).error == ErrorCode.GROUP_MAX_SIZE_REACHED
    harness, _ = one_classic(group_max_size=1)
    send(harness, joining(member_id="modern"))
    send(harness, staying(-1, member_id="modern"))
    assert len(harness.group("group").members) == 1


def test_after_a_load_all_have_the_groups_session() -> None:
    """848-TIME-04: in Kafka classic members, too."""
    harness, _ = one_classic()
    send(harness, joining(member_id="modern"))
    loaded = harness.restart(group_consumer_migration_policy="upgrade")
    loaded.advance(44_999)
    assert len(group_in(loaded).members) == 2
    loaded.advance(1)
    assert len(group_in(loaded).members) == 0


# --- Static members, leaving, offsets --------------------------------------------------------


def test_a_static_member_changes_its_protocol_in_place() -> None:
    """848-MIG-13: up without a leave before, and down again, without a rebalance."""
    harness = with_topic()
    (classic,) = classic_group(harness, assignment(0, 1, 2), instance_id="instance")
    request = joining(member_id="modern", instance_id="instance")
    joined = send(harness, request)
    assert joined.response.member_epoch == 1
    assert assigned(joined) == [0, 1, 2]
    assert [each.member_id for each in group_in(harness).members.values()] == ["modern"]
    assert classic.heartbeat() == ErrorCode.FENCED_INSTANCE_ID
    before = len(harness.store.batches(0))
    again = Member(harness, instance_id="instance")
    again.join_once()
    assert again.joined().generation_id == 1
    (batch,) = batches_since(harness, before)
    assert [kind for kind, _ in batch][:6] == [8, 7, 5, 5, 7, 8]
    assert batch[-1] == (2, False)
    assert harness.group("group").state.value == "Stable"
    again.sync()
    assert given(again) == [0, 1, 2]


def test_members_of_both_protocols_leave_as_one_batch() -> None:
    """848-ADMIN-07."""
    harness, classic = one_classic()
    send(harness, joining(member_id="modern", instance_id="instance"))
    send(harness, joining(member_id="last"))
    before = len(harness.store.batches(0))
    leaving = [
        MemberIdentity(member_id=classic.member_id),
        MemberIdentity(member_id="", group_instance_id="instance"),
        MemberIdentity(member_id="nobody"),
        MemberIdentity(member_id="last", group_instance_id="instance"),
    ]
    answer = harness.send(LeaveGroupRequest(group_id="group", members=leaving), 5).response
    assert [each.error_code for each in answer.members] == [0, 0, 25, 82]
    (batch,) = batches_since(harness, before)
    assert [kind for kind, _ in batch] == [8, 7, 5, 8, 7, 5, 3]


def test_a_leave_that_cannot_be_written_changes_nothing() -> None:
    harness, classic = one_classic()
    send(harness, joining(member_id="modern"))
    harness.store.refusals.append(ErrorCode.NOT_ENOUGH_REPLICAS)
    left = classic.leave()
    assert (left.error, left.response.members) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, [])
    assert len(group_in(harness).members) == 2
    left = classic.leave()
    assert [each.error_code for each in left.response.members] == [ErrorCode.NONE]
    assert list(group_in(harness).members) == ["modern"]


def test_a_downgrade_by_a_static_member_that_cannot_be_written_changes_nothing() -> None:
    """The member may try again."""
    harness = with_topic()
    (_,) = classic_group(harness, assignment(0, 1, 2), instance_id="instance")
    send(harness, joining(member_id="modern", instance_id="instance"))
    again = Member(harness, instance_id="instance")
    harness.store.refusals.append(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert again.join_once().error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert list(group_in(harness).members) == ["modern"]
    harness.check_memory()
    again.join_once()
    assert again.joined().generation_id == 1
    again.sync()
    assert given(again) == [0, 1, 2]
    assert harness.group("group").state.value == "Stable"


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff" + subscription("topic")[2:]])
def test_a_subscription_without_a_version_is_an_unexpected_error(data: bytes) -> None:
    """`ConsumerProtocol.deserializeVersion` and `deserializeSubscription` throw."""
    harness = with_topic()
    send(harness, joining(member_id="modern"))
    classic = Member(harness, metadata={"range": data})
    assert classic.join().error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert list(group_in(harness).members) == ["modern"]
    classic.metadata = {"range": b"\x7f\xff" + subscription("topic")[2:]}
    assert classic.join().error == ErrorCode.NONE, "a newer version is read as the newest known"


def test_classic_members_commit_by_their_generation() -> None:
    """848-OFF-10, 848-MIG-07: 22 where members of the consumer protocol get 113."""
    harness, classic = one_classic()
    send(harness, joining(member_id="modern"))
    assert classic.commit(version=8) == ErrorCode.NONE
    classic.generation_id = 2
    assert classic.commit(version=8) == ErrorCode.ILLEGAL_GENERATION


def test_errors_of_a_classic_join_in_order() -> None:
    """848-MIG-07, 848-MIG-11."""
    harness = with_topic(group_consumer_max_size=1, group_consumer_migration_policy="disabled")
    send(harness, joining(member_id="modern"))
    member = Member(harness, protocol_type="connect", metadata={"range": b"\x00"})
    assert member.join_once().error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    harness.settings = _with(harness, group_consumer_migration_policy="bidirectional")
    assert member.join_once().error == ErrorCode.GROUP_MAX_SIZE_REACHED
    harness.settings = _with(harness, group_consumer_max_size=9)
    assert member.join_once().error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    member.protocol_type = "consumer"
    assert member.join_once().error == ErrorCode.MEMBER_ID_REQUIRED
    member.member_id, member.instance_id = "someone", "instance"
    assert member.join_once().error == ErrorCode.UNKNOWN_MEMBER_ID
    send(harness, joining(member_id="holder", instance_id="instance"))
    assert member.join_once().error == ErrorCode.FENCED_INSTANCE_ID
    member.instance_id = None
    assert member.join_once().error == ErrorCode.UNKNOWN_SERVER_ERROR
    member.metadata = {"range": subscription("topic")}
    harness.store.refusals.append(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert member.join_once().error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert member.join_once().error == ErrorCode.NONE


def _with(harness: Harness, **changes: Any) -> Any:
    return replace(harness.settings, **changes)


def test_errors_of_a_classic_sync_in_order() -> None:
    """848-MIG-08."""
    harness, classic = one_classic()
    send(harness, joining(member_id="modern", instance_id="instance"))
    classic.instance_id = "unknown"
    wrong = {"generation_id": 9, "protocol_name": "other"}
    assert classic.sync(**wrong).error == ErrorCode.UNKNOWN_MEMBER_ID
    classic.instance_id = "instance"
    assert classic.sync(**wrong).error == ErrorCode.FENCED_INSTANCE_ID
    classic.instance_id = None
    assert classic.sync(**wrong).error == ErrorCode.ILLEGAL_GENERATION
    assert classic.sync(protocol_name="other").error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert classic.sync(protocol_type="other").error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert classic.sync().error == ErrorCode.REBALANCE_IN_PROGRESS
    assert classic.sync(member_id="modern", generation_id=2).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_malformed_protocol_that_the_group_comes_to_use_refuses_the_downgrade() -> None:
    """848-MIG-12: only the first protocol of a member is read when it joins."""
    harness = with_topic()
    send(harness, joining(member_id="modern"))
    classic = Member(harness, protocols=("range", "sticky"))
    classic.metadata = {"sticky": b"\x00"}
    classic.join()
    classic.joined()
    other = Member(harness, protocols=("sticky",))
    other.join()
    assert send(harness, staying(-1, member_id="modern")).error == ErrorCode.GROUP_ID_NOT_FOUND
    assert len(group_in(harness).members) == 3
    harness.check_memory()


def test_transactional_commits_follow_the_members_epochs() -> None:
    """848-OFF-10: 22 for either protocol."""
    harness, classic = one_classic()
    send(harness, joining(member_id="modern"))

    def committed_by(member_id: str, epoch: int) -> ErrorCode:
        request = OffsetCommitRequest(
            group_id="group", member_id=member_id, generation_id_or_member_epoch=epoch
        )
        return check_commit(group_in(harness), request, [], 3, is_transactional=True)

    assert committed_by(classic.member_id, 1) == ErrorCode.NONE
    assert committed_by(classic.member_id, 7) == ErrorCode.ILLEGAL_GENERATION
    assert committed_by("modern", 7) == ErrorCode.ILLEGAL_GENERATION
    assert committed_by("nobody", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed_by("", -1) == ErrorCode.NONE
