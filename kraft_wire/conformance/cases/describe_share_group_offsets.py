"""DescribeShareGroupOffsets, API key 90: where share groups begin to read (KIP-932, KIP-1226)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.share_members import ask_about_shares
from kraft_wire.conformance.share_offsets import (
    NO_OFFSET,
    describe_offsets,
    empty_group,
    expect_start_offset,
    set_start_offset,
)
from kraft_wire.conformance.share_records import (
    ACCEPT,
    acknowledge,
    expect_acquired,
    records_of_a_group,
    share_fetch,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.model import ZERO_UUID
from kraft_wire.wire.generated.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_acknowledge import ShareAcknowledgeResponse
from kraft_wire.wire.generated.share_fetch import ShareFetchResponse

_API: Final = "DescribeShareGroupOffsets"
_SOURCE: Final = "KIP-932, DescribeShareGroupOffsets API"


def _described(
    broker: Subject, version: int, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    answer = ask_about_shares(broker, request, version, DescribeShareGroupOffsetsResponse)
    expect.error(answer, "groups[0].error_code", ErrorCode.NONE)
    expect.equal(answer, "groups[0].group_id", request.groups[0].group_id)
    return answer


@case(_API, _SOURCE)
def nothing_fetched(broker: Subject, version: int) -> None:
    """A partition that was assigned and never fetched has start offset -1.

    Join until the partition is assigned, leave, describe the partition.
    """
    with empty_group(broker) as (group_id, topic):
        expect_start_offset(broker, version, group_id, topic, NO_OFFSET, NO_OFFSET)


@case(_API, _SOURCE)
def accepted_records(broker: Subject, version: int) -> None:
    """The lag leaves out accepted records, also while the stored start offset is before them.

    Write 3 records, accept the first 2, describe the partition. The start of Apache Kafka moves on
    later.
    """
    with records_of_a_group(broker) as (group_id, topic):
        fetch = share_fetch(group_id, 0, topic)
        expect_acquired(broker.prepare(fetch, ShareFetchResponse), (0, 2, 1))
        accepting = acknowledge(group_id, 1, topic, (0, 1, [ACCEPT]))
        broker.prepare(accepting, ShareAcknowledgeResponse)
        expect_start_offset(broker, version, group_id, topic, 0, 1, 2)


@case(_API, _SOURCE)
def altered_offset(broker: Subject, version: int) -> None:
    """A start offset that was set is described, with the lag from it on.

    Set the start offset of a partition with 3 records to 1, describe it.
    """
    with empty_group(broker) as (group_id, topic):
        set_start_offset(broker, group_id, topic, 1)
        expect_start_offset(broker, version, group_id, topic, 1, 2)


@case(_API, _SOURCE)
def all_of_a_group(broker: Subject, version: int) -> None:
    """A question without topics is about all share partitions of the group.

    Set the start offset of one partition, describe the group.
    """
    with empty_group(broker) as (group_id, topic):
        set_start_offset(broker, group_id, topic, 2)
        answer = _described(broker, version, describe_offsets(group_id, None))
        expect.equal(answer, "groups[0].topics[0].topic_name", topic.name)
        expect.equal(answer, "groups[0].topics[0].partitions[0].start_offset", 2)
        seen = len(answer.groups[0].topics)
        expect.true(seen == 1, "1 topic", seen, "groups[0].topics")


@case(_API, _SOURCE)
def unknown_topic(broker: Subject, version: int) -> None:
    """A topic that does not exist has start offset -1, and no id.

    Describe a partition of a topic that was never created.
    """
    with empty_group(broker) as (group_id, _):
        answer = _described(broker, version, describe_offsets(group_id, [broker.name()]))
        expect.equal(answer, "groups[0].topics[0].topic_id", ZERO_UUID)
        partition = "groups[0].topics[0].partitions[0]"
        expect.error(answer, f"{partition}.error_code", ErrorCode.NONE)
        expect.equal(answer, f"{partition}.start_offset", NO_OFFSET)


@case(_API, _SOURCE)
def unknown_group(broker: Subject, version: int) -> None:
    """A group that does not exist has no share partitions.

    Describe all of a new group.
    """
    answer = ask_about_shares(
        broker, describe_offsets(broker.group(), None), version, DescribeShareGroupOffsetsResponse
    )
    expect.equal(answer, "groups[0].topics", [])
