"""StreamsGroupHeartbeat, API key 88: topologies, and the topics that they need (KIP-1071)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.streams_members import (
    MEMBER_ID,
    OTHER_MEMBER_ID,
    SUBTOPOLOGY,
    ask_about_streams,
    assigned,
    heartbeat,
    joining,
    member_epoch,
    prepared,
    prepared_until_status,
    streams_group,
    tasks_of_members,
    topology,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kraft_wire.wire.generated.streams_group_heartbeat import (
    CopartitionGroup,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TopicInfo,
    Topology,
)

_API: Final = "StreamsGroupHeartbeat"
_SOURCE: Final = "KIP-1071, Topology initialization and internal topics"
_CHECKS: Final = "org.apache.kafka.coordinator.group.streams.topics.InternalTopicManager"
_STALE, _MISSING_SOURCES, _WRONGLY_PARTITIONED, _MISSING_INTERNAL = range(4)


def _sent(
    broker: Subject, version: int, request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse:
    return ask_about_streams(broker, request, version, StreamsGroupHeartbeatResponse)


def _refused(broker: Subject, version: int, wanted: Topology, code: ErrorCode) -> None:
    """Join a new group with a topology, and expect an error."""
    with streams_group(broker) as group_id:
        answer = _sent(broker, version, joining(group_id, wanted))
        expect.error(answer, "error_code", code)
        expect.equal(answer, "member_epoch", 0)
        expect.equal(answer, "active_tasks", None)


def _not_ready(broker: Subject, version: int, wanted: Topology, status: int) -> None:
    """Join a new group with a topology that is accepted and gives no tasks."""
    with streams_group(broker) as group_id:
        prepared_until_status(broker, group_id, wanted, status)
        answer = _sent(broker, version, joining(group_id, wanted))
        expect.error(answer, "error_code", ErrorCode.NONE)
        expect.equal(answer, "status[0].status_code", status)
        expect.equal(answer, "active_tasks", [])


@case(_API, _SOURCE)
def missing_source_topic(broker: Subject, version: int) -> None:
    """A member whose source topic is missing is accepted, told so, and given no tasks.

    Join with a topic that does not exist.
    """
    _not_ready(broker, version, topology(broker.name()), _MISSING_SOURCES)


@case(_API, _SOURCE)
def copartitioned_topics(broker: Subject, version: int) -> None:
    """Source topics that are read together must have as many partitions, or there are no tasks.

    Join with topics of 1 and 2 partitions in one copartition group.
    """
    wanted = topology(broker.topic().name, broker.topic(partitions=2).name)
    wanted.subtopologies[0].copartition_groups = [CopartitionGroup(source_topics=[0, 1])]
    _not_ready(broker, version, wanted, _WRONGLY_PARTITIONED)


@case(_API, _SOURCE)
def topics_of_different_sizes(broker: Subject, version: int) -> None:
    """Source topics that are not read together give as many tasks as the largest has partitions.

    Join with topics of 1 and 2 partitions until there are 2 tasks, join again.
    """
    wanted = topology(broker.topic().name, broker.topic(partitions=2).name)
    with streams_group(broker) as group_id:
        assigned(broker, group_id, wanted, tasks=2)
        answer = _sent(broker, version, joining(group_id, wanted))
        expect.equal(answer, "active_tasks[0].partitions", [0, 1])


@case(_API, "KIP-1071, Task assignment")
def subtopologies_shared_by_two(broker: Subject, version: int) -> None:
    """Members share the tasks of each subtopology, not one subtopology each.

    Join with two members and two source topics that do not exist, one for each subtopology; create
    them with 2 partitions, send heartbeats of both until they have tasks.
    """
    names = [broker.name(), broker.name()]
    reads = [
        Subtopology(subtopology_id=str(index), source_topics=[name])
        for index, name in enumerate(names)
    ]
    wanted = Topology(epoch=0, subtopologies=reads)
    with streams_group(broker) as group_id:
        epochs = {
            each: _sent(broker, version, joining(group_id, wanted, each)).member_epoch
            for each in (MEMBER_ID, OTHER_MEMBER_ID)
        }
        for name in names:
            broker.topic(partitions=2, name=name)
        seen = tasks_of_members(broker, group_id, epochs, 2 * len(names))
        expected = {each: [("0", 1), ("1", 1)] for each in epochs}
        expect.true(seen == expected, str(expected), seen, "active_tasks")


@case(_API, _SOURCE)
def changelog_of_another_size(broker: Subject, version: int) -> None:
    """A changelog topic must have as many partitions as there are tasks, or there are no tasks.

    Join with a source topic of 2 partitions and a changelog topic of 1.
    """
    wanted = topology(broker.topic(partitions=2).name, changelogs=[broker.topic().name])
    _not_ready(broker, version, wanted, _WRONGLY_PARTITIONED)


@case(_API, _SOURCE)
def internal_topics(broker: Subject, version: int) -> None:
    """The broker creates missing internal topics, and gives tasks once they exist.

    Join with a source topic of 2 partitions that is written to a repartition topic, whose
    subtopology has a changelog topic. Send heartbeats until there are tasks, ask for Metadata.
    """
    source, repartition, changelog = broker.topic(partitions=2).name, broker.name(), broker.name()
    broker.made_topics += [repartition, changelog]
    writes = Subtopology(
        subtopology_id=SUBTOPOLOGY, source_topics=[source], repartition_sink_topics=[repartition]
    )
    reads = Subtopology(
        subtopology_id="1",
        repartition_source_topics=[TopicInfo(name=repartition)],
        state_changelog_topics=[TopicInfo(name=changelog)],
    )
    wanted = Topology(epoch=0, subtopologies=[writes, reads])
    with streams_group(broker) as group_id:
        prepared_until_status(broker, group_id, wanted, _MISSING_INTERNAL)
        member_epoch(broker, group_id, wanted, tasks=4)
        answer = _sent(broker, version, joining(group_id, wanted))
        expect.equal(answer, "status", [])
        tasks = {each.subtopology_id: each.partitions for each in answer.active_tasks or ()}
        expected = {SUBTOPOLOGY: [0, 1], "1": [0, 1]}
        expect.true(tasks == expected, str(expected), tasks, "active_tasks")
    for name in (repartition, changelog):
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
        )
        found = broker.prepare(request, MetadataResponse)
        expect.error(found, "topics[0].error_code", ErrorCode.NONE)
        sizes = len(found.topics[0].partitions)
        expect.true(sizes == 2, "2 partitions", sizes, "topics[0].partitions")


@case(_API, _SOURCE)
def copartitioned_repartition_topics(broker: Subject, version: int) -> None:
    """Of repartition topics that are read together, those with a size decide that of the others.

    Join with a source topic of 3 partitions that is written to two repartition topics, one of which
    has 2 partitions; both are read together.
    """
    source, sized, free = broker.topic(partitions=3).name, broker.name(), broker.name()
    broker.made_topics += [sized, free]
    writes = Subtopology(
        subtopology_id=SUBTOPOLOGY, source_topics=[source], repartition_sink_topics=[sized, free]
    )
    read = [TopicInfo(name=sized, partitions=2), TopicInfo(name=free)]
    together = CopartitionGroup(repartition_source_topics=[0, 1])
    reads = Subtopology(
        subtopology_id="1",
        repartition_source_topics=sorted(read, key=lambda each: each.name),
        copartition_groups=[together],
    )
    wanted = Topology(epoch=0, subtopologies=[writes, reads])
    with streams_group(broker) as group_id:
        member_epoch(broker, group_id, wanted, tasks=5)
        answer = _sent(broker, version, joining(group_id, wanted))
        tasks = {each.subtopology_id: each.partitions for each in answer.active_tasks or ()}
        expected = {SUBTOPOLOGY: [0, 1, 2], "1": [0, 1]}
        expect.true(tasks == expected, str(expected), tasks, "active_tasks")


@case(_API, _CHECKS)
def repartition_topic_that_nobody_writes(broker: Subject, version: int) -> None:
    """A repartition topic without a known size is refused with STREAMS_INVALID_TOPOLOGY.

    Join with a repartition topic that no subtopology writes.
    """
    wanted = topology(repartitions=[broker.name()])
    _refused(broker, version, wanted, ErrorCode.STREAMS_INVALID_TOPOLOGY)


@case(_API, _CHECKS)
def impossible_topic(broker: Subject, version: int) -> None:
    """An internal topic of Kafka or without a valid name is refused with STREAMS_INVALID_TOPOLOGY.

    Join with the changelog topics __consumer_offsets and a/b.
    """
    source = broker.topic().name
    for each in ("__consumer_offsets", "a/b"):
        wanted = topology(source, changelogs=[each])
        _refused(broker, version, wanted, ErrorCode.STREAMS_INVALID_TOPOLOGY)


@case(_API, _SOURCE)
def changelog_with_partitions(broker: Subject, version: int) -> None:
    """A changelog topic with a number of partitions is refused with STREAMS_INVALID_TOPOLOGY.

    Join with a changelog topic of 1 partition.
    """
    wanted = topology(broker.name(), changelogs=[broker.name()])
    wanted.subtopologies[0].state_changelog_topics[0].partitions = 1
    _refused(broker, version, wanted, ErrorCode.STREAMS_INVALID_TOPOLOGY)


@case(_API, _SOURCE)
def no_subtopologies(broker: Subject, version: int) -> None:
    """A topology without subtopologies is accepted, and has no tasks.

    Join with it.
    """
    with streams_group(broker) as group_id:
        answer = _sent(broker, version, joining(group_id, Topology(epoch=0, subtopologies=[])))
        expect.error(answer, "error_code", ErrorCode.NONE)
        expect.equal(answer, "status", [])
        expect.equal(answer, "active_tasks", [])


@case(_API, _SOURCE)
def stale_topology(broker: Subject, version: int) -> None:
    """A member with an older topology may join, and is told so.

    Join with topology epoch 3, with a second member with epoch 2 and other topics.
    """
    source = broker.topic().name
    with streams_group(broker) as group_id:
        assigned(broker, group_id, topology(source, epoch=3))
        older = topology(broker.name(), epoch=2)
        answer = _sent(broker, version, joining(group_id, older, OTHER_MEMBER_ID))
        expect.error(answer, "error_code", ErrorCode.NONE)
        expect.equal(answer, "status[0].status_code", _STALE)
        expect.equal(answer, "active_tasks", [])


@case(_API, _SOURCE)
def another_topology(broker: Subject, version: int) -> None:
    """A newer topology, and another one of the same epoch, are refused with INVALID_REQUEST.

    Join until there are tasks, join with a greater topology epoch, and with other topics.
    """
    source = broker.topic().name
    with streams_group(broker) as group_id:
        assigned(broker, group_id, topology(source))
        for each in (topology(source, epoch=1), topology(broker.name())):
            answer = _sent(broker, version, joining(group_id, each, OTHER_MEMBER_ID))
            expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)


@case(_API, _SOURCE)
def topic_that_comes_later(broker: Subject, version: int) -> None:
    """A group gets tasks when its source topic is created.

    Join with a topic that does not exist, create it, send heartbeats until there are tasks.
    """
    with streams_group(broker) as group_id:
        name = broker.name()
        epoch = prepared(broker, joining(group_id, topology(name))).member_epoch
        broker.topic(name=name)
        for _ in broker.attempts("tasks of a topic that came later"):
            answer = prepared(broker, heartbeat(group_id, epoch))
            epoch = answer.member_epoch
            if answer.active_tasks:
                break
        answer = _sent(broker, version, joining(group_id, topology(name)))
        expect.equal(answer, "status", [])
        expect.equal(answer, "active_tasks[0].partitions", [0])
