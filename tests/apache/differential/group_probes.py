"""Classic groups, keys 10 to 16 and 42: a member's life in every version, and every wrong identity.

Not here: groups of several members and what happens when time runs out, which are the stories of
`tests/broker/groups/stories.py`, told to both sides as well.
"""

from contextlib import closing
from typing import Any

from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest
from kraft_wire.wire.generated.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kraft_wire.wire.generated.leave_group import LeaveGroupRequest, MemberIdentity
from kraft_wire.wire.generated.list_groups import ListGroupsRequest
from kraft_wire.wire.generated.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.apache.differential.probes import probe
from tests.apache.differential.side import NAMELESS, Side
from tests.broker.groups.doors import SocketDoor
from tests.broker.groups.requests import Member, subscription
from tests.broker.groups.stories import await_rebalance, joined

FIRST_STATIC = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3}
FIRST_ASKED_BACK = 4
FIRST_SEVERAL_LEAVE = 3
FIRST_SEVERAL_KEYS = 4
NEWEST_JOIN, NEWEST_SYNC = 9, 5


def join_request(group: str, member_id: str = "", **more: Any) -> JoinGroupRequest:
    """A consumer's request to join."""
    protocol = JoinGroupRequestProtocol(name="range", metadata=subscription("t"))
    fields: dict[str, Any] = {
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": [protocol],
    }
    return JoinGroupRequest(group_id=group, member_id=member_id, **(fields | more))


def member_of(side: Side, group: str, **more: Any) -> tuple[str, int]:
    """Make a stable group of one; return the member's id and generation."""
    first = side.prepare(join_request(group, **more), NEWEST_JOIN)
    if first.error_code:
        first = side.prepare(join_request(group, first.member_id, **more), NEWEST_JOIN)
    assert first.error_code == 0, first
    mine = SyncGroupRequestAssignment(member_id=first.member_id, assignment=b"mine")
    request = SyncGroupRequest(
        group_id=group,
        generation_id=first.generation_id,
        member_id=first.member_id,
        group_instance_id=more.get("group_instance_id"),
        assignments=[mine],
        protocol_type="consumer",
        protocol_name="range",
    )
    assert side.prepare(request, NEWEST_SYNC).error_code == 0
    return first.member_id, first.generation_id


def wrong_identities(group: str, member_id: str, generation_id: int) -> dict[str, dict[str, Any]]:
    """A right identity, and every way to get it wrong."""
    right = {"group_id": group, "member_id": member_id, "generation_id": generation_id}
    return {
        "right": right,
        "member": right | {"member_id": "stranger"},
        "no member": right | {"member_id": ""},
        "generation": right | {"generation_id": generation_id + 1},
        "old generation": right | {"generation_id": generation_id - 1},
        "no generation": right | {"generation_id": -1},
        "group": right | {"group_id": f"{group}-nowhere"},
        "no group": right | {"group_id": ""},
        "instance": right | {"group_instance_id": "stranger"},
    }


@probe(FindCoordinatorRequest)
def coordinators(side: Side, version: int) -> None:
    group = side.group("found")
    for key_type in (0, 9, -1):
        for keys in ([group], [""], [group, group], []):
            if version < FIRST_SEVERAL_KEYS:
                request = FindCoordinatorRequest(key=keys[0] if keys else "x", key_type=key_type)
            else:
                request = FindCoordinatorRequest(coordinator_keys=keys, key_type=key_type)
            side.ask(request, version, f"type {key_type} of {keys}")


@probe(JoinGroupRequest)
def joining(side: Side, version: int) -> None:
    group = side.group(f"join-{version}")
    first = side.ask(join_request(group), version, "without an id")
    member_id = first.member_id
    joined = side.ask(join_request(group, member_id), version, "with the id")
    side.ask(join_request(group, member_id), version, "again")
    other = JoinGroupRequestProtocol(name="other", metadata=b"?")
    side.ask(join_request(group, member_id, protocols=[other]), version, "another protocol")
    assert joined.error_code == 0


@probe(JoinGroupRequest)
def clients_without_a_name(side: Side, version: int) -> None:
    for line in ("", NAMELESS, "with space", "x" * 300):
        group = side.group(f"nameless-{version}-{line[:9]}")
        told = side.ask(join_request(group), version, f"client {line[:9]!r}", line=line)
        side.ask(join_request(group, told.member_id), version, "with its id", line=line)
        side.await_group(group)
        request = DescribeGroupsRequest(groups=[group])
        side.ask(request, min(version, 6), "as described", line=line)


