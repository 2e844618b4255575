"""OffsetCommit, API key 8: positions of groups, with members and without."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.consumer_members import MEMBER_ID as CONSUMER_ID
from kraft_wire.conformance.consumer_members import joining, prepared_member
from kraft_wire.conformance.members import (
    join_request,
    joined,
    stable_member,
    sync_request,
)
from kraft_wire.conformance.offset_records import offsets_ends, offsets_since
from kraft_wire.conformance.streams_members import MEMBER_ID as STREAMS_ID
from kraft_wire.conformance.streams_members import member_epoch, streams_group, topology
from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kraft_wire.wire.generated.join_group import JoinGroupResponse
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kraft_wire.wire.generated.sync_group import SyncGroupResponse

_CODE: Final = "topics[0].partitions[0].error_code"
_SOURCE: Final = "org.apache.kafka.coordinator.group.OffsetMetadataManager, commitOffset"
_WITH_RETENTION: Final = 4
_DAY_MS: Final = 86_400_000
_BY_EPOCH: Final = 9
_JOIN_VERSION: Final = 5
_SYNC_VERSION: Final = 3
_BY_ID: Final = 10
_NOWHERE: Final = Topic("conform-no-such-topic", Uuid(b"conform no topic"))


def _commit(
    broker: Subject,
    version: int,
    group_id: str,
    topic: Topic,
    *,
    partition: int = 0,
    generation_id: int = -1,
    member_id: str = "",
    metadata: str = "",
) -> OffsetCommitResponse:
    position = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=42, committed_metadata=metadata
    )
    wanted = OffsetCommitRequestTopic(partitions=[position])
    if version >= _BY_ID:
        wanted.topic_id = topic.topic_id
    else:
        wanted.name = topic.name
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        topics=[wanted],
    )
    return broker.ask(request, version, OffsetCommitResponse)


@case("OffsetCommit", _SOURCE)
def without_members(broker: Subject, version: int) -> None:
    """A group without members accepts offsets with generation -1.

    Commit offset 42 to a new group.
    """
    answer = _commit(broker, version, broker.group(), broker.topic())
    expect.error(answer, _CODE, ErrorCode.NONE)


@case("OffsetCommit", _SOURCE)
def as_a_member(broker: Subject, version: int) -> None:
    """A member commits with its id and generation.

    Join, sync, commit.
    """
    group_id, topic = broker.group(), broker.topic()
    member = stable_member(broker, group_id)
    generation_id, member_id = member.generation_id, member.member_id
    answer = _commit(
        broker, version, group_id, topic, generation_id=generation_id, member_id=member_id
    )
    expect.error(answer, _CODE, ErrorCode.NONE)


@case("OffsetCommit", _SOURCE)
def stranger_in_a_group_with_members(broker: Subject, version: int) -> None:
    """A commit without a member id is refused with UNKNOWN_MEMBER_ID while a group has members.

    Join, sync, commit with generation -1.
    """
    group_id, topic = broker.group(), broker.topic()
    stable_member(broker, group_id)
    answer = _commit(broker, version, group_id, topic)
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_MEMBER_ID)


@case("OffsetCommit", _SOURCE)
def unknown_member(broker: Subject, version: int) -> None:
    """An unknown member id is refused with UNKNOWN_MEMBER_ID.

    Join, sync, commit with an unknown member id.
    """
    group_id, topic = broker.group(), broker.topic()
    generation_id = stable_member(broker, group_id).generation_id
    answer = _commit(
        broker, version, group_id, topic, generation_id=generation_id, member_id="made-up"
    )
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_MEMBER_ID)


@case("OffsetCommit", _SOURCE)
def other_generation(broker: Subject, version: int) -> None:
    """Another generation than the group's is refused with ILLEGAL_GENERATION.

    Join, sync, commit with the next generation.
    """
    group_id, topic = broker.group(), broker.topic()
    member = stable_member(broker, group_id)
    generation_id = member.generation_id + 1
    answer = _commit(
        broker, version, group_id, topic, generation_id=generation_id, member_id=member.member_id
    )
    expect.error(answer, _CODE, ErrorCode.ILLEGAL_GENERATION)


@case("OffsetCommit", _SOURCE, until=8)
def generation_of_an_unknown_group(broker: Subject, version: int) -> None:
    """A generation of a group that does not exist is refused with ILLEGAL_GENERATION.

    Commit with generation 1 to a new group.
    """
    answer = _commit(broker, version, broker.group(), broker.topic(), generation_id=1)
    expect.error(answer, _CODE, ErrorCode.ILLEGAL_GENERATION)


@case("OffsetCommit", "KIP-848, OffsetCommit", since=9)
def unknown_group(broker: Subject, version: int) -> None:
    """A member of a group that does not exist is refused with GROUP_ID_NOT_FOUND.

    Commit with generation 1 to a new group.
    """
    answer = _commit(broker, version, broker.group(), broker.topic(), generation_id=1)
    expect.error(answer, _CODE, ErrorCode.GROUP_ID_NOT_FOUND)


@case("OffsetCommit", "kafka.server.KafkaApis, handleOffsetCommitRequest", until=_BY_ID - 1)
def unknown_topic(broker: Subject, version: int) -> None:
    """An unknown topic gets UNKNOWN_TOPIC_OR_PARTITION.

    Commit an offset of a topic that does not exist.
    """
    answer = _commit(broker, version, broker.group(), _NOWHERE)
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("OffsetCommit", "KIP-848, OffsetCommit", since=_BY_ID)
def unknown_topic_id(broker: Subject, version: int) -> None:
    """An unknown topic id gets UNKNOWN_TOPIC_ID.

    Commit an offset of a topic id that does not exist.
    """
    answer = _commit(broker, version, broker.group(), _NOWHERE)
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_ID)


@case("OffsetCommit", "kafka.server.KafkaApis, handleOffsetCommitRequest")
def unknown_partition(broker: Subject, version: int) -> None:
    """A partition that the topic does not have gets UNKNOWN_TOPIC_OR_PARTITION.

    Commit an offset of partition 7 of a topic with one.
    """
    answer = _commit(broker, version, broker.group(), broker.topic(), partition=7)
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("OffsetCommit", "broker configuration offset.metadata.max.bytes")
def metadata_too_large(broker: Subject, version: int) -> None:
    """Metadata above offset.metadata.max.bytes: OFFSET_METADATA_TOO_LARGE.

    Commit an offset with 20,000 characters of metadata.
    """
    metadata = "m" * 20_000
    answer = _commit(broker, version, broker.group(), broker.topic(), metadata=metadata)
    expect.error(answer, _CODE, ErrorCode.OFFSET_METADATA_TOO_LARGE)


@case("OffsetCommit", "kafka.server.KafkaApis, handleOffsetCommitRequest")
def several_partitions(broker: Subject, version: int) -> None:
    """Partitions of one request succeed and fail on their own.

    Commit offsets of partitions 0, 7 and 1 of a topic of two.
    """
    topic = broker.topic(partitions=2)
    wanted = [
        OffsetCommitRequestPartition(partition_index=each, committed_offset=5) for each in (0, 7, 1)
    ]
    data = OffsetCommitRequestTopic(partitions=wanted)
    if version >= 10:
        data.topic_id = topic.topic_id
    else:
        data.name = topic.name
    request = OffsetCommitRequest(group_id=broker.group(), topics=[data])
    answer = broker.ask(request, version, OffsetCommitResponse)
    (found,) = answer.topics
    codes = {each.partition_index: each.error_code for each in found.partitions}
    unknown = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    expect.true(codes == {0: 0, 7: unknown, 1: 0}, "an error for 7 alone", codes, "topics")


@case("OffsetCommit", "kafka.server.KafkaApis, handleOffsetCommitRequest")
def topic_without_partitions(broker: Subject, version: int) -> None:
    """A topic without partitions does not fail the request; Apache Kafka does not return it.

    Commit no offset of a topic.
    """
    topic = broker.topic()
    data = OffsetCommitRequestTopic(partitions=[])
    if version >= 10:
        data.topic_id = topic.topic_id
    else:
        data.name = topic.name
    request = OffsetCommitRequest(group_id=broker.group(), topics=[data])
    answer = broker.ask(request, version, OffsetCommitResponse)
    partitions = [one for each in answer.topics for one in each.partitions]
    expect.true(partitions == [], "no partition", partitions, "topics")
    expect.as_release(answer.topics == [], "no topic", answer.topics, "topics")


def _by_epoch(
    broker: Subject, version: int, group_id: str, topic: Topic, member_id: str, epoch: int
) -> None:
    """Commit as a member with an epoch, with the next one, and as a member that is not there."""
    wanted = [(member_id, epoch + 1, ErrorCode.STALE_MEMBER_EPOCH)]
    wanted.append((member_id, epoch, ErrorCode.NONE))
    if version < _BY_EPOCH:
        wanted = [(member_id, epoch, ErrorCode.UNSUPPORTED_VERSION)]
    wanted.append(("made-up", epoch, ErrorCode.UNKNOWN_MEMBER_ID))
    for committer, known, code in wanted:
        answer = _commit(broker, version, group_id, topic, generation_id=known, member_id=committer)
        expect.error(answer, _CODE, code)


@case("OffsetCommit", "KIP-848, OffsetCommit")
def member_of_a_consumer_group(broker: Subject, version: int) -> None:
    """A member of a consumer group commits with its epoch, from version 9 on.

    Join a consumer group, commit with the next epoch and with the member's, and as another member.
    """
    group_id, topic = broker.group(), broker.topic()
    joined = broker.prepare(joining(group_id, topic.name), ConsumerGroupHeartbeatResponse)
    expect.error(joined, "error_code", ErrorCode.NONE)
    epoch = joined.member_epoch
    _by_epoch(broker, version, group_id, topic, CONSUMER_ID, epoch)


@case("OffsetCommit", "KIP-1071, OffsetCommit")
def member_of_a_streams_group(broker: Subject, version: int) -> None:
    """A member of a streams group commits with its epoch, from version 9 on.

    Join a streams group until there is a task, commit with the next epoch and with the member's,
    and as another member.
    """
    topic = broker.topic()
    with streams_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, topology(topic.name))
        _by_epoch(broker, version, group_id, topic, STREAMS_ID, epoch)


@case("OffsetCommit", "broker configuration offset.metadata.max.bytes")
def metadata_beyond_the_basic_plane(broker: Subject, version: int) -> None:
    """Metadata is measured in UTF-16: a character beyond the basic plane counts twice.

    Commit 2,000 and 2,100 of such characters; the default limit is 4,096.
    """
    group_id, topic = broker.group(), broker.topic()
    for count, code in ((2_000, ErrorCode.NONE), (2_100, ErrorCode.OFFSET_METADATA_TOO_LARGE)):
        answer = _commit(broker, version, group_id, topic, metadata="\U0001f600" * count)
        expect.error(answer, _CODE, code)


@case("OffsetCommit", _SOURCE)
def before_the_assignment(broker: Subject, version: int) -> None:
    """A member without an assignment in its generation is refused with REBALANCE_IN_PROGRESS.

    Join, and commit without SyncGroup.
    """
    group_id, topic = broker.group(), broker.topic()
    member = joined(broker.connect(), _JOIN_VERSION, group_id)
    answer = _commit(
        broker,
        version,
        group_id,
        topic,
        generation_id=member.generation_id,
        member_id=member.member_id,
    )
    expect.error(answer, _CODE, ErrorCode.REBALANCE_IN_PROGRESS)


@case("OffsetCommit", _SOURCE, since=_BY_ID)
def commit_counts_as_a_heartbeat(broker: Subject, version: int) -> None:
    """A commit of a member restarts its session.

    Join with a session of six seconds, commit after four of them, send a heartbeat four seconds
    later.
    """
    group_id, topic, connection = broker.group(), broker.topic(), broker.connect()
    request = join_request(group_id, session_timeout_ms=6_000, group_instance_id="instance")
    member = connection.ask(request, _JOIN_VERSION, JoinGroupResponse)
    generation_id, member_id = member.generation_id, member.member_id
    connection.ask(sync_request(group_id, member, _SYNC_VERSION), _SYNC_VERSION, SyncGroupResponse)
    expect.true(connection.is_silent(4), "four seconds", "a response")
    answer = _commit(
        broker, version, group_id, topic, generation_id=generation_id, member_id=member_id
    )
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.true(connection.is_silent(4), "four seconds", "a response")
    beat = HeartbeatRequest(group_id=group_id, generation_id=generation_id, member_id=member_id)
    expect.error(broker.prepare(beat, HeartbeatResponse), "error_code", ErrorCode.NONE)


@case("OffsetCommit", "KIP-211, Proposed Changes", until=_WITH_RETENTION)
def retention_of_old_clients(broker: Subject, version: int) -> None:
    """A commit with a retention time is written with the time of its end, others without one.

    Commit with a retention of a day, of 0 ms and of -1, read the records of the commits.
    """
    group_id, topic = broker.group(), broker.topic(partitions=3)
    before = offsets_ends(broker)
    retentions = (_DAY_MS, 0, -1)
    for partition, retention_ms in enumerate(retentions):
        position = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=42, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=group_id,
            retention_time_ms=retention_ms,
            topics=[OffsetCommitRequestTopic(name=topic.name, partitions=[position])],
        )
        expect.error(broker.ask(request, version, OffsetCommitResponse), _CODE, ErrorCode.NONE)
    kept = offsets_since(broker, before, group_id, count=len(retentions))
    seen = [kept[each].expire_timestamp for each in range(len(retentions))]
    ends = [kept[index].commit_timestamp + each for index, each in enumerate(retentions)]
    expect.true(seen == [*ends[:2], -1], str([*ends[:2], -1]), seen, "expire_timestamp")


@case("OffsetCommit", "KIP-1251", since=_BY_EPOCH)
def epoch_before_the_last_one(broker: Subject, version: int) -> None:
    """An older epoch is enough for a partition that the member has had since: else it is stale.

    Join a consumer group with a topic, subscribe to a second one, commit to both with the epoch of
    the first assignment: STALE_MEMBER_EPOCH; then to the first topic alone.
    """
    group_id, topic, later = broker.group(), broker.topic(), broker.topic()
    prepared_member(broker, broker.group(), later)
    epoch = prepared_member(broker, group_id, topic).member_epoch
    request = joining(group_id, topic.name)
    request.member_epoch = epoch
    request.subscribed_topic_names = [topic.name, later.name]
    request.topic_partitions = [TopicPartitions(topic_id=topic.topic_id, partitions=[0])]
    for _ in broker.attempts("an assignment of both topics"):
        answer = broker.prepare(request, ConsumerGroupHeartbeatResponse)
        expect.error(answer, "error_code", ErrorCode.NONE)
        request.member_epoch = answer.member_epoch
        if answer.assignment is not None and len(answer.assignment.topic_partitions) == 2:
            break
    for wanted, known, code in (
        (later, epoch, ErrorCode.STALE_MEMBER_EPOCH),
        (topic, epoch, ErrorCode.NONE),
        (later, request.member_epoch, ErrorCode.NONE),
    ):
        done = _commit(
            broker, version, group_id, wanted, generation_id=known, member_id=CONSUMER_ID
        )
        expect.error(done, _CODE, code)
