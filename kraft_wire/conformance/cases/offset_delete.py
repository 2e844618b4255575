"""OffsetDelete, API key 47: committed offsets of a group are deleted (KIP-496)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.members import joined, subscription, sync_request
from kraft_wire.conformance.share_members import member_epoch as share_member_epoch
from kraft_wire.conformance.share_members import share_group
from kraft_wire.conformance.streams_members import member_epoch, streams_group, topology
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kraft_wire.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kraft_wire.wire.generated.sync_group import SyncGroupResponse

_CODE: Final = "topics[0].partitions[0].error_code"
_COMMIT_VERSION: Final = 8
_JOIN_VERSION: Final = 5
_SYNC_VERSION: Final = 3


def _delete(broker: Subject, version: int, group_id: str, topic: str) -> OffsetDeleteResponse:
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
    request = OffsetDeleteRequest(group_id=group_id, topics=topics)
    return broker.ask(request, version, OffsetDeleteResponse)


def _commit(broker: Subject, group_id: str, topic: str) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    broker.prepare(request, OffsetCommitResponse, until=_COMMIT_VERSION)


def _subscribed_member(broker: Subject, group_id: str, topic: str) -> None:
    """Bring a group of one member that subscribes to a topic into the state Stable."""
    connection = broker.connect()
    answer = joined(connection, _JOIN_VERSION, group_id, metadata=subscription(topic))
    request = sync_request(group_id, answer, _SYNC_VERSION)
    synced = connection.ask(request, _SYNC_VERSION, SyncGroupResponse)
    expect.error(synced, "error_code", ErrorCode.NONE)


@case("OffsetDelete", "KIP-496")
def empty_group(broker: Subject, version: int) -> None:
    """An offset of a group without members is deleted.

    Commit an offset without a member, delete it.
    """
    group_id, topic = broker.group(), broker.topic().name
    _commit(broker, group_id, topic)
    answer = _delete(broker, version, group_id, topic)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.error(answer, _CODE, ErrorCode.NONE)


@case("OffsetDelete", "KIP-496")
def unknown_group(broker: Subject, version: int) -> None:
    """A group that does not exist gets GROUP_ID_NOT_FOUND.

    Delete an offset of a group without members and offsets.
    """
    answer = _delete(broker, version, broker.group(), "conform")
    expect.error(answer, "error_code", ErrorCode.GROUP_ID_NOT_FOUND)


@case("OffsetDelete", "KIP-496")
def subscribed_topic(broker: Subject, version: int) -> None:
    """The offset of a subscribed topic is not deleted: GROUP_SUBSCRIBED_TO_TOPIC.

    Have a consumer subscribe to a topic, delete the group's offset of it.
    """
    group_id, topic = broker.group(), broker.topic().name
    _subscribed_member(broker, group_id, topic)
    answer = _delete(broker, version, group_id, topic)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.error(answer, _CODE, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)


@case("OffsetDelete", "KIP-496")
def other_topic(broker: Subject, version: int) -> None:
    """The offset of a topic without a subscription in the group is deleted.

    Have a consumer subscribe to a topic, delete the group's offset of another one.
    """
    group_id, topics = broker.group(), [broker.topic().name for _ in range(2)]
    _commit(broker, group_id, topics[1])
    _subscribed_member(broker, group_id, topics[0])
    answer = _delete(broker, version, group_id, topics[1])
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.error(answer, _CODE, ErrorCode.NONE)


@case("OffsetDelete", "KIP-1071")
def topic_of_a_streams_group(broker: Subject, version: int) -> None:
    """A topic that a streams group with members reads gets GROUP_SUBSCRIBED_TO_TOPIC.

    Commit offsets of two topics, join a streams group that reads one, delete both offsets.
    """
    read, other = broker.topic().name, broker.topic().name
    with streams_group(broker) as group_id:
        for each in (read, other):
            _commit(broker, group_id, each)
        member_epoch(broker, group_id, topology(read))
        answer = _delete(broker, version, group_id, read)
        expect.error(answer, _CODE, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
        answer = _delete(broker, version, group_id, other)
        expect.error(answer, _CODE, ErrorCode.NONE)


@case("OffsetDelete", "kafka.server.KafkaApis, handleOffsetDeleteRequest")
def empty_group_id(broker: Subject, version: int) -> None:
    """The empty group id is refused.

    Delete an offset of the group "".
    """
    broker.group()
    answer = _delete(broker, version, "", broker.topic().name)
    codes = (ErrorCode.INVALID_GROUP_ID, ErrorCode.GROUP_ID_NOT_FOUND)
    expect.one_of(answer, "error_code", *map(int, codes))


@case("OffsetDelete", "kafka.server.KafkaApis, handleOffsetDeleteRequest")
def partitions_on_their_own(broker: Subject, version: int) -> None:
    """Partitions that do not exist are refused on their own.

    Commit an offset, delete those of partitions 0 and 7 of its topic, and of an absent topic.
    """
    group_id, topic, absent = broker.group(), broker.topic().name, broker.name("absent")
    _commit(broker, group_id, topic)
    topics = [
        OffsetDeleteRequestTopic(
            name=name,
            partitions=[OffsetDeleteRequestPartition(partition_index=each) for each in numbers],
        )
        for name, numbers in ((topic, (0, 7)), (absent, (0,)))
    ]
    request = OffsetDeleteRequest(group_id=group_id, topics=topics)
    answer = broker.ask(request, version, OffsetDeleteResponse)
    codes = {
        (each.name, one.partition_index): one.error_code
        for each in answer.topics
        for one in each.partitions
    }
    unknown = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    wanted = {(topic, 0): 0, (topic, 7): unknown, (absent, 0): unknown}
    expect.true(codes == wanted, str(wanted), codes, "topics")


@case("OffsetDelete", "KIP-932, Administration")
def share_group_of_that_name(broker: Subject, version: int) -> None:
    """A share group has no committed offsets: GROUP_ID_NOT_FOUND.

    Join a share group, delete an offset of it.
    """
    topic = broker.topic()
    with share_group(broker) as group_id:
        share_member_epoch(broker, group_id, topic)
        answer = _delete(broker, version, group_id, topic.name)
        expect.error(answer, "error_code", ErrorCode.GROUP_ID_NOT_FOUND)
