"""SyncGroup, API key 14: the leader's assignment reaches every member."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.members import (
    ASSIGNMENT,
    join_request,
    joined,
    stable_member,
    sync_request,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.join_group import JoinGroupResponse
from kraft_wire.wire.generated.sync_group import SyncGroupResponse

_SOURCE: Final = "org.apache.kafka.coordinator.group.GroupMetadataManager, classicGroupSync"
_JOIN_VERSION: Final = 5
_PROTOCOL_NAMED_SINCE: Final = 5
_SESSION_MIN_MS: Final = 6_000
"""The default of group.min.session.timeout.ms."""


@case("SyncGroup", "Kafka protocol guide, SyncGroup API")
def assignment(broker: Subject, version: int) -> None:
    """A member gets its assignment from the leader.

    Join as the only member, assign partitions to it.
    """
    group_id = broker.group()
    member = joined(broker.connect(), _JOIN_VERSION, group_id)
    request = sync_request(group_id, member, version)
    answer = broker.ask(request, version, SyncGroupResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    seen = bytes(answer.assignment)
    expect.true(seen == ASSIGNMENT, "the assignment", seen, "assignment")


@case("SyncGroup", _SOURCE)
def assignment_again(broker: Subject, version: int) -> None:
    """A stable member that syncs again gets its assignment again.

    Sync twice.
    """
    group_id = broker.group()
    member = stable_member(broker, group_id)
    request = sync_request(group_id, member, version, leads=False)
    answer = broker.ask(request, version, SyncGroupResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    seen = bytes(answer.assignment)
    expect.true(seen == ASSIGNMENT, "the assignment", seen, "assignment")


@case("SyncGroup", _SOURCE)
def unknown_member(broker: Subject, version: int) -> None:
    """An unknown member id is refused with UNKNOWN_MEMBER_ID.

    Sync with an unknown member id.
    """
    group_id = broker.group()
    member = stable_member(broker, group_id)
    request = sync_request(group_id, member, version)
    request.member_id = "made-up"
    answer = broker.ask(request, version, SyncGroupResponse)
    expect.error(answer, "error_code", ErrorCode.UNKNOWN_MEMBER_ID)


@case("SyncGroup", _SOURCE)
def other_generation(broker: Subject, version: int) -> None:
    """Another generation than the group's is refused with ILLEGAL_GENERATION.

    Sync with the next generation.
    """
    group_id = broker.group()
    request = sync_request(group_id, stable_member(broker, group_id), version)
    request.generation_id += 1
    answer = broker.ask(request, version, SyncGroupResponse)
    expect.error(answer, "error_code", ErrorCode.ILLEGAL_GENERATION)


@case("SyncGroup", _SOURCE)
def unknown_group(broker: Subject, version: int) -> None:
    """A group that does not exist gets UNKNOWN_MEMBER_ID.

    Sync in a group without members.
    """
    request = sync_request(broker.group(), stable_member(broker, broker.group()), version)
    answer = broker.ask(request, version, SyncGroupResponse)
    expect.error(answer, "error_code", ErrorCode.UNKNOWN_MEMBER_ID)


@case("SyncGroup", "KIP-559", since=_PROTOCOL_NAMED_SINCE)
def other_protocol(broker: Subject, version: int) -> None:
    """Another protocol name than the group's: INCONSISTENT_GROUP_PROTOCOL.

    Sync with protocol name "roundrobin".
    """
    group_id = broker.group()
    request = sync_request(group_id, stable_member(broker, group_id), version)
    request.protocol_name = "roundrobin"
    answer = broker.ask(request, version, SyncGroupResponse)
    expect.error(answer, "error_code", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


@case("SyncGroup", "KIP-559", since=_PROTOCOL_NAMED_SINCE)
def no_protocol(broker: Subject, version: int) -> None:
    """Protocol type and name are mandatory: INCONSISTENT_GROUP_PROTOCOL without them.

    Sync without both.
    """
    group_id = broker.group()
    request = sync_request(group_id, stable_member(broker, group_id), version)
    request.protocol_name = request.protocol_type = None
    answer = broker.ask(request, version, SyncGroupResponse)
    expect.error(answer, "error_code", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


@case("SyncGroup", "org.apache.kafka.coordinator.group.classic.ClassicGroupMember", since=5)
def wait_longer_than_a_session(broker: Subject, version: int) -> None:
    """A member that waits for its assignment stays in the group without heartbeats.

    Have two static members join, the second with a session of six seconds. It syncs at once, the
    leader after more than six seconds.
    """
    group_id, connection, waiting = broker.group(), broker.connect(), broker.connect()
    joined(connection, _JOIN_VERSION, group_id, group_instance_id="leader")
    request = join_request(
        group_id, session_timeout_ms=_SESSION_MIN_MS, group_instance_id="follower"
    )
    payload, header = waiting.encoded(request, _JOIN_VERSION)
    waiting.send_frame(payload)
    expect.true(waiting.is_silent(0.2), "a rebalance", "a response")
    leader = joined(connection, _JOIN_VERSION, group_id, group_instance_id="leader")
    member = waiting.response(payload, header, JoinGroupResponse)
    payload, header = waiting.encoded(sync_request(group_id, member, version), version)
    waiting.send_frame(payload)
    waited_s = _SESSION_MIN_MS / 1000 + 1
    expect.true(waiting.is_silent(waited_s), f"silence for {waited_s:g} s", "a response")
    assigning = sync_request(group_id, leader, version)
    assigning.assignments.sort(key=lambda each: each.member_id != leader.member_id)
    broker.ask(assigning, version, SyncGroupResponse)
    answer = waiting.response(payload, header, SyncGroupResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    seen = bytes(answer.assignment)
    expect.true(seen == ASSIGNMENT, "the assignment", seen, "assignment")


@case("SyncGroup", "org.apache.kafka.coordinator.group.GroupCoordinatorService, syncGroup")
def empty_group_id(broker: Subject, version: int) -> None:
    """The empty group id is refused with INVALID_GROUP_ID.

    Sync in the group "".
    """
    request = sync_request("", stable_member(broker, broker.group()), version)
    answer = broker.ask(request, version, SyncGroupResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_GROUP_ID)
    seen = bytes(answer.assignment)
    expect.true(seen == b"", "no assignment", seen, "assignment")
