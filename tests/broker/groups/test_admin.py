"""Listing, describing and deleting groups; finding their coordinator."""

from __future__ import annotations

import pytest

from kraft_wire.broker.groups.offsets_topic import group_partition, java_string_hash
from kraft_wire.wire.generated.create_topics import CreateTopicsRequest
from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.list_groups import ListGroupsRequest
from tests.broker.groups.harness import Harness
from tests.broker.groups.requests import Member, committed, finish_rebalance, subscription


def harness_with_groups() -> Harness:
    """A stable group `stable` and one that only committed offsets, `simple`."""
    harness = Harness(offsets_partitions=5)
    harness.create_topic("topic")
    member = Member(harness, group_id="stable", instance_id="instance")
    member.join_once()
    harness.settle()
    finish_rebalance(member)
    Member(harness, group_id="simple").commit()
    return harness


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


@pytest.mark.parametrize("version", range(7))
def test_describe_shows_members_of_a_stable_group(version: int) -> None:
    response = (
        harness_with_groups().send(DescribeGroupsRequest(groups=["stable"]), version).response
    )
    (group,) = response.groups
    assert (group.group_state, group.protocol_type, group.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    (member,) = group.members
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert member.group_instance_id == ("instance" if version >= 4 else None)
    assert bytes(member.member_metadata) == subscription("topic")
    assert bytes(member.member_assignment) == member.member_id.encode()
    assert group.authorized_operations == -(1 << 31)


@pytest.mark.parametrize("version", range(7))
def test_describe_of_a_group_that_does_not_exist_is_dead(version: int) -> None:
    response = harness_with_groups().send(DescribeGroupsRequest(groups=["none"]), version).response
    (group,) = response.groups
    assert group.group_state == "Dead"
    expected = (ErrorCode.NONE, None)
    if version >= 6:
        expected = (ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found.")
    assert (group.error_code, group.error_message) == expected


def test_describe_shows_all_operations_when_asked() -> None:
    request = DescribeGroupsRequest(groups=["stable", "none"], include_authorized_operations=True)
    response = harness_with_groups().send(request, 6).response
    assert [g.authorized_operations for g in response.groups] == [0b110101001000, -(1 << 31)]


@pytest.mark.parametrize("version", range(3))
def test_delete_removes_empty_groups_and_refuses_others(version: int) -> None:
    harness = harness_with_groups()
    request = DeleteGroupsRequest(groups_names=["stable", "simple", "none", "simple"])
    response = harness.send(request, version).response
    assert [(result.group_id, result.error_code) for result in response.results] == [
        ("stable", ErrorCode.NON_EMPTY_GROUP),
        ("simple", ErrorCode.NONE),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert committed(harness, "simple") == {}
    again = harness.restart(offsets_partitions=5)
    listed = again.send(ListGroupsRequest(), 5).response.groups
    assert [group.group_id for group in listed] == ["stable"]


def test_delete_that_cannot_be_stored_leaves_the_group() -> None:
    harness = harness_with_groups()
    harness.store.refusals = [ErrorCode.NOT_ENOUGH_REPLICAS]
    request = DeleteGroupsRequest(groups_names=["simple"])
    response = harness.send(request, 2).response
    assert response.results[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert committed(harness, "simple") == {("topic", 0): 1}


@pytest.mark.parametrize("version", range(7))
def test_find_coordinator_names_the_leader_of_the_group_s_partition(version: int) -> None:
    request = FindCoordinatorRequest(key="group", coordinator_keys=["group", "other"])
    if version < 4:
        request.coordinator_keys = []
        response = Harness().send(request, version).response
        found = [(response.error_code, response.node_id, response.host, response.port)]
    else:
        request.key = ""
        response = Harness().send(request, version).response
        found = [(c.error_code, c.node_id, c.host, c.port) for c in response.coordinators]
        assert [c.key for c in response.coordinators] == ["group", "other"]
    assert found == [(ErrorCode.NONE, 1, "127.0.0.1", 9092)] * len(found)


def test_the_first_look_for_a_coordinator_creates_the_topic_once() -> None:
    harness = Harness(offsets_partitions=0, offsets_topic_num_partitions=7)
    request = FindCoordinatorRequest(coordinator_keys=["group"])
    for _ in range(2):
        found = harness.send(request, 6).response.coordinators[0]
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    (sent,) = harness.controller_requests
    assert isinstance(sent, CreateTopicsRequest)
    (topic,) = sent.topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == (
        "__consumer_offsets",
        7,
        3,
    )
    assert {config.name: config.value for config in topic.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    harness.create_topic("__consumer_offsets", 7)
    assert harness.send(request, 6).response.coordinators[0].error_code == ErrorCode.NONE


def test_an_unanswered_creation_is_asked_for_again_after_half_a_minute() -> None:
    harness = Harness(offsets_partitions=0)
    request = FindCoordinatorRequest(coordinator_keys=["group"])
    for _ in range(3):
        harness.send(request, 6)
        harness.advance(15_000)
    assert len(harness.controller_requests) == 2


@pytest.mark.parametrize(
    ("key_type", "version", "error"),
    [
        (1, 3, ErrorCode.UNSUPPORTED_VERSION),
        (1, 4, ErrorCode.UNSUPPORTED_VERSION),
        (2, 6, ErrorCode.INVALID_REQUEST),
        (3, 1, ErrorCode.INVALID_REQUEST),
        (-1, 6, ErrorCode.INVALID_REQUEST),
    ],
)
def test_coordinators_of_other_types_are_not_served(
    key_type: int, version: int, error: ErrorCode
) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["key"])
    if version < 4:
        request = FindCoordinatorRequest(key_type=key_type, key="key")
    response = Harness().send(request, version).response
    assert error == (response.error_code if version < 4 else response.coordinators[0].error_code)


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(1 << 31))],
)
def test_java_string_hash_of_known_strings(text: str, value: int) -> None:
    assert java_string_hash(text) == value


@pytest.mark.parametrize("text", ["kraft-wire", "é", "😀", "\ud800"])
def test_java_string_hash_is_the_documented_sum(text: str) -> None:
    assert java_string_hash(text) == java_hash_by_hand(text)


def java_hash_by_hand(text: str) -> int:
    """The sum that String.hashCode documents: s[0]*31^(n-1) + ... + s[n-1], modulo 2^32."""
    data = text.encode("utf-16-le", "surrogatepass")
    units = [data[n] + 256 * data[n + 1] for n in range(0, len(data), 2)]
    total = sum(unit * 31 ** (len(units) - 1 - n) for n, unit in enumerate(units)) % 2**32
    return total - 2**32 if total >= 2**31 else total


def test_the_smallest_hash_counts_as_partition_zero() -> None:
    assert group_partition("polygenelubricants", 50) == 0
    assert group_partition("hello", 50) == 99162322 % 50
