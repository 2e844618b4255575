"""DeleteShareGroupOffsets, API key 92: start offsets of share groups are deleted (KIP-932)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.share_members import ask_about_shares, member_epoch, share_group
from kraft_wire.conformance.share_offsets import (
    NO_OFFSET,
    describe_offsets,
    empty_group,
    expect_start_offset,
    set_start_offset,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from kraft_wire.wire.generated.describe_share_group_offsets import (
    DescribeShareGroupOffsetsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_API: Final = "DeleteShareGroupOffsets"
_SOURCE: Final = "KIP-932, DeleteShareGroupOffsets API"
_DESCRIBE_VERSION: Final = 1


def _deleted(
    broker: Subject, version: int, group_id: str, topic: str, code: ErrorCode
) -> DeleteShareGroupOffsetsResponse:
    named = DeleteShareGroupOffsetsRequestTopic(topic_name=topic)
    request = DeleteShareGroupOffsetsRequest(group_id=group_id, topics=[named])
    answer = ask_about_shares(broker, request, version, DeleteShareGroupOffsetsResponse)
    expect.error(answer, "error_code", code)
    return answer


@case(_API, _SOURCE)
def offsets_of_a_topic(broker: Subject, version: int) -> None:
    """The group has no start offset of a topic any more.

    Set a start offset, delete those of its topic, describe the partition and the group.
    """
    with empty_group(broker) as (group_id, topic):
        set_start_offset(broker, group_id, topic, 1)
        answer = _deleted(broker, version, group_id, topic.name, ErrorCode.NONE)
        expect.equal(answer, "responses[0].topic_name", topic.name)
        expect.equal(answer, "responses[0].topic_id", topic.topic_id)
        expect.error(answer, "responses[0].error_code", ErrorCode.NONE)
        all_of_it = describe_offsets(group_id, None)
        rest = broker.prepare(all_of_it, DescribeShareGroupOffsetsResponse)
        expect.equal(rest, "groups[0].topics", [])
        expect_start_offset(broker, _DESCRIBE_VERSION, group_id, topic, NO_OFFSET, NO_OFFSET)


@case(_API, _SOURCE)
def topic_without_offsets(broker: Subject, version: int) -> None:
    """A topic that the group has never read gets UNKNOWN_TOPIC_OR_PARTITION.

    Delete the start offsets of another topic.
    """
    other = broker.topic()
    with empty_group(broker) as (group_id, _):
        answer = _deleted(broker, version, group_id, other.name, ErrorCode.NONE)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        expect.error(answer, "responses[0].error_code", code)


@case(_API, _SOURCE)
def group_with_members(broker: Subject, version: int) -> None:
    """A group with members is refused with NON_EMPTY_GROUP.

    Join until the partition is assigned, delete its start offset.
    """
    topic = broker.topic()
    with share_group(broker) as group_id:
        member_epoch(broker, group_id, topic)
        _deleted(broker, version, group_id, topic.name, ErrorCode.NON_EMPTY_GROUP)


@case(_API, _SOURCE)
def unknown_group(broker: Subject, version: int) -> None:
    """A group that does not exist is refused with GROUP_ID_NOT_FOUND.

    Delete the start offsets of a topic in a new group.
    """
    code = ErrorCode.GROUP_ID_NOT_FOUND
    _deleted(broker, version, broker.group(), broker.topic().name, code)
