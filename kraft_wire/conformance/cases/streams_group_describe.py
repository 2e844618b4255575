"""StreamsGroupDescribe, API key 89: topology, members and tasks of streams groups (KIP-1071)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.consumer_members import joined as joined_consumer
from kraft_wire.conformance.streams_members import (
    LEAVE_EPOCH,
    MEMBER_ID,
    OTHER_MEMBER_ID,
    SUBTOPOLOGY,
    ask_about_streams,
    heartbeat,
    joining,
    member_epoch,
    prepared,
    prepared_until_status,
    streams_group,
    topology,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from kraft_wire.wire.generated.streams_group_heartbeat import Endpoint, KeyValue

_API: Final = "StreamsGroupDescribe"
_SOURCE: Final = "KIP-1071, StreamsGroupDescribe API"
_CODE: Final = "groups[0].error_code"
_MEMBER: Final = "groups[0].members[0]"
_ONLY: Final = "groups[0].topology.subtopologies[0]"
_MISSING_SOURCES: Final = 1


def _described(broker: Subject, version: int, *group_ids: str) -> StreamsGroupDescribeResponse:
    request = StreamsGroupDescribeRequest(group_ids=list(group_ids))
    return ask_about_streams(broker, request, version, StreamsGroupDescribeResponse)


@case(_API, _SOURCE)
def stable_group(broker: Subject, version: int) -> None:
    """A group whose member has its tasks is Stable, at the epoch of its member.

    Join with a topic of 2 partitions until there are tasks, describe the group.
    """
    wanted = topology(broker.topic(partitions=2).name)
    with streams_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, wanted, tasks=2)
        answer = _described(broker, version, group_id)
        expect.error(answer, _CODE, ErrorCode.NONE)
        expect.equal(answer, "groups[0].group_id", group_id)
        expect.equal(answer, "groups[0].group_state", "Stable")
        expect.equal(answer, "groups[0].group_epoch", epoch)
        expect.equal(answer, "groups[0].assignment_epoch", epoch)
        expect.equal(answer, f"{_MEMBER}.member_id", MEMBER_ID)
        expect.equal(answer, f"{_MEMBER}.member_epoch", epoch)
        expect.equal(answer, f"{_MEMBER}.topology_epoch", 0)
        expect.equal(answer, f"{_MEMBER}.process_id", f"process of {MEMBER_ID}")
        expect.equal(answer, f"{_MEMBER}.is_classic", False)
        for each in ("assignment", "target_assignment"):
            tasks = f"{_MEMBER}.{each}.active_tasks[0]"
            expect.equal(answer, f"{tasks}.subtopology_id", SUBTOPOLOGY)
            expect.equal(answer, f"{tasks}.partitions", [0, 1])


@case(_API, _SOURCE)
def topology_of_a_group(broker: Subject, version: int) -> None:
    """The topology is described with the number of partitions of its internal topics.

    Join with a source and a changelog topic of 2 partitions each, bump the group's epoch by another
    process id, describe the group: 4.3.1 knows no sizes until it writes a second time.
    """
    source, changelog = broker.topic(partitions=2).name, broker.topic(partitions=2).name
    with streams_group(broker) as group_id:
        wanted = topology(source, changelogs=[changelog], epoch=3)
        epoch = member_epoch(broker, group_id, wanted, tasks=2)
        change = heartbeat(group_id, epoch)
        change.process_id = "another process"
        prepared(broker, change)
        answer = _described(broker, version, group_id)
        expect.equal(answer, "groups[0].topology.epoch", 3)
        expect.equal(answer, f"{_ONLY}.subtopology_id", SUBTOPOLOGY)
        expect.equal(answer, f"{_ONLY}.source_topics", [source])
        expect.equal(answer, f"{_ONLY}.repartition_sink_topics", [])
        expect.equal(answer, f"{_ONLY}.repartition_source_topics", [])
        expect.equal(answer, f"{_ONLY}.state_changelog_topics[0].name", changelog)
        expect.equal(answer, f"{_ONLY}.state_changelog_topics[0].partitions", 2)


@case(_API, _SOURCE)
def details_of_a_member(broker: Subject, version: int) -> None:
    """A member is described with what it told of itself.

    Join with a rack, an endpoint and a tag, describe the group.
    """
    wanted = topology(broker.topic().name)
    with streams_group(broker) as group_id:
        request = joining(group_id, wanted)
        request.rack_id = "a-rack"
        request.user_endpoint = Endpoint(host="streams.example", port=65535)
        request.client_tags = [KeyValue(key="zone", value="b")]
        prepared(broker, request)
        answer = _described(broker, version, group_id)
        expect.equal(answer, f"{_MEMBER}.rack_id", "a-rack")
        expect.equal(answer, f"{_MEMBER}.instance_id", None)
        expect.equal(answer, f"{_MEMBER}.user_endpoint.host", "streams.example")
        expect.equal(answer, f"{_MEMBER}.user_endpoint.port", 65535)
        expect.equal(answer, f"{_MEMBER}.client_tags[0].key", "zone")
        expect.equal(answer, f"{_MEMBER}.client_tags[0].value", "b")


@case(_API, _SOURCE)
def tasks_on_the_move(broker: Subject, version: int) -> None:
    """A group is Reconciling while a member has tasks that are another's by now.

    Join with a topic of 2 partitions, join with a second member, describe the group.
    """
    wanted = topology(broker.topic(partitions=2).name)
    with streams_group(broker) as group_id:
        member_epoch(broker, group_id, wanted, tasks=2)
        prepared(broker, joining(group_id, wanted, OTHER_MEMBER_ID))
        answer = _described(broker, version, group_id)
        expect.equal(answer, "groups[0].group_state", "Reconciling")
        members = {each.member_id: each for each in answer.groups[0].members}
        names = sorted(members)
        both = sorted([MEMBER_ID, OTHER_MEMBER_ID])
        expect.true(names == both, str(both), names, "groups[0].members")
        owned = members[MEMBER_ID].assignment.active_tasks[0].partitions
        expect.true(owned == [0, 1], "[0, 1]", owned, "groups[0].members")
        target = members[OTHER_MEMBER_ID].target_assignment.active_tasks[0].partitions
        expect.true(target == [1], "[1]", target, "groups[0].members")


@case(_API, _SOURCE)
def group_without_its_topics(broker: Subject, version: int) -> None:
    """A group whose source topic is missing is NotReady.

    Join with a topic that does not exist, describe the group.
    """
    name = broker.name()
    with streams_group(broker) as group_id:
        prepared_until_status(broker, group_id, topology(name), _MISSING_SOURCES)
        answer = _described(broker, version, group_id)
        expect.error(answer, _CODE, ErrorCode.NONE)
        expect.equal(answer, "groups[0].group_state", "NotReady")
        expect.equal(answer, f"{_ONLY}.source_topics", [name])
        expect.equal(answer, f"{_MEMBER}.assignment.active_tasks", [])


@case(_API, _SOURCE)
def group_without_members(broker: Subject, version: int) -> None:
    """A group whose members left is Empty, and keeps its topology.

    Join until there are tasks, leave, describe the group.
    """
    source = broker.topic().name
    with streams_group(broker) as group_id:
        member_epoch(broker, group_id, topology(source))
        prepared(broker, heartbeat(group_id, LEAVE_EPOCH))
        answer = _described(broker, version, group_id)
        expect.error(answer, _CODE, ErrorCode.NONE)
        expect.equal(answer, "groups[0].group_state", "Empty")
        expect.equal(answer, f"{_ONLY}.source_topics", [source])
        expect.equal(answer, "groups[0].members", [])


@case(_API, _SOURCE)
def unknown_group(broker: Subject, version: int) -> None:
    """A group that does not exist gets GROUP_ID_NOT_FOUND.

    Describe a new group.
    """
    answer = _described(broker, version, broker.group())
    expect.error(answer, _CODE, ErrorCode.GROUP_ID_NOT_FOUND)
    expect.equal(answer, "groups[0].topology", None)


@case(_API, _SOURCE)
def consumer_group(broker: Subject, version: int) -> None:
    """A consumer group gets GROUP_ID_NOT_FOUND.

    Join a consumer group, describe it as a streams group.
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
