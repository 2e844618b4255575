"""The bookkeeping of a classic group: members, leaders, votes, and its memory."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.classic.group import AwaitedAssignments, ClassicGroup, set_awaited
from kraft_wire.broker.groups.classic.member import Member, ParkedRequest
from kraft_wire.broker.groups.classic.states import GroupEvent, GroupState
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.groups.requests import subscription

WAITING = ParkedRequest(ReplyTo(1, 1), 9)
GROUP_BYTES, MEMBER_BYTES, PENDING_BYTES = 1_024, 1_536, 512


class Groups:
    """One group with the memory that it is counted in."""

    def __init__(self) -> None:
        self.memory = MemoryUse(lambda: 1 << 30)
        self.group = ClassicGroup("group", self.memory, 7)

    def add(self, member_id: str, *protocols: str, joins: bool = True, **fields: Any) -> Member:
        """Add a member, whose metadata is the protocol's name unless said otherwise."""
        metadata = fields.pop("metadata", None)
        usual: dict[str, Any] = {
            "member_id": member_id,
            "group_instance_id": None,
            "client_id": "c",
            "client_host": "/h",
            "rebalance_timeout_ms": 30_000,
            "session_timeout_ms": 10_000,
            "protocol_type": "consumer",
            "protocols": {each: metadata or each.encode() for each in protocols or ("range",)},
        }
        member = Member(**{**usual, **fields})
        self.group.add(member, WAITING if joins else None)
        return member


@pytest.mark.parametrize(
    ("protocol_type", "protocols", "alone", "beside"),
    [
        ("consumer", ["range"], True, True),
        ("consumer", ["odd", "sticky"], True, False),
        ("consumer", ["odd"], True, False),
        ("consumer", [], False, False),
        ("connect", ["range"], True, False),
        ("", ["range"], False, False),
    ],
)
def test_newcomer_has_a_protocol_of_all_members(
    protocol_type: str, protocols: list[str], alone: bool, beside: bool
) -> None:
    """`ClassicGroup.supportsProtocols`: an empty group takes any kind that is named."""
    groups = Groups()
    named = dict.fromkeys(protocols, b"")
    assert groups.group.supports(protocol_type, named) is alone
    groups.add("a", "range", "sticky")
    groups.add("b", "range", "odd")
    groups.group.apply(GroupEvent.REBALANCE_STARTED, 8)
    assert groups.group.supports(protocol_type, named) is beside
    assert groups.group.supports("consumer", {"odd": b"", "range": b""})


@pytest.mark.parametrize(
    ("members", "chosen"),
    [
        (["x y", "x y"], "x"),
        (["y x", "x y", "x y"], "x"),
        (["y x", "x y"], "y"),
        (["z x", "z x", "x"], "x"),
        (["z y x", "x y", "x y z"], "x"),
        (["z x y", "y x", "y x"], "y"),
    ],
)
def test_each_member_votes_for_its_first_common_protocol(members: list[str], chosen: str) -> None:
    """Of equal votes the first; what a member lacks is no candidate."""
    groups = Groups()
    for number, protocols in enumerate(members):
        groups.add(str(number), *protocols.split())
    assert groups.group.select_protocol() == chosen
    groups.group.apply(GroupEvent.REBALANCE_STARTED, 8)
    groups.group.form_generation(9)
    group = groups.group
    found = (group.protocol_name, group.generation_id, group.state, group.state_timestamp_ms)
    assert found == (chosen, 1, GroupState.COMPLETING_REBALANCE, 9)


