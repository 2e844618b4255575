"""OffsetFetch, API key 9: the positions that groups have committed."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.consumer_members import MEMBER_ID as CONSUMER_ID
from kraft_wire.conformance.consumer_members import prepared_member
from kraft_wire.conformance.streams_members import (
    MEMBER_ID,
    member_epoch,
    streams_group,
    topology,
)
from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

_GROUPS_SINCE: Final = 8
_BY_EPOCH: Final = 9
_BY_ID: Final = 10
_COMMIT_VERSION: Final = 8
_GUIDE: Final = "Kafka protocol guide, OffsetFetch API"


def _committed(broker: Subject, group_id: str, topic: Topic, offset: int) -> None:
    position = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata="note"
    )
    topics = [OffsetCommitRequestTopic(name=topic.name, partitions=[position])]
    request = OffsetCommitRequest(group_id=group_id, topics=topics)
    answer = broker.ask(request, _COMMIT_VERSION, OffsetCommitResponse)
    expect.error(answer, "topics[0].partitions[0].error_code", ErrorCode.NONE)


def _fetch(
    broker: Subject, version: int, group_id: str, topic: Topic, partition: int = 0
) -> OffsetFetchResponse:
    if version < _GROUPS_SINCE:
        topics = [OffsetFetchRequestTopic(name=topic.name, partition_indexes=[partition])]
        request = OffsetFetchRequest(group_id=group_id, topics=topics)
    else:
        wanted = OffsetFetchRequestTopics(partition_indexes=[partition])
        if version >= _BY_ID:
            wanted.topic_id = topic.topic_id
        else:
            wanted.name = topic.name
        group = OffsetFetchRequestGroup(group_id=group_id, topics=[wanted])
        request = OffsetFetchRequest(groups=[group])
    return broker.ask(request, version, OffsetFetchResponse)


def _path(version: int, field: str) -> str:
    prefix = "groups[0]." if version >= _GROUPS_SINCE else ""
    return f"{prefix}topics[0].partitions[0].{field}"


@case("OffsetFetch", _GUIDE)
def committed_offset(broker: Subject, version: int) -> None:
    """The committed offset is returned with its metadata.

    Commit offset 42 with a note, fetch it.
    """
    group_id, topic = broker.group(), broker.topic()
    _committed(broker, group_id, topic, 42)
    answer = _fetch(broker, version, group_id, topic)
    expect.error(answer, _path(version, "error_code"), ErrorCode.NONE)
    expect.equal(answer, _path(version, "committed_offset"), 42)
    expect.equal(answer, _path(version, "metadata"), "note")


@case("OffsetFetch", _GUIDE)
def last_commit_counts(broker: Subject, version: int) -> None:
    """A later commit replaces an earlier one, also with a smaller offset.

    Commit 42, then 7, fetch.
    """
    group_id, topic = broker.group(), broker.topic()
    for offset in (42, 7):
        _committed(broker, group_id, topic, offset)
    answer = _fetch(broker, version, group_id, topic)
    expect.equal(answer, _path(version, "committed_offset"), 7)


@case("OffsetFetch", _GUIDE)
def nothing_committed(broker: Subject, version: int) -> None:
    """A partition without a committed offset returns -1 and no error.

    Fetch an offset of a new group.
    """
    answer = _fetch(broker, version, broker.group(), broker.topic())
    expect.error(answer, _path(version, "error_code"), ErrorCode.NONE)
    expect.equal(answer, _path(version, "committed_offset"), -1)
    expect.equal(answer, _path(version, "metadata"), "")


@case("OffsetFetch", "KIP-88", since=2, until=_GROUPS_SINCE - 1)
def all_offsets_of_a_group(broker: Subject, version: int) -> None:
    """A null list of topics returns every committed offset of the group.

    Commit an offset, fetch all.
    """
    group_id, topic = broker.group(), broker.topic()
    _committed(broker, group_id, topic, 42)
    request = OffsetFetchRequest(group_id=group_id, topics=None)
    answer = broker.ask(request, version, OffsetFetchResponse)
    expect.equal(answer, "topics[0].name", topic.name)
    expect.equal(answer, "topics[0].partitions[0].committed_offset", 42)


@case("OffsetFetch", "KIP-709", since=_GROUPS_SINCE)
def several_groups(broker: Subject, version: int) -> None:
    """One response has the results of several groups, each with its id.

    Commit an offset in the first of two groups, fetch all of both.
    """
    first, second, topic = broker.group(), broker.group(), broker.topic()
    _committed(broker, first, topic, 42)
    groups = [OffsetFetchRequestGroup(group_id=each, topics=None) for each in (first, second)]
    answer = broker.ask(OffsetFetchRequest(groups=groups), version, OffsetFetchResponse)
    found = {each.group_id: len(each.topics) for each in answer.groups}
    expect.true(found == {first: 1, second: 0}, "one topic and none", found, "groups")


@case("OffsetFetch", "KIP-848, OffsetFetch", since=_BY_ID)
def unknown_topic_id(broker: Subject, version: int) -> None:
    """An unknown topic id gets UNKNOWN_TOPIC_ID.

    Fetch the offset of a topic id that does not exist.
    """
    nowhere = Topic("", Uuid(b"conform no topic"))
    answer = _fetch(broker, version, broker.group(), nowhere)
    expect.error(answer, _path(version, "error_code"), ErrorCode.UNKNOWN_TOPIC_ID)


@case("OffsetFetch", _GUIDE)
def unknown_partition(broker: Subject, version: int) -> None:
    """A partition that does not exist has a result like one without an offset.

    Commit an offset of partition 0, fetch that of partition 7.
    """
    group_id, topic = broker.group(), broker.topic()
    _committed(broker, group_id, topic, 42)
    answer = _fetch(broker, version, group_id, topic, 7)
    expect.error(answer, _path(version, "error_code"), ErrorCode.NONE)
    expect.equal(answer, _path(version, "partition_index"), 7)
    expect.equal(answer, _path(version, "committed_offset"), -1)


@case("OffsetFetch", "KIP-320", since=5)
def leader_epoch_of_a_commit(broker: Subject, version: int) -> None:
    """The committed leader epoch is returned, or -1 without one.

    Commit an offset with leader epoch 3, and one without; fetch both.
    """
    group_id, topic = broker.group(), broker.topic(partitions=2)
    for partition, epoch in ((0, 3), (1, -1)):
        position = OffsetCommitRequestPartition(
            partition_index=partition, committed_offset=9, committed_leader_epoch=epoch
        )
        topics = [OffsetCommitRequestTopic(name=topic.name, partitions=[position])]
        request = OffsetCommitRequest(group_id=group_id, topics=topics)
        broker.ask(request, _COMMIT_VERSION, OffsetCommitResponse)
        answer = _fetch(broker, version, group_id, topic, partition)
        expect.equal(answer, _path(version, "committed_leader_epoch"), epoch)
        expect.equal(answer, _path(version, "metadata"), "")


@case("OffsetFetch", "KIP-848, OffsetFetch", since=9)
def member_of_no_group(broker: Subject, version: int) -> None:
    """An unknown member is refused, or ignored in a classic group.

    Fetch as an unknown member of a new group.
    """
    group = OffsetFetchRequestGroup(
        group_id=broker.group(), member_id="made-up", member_epoch=1, topics=None
    )
    broker.ask(OffsetFetchRequest(groups=[group]), version, OffsetFetchResponse)


@case("OffsetFetch", "org.apache.kafka.coordinator.group.GroupCoordinatorService")
def empty_group_id(broker: Subject, version: int) -> None:
    """The empty group id gets a response.

    Fetch the offsets of the group "".
    """
    broker.group()
    _fetch(broker, version, "", broker.topic())


@case("OffsetFetch", "KIP-1071, OffsetFetch", since=_BY_EPOCH)
def member_of_a_streams_group(broker: Subject, version: int) -> None:
    """A member of a streams group that names itself fetches with its epoch.

    Join a streams group until there is a task, fetch with the next epoch and with the member's, and
    as another member.
    """
    topic = broker.topic()
    with streams_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, topology(topic.name))
        _by_epoch(broker, version, group_id, topic, MEMBER_ID, epoch)


def _by_epoch(
    broker: Subject, version: int, group_id: str, topic: Topic, member_id: str, epoch: int
) -> None:
    """Fetch as a member with the next epoch, with its own, and as a member that is not there."""
    wanted = OffsetFetchRequestTopics(partition_indexes=[0])
    if version >= _BY_ID:
        wanted.topic_id = topic.topic_id
    else:
        wanted.name = topic.name
    for asking, known, code in (
        (member_id, epoch + 1, ErrorCode.STALE_MEMBER_EPOCH),
        (member_id, epoch, ErrorCode.NONE),
        ("made-up", epoch, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        group = OffsetFetchRequestGroup(
            group_id=group_id, member_id=asking, member_epoch=known, topics=[wanted]
        )
        answer = broker.ask(OffsetFetchRequest(groups=[group]), version, OffsetFetchResponse)
        expect.error(answer, "groups[0].error_code", code)


@case("OffsetFetch", "KIP-709", since=_GROUPS_SINCE)
def all_offsets_of_several_groups(broker: Subject, version: int) -> None:
    """A null list of topics returns every committed offset of a group, by name or by topic id.

    Commit offsets of two topics, fetch all of the group and of one without offsets.
    """
    group_id, other = broker.group(), broker.group()
    topics = [broker.topic(), broker.topic()]
    for topic in topics:
        _committed(broker, group_id, topic, 42)
    groups = [OffsetFetchRequestGroup(group_id=each, topics=None) for each in (group_id, other)]
    answer = broker.ask(OffsetFetchRequest(groups=groups), version, OffsetFetchResponse)
    found = {
        each.group_id: sorted(
            bytes(one.topic_id) if version >= _BY_ID else one.name.encode() for one in each.topics
        )
        for each in answer.groups
    }
    keys = sorted(bytes(one.topic_id) if version >= _BY_ID else one.name.encode() for one in topics)
    expect.true(found == {group_id: keys, other: []}, "both topics", found, "groups")


@case("OffsetFetch", "kafka.server.KafkaApis, handleOffsetFetchRequest")
def order_of_partitions(broker: Subject, version: int) -> None:
    """Partitions are answered in the order of the request.

    Commit an offset of partition 0, fetch those of 2, 0 and 1.
    """
    group_id, topic = broker.group(), broker.topic(3)
    _committed(broker, group_id, topic, 42)
    if version < _GROUPS_SINCE:
        wanted = [OffsetFetchRequestTopic(name=topic.name, partition_indexes=[2, 0, 1])]
        request = OffsetFetchRequest(group_id=group_id, topics=wanted)
        answer = broker.ask(request, version, OffsetFetchResponse)
        found = [(one.partition_index, one.committed_offset) for one in answer.topics[0].partitions]
    else:
        named = OffsetFetchRequestTopics(partition_indexes=[2, 0, 1])
        if version >= _BY_ID:
            named.topic_id = topic.topic_id
        else:
            named.name = topic.name
        group = OffsetFetchRequestGroup(group_id=group_id, topics=[named])
        answer = broker.ask(OffsetFetchRequest(groups=[group]), version, OffsetFetchResponse)
        found = [
            (one.partition_index, one.committed_offset)
            for one in answer.groups[0].topics[0].partitions
        ]
    expect.true(found == [(2, -1), (0, 42), (1, -1)], "2, 0, 1", found, "topics")


@case("OffsetFetch", "KIP-848, OffsetFetch", since=_BY_EPOCH)
def member_of_a_consumer_group(broker: Subject, version: int) -> None:
    """A member of a consumer group that names itself fetches with its epoch.

    Join a consumer group, fetch with the next epoch and with the member's, and as another member.
    """
    group_id, topic = broker.group(), broker.topic()
    epoch = prepared_member(broker, group_id, topic).member_epoch
    _by_epoch(broker, version, group_id, topic, CONSUMER_ID, epoch)