@probe(JoinGroupRequest)
def refused_joins(side: Side, version: int) -> None:
    group = side.group(f"refused-{version}")

    def ask(question: str, name: str = group, member_id: str = "", **more: Any) -> None:
        side.ask(join_request(name, member_id, **more), version, question)

    ask("no group", "")
    for session_ms in (-1, 0, 5_999, 1_800_001):
        ask(f"session {session_ms}", session_timeout_ms=session_ms)
    ask("a stranger", member_id="stranger")
    ask("no protocols", protocols=[])
    ask("no protocol type", protocol_type="")
    ask("a static stranger", member_id="stranger", group_instance_id="one")
    member_of(side, group)
    ask("a stranger in a group", member_id="stranger")
    other = [JoinGroupRequestProtocol(name="x", metadata=b"")]
    ask("a protocol of nobody else", protocols=other)
    ask("another type", protocol_type="connect")
    ask("no protocols in a group", protocols=[])
    for instance in ("", "a b", "x" * 250, "."):
        name = f"{group}-{len(instance)}-{instance[:1]}"
        ask(f"instance {instance[:5]!r}", name, group_instance_id=instance)
    ask("negative rebalance time", f"{group}-negative", rebalance_timeout_ms=-1)


@probe(JoinGroupRequest, range(5, 10))
def static_members(side: Side, version: int) -> None:
    group = side.group(f"static-{version}")
    instance = {"group_instance_id": "one"}
    first = side.ask(join_request(group, **instance), version, "an instance")
    sync = SyncGroupRequest(
        group_id=group,
        generation_id=first.generation_id,
        member_id=first.member_id,
        group_instance_id="one",
        assignments=[SyncGroupRequestAssignment(member_id=first.member_id, assignment=b"a")],
    )
    side.ask(sync, min(version - 2, 4), "its assignment")
    again = side.ask(join_request(group, **instance), version, "the instance restarted")
    side.ask(join_request(group, first.member_id, **instance), version, "the old one")
    side.ask(join_request(group, again.member_id, **instance), version, "the new one")
    side.ask(join_request(group, "stranger", **instance), version, "a stranger")


@probe(SyncGroupRequest)
def syncs(side: Side, version: int) -> None:
    group = side.group(f"sync-{version}")
    identities = wrong_identities(group, *member_of(side, group))
    for question, identity in identities.items():
        static = "group_instance_id" in identity
        if static and version < FIRST_STATIC["SyncGroup"]:
            continue
        names: dict[str, Any] = {"protocol_type": "consumer", "protocol_name": "range"}
        if version < 5:
            names = {}
        side.ask(SyncGroupRequest(**identity, **names), version, question)
        if version >= 5 and question == "right":
            for wrong in ({"protocol_type": "x"}, {"protocol_name": "x"}, {"protocol_name": None}):
                side.ask(SyncGroupRequest(**identity, **(names | wrong)), version, f"{wrong}")


@probe(HeartbeatRequest)
def heartbeats(side: Side, version: int) -> None:
    group = side.group(f"heartbeat-{version}")
    for question, identity in wrong_identities(group, *member_of(side, group)).items():
        if "group_instance_id" in identity and version < FIRST_STATIC["Heartbeat"]:
            continue
        side.ask(HeartbeatRequest(**identity), version, question)
    static = side.group(f"heartbeat-static-{version}")
    member_id, generation_id = member_of(side, static, group_instance_id="one")
    if version >= FIRST_STATIC["Heartbeat"]:
        for instance in ("one", "two", None):
            identity = {"group_id": static, "member_id": member_id, "group_instance_id": instance}
            request = HeartbeatRequest(generation_id=generation_id, **identity)
            side.ask(request, version, f"instance {instance}")


@probe(LeaveGroupRequest)
def leaving(side: Side, version: int) -> None:
    group = side.group(f"leave-{version}")
    member_id, _ = member_of(side, group)

    def ask(question: str, name: str, *members: MemberIdentity) -> None:
        if version >= FIRST_SEVERAL_LEAVE:
            request = LeaveGroupRequest(group_id=name, members=list(members))
        else:
            request = LeaveGroupRequest(group_id=name, member_id=members[0].member_id)
        side.ask(request, version, question)

    stranger = MemberIdentity(member_id="stranger")
    ask("a stranger", group, stranger)
    ask("nobody", group, MemberIdentity())
    ask("an unknown group", f"{group}-nowhere", stranger)
    ask("no group", "", stranger)
    if version >= FIRST_SEVERAL_LEAVE:
        ask("no members", group)
        ask("no members of nowhere", f"{group}-nowhere")
        ask("an unknown instance", group, MemberIdentity(group_instance_id="x"))
        both = MemberIdentity(member_id=member_id, group_instance_id="x")
        ask("an instance that is none", group, both)
    ask("itself", group, MemberIdentity(member_id=member_id))
    ask("once more", group, MemberIdentity(member_id=member_id))


