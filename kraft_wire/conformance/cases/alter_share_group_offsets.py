"""AlterShareGroupOffsets, API key 91: start offsets of share groups are set (KIP-932)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.consumer_members import joined as joined_consumer
from kraft_wire.conformance.share_members import ask_about_shares, member_epoch, share_group
from kraft_wire.conformance.share_offsets import alter_offsets, empty_group, expect_start_offset
from kraft_wire.conformance.share_records import expect_acquired, share_fetch
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.verdict import NothingYet
from kraft_wire.wire.generated.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_fetch import ShareFetchResponse

_API: Final = "AlterShareGroupOffsets"
_SOURCE: Final = "KIP-932, AlterShareGroupOffsets API"
_CODE: Final = "responses[0].partitions[0].error_code"
_DESCRIBE_VERSION: Final = 1
_MISSING_PARTITION: Final = 9


def _altered(
    broker: Subject, version: int, request: AlterShareGroupOffsetsRequest, code: ErrorCode
) -> AlterShareGroupOffsetsResponse:
    answer = ask_about_shares(broker, request, version, AlterShareGroupOffsetsResponse)
    expect.error(answer, "error_code", code)
    return answer


@case(_API, _SOURCE)
def group_without_members(broker: Subject, version: int) -> None:
    """Members read from the start offset on that was set.

    Write 3 records, set the start offset to 2 in a group that is empty, join and fetch.
    """
    with empty_group(broker) as (group_id, topic):
        request = alter_offsets(group_id, (topic.name, 0, 2))
        answer = _altered(broker, version, request, ErrorCode.NONE)
        expect.equal(answer, "responses[0].topic_name", topic.name)
        expect.equal(answer, "responses[0].topic_id", topic.topic_id)
        expect.equal(answer, "responses[0].partitions[0].partition_index", 0)
        expect.error(answer, _CODE, ErrorCode.NONE)
        member_epoch(broker, group_id, topic)
        fetch = share_fetch(group_id, 0, topic)
        expect_acquired(broker.prepare(fetch, ShareFetchResponse), (2, 2, 1))


@case(_API, _SOURCE)
def new_group(broker: Subject, version: int) -> None:
    """A group that does not exist is created.

    Set a start offset in a new group, describe it.
    """
    topic = broker.topic()
    with share_group(broker) as group_id:
        request = alter_offsets(group_id, (topic.name, 0, 0))
        answer = _altered(broker, version, request, ErrorCode.NONE)
        code = answer.responses[0].partitions[0].error_code
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NothingYet("NONE", "UNKNOWN_TOPIC_OR_PARTITION", _CODE)  # the topic is new too
        expect.error(answer, _CODE, ErrorCode.NONE)
        expect_start_offset(broker, _DESCRIBE_VERSION, group_id, topic, 0, 0)


@case(_API, _SOURCE)
def unknown_partitions(broker: Subject, version: int) -> None:
    """Partitions that do not exist get UNKNOWN_TOPIC_OR_PARTITION, and the others are set.

    Set start offsets of a topic that was never created, and of partitions 9 and 0 of topics.
    """
    other = broker.topic()
    with empty_group(broker) as (group_id, topic):
        missing = broker.name()
        changes = ((missing, 0, 1), (other.name, _MISSING_PARTITION, 1), (topic.name, 0, 1))
        answer = _altered(broker, version, alter_offsets(group_id, *changes), ErrorCode.NONE)
        seen = {each.topic_name: each.partitions[0].error_code for each in answer.responses}
        unknown = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        wanted = {missing: unknown, other.name: unknown, topic.name: int(ErrorCode.NONE)}
        expect.true(seen == wanted, str(wanted), seen, "responses")


@case(_API, _SOURCE)
def group_with_members(broker: Subject, version: int) -> None:
    """A group with members is refused with NON_EMPTY_GROUP.

    Join until the partition is assigned, set its start offset.
    """
    topic = broker.topic()
    with share_group(broker) as group_id:
        member_epoch(broker, group_id, topic)
        request = alter_offsets(group_id, (topic.name, 0, 0))
        _altered(broker, version, request, ErrorCode.NON_EMPTY_GROUP)


@case(_API, _SOURCE)
def consumer_group(broker: Subject, version: int) -> None:
    """A consumer group is refused with GROUP_ID_NOT_FOUND.

    Join a consumer group, set a start offset in it.
    """
    group_id, topic = broker.group(), broker.topic()
    joined_consumer(broker, 1, group_id, topic)
    request = alter_offsets(group_id, (topic.name, 0, 0))
    _altered(broker, version, request, ErrorCode.GROUP_ID_NOT_FOUND)


@case(_API, _SOURCE)
def empty_group_id(broker: Subject, version: int) -> None:
    """An empty group id is refused with INVALID_GROUP_ID.

    Set a start offset in the group without a name.
    """
    request = alter_offsets("", (broker.topic().name, 0, 0))
    _altered(broker, version, request, ErrorCode.INVALID_GROUP_ID)
