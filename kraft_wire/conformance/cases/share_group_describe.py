"""ShareGroupDescribe, API key 77: members and epochs of share groups (KIP-932)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.consumer_members import joined as joined_consumer
from kraft_wire.conformance.share_members import (
    LEAVE_EPOCH,
    MEMBER_ID,
    OTHER_MEMBER_ID,
    ask_about_shares,
    heartbeat,
    member_epoch,
    share_group,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from kraft_wire.wire.generated.share_group_heartbeat import ShareGroupHeartbeatResponse

_API: Final = "ShareGroupDescribe"
_SOURCE: Final = "KIP-932, ShareGroupDescribe API"
_CODE: Final = "groups[0].error_code"


def _described(broker: Subject, version: int, *group_ids: str) -> ShareGroupDescribeResponse:
    request = ShareGroupDescribeRequest(group_ids=list(group_ids))
    answer = ask_about_shares(broker, request, version, ShareGroupDescribeResponse)
    return answer


@case(_API, _SOURCE)
def stable_group(broker: Subject, version: int) -> None:
    """A group with a member is Stable, at the epoch of its member.

    Join until partitions are assigned, describe the group.
    """
    topic = broker.topic(partitions=2)
    with share_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, topic, partitions=2)
        answer = _described(broker, version, group_id)
        expect.error(answer, _CODE, ErrorCode.NONE)
        expect.equal(answer, "groups[0].group_id", group_id)
        expect.equal(answer, "groups[0].group_state", "Stable")
        expect.equal(answer, "groups[0].group_epoch", epoch)
        expect.equal(answer, "groups[0].assignment_epoch", epoch)
        expect.equal(answer, "groups[0].assignor_name", "simple")
        expect.equal(answer, "groups[0].members[0].member_id", MEMBER_ID)
        expect.equal(answer, "groups[0].members[0].member_epoch", epoch)
        expect.equal(answer, "groups[0].members[0].subscribed_topic_names", [topic.name])
        partitions = "groups[0].members[0].assignment.topic_partitions[0]"
        expect.equal(answer, f"{partitions}.topic_id", topic.topic_id)
        expect.equal(answer, f"{partitions}.topic_name", topic.name)
        expect.equal(answer, f"{partitions}.partitions", [0, 1])


@case(_API, _SOURCE)
def two_members(broker: Subject, version: int) -> None:
    """Both members of a group are described.

    Join with two members until partitions are assigned, describe the group.
    """
    topic = broker.topic()
    with share_group(broker) as group_id:
        for each in (MEMBER_ID, OTHER_MEMBER_ID):
            member_epoch(broker, group_id, topic, each)
        answer = _described(broker, version, group_id)
        seen = sorted(each.member_id for each in answer.groups[0].members)
        wanted = sorted([MEMBER_ID, OTHER_MEMBER_ID])
        expect.true(seen == wanted, str(wanted), seen, "groups[0].members")


@case(_API, _SOURCE)
def group_without_members(broker: Subject, version: int) -> None:
    """A group whose members left is Empty.

    Join until partitions are assigned, leave, describe the group.
    """
    with share_group(broker) as group_id:
        member_epoch(broker, group_id, broker.topic())
        broker.prepare(heartbeat(group_id, LEAVE_EPOCH), ShareGroupHeartbeatResponse)
        answer = _described(broker, version, group_id)
        expect.error(answer, _CODE, ErrorCode.NONE)
        expect.equal(answer, "groups[0].group_state", "Empty")
        expect.equal(answer, "groups[0].members", [])


@case(_API, _SOURCE)
def unknown_group(broker: Subject, version: int) -> None:
    """A group that does not exist gets GROUP_ID_NOT_FOUND.

    Describe a new group.
    """
    answer = _described(broker, version, broker.group())
    expect.error(answer, _CODE, ErrorCode.GROUP_ID_NOT_FOUND)


@case(_API, _SOURCE)
def consumer_group(broker: Subject, version: int) -> None:
    """A consumer group gets GROUP_ID_NOT_FOUND.

    Join a consumer group, describe it as a share group.
    """
    group_id = broker.group()
    joined_consumer(broker, 1, group_id, broker.topic())
    answer = _described(broker, version, group_id)
    expect.error(answer, _CODE, ErrorCode.GROUP_ID_NOT_FOUND)


@case(_API, _SOURCE)
def empty_group_id(broker: Subject, version: int) -> None:
    """An empty group id gets INVALID_GROUP_ID.

    Describe the group without a name.
    """
    answer = _described(broker, version, "")
    expect.error(answer, _CODE, ErrorCode.INVALID_GROUP_ID)
