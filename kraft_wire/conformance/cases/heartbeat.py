"""Heartbeat, API key 12: a member states that it is alive."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.members import join_request, stable_member, sync_request
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kraft_wire.wire.generated.join_group import JoinGroupResponse
from kraft_wire.wire.generated.sync_group import SyncGroupResponse

_SOURCE: Final = "org.apache.kafka.coordinator.group.GroupMetadataManager, classicGroupHeartbeat"
_JOIN_VERSION: Final = 5
_SYNC_VERSION: Final = 3
_SHORTEST_SESSION_MS: Final = 6_000


def _beat(
    broker: Subject, version: int, group_id: str, generation_id: int, member_id: str
) -> HeartbeatResponse:
    request = HeartbeatRequest(group_id=group_id, generation_id=generation_id, member_id=member_id)
    return broker.ask(request, version, HeartbeatResponse)


def _await_rebalance(broker: Subject, group_id: str, member: JoinGroupResponse) -> None:
    """Send heartbeats until the broker has handled the JoinGroup that was sent before."""
    request = HeartbeatRequest(
        group_id=group_id, generation_id=member.generation_id, member_id=member.member_id
    )
    for _ in broker.attempts(f"group {group_id} to rebalance"):
        if broker.prepare(request, HeartbeatResponse).error_code != ErrorCode.NONE:
            return


@case("Heartbeat", _SOURCE)
def stable_group(broker: Subject, version: int) -> None:
    """A member of a stable group gets no error.

    Join, sync, send a heartbeat.
    """
    group_id = broker.group()
    member = stable_member(broker, group_id)
    answer = _beat(broker, version, group_id, member.generation_id, member.member_id)
    expect.error(answer, "error_code", ErrorCode.NONE)


@case("Heartbeat", _SOURCE)
def rebalance_in_progress(broker: Subject, version: int) -> None:
    """A member of a rebalancing group gets REBALANCE_IN_PROGRESS.

    A second member begins to join a stable group; the first sends a heartbeat.
    """
    group_id = broker.group()
    member = stable_member(broker, group_id)
    second = broker.connect()
    named = second.ask(join_request(group_id), _JOIN_VERSION, JoinGroupResponse)
    request = join_request(group_id, named.member_id)
    payload, _ = second.encoded(request, _JOIN_VERSION)
    second.send_frame(payload)
    _await_rebalance(broker, group_id, member)
    expect.true(second.is_silent(0.1), "a JoinGroup that waits", "a response")
    answer = _beat(broker, version, group_id, member.generation_id, member.member_id)
    expect.error(answer, "error_code", ErrorCode.REBALANCE_IN_PROGRESS)


@case("Heartbeat", _SOURCE)
def unknown_member(broker: Subject, version: int) -> None:
    """An unknown member id is refused with UNKNOWN_MEMBER_ID.

    Send a heartbeat with an unknown member id.
    """
    group_id = broker.group()
    member = stable_member(broker, group_id)
    answer = _beat(broker, version, group_id, member.generation_id, "made-up")
    expect.error(answer, "error_code", ErrorCode.UNKNOWN_MEMBER_ID)


@case("Heartbeat", _SOURCE)
def other_generation(broker: Subject, version: int) -> None:
    """Another generation than the group's is refused with ILLEGAL_GENERATION.

    Send a heartbeat of the next generation.
    """
    group_id = broker.group()
    member = stable_member(broker, group_id)
    answer = _beat(broker, version, group_id, member.generation_id + 1, member.member_id)
    expect.error(answer, "error_code", ErrorCode.ILLEGAL_GENERATION)


@case("Heartbeat", _SOURCE)
def unknown_group(broker: Subject, version: int) -> None:
    """A group that does not exist gets UNKNOWN_MEMBER_ID.

    Send a heartbeat to a group without members.
    """
    answer = _beat(broker, version, broker.group(), 1, "made-up")
    expect.error(answer, "error_code", ErrorCode.UNKNOWN_MEMBER_ID)


@case("Heartbeat", "Kafka protocol guide, group.min.session.timeout.ms", since=4)
def session_expires(broker: Subject, version: int) -> None:
    """A member without a heartbeat in its session timeout leaves the group.

    Join with a session of 6 seconds, the shortest by default, and describe the group until it is
    empty; then a heartbeat is UNKNOWN_MEMBER_ID.
    """
    group_id, connection = broker.group(), broker.connect()
    request = join_request(group_id, session_timeout_ms=_SHORTEST_SESSION_MS)
    request.member_id = connection.ask(request, _JOIN_VERSION, JoinGroupResponse).member_id
    member = connection.ask(request, _JOIN_VERSION, JoinGroupResponse)
    sync = sync_request(group_id, member, _SYNC_VERSION)
    connection.ask(sync, _SYNC_VERSION, SyncGroupResponse)
    question = DescribeGroupsRequest(groups=[group_id])
    for _ in broker.attempts(
        "the member's session to end", seconds=2 * _SHORTEST_SESSION_MS / 1000
    ):
        found = broker.prepare(question, DescribeGroupsResponse).groups[0]
        if found.group_state != "Stable":
            break
    answer = _beat(broker, version, group_id, member.generation_id, member.member_id)
    expect.error(answer, "error_code", ErrorCode.UNKNOWN_MEMBER_ID)


@case("Heartbeat", "org.apache.kafka.coordinator.group.GroupCoordinatorService, heartbeat")
def empty_group_id(broker: Subject, version: int) -> None:
    """The empty group id is refused with INVALID_GROUP_ID.

    Send a heartbeat to the group "".
    """
    broker.group()
    request = HeartbeatRequest(group_id="", generation_id=1, member_id="made-up")
    answer = broker.ask(request, version, HeartbeatResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_GROUP_ID)
