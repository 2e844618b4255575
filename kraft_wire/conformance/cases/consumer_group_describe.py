"""ConsumerGroupDescribe, API key 69: members and epochs of consumer groups (KIP-848)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.consumer_members import LEAVE_EPOCH, MEMBER_ID, heartbeat, joined
from kraft_wire.conformance.members import stable_member
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kraft_wire.wire.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kraft_wire.wire.generated.error_code import ErrorCode

_API: Final = "ConsumerGroupDescribe"
_SOURCE: Final = "KIP-848, ConsumerGroupDescribe API"
_CODE: Final = "groups[0].error_code"


def _described(broker: Subject, version: int, group_id: str) -> ConsumerGroupDescribeResponse:
    request = ConsumerGroupDescribeRequest(group_ids=[group_id])
    return broker.ask(request, version, ConsumerGroupDescribeResponse)


@case(_API, _SOURCE)
def stable_group(broker: Subject, version: int) -> None:
    """A group whose only member has joined is Stable, at the epoch of its member.

    Join a new group with a topic, describe the group.
    """
    group_id, topic = broker.group(), broker.topic()
    epoch = joined(broker, version, group_id, topic).member_epoch
    answer = _described(broker, version, group_id)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, "groups[0].group_state", "Stable")
    expect.equal(answer, "groups[0].group_epoch", epoch)
    expect.equal(answer, "groups[0].assignment_epoch", epoch)
    expect.equal(answer, "groups[0].members[0].member_id", MEMBER_ID)
    assigned = "groups[0].members[0].assignment.topic_partitions[0]"
    expect.equal(answer, f"{assigned}.topic_name", topic.name)
    expect.equal(answer, f"{assigned}.partitions", [0])


@case(_API, _SOURCE)
def unknown_group(broker: Subject, version: int) -> None:
    """A group that does not exist gets GROUP_ID_NOT_FOUND.

    Describe a new group.
    """
    answer = _described(broker, version, broker.group())
    expect.error(answer, _CODE, ErrorCode.GROUP_ID_NOT_FOUND)


@case(_API, _SOURCE)
def classic_group(broker: Subject, version: int) -> None:
    """A classic group gets GROUP_ID_NOT_FOUND.

    Join and sync a classic group, describe it as a consumer group.
    """
    group_id = broker.group()
    stable_member(broker, group_id)
    answer = _described(broker, version, group_id)
    expect.error(answer, _CODE, ErrorCode.GROUP_ID_NOT_FOUND)


@case(_API, _SOURCE)
def empty_group_id(broker: Subject, version: int) -> None:
    """An empty group id gets INVALID_GROUP_ID.

    Describe the group "".
    """
    expect.error(_described(broker, version, ""), _CODE, ErrorCode.INVALID_GROUP_ID)


@case(_API, "KIP-848, Group epoch")
def group_whose_member_left(broker: Subject, version: int) -> None:
    """A group whose only member left is Empty, at a greater epoch.

    Join a new group, leave it, describe the group.
    """
    group_id = broker.group()
    epoch = joined(broker, version, group_id, broker.topic()).member_epoch
    broker.prepare(heartbeat(group_id, LEAVE_EPOCH), ConsumerGroupHeartbeatResponse)
    answer = _described(broker, version, group_id)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, "groups[0].group_state", "Empty")
    expect.equal(answer, "groups[0].members", [])
    seen = answer.groups[0].group_epoch
    expect.true(seen > epoch, f"more than {epoch}", seen, "groups[0].group_epoch")
