"""Stories of groups that any broker must answer alike; each returns what it was answered.

Told once to our coordinator and once to Apache's (`test_against_apache.py`). Group ids begin with
the story's name, so that stories do not meet.

Members have connections of their own, and a broker takes requests of several connections in any
order. So what a story asks next, on another connection, must not depend on whether a request whose
answer was not looked at has arrived: either `await_rebalance` tells that it has, or the answer is
looked at (`test_late_requests.py` delivers late what a story does not wait for).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kraft_wire.model import Uuid
from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.leave_group import LeaveGroupRequest, MemberIdentity
from kraft_wire.wire.generated.list_groups import ListGroupsRequest
from kraft_wire.wire.generated.offset_commit import OffsetCommitRequest
from kraft_wire.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.broker.groups.requests import Door, Member, commit_topic, fetch_group, moments

Story = Callable[[Door, str, Uuid], Iterator[Any]]
TOPIC = "topic"
INVALID_REQUEST = 42
SESSION_MS = REBALANCE_MS = 60_000
SHORT_MS = 6_000
"""For those whose time is to run out: what a busy machine may need between two requests."""


@dataclass
class PatientMember(Member):
    """A member that a stall of the machine does not cost its place."""

    session_timeout_ms: int = SESSION_MS
    rebalance_timeout_ms: int = REBALANCE_MS


def await_state(member: Member, state: str) -> None:
    """Wait until a member's group is described in a state.

    Apache shows a group once the record that creates it is committed, which is after the answer to
    the first that joins; and what a member asked that has to wait is under way for a while.
    """
    request = DescribeGroupsRequest(groups=[member.group_id])
    for _ in moments():
        (group,) = member.door.send(request, 5, connection=9).response.groups
        if group.group_state == state:
            return
    raise AssertionError(f"{member.group_id} is {group.group_state}, not {state}")


def await_rebalance(member: Member) -> None:
    """Wait until a parked request of a member has arrived, so that the next one comes after it."""
    await_state(member, "PreparingRebalance")


def joined(member: Member) -> Member:
    """Take a lone member through join and sync."""
    member.join()
    member.joined()
    member.sync({member.member_id: b"assignment"})
    assert member.syncing.error == 0
    return member


def pair(door: Door, group: str, **fields: Any) -> tuple[Member, Member]:
    """Return leader and follower of a stable group of two."""
    first = joined(PatientMember(door, group, client_id="first", connection=1, **fields))
    second = PatientMember(door, group, client_id="second", connection=2, **fields)
    second.join()
    await_rebalance(second)
    first.join()
    leader, follower = sorted((first, second), key=lambda m: not m.joined().members)
    follower.sync()
    leader.sync({m.member_id: m.client_id.encode() for m in (leader, follower)})
    assert follower.syncing.error == leader.syncing.error == 0
    return leader, follower


def static_pair(door: Door, group: str, **fields: Any) -> tuple[Member, Member]:
    """Return leader and follower of a stable group of two static members."""
    one = {"client_id": "first", "instance_id": "one", "connection": 1}
    two = {"client_id": "second", "instance_id": "two", "connection": 2}
    first = joined(PatientMember(door, group, **(fields | one)))
    second = PatientMember(door, group, **(fields | two))
    second.join_once()
    await_rebalance(second)
    first.join_once()
    leader, follower = sorted((first, second), key=lambda m: not m.joined().members)
    follower.sync()
    leader.sync({m.member_id: m.client_id.encode() for m in (leader, follower)})
    assert follower.syncing.error == leader.syncing.error == 0
    return leader, follower


def restarted(member: Member, **changes: Any) -> Member:
    """Return the instance as it comes back: without its member id."""
    fields = {"client_id": member.client_id, "instance_id": member.instance_id, "connection": 3}
    return PatientMember(member.door, member.group_id, **(fields | changes))


def joining_in_every_version(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    for version in range(10):
        member = PatientMember(door, f"{group}-{version}", join_version=version)
        yield member.join_once().response
        if version >= 4:
            yield member.join().response
        member.joined()
        member.sync_version = min(version, 5)
        yield member.sync({member.member_id: b"mine", "stranger": b"lost"}).response
        yield member.sync().response
        yield member.heartbeat(min(version, 4))
        yield member.leave(min(version, 5)).response
        yield member.leave(min(version, 5)).response


def refused_joins(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    for version in (0, 4, 6, 7, 9):
        name = f"{group}-{version}"
        yield PatientMember(door, "", join_version=version).join_once().response
        short = PatientMember(door, name, session_timeout_ms=5_999, join_version=version)
        yield short.join_once().response
        stranger = PatientMember(door, name, member_id="stranger", join_version=version)
        yield stranger.join_once().response
        yield PatientMember(door, name, protocols=(), join_version=version).join_once().response
        yield PatientMember(door, name, protocol_type="", join_version=version).join_once().response
        joined(PatientMember(door, name))
        yield PatientMember(door, name, protocols=("x",), join_version=version).join_once().response
        other = PatientMember(door, name, protocol_type="connect", join_version=version)
        yield other.join_once().response
        yield stranger.join_once().response


def two_members(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    leader, follower = pair(door, group)
    yield leader.joining.response.generation_id
    yield follower.joining.response.members
    yield follower.heartbeat(), leader.heartbeat()
    yield follower.join_once().response
    leader.join_once()
    await_rebalance(leader)
    yield follower.heartbeat()
    yield follower.commit(TOPIC)
    yield follower.sync().error
    follower.join_once()
    yield leader.joined().generation_id, follower.joined().generation_id
    yield follower.commit(TOPIC)
    yield follower.heartbeat()
    waiting = follower.sync()
    yield leader.leave().response
    yield waiting.error
    yield follower.heartbeat()
    follower.join_once()
    yield follower.joined().generation_id, len(follower.joining.response.members)


def changed_subscription(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    leader, follower = pair(door, group)
    follower.topics = ("topic", "other")
    follower.join_once()
    await_rebalance(follower)
    yield leader.heartbeat()
    leader.join_once()
    yield follower.joined().generation_id, leader.joined().generation_id


def wrong_identities(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    leader, _ = pair(door, group)
    for wrong in ({"member_id": "x"}, {"generation_id": 99}, {"group_instance_id": "x"}):
        yield leader.heartbeat(**wrong)
        yield leader.sync(**wrong).response
    yield leader.heartbeat(group_id="nowhere"), leader.heartbeat(group_id="")
    yield leader.sync(group_id="nowhere").response, leader.sync(group_id="").response
    yield leader.sync(protocol_name="x").error, leader.sync(protocol_type="x").error
    yield leader.sync(protocol_name=None).error
    for version in (0, 2, 3, 5):
        stranger = PatientMember(door, group, member_id="stranger")
        yield stranger.leave(version).response
        nowhere = PatientMember(door, f"{group}-nowhere", member_id="stranger")
        yield nowhere.leave(version).response


def static_members(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    for version in (5, 8, 9):
        leader, follower = static_pair(door, f"{group}-{version}")
        again = restarted(follower, join_version=version)
        yield again.join_once().response
        again.joined()
        yield bytes(again.sync().response.assignment)
        yield follower.heartbeat(), follower.sync().error, follower.join_once().response
        yield follower.commit(TOPIC)
        yield follower.leave().response
        first = restarted(leader, join_version=version, connection=4)
        yield first.join_once().response
        first.joined()
        yield bytes(first.sync().response.assignment)
        yield leader.heartbeat(), first.heartbeat(), again.heartbeat()


def fenced_while_joining(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    leader, follower = static_pair(door, group)
    leader.topics = ("other",)
    leader.join_once()
    await_rebalance(leader)
    again = restarted(leader, topics=("other",))
    again.join_once()
    yield leader.joining.response
    follower.join_once()
    yield again.joined().generation_id, follower.joined().generation_id
    follower.sync()
    third = restarted(follower, connection=5)
    third.join_once()
    yield follower.syncing.response
    await_rebalance(third)
    again.join_once()
    yield again.joined().generation_id, third.joined().generation_id


def removal_by_instance(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    leader, follower = static_pair(door, group)
    leaving = [
        MemberIdentity(group_instance_id="two", reason="gone"),
        MemberIdentity(group_instance_id="nobody"),
        MemberIdentity(member_id="nobody"),
        MemberIdentity(),
    ]
    for version in (3, 4, 5):
        yield door.send(LeaveGroupRequest(group_id=group, members=leaving), version).response
    yield leader.heartbeat(), follower.heartbeat()
    yield door.send(LeaveGroupRequest(group_id=group), 5).response


def several_protocols(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    first = PatientMember(door, group, protocols=("a", "b", "c"), connection=1)
    joined(first)
    second = PatientMember(door, group, protocols=("b", "c"), connection=2)
    second.join()
    await_rebalance(second)
    third = PatientMember(door, group, protocols=("c", "b"), connection=3)
    assert third.join_once().error == 79
    first.join_once()
    third.member_id = third.joining.response.member_id
    third.join_once()
    yield {m.joined().protocol_name for m in (first, second, third)} == {"b"}


def commits_in_every_version(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    for version in range(2, 11):
        name = f"{group}-{version}"
        topics = [
            commit_topic(TOPIC, 7, metadata="note", topic_id=topic_id),
            commit_topic(TOPIC, 8, partition=9, topic_id=topic_id),
            commit_topic("nowhere" if version < 10 else "", 9, topic_id=Uuid(b"\x07" * 16)),
        ]
        response = door.send(OffsetCommitRequest(group_id=name, topics=topics), version).response
        yield from _without_ids(response, topic_id)
        stale = OffsetCommitRequest(
            group_id=f"{name}-unknown",
            generation_id_or_member_epoch=3,
            member_id="x",
            topics=[commit_topic(TOPIC, 7, topic_id=topic_id)],
        )
        yield from _without_ids(door.send(stale, version).response, topic_id)
        long = OffsetCommitRequest(
            group_id=name, topics=[commit_topic(TOPIC, 1, metadata="x" * 4097, topic_id=topic_id)]
        )
        yield from _without_ids(door.send(long, version).response, topic_id)
        for asked in (version, 1):
            yield from _fetches(door, name, asked, topic_id)


def commits_of_members(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    member = PatientMember(door, group)
    member.join()
    member.joined()
    yield member.commit(TOPIC)
    member.sync({member.member_id: b"x"})
    assert member.syncing.error == 0
    yield member.commit(TOPIC), member.commit(TOPIC, generation_id_or_member_epoch=5)
    yield member.commit(TOPIC, member_id="x"), member.commit(TOPIC, group_instance_id="x")
    yield member.commit(TOPIC, member_id="", generation_id_or_member_epoch=-1)
    yield member.commit(TOPIC, generation_id_or_member_epoch=-1)
    member.leave()
    yield member.commit(TOPIC), member.commit(TOPIC, generation_id_or_member_epoch=-1)
    yield member.commit(TOPIC, group_id="", generation_id_or_member_epoch=-1, member_id="")
    yield door.send(DeleteGroupsRequest(groups_names=[""]), 2).response


def fetches_of_nothing(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    for version in range(1, 11):
        yield from _fetches(door, f"{group}-unknown", version, topic_id)
    yield door.send(fetch_group("", TOPIC), 8).response
    stranger = OffsetFetchRequestTopics(topic_id=Uuid(b"\x07" * 16), partition_indexes=[0, 1])
    request = OffsetFetchRequestGroup(group_id=group, topics=[stranger])
    yield door.send(OffsetFetchRequest(groups=[request]), 10).response
    request.topics = [OffsetFetchRequestTopics(name="nowhere", partition_indexes=[0])]
    yield door.send(OffsetFetchRequest(groups=[request]), 9).response


def descriptions(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    leader, follower = static_pair(door, group)
    door.send(DeleteGroupsRequest(groups_names=[""]), 2)  # whoever else made it there
    for version in range(7):
        names = [group, f"{group}-unknown", ""]
        request = DescribeGroupsRequest(groups=names, include_authorized_operations=version >= 3)
        yield door.send(request, version).response
    follower.topics = ("other",)
    follower.join_once()
    await_rebalance(follower)
    yield door.send(DescribeGroupsRequest(groups=[group]), 6).response
    leader.join_once()
    leader.joined()
    follower.joined()
    yield door.send(DescribeGroupsRequest(groups=[group]), 6).response
    yield leader.leave().response, follower.leave().response
    yield door.send(DescribeGroupsRequest(groups=[group]), 6).response


def lists(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    joined(PatientMember(door, f"{group}-stable"))
    PatientMember(door, f"{group}-simple").commit(TOPIC)
    pending = PatientMember(door, f"{group}-pending")
    assert pending.join_once().error == ErrorCode.MEMBER_ID_REQUIRED
    await_state(pending, "Empty")
    for version in range(6):
        yield _listed(door, group, version)
    for states, types in ((["stable"], []), (["X"], []), (["Empty"], ["CLASSIC"]), ([], ["x"])):
        yield _listed(door, group, 5, states_filter=states, types_filter=types)


def deletions(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    member = joined(PatientMember(door, f"{group}-stable"))
    PatientMember(door, f"{group}-simple").commit(TOPIC)
    for version in range(3):
        names = [f"{group}-stable", f"{group}-simple", f"{group}-unknown", f"{group}-unknown"]
        yield door.send(DeleteGroupsRequest(groups_names=names), version).response
    yield door.send(fetch_group(f"{group}-simple"), 9).response
    member.leave()
    names = [f"{group}-stable"]
    yield door.send(DeleteGroupsRequest(groups_names=names), 2).response
    yield member.heartbeat(), member.join_once().response


def offset_deletions(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    def delete(name: str, *topics: str) -> Any:
        partitions = [OffsetDeleteRequestPartition(partition_index=n) for n in (0, 5)]
        asked = [OffsetDeleteRequestTopic(name=topic, partitions=partitions) for topic in topics]
        return door.send(OffsetDeleteRequest(group_id=name, topics=asked), 0).response

    yield delete(f"{group}-unknown", TOPIC), delete("", TOPIC)
    PatientMember(door, f"{group}-simple").commit(TOPIC)
    yield delete(f"{group}-simple", TOPIC, "nowhere")
    reader = joined(PatientMember(door, f"{group}-reader"))
    reader.commit(TOPIC)
    yield delete(f"{group}-reader", TOPIC)
    other = joined(PatientMember(door, f"{group}-other", topics=("other",)))
    other.commit(TOPIC)
    yield delete(f"{group}-other", TOPIC)
    unreadable = joined(PatientMember(door, f"{group}-unreadable", metadata={"range": b"?"}))
    unreadable.commit(TOPIC)
    yield delete(f"{group}-unreadable", TOPIC)
    joined(PatientMember(door, f"{group}-connect", protocol_type="connect"))
    yield delete(f"{group}-connect", TOPIC)


def odd_requests(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    nameless = PatientMember(door, f"{group}-nameless", client_id=None)  # type: ignore[arg-type]  # allowed on the wire
    yield nameless.join().response
    nameless.joined()
    yield nameless.sync({nameless.member_id: b"x"}).response
    yield door.send(DescribeGroupsRequest(groups=[f"{group}-nameless"]), 6).response
    spaced = joined(PatientMember(door, f"{group} \u00e9 \U0001f600", client_id="a-b c"))
    yield spaced.heartbeat(), spaced.commit(TOPIC, offset=-1), spaced.commit(TOPIC, offset=1 << 62)
    impatient = PatientMember(door, f"{group}-impatient", rebalance_timeout_ms=-1)
    yield impatient.join().response
    impatient.joined()
    unread = PatientMember(door, f"{group}-unread", metadata={"range": b""})
    joined(unread)
    yield door.send(DescribeGroupsRequest(groups=[f"{group}-unread"]), 5).response
    repeated = [commit_topic(TOPIC, n, topic_id=topic_id) for n in (1, 2)]
    for version in (2, 9, 10):
        request = OffsetCommitRequest(group_id=f"{group}-twice-{version}", topics=repeated)
        yield from _without_ids(door.send(request, version).response, topic_id)
        yield from _fetches(door, f"{group}-twice-{version}", 9, topic_id)
    groups = [fetch_group(f"{group}-twice-9").groups[0]] * 2
    yield door.send(OffsetFetchRequest(groups=groups), 9).response
    yield door.send(OffsetFetchRequest(groups=[]), 9).response
    yield door.send(OffsetCommitRequest(group_id=group, topics=[]), 9).response
    yield door.send(DescribeGroupsRequest(groups=[]), 6).response
    yield door.send(DeleteGroupsRequest(groups_names=[]), 2).response


def time_runs_out(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    leader, follower = pair(door, group, rebalance_timeout_ms=SHORT_MS)
    leader.join_once()
    yield leader.joined().generation_id, len(leader.joining.response.members)
    yield follower.heartbeat(), follower.sync().error, follower.join_once().error
    one, two = static_pair(door, f"{group}-static", rebalance_timeout_ms=SHORT_MS)
    one.join_once()
    yield one.joined().generation_id, one.joining.response.members
    yield two.heartbeat(), two.sync().error
    one.sync({one.member_id: b"mine"})
    yield two.join_once().response
    first = joined(PatientMember(door, f"{group}-lost", session_timeout_ms=20_000, connection=6))
    lost = PatientMember(door, f"{group}-lost", session_timeout_ms=SHORT_MS, connection=7)
    yield lost.join_once().response
    first.join_once()
    yield first.joined().generation_id
    lost.member_id = lost.joining.response.member_id
    yield lost.join_once().response


def coordinators(door: Door, group: str, topic_id: Uuid) -> Iterator[Any]:
    for version in range(7):
        for key_type in (0, 9) if version else (0,):
            several = (
                {"coordinator_keys": [group, f"{group}-2"]} if version >= 4 else {"key": group}
            )
            request = FindCoordinatorRequest(key_type=key_type, **several)
            response = door.send(request, version).response
            for place in (response, *response.coordinators):
                place.port = min(place.port, 1)
                if place.error_code == INVALID_REQUEST:
                    # Apache words this one at length; ours says the same in its own words.
                    place.error_message = ""
            yield response


STORIES: list[Story] = [
    coordinators,
    odd_requests,
    time_runs_out,
    joining_in_every_version,
    refused_joins,
    two_members,
    changed_subscription,
    wrong_identities,
    static_members,
    fenced_while_joining,
    removal_by_instance,
    several_protocols,
    commits_in_every_version,
    commits_of_members,
    fetches_of_nothing,
    descriptions,
    lists,
    deletions,
    offset_deletions,
]


def _fetches(door: Door, group: str, version: int, topic_id: Uuid) -> Iterator[Any]:
    """Fetch two partitions of a topic and, where the version allows it, everything."""
    asked = [0, 3]
    if version < 8:
        topics = [OffsetFetchRequestTopic(name=TOPIC, partition_indexes=asked)]
        yield door.send(OffsetFetchRequest(group_id=group, topics=topics), version).response
        if version >= 2:
            everything = OffsetFetchRequest(group_id=group, topics=None)
            yield door.send(everything, version).response
        return
    named = OffsetFetchRequestTopics(name=TOPIC, topic_id=topic_id, partition_indexes=asked)
    for topics_asked in ([named], None):
        wanted = OffsetFetchRequestGroup(group_id=group, topics=topics_asked)
        request = OffsetFetchRequest(groups=[wanted], require_stable=True)
        response = door.send(request, version).response
        for topic in response.groups[0].topics:
            topic.topic_id = Uuid(bytes(16)) if topic.topic_id == topic_id else topic.topic_id
        yield response


def _without_ids(response: Any, topic_id: Uuid) -> Iterator[Any]:
    """The two brokers' topics have different ids; say only whether it is the one."""
    for topic in response.topics:
        if topic.topic_id == topic_id:
            topic.topic_id = Uuid(bytes(16))
    yield response


def _listed(door: Door, group: str, version: int, **filters: Any) -> Any:
    response = door.send(ListGroupsRequest(**filters), version).response
    response.groups = [g for g in response.groups if g.group_id.startswith(group)]
    return response