@pytest.mark.parametrize(
    ("member_id", "instance_id", "error"),
    [
        ("a", None, ErrorCode.NONE),
        ("s", None, ErrorCode.NONE),
        ("s", "i", ErrorCode.NONE),
        ("gone", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("s", "other", ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", "i", ErrorCode.FENCED_INSTANCE_ID),
        ("gone", "i", ErrorCode.FENCED_INSTANCE_ID),
    ],
)
def test_request_comes_from_a_current_member(
    member_id: str, instance_id: str | None, error: ErrorCode
) -> None:
    groups = Groups()
    groups.add("a")
    groups.add("s", group_instance_id="i")
    assert groups.group.validate_member(member_id, instance_id) == error


def test_leader_that_leaves_is_followed_by_the_earliest_member() -> None:
    groups = Groups()
    group = groups.group
    for each in "abc":
        groups.add(each)
    group.remove("b")
    assert (group.leader_id, list(group.members), group.joined_count) == ("a", ["a", "c"], 2)
    assert group.remove("unknown") is None
    group.remove("a")
    assert group.leader_id == "c"
    group.remove("c")
    assert (group.leader_id, group.joined_count, group.all_joined) == (None, 0, True)
    assert groups.memory.total_bytes == GROUP_BYTES + len("group")


@pytest.mark.parametrize(
    ("joined", "leader", "is_elected"),
    [("abc", "a", True), ("bc", "b", True), ("c", "c", True), ("", "a", False)],
)
def test_leader_that_has_not_joined_is_followed_by_the_first_that_has(
    joined: str, leader: str, is_elected: bool
) -> None:
    groups = Groups()
    assert groups.group.elect_joined_leader() is False
    for each in "abc":
        groups.add(each, joins=each in joined)
    assert groups.group.elect_joined_leader() is is_elected
    assert groups.group.leader_id == leader
    waits = [each.member_id for each in groups.group.not_yet_rejoined()]
    assert waits == [each for each in "abc" if each not in joined]
    assert groups.group.all_joined is (joined == "abc")


def test_restarted_static_member_has_all_of_its_former_self() -> None:
    groups = Groups()
    group = groups.group
    former = groups.add("old", "range", group_instance_id="i", rebalance_timeout_ms=5)
    groups.add("other")
    group.set_assignment(former, b"mine")
    group.pending_sync_members.update(dict.fromkeys(("old", "other")))
    before = groups.memory.total_bytes
    old, new = group.replace_static("i", "new")
    assert old is former
    assert new == Member(
        member_id="new",
        group_instance_id="i",
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=5,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols={"range": b"range"},
        assignment=b"mine",
    )
    assert (list(group.members), group.static_members) == (["other", "new"], {"i": "new"})
    assert (group.leader_id, group.joined_count) == ("new", 1)
    assert list(group.pending_sync_members) == ["other", "new"]
    assert groups.memory.total_bytes == before == group.size_bytes
    _, newer = group.replace_static("i", "newer")
    assert (newer.member_id, group.joined_count) == ("newer", 1)


def test_memory_of_a_group_is_that_of_what_it_has() -> None:
    groups = Groups()
    group, memory = groups.group, groups.memory
    own = GROUP_BYTES + len("group")
    assert memory.total_bytes == own
    group.add_pending("given")
    assert (memory.total_bytes, group.all_joined) == (own + PENDING_BYTES + 5, False)
    member = groups.add("given", "range", metadata=b"123")
    own += MEMBER_BYTES + len("range") + 3
    assert (memory.total_bytes, group.all_joined) == (own, True)
    group.set_assignment(member, b"four")
    group.set_assignment(member, b"seven..")
    assert memory.total_bytes == own + 7
    set_awaited(group, AwaitedAssignments(3, {"given": b"12345", "b": b"6"}))
    set_awaited(group, AwaitedAssignments(4, {"given": b"12"}))
    assert memory.total_bytes == own + 7 + 2
    set_awaited(group, None)
    group.update(member, {"x": b"", "yy": b"5"}, 60_000, 20_000, None)
    assert memory.total_bytes == GROUP_BYTES + 5 + MEMBER_BYTES + 4 + 7
    assert (member.rebalance_timeout_ms, member.session_timeout_ms) == (60_000, 20_000)
    assert (group.joined_count, group.rebalance_timeout_ms) == (0, 60_000)
    assert group.select_protocol() == "x"
    group.release()
    assert (memory.total_bytes, group.size_bytes) == (0, 0)


@pytest.mark.parametrize(("timeouts", "longest"), [([], 0), ([5, 9, 7], 9), ([-3], 0)])
def test_rebalance_waits_for_the_slowest_member(timeouts: list[int], longest: int) -> None:
    groups = Groups()
    for number, each in enumerate(timeouts):
        groups.add(str(number), rebalance_timeout_ms=each)
    assert groups.group.rebalance_timeout_ms == longest


@pytest.mark.parametrize(
    ("protocol_type", "metadata", "topics", "reads"),
    [
        ("consumer", subscription("b", "a"), ["b", "a"], {"a": True, "c": False}),
        ("consumer", b"\0", None, {"a": True, "c": True}),
        ("connect", subscription("a"), None, {"a": False, "c": False}),
    ],
)
def test_topics_of_a_group_are_those_of_consumers(
    protocol_type: str, metadata: bytes, topics: list[str] | None, reads: dict[str, bool]
) -> None:
    """Consumers whose metadata cannot be read count as readers of all topics."""
    groups = Groups()
    group = groups.group
    for number in range(2):
        groups.add(str(number), "range", metadata=metadata, protocol_type=protocol_type)
    assert group.read_subscriptions() is None
    group.apply(GroupEvent.REBALANCE_STARTED, 8)
    group.form_generation(9)
    assert (None if group.subscribed_topics is None else list(group.subscribed_topics)) == topics
    assert {topic: group.is_subscribed_to(topic) for topic in reads} == reads
