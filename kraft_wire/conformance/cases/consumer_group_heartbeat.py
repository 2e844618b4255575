"""ConsumerGroupHeartbeat, API key 68: members of consumer groups join, stay and leave (KIP-848)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.consumer_members import (
    FIRST_EPOCH,
    LEAVE_EPOCH,
    heartbeat,
    joined,
    joining,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_API: Final = "ConsumerGroupHeartbeat"
_SOURCE: Final = "KIP-848, ConsumerGroupHeartbeat API"
_CLIENT_IDS_FROM: Final = 1


def _refused(
    broker: Subject, version: int, request: ConsumerGroupHeartbeatRequest, code: ErrorCode
) -> None:
    """Send a request, and expect an error and nothing else."""
    answer = broker.ask(request, version, ConsumerGroupHeartbeatResponse)
    expect.error(answer, "error_code", code)
    expect.equal(answer, "member_epoch", 0)
    expect.equal(answer, "assignment", None)


@case(_API, _SOURCE)
def first_member(broker: Subject, version: int) -> None:
    """The first member of a new group gets epoch 2 and all partitions.

    Join a new group with a topic of 2 partitions.
    """
    topic = broker.topic(partitions=2)
    answer = joined(broker, version, broker.group(), topic)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.equal(answer, "member_epoch", FIRST_EPOCH)
    expect.equal(answer, "assignment.topic_partitions[0].topic_id", topic.topic_id)
    expect.equal(answer, "assignment.topic_partitions[0].partitions", [0, 1])


@case(_API, _SOURCE)
def unchanged_member(broker: Subject, version: int) -> None:
    """A heartbeat that changes nothing is answered without an assignment.

    Join a new group, send a heartbeat with the epoch of the answer.
    """
    group_id = broker.group()
    joined(broker, version, group_id, broker.topic())
    request = heartbeat(group_id, FIRST_EPOCH)
    answer = broker.ask(request, version, ConsumerGroupHeartbeatResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.equal(answer, "member_epoch", FIRST_EPOCH)
    expect.equal(answer, "assignment", None)


@case(_API, _SOURCE)
def leaving_member(broker: Subject, version: int) -> None:
    """A member that left is unknown.

    Join a new group, leave with epoch -1, send a heartbeat.
    """
    group_id = broker.group()
    joined(broker, version, group_id, broker.topic())
    left = broker.ask(heartbeat(group_id, LEAVE_EPOCH), version, ConsumerGroupHeartbeatResponse)
    expect.error(left, "error_code", ErrorCode.NONE)
    expect.equal(left, "member_epoch", LEAVE_EPOCH)
    request = heartbeat(group_id, FIRST_EPOCH)
    _refused(broker, version, request, ErrorCode.UNKNOWN_MEMBER_ID)


@case(_API, _SOURCE)
def greater_epoch(broker: Subject, version: int) -> None:
    """A member epoch above the coordinator's is refused with FENCED_MEMBER_EPOCH.

    Join a new group, send a heartbeat with a greater epoch than that of the answer.
    """
    group_id = broker.group()
    joined(broker, version, group_id, broker.topic())
    request = heartbeat(group_id, FIRST_EPOCH + 1)
    _refused(broker, version, request, ErrorCode.FENCED_MEMBER_EPOCH)


@case(_API, _SOURCE)
def unknown_member(broker: Subject, version: int) -> None:
    """An unknown member with an epoch is refused with UNKNOWN_MEMBER_ID.

    Join a new group, send a heartbeat of another member.
    """
    group_id = broker.group()
    joined(broker, version, group_id, broker.topic())
    request = heartbeat(group_id, FIRST_EPOCH, "made-up")
    _refused(broker, version, request, ErrorCode.UNKNOWN_MEMBER_ID)


@case(_API, _SOURCE)
def unknown_group(broker: Subject, version: int) -> None:
    """An epoch of a group that does not exist is refused with GROUP_ID_NOT_FOUND.

    Send a heartbeat to a new group.
    """
    request = heartbeat(broker.group(), FIRST_EPOCH)
    _refused(broker, version, request, ErrorCode.GROUP_ID_NOT_FOUND)


@case(_API, _SOURCE)
def unknown_assignor(broker: Subject, version: int) -> None:
    """A server assignor that does not exist is refused with UNSUPPORTED_ASSIGNOR.

    Join a new group with a server assignor of an unknown name.
    """
    request = joining(broker.group(), broker.topic().name)
    request.server_assignor = "made-up"
    _refused(broker, version, request, ErrorCode.UNSUPPORTED_ASSIGNOR)


@case(_API, "KIP-1082", since=_CLIENT_IDS_FROM)
def empty_member_id(broker: Subject, version: int) -> None:
    """A member without an id is refused with INVALID_REQUEST since v1.

    Join a new group without a member id.
    """
    request = joining(broker.group(), broker.topic().name)
    request.member_id = ""
    _refused(broker, version, request, ErrorCode.INVALID_REQUEST)