@probe(DescribeGroupsRequest)
def descriptions(side: Side, version: int) -> None:
    stable, empty = side.group("described"), side.group("described-empty")
    if not side.once("described"):
        member_of(side, stable)
        member_id, _ = member_of(side, empty)
        gone = LeaveGroupRequest(group_id=empty, members=[MemberIdentity(member_id=member_id)])
        side.prepare(gone, 5)
    for operations in (False, True):
        for names in ([stable], [empty], [side.name("nowhere")], [""], [stable, stable, empty], []):
            request = DescribeGroupsRequest(groups=names, include_authorized_operations=operations)
            side.ask(request, version, f"{names} {operations}")


@probe(ListGroupsRequest)
def lists(side: Side, version: int) -> None:
    mine = {side.group("listed"), side.group("listed-empty")}
    if not side.once("listed"):
        member_of(side, side.name("listed"))
        member_id, _ = member_of(side, side.name("listed-empty"))
        gone = [MemberIdentity(member_id=member_id)]
        side.prepare(LeaveGroupRequest(group_id=side.name("listed-empty"), members=gone), 5)

    def ask(**filters: Any) -> None:
        answer = side.prepare(ListGroupsRequest(**filters), version)
        found = [
            (each.group_id, each.protocol_type, each.group_state, each.group_type)
            for each in answer.groups
            if each.group_id in mine
        ]
        side.note(f"{filters}", (answer.error_code, sorted(found)))

    ask()
    if version >= 4:
        for states in (["Stable"], ["empty"], ["Dead"], ["x"], ["Stable", "Empty"]):
            ask(states_filter=states)
    if version >= 5:
        for types in (["classic"], ["Consumer"], ["share"], ["x"], ["CLASSIC", "x"]):
            ask(types_filter=types)


@probe(DeleteGroupsRequest)
def deletions(side: Side, version: int) -> None:
    stable = side.group(f"deleted-{version}")
    empty = side.group(f"deleted-empty-{version}")
    member_of(side, stable)
    member_id, _ = member_of(side, empty)
    gone = [MemberIdentity(member_id=member_id)]
    side.prepare(LeaveGroupRequest(group_id=empty, members=gone), 5)
    nowhere = side.name("nowhere")
    for names in ([stable], [nowhere], [""], [empty, stable], [empty], [nowhere, nowhere], []):
        side.ask(DeleteGroupsRequest(groups_names=names), version, f"{names}", hashed=True)


def pair(door: SocketDoor, group: str, version: int) -> tuple[Member, Member]:
    """Two members, the second of which has just asked to join; its answer waits for the first."""
    more: dict[str, Any] = {"join_version": version, "sync_version": min(version, NEWEST_SYNC)}
    first = joined(Member(door, group, client_id="first", connection=1, **more))
    second = Member(door, group, client_id="second", connection=2, **more)
    second.join_once()
    if version >= FIRST_ASKED_BACK:
        second.member_id = second.joining.response.member_id
        second.join_once()
    await_rebalance(second)
    return first, second


@probe(JoinGroupRequest)
def two_members(side: Side, version: int) -> None:
    """A rebalance, a generation, and a farewell; every member on a connection of its own."""
    beat, left, synced = min(version, 4), min(version, 5), min(version, NEWEST_SYNC)
    with closing(SocketDoor(side.bootstrap)) as door:
        leader, follower = pair(door, side.group(f"pair-{version}"), version)
        side.note("told to rejoin", leader.heartbeat(beat))
        leader.join_once()
        for member in (leader, follower):
            side.note_message(member.client_id, member.joining.response, version)
            member.joined()
        waiting = follower.sync()
        leader.sync({member.member_id: member.client_id.encode() for member in (leader, follower)})
        for reply in (leader.syncing, waiting):
            side.note_message("assignment", reply.response, synced)
        side.note("alive", [leader.heartbeat(beat), follower.heartbeat(beat)])
        absent = "a-topic-of-no-pair"  # whatever other tests have made on the shared node
        side.note("committed", leader.commit(absent, version=min(version + 2, 9)))
        leader.topics = ("another",)
        leader.join_once()
        await_rebalance(leader)
        side.note("told to rejoin", follower.heartbeat(beat))
        follower.join_once()
        for member in (leader, follower):
            side.note_message(member.client_id, member.joining.response, version)
        side.note("late", [leader.heartbeat(beat), follower.heartbeat(beat)])
        leader.joined()
        follower.joined()
        waiting = follower.sync()
        side.note_message("leader leaves", leader.leave(left).response, left)
        side.note_message("waiting", waiting.response, synced)
