"""StreamsGroupHeartbeat, API key 88: members of streams groups and their tasks (KIP-1071)."""

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
    owning,
    prepared,
    prepared_until_status,
    streams_group,
    tasks_of_members,
    topology,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_heartbeat import (
    Endpoint,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskOffset,
)

_API: Final = "StreamsGroupHeartbeat"
_SOURCE: Final = "KIP-1071, StreamsGroupHeartbeat API"
_CHECKS: Final = "org.apache.kafka.coordinator.group.GroupCoordinatorService, streamsGroupHeartbeat"
_UNKNOWN_EPOCH: Final = 7
_SHUTDOWN, _DELAYED = 4, 5
_STANDBY: Final = "streams.num.standby.replicas"
_DELAY: Final = "streams.initial.rebalance.delay.ms"


def _sent(
    broker: Subject, version: int, request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse:
    return ask_about_streams(broker, request, version, StreamsGroupHeartbeatResponse)


def _accepted(
    broker: Subject, version: int, request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse:
    answer = _sent(broker, version, request)
    expect.error(answer, "error_code", ErrorCode.NONE)
    return answer


def _refused(
    broker: Subject, version: int, request: StreamsGroupHeartbeatRequest, code: ErrorCode
) -> None:
    """Send a request, and expect an error and nothing else."""
    answer = _sent(broker, version, request)
    expect.error(answer, "error_code", code)
    expect.equal(answer, "member_epoch", 0)
    expect.equal(answer, "active_tasks", None)


@case(_API, _SOURCE)
def first_member(broker: Subject, version: int) -> None:
    """The only member of a group is told all tasks, one for each partition.

    Join with a topic of 2 partitions until there are tasks, join again with epoch 0.
    """
    wanted = topology(broker.topic(partitions=2).name)
    with streams_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, wanted, tasks=2)
        answer = _accepted(broker, version, joining(group_id, wanted))
        expect.equal(answer, "member_id", MEMBER_ID)
        expect.equal(answer, "member_epoch", epoch)
        expect.equal(answer, "status", [])
        expect.equal(answer, "active_tasks[0].subtopology_id", SUBTOPOLOGY)
        expect.equal(answer, "active_tasks[0].partitions", [0, 1])
        expect.equal(answer, "standby_tasks", [])
        expect.equal(answer, "warmup_tasks", [])
        interval = answer.heartbeat_interval_ms
        expect.true(interval > 0, "an interval", interval, "heartbeat_interval_ms")


@case(_API, _SOURCE)
def unchanged_member(broker: Subject, version: int) -> None:
    """A heartbeat that changes nothing is answered without tasks.

    Join until there are tasks, send a heartbeat without and one with the member's tasks.
    """
    with streams_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, topology(broker.topic().name))
        for request in (heartbeat(group_id, epoch), owning(group_id, epoch, [0])):
            answer = _accepted(broker, version, request)
            expect.equal(answer, "member_epoch", epoch)
            for field in ("active_tasks", "standby_tasks", "warmup_tasks"):
                expect.equal(answer, field, None)


@case(_API, _SOURCE)
def task_moves_to_another_process(broker: Subject, version: int) -> None:
    """A task is given to another member once its owner no longer has it.

    Join with a topic of 2 partitions, join with a second member, which waits; give up a task.
    """
    wanted = topology(broker.topic(partitions=2).name)
    with streams_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, wanted, tasks=2)
        other = _accepted(broker, version, joining(group_id, wanted, OTHER_MEMBER_ID))
        expect.equal(other, "active_tasks", [])
        told = _accepted(broker, version, owning(group_id, epoch, [0, 1]))
        expect.equal(told, "member_epoch", epoch)
        expect.equal(told, "active_tasks[0].partitions", [0])
        kept = _accepted(broker, version, owning(group_id, epoch, [0, 1]))
        expect.equal(kept, "member_epoch", epoch)
        waiting = heartbeat(group_id, other.member_epoch, OTHER_MEMBER_ID)
        expect.equal(_accepted(broker, version, waiting), "active_tasks", None)
        revoked = _accepted(broker, version, owning(group_id, epoch, [0]))
        expect.equal(revoked, "member_epoch", other.member_epoch)
        given = _accepted(broker, version, waiting)
        expect.equal(given, "active_tasks[0].partitions", [1])


@case(_API, _SOURCE)
def members_of_one_process(broker: Subject, version: int) -> None:
    """Members of one process share its tasks.

    Join with two members of one process and a topic that does not exist, create it with 2
    partitions, send heartbeats of both until they have tasks.
    """
    with streams_group(broker) as group_id:
        name = broker.name()
        first = joining(group_id, topology(name))
        second = joining(group_id, topology(name), OTHER_MEMBER_ID)
        second.process_id = first.process_id
        epochs = {
            each.member_id: _accepted(broker, version, each).member_epoch
            for each in (first, second)
        }
        broker.topic(partitions=2, name=name)
        tasks = tasks_of_members(broker, group_id, epochs, 2)
        expected = {each: [(SUBTOPOLOGY, 1)] for each in epochs}
        expect.true(tasks == expected, str(expected), tasks, "active_tasks")


@case(_API, _SOURCE)
def standby_tasks(broker: Subject, version: int) -> None:
    """A group may have standby tasks of stateful subtopologies, in other processes.

    Join a group with one standby replica with two members, with a changelog topic of 1 partition.
    """
    source, changelog = broker.topic().name, broker.topic().name
    wanted = topology(source, changelogs=[changelog])
    with streams_group(broker, {_STANDBY: "1"}) as group_id:
        member_epoch(broker, group_id, wanted)
        answer = _accepted(broker, version, joining(group_id, wanted, OTHER_MEMBER_ID))
        expect.equal(answer, "active_tasks", [])
        expect.equal(answer, "standby_tasks[0].subtopology_id", SUBTOPOLOGY)
        expect.equal(answer, "standby_tasks[0].partitions", [0])


@case(_API, _SOURCE)
def leaving_member(broker: Subject, version: int) -> None:
    """A member that left is unknown.

    Join until there are tasks, leave with epoch -1, send a heartbeat.
    """
    with streams_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, topology(broker.topic().name))
        left = _accepted(broker, version, heartbeat(group_id, LEAVE_EPOCH))
        expect.equal(left, "member_id", MEMBER_ID)
        expect.equal(left, "member_epoch", LEAVE_EPOCH)
        expect.equal(left, "active_tasks", None)
        _refused(broker, version, heartbeat(group_id, epoch), ErrorCode.UNKNOWN_MEMBER_ID)


@case(_API, _SOURCE)
def tasks_of_a_member_that_left(broker: Subject, version: int) -> None:
    """The tasks of a member that left are given to another.

    Join with two members, the first of which leaves; send a heartbeat of the second.
    """
    wanted = topology(broker.topic(partitions=2).name)
    with streams_group(broker) as group_id:
        member_epoch(broker, group_id, wanted, tasks=2)
        epoch = prepared(broker, joining(group_id, wanted, OTHER_MEMBER_ID)).member_epoch
        prepared(broker, heartbeat(group_id, LEAVE_EPOCH))
        answer = _accepted(broker, version, heartbeat(group_id, epoch, OTHER_MEMBER_ID))
        expect.equal(answer, "active_tasks[0].partitions", [0, 1])
        expect.true(answer.member_epoch > epoch, f"above {epoch}", answer.member_epoch)


@case(_API, _SOURCE)
def greater_epoch(broker: Subject, version: int) -> None:
    """A member epoch above the coordinator's is refused with FENCED_MEMBER_EPOCH.

    Join until there are tasks, send a heartbeat with a greater epoch.
    """
    with streams_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, topology(broker.topic().name))
        request = heartbeat(group_id, epoch + 1)
        _refused(broker, version, request, ErrorCode.FENCED_MEMBER_EPOCH)


@case(_API, _SOURCE)
def epoch_before(broker: Subject, version: int) -> None:
    """The previous epoch is accepted from a member that tells a part of its tasks.

    Join, bump the epoch by another process id, send heartbeats with the epoch before: without and
    with tasks, and with a task that the member does not have; and one with an older epoch.
    """
    wanted = topology(broker.topic(partitions=2).name)
    with streams_group(broker) as group_id:
        before = member_epoch(broker, group_id, wanted, tasks=2)
        change = heartbeat(group_id, before)
        change.process_id = "another process"
        epoch = prepared(broker, change).member_epoch
        request = heartbeat(group_id, before)
        _refused(broker, version, request, ErrorCode.FENCED_MEMBER_EPOCH)
        answer = _accepted(broker, version, owning(group_id, before, [1]))
        expect.equal(answer, "member_epoch", epoch)
        request = owning(group_id, before, [2])
        _refused(broker, version, request, ErrorCode.FENCED_MEMBER_EPOCH)
        request = owning(group_id, before - 1, [])
        _refused(broker, version, request, ErrorCode.FENCED_MEMBER_EPOCH)


@case(_API, _SOURCE)
def unknown_member(broker: Subject, version: int) -> None:
    """An unknown member with an epoch is refused with UNKNOWN_MEMBER_ID.

    Join until there are tasks, send heartbeats of another member: with an epoch, leaving.
    """
    with streams_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, topology(broker.topic().name))
        for each in (epoch, LEAVE_EPOCH):
            request = heartbeat(group_id, each, "made-up")
            _refused(broker, version, request, ErrorCode.UNKNOWN_MEMBER_ID)


@case(_API, _SOURCE)
def unknown_group(broker: Subject, version: int) -> None:
    """An epoch of a group that does not exist is refused with GROUP_ID_NOT_FOUND.

    Send heartbeats to a new group: with an epoch, leaving.
    """
    group_id = broker.group()
    for each in (_UNKNOWN_EPOCH, LEAVE_EPOCH):
        _refused(broker, version, heartbeat(group_id, each), ErrorCode.GROUP_ID_NOT_FOUND)


@case(_API, _SOURCE)
def consumer_group(broker: Subject, version: int) -> None:
    """A group of another kind is refused with GROUP_ID_NOT_FOUND.

    Join a consumer group, join it as a streams group.
    """
    group_id, topic = broker.group(), broker.topic()
    joined_consumer(broker, 1, group_id, topic)
    request = joining(group_id, topology(topic.name))
    _refused(broker, version, request, ErrorCode.GROUP_ID_NOT_FOUND)


@case(_API, _CHECKS)
def ids_without_text(broker: Subject, version: int) -> None:
    """An empty member id, group id or rack is refused with INVALID_REQUEST.

    Join a new group with each of them.
    """
    group_id, wanted = broker.group(), topology(broker.name())
    no_rack = joining(group_id, wanted)
    no_rack.rack_id = ""
    for each in (joining(group_id, wanted, ""), joining("", wanted), no_rack):
        _refused(broker, version, each, ErrorCode.INVALID_REQUEST)


@case(_API, _CHECKS)
def static_member(broker: Subject, version: int) -> None:
    """An instance id is refused with INVALID_REQUEST.

    Join a new group with an instance id, leave it with epoch -2 and an instance id, and without.
    """
    group_id = broker.group()
    joins = joining(group_id, topology(broker.name()))
    leaves = heartbeat(group_id, LEAVE_EPOCH - 1)
    joins.instance_id = leaves.instance_id = "an-instance"
    for each in (joins, leaves, heartbeat(group_id, LEAVE_EPOCH - 1)):
        _refused(broker, version, each, ErrorCode.INVALID_REQUEST)


@case(_API, _CHECKS)
def parts_for_later_releases(broker: Subject, version: int) -> None:
    """Offsets of tasks, warmup tasks and patterns of topics are refused with INVALID_REQUEST.

    Join a new group with each of them.
    """
    group_id = broker.group()
    requests = [joining(group_id, topology(broker.name())) for _ in range(4)]
    requests[0].task_offsets = [TaskOffset(subtopology_id=SUBTOPOLOGY, partition=0, offset=0)]
    requests[1].task_end_offsets = []
    requests[2].warmup_tasks = owning(group_id, 0, [0]).active_tasks
    by_pattern = topology(broker.name())
    by_pattern.subtopologies[0].source_topic_regex = ["topic.*"]
    requests[3].topology = by_pattern
    for each in requests:
        _refused(broker, version, each, ErrorCode.INVALID_REQUEST)


@case(_API, _CHECKS)
def incomplete_first_request(broker: Subject, version: int) -> None:
    """A first request has a timeout, a topology and no tasks, or it is INVALID_REQUEST.

    Join a new group without each of them.
    """
    group_id, wanted = broker.group(), topology(broker.name())
    no_timeout, with_tasks, with_standby = (joining(group_id, wanted) for _ in range(3))
    no_timeout.rebalance_timeout_ms = -1
    with_tasks.active_tasks = owning(group_id, 0, [0]).active_tasks
    with_standby.standby_tasks = owning(group_id, 0, [0]).active_tasks
    for each in (no_timeout, with_tasks, with_standby, joining(group_id, None)):
        _refused(broker, version, each, ErrorCode.INVALID_REQUEST)


@case(_API, _CHECKS)
def errors_in_order(broker: Subject, version: int) -> None:
    """Each fault of a later request is refused with INVALID_REQUEST before the group is looked up.

    Send heartbeats to a new group: an epoch below -2, one kind of tasks alone, a topology.
    """
    group_id = broker.group()
    below = heartbeat(group_id, LEAVE_EPOCH - 2)
    alone = heartbeat(group_id, _UNKNOWN_EPOCH)
    alone.active_tasks = []
    late = heartbeat(group_id, _UNKNOWN_EPOCH)
    late.topology = topology(broker.name())
    for each in (below, alone, late):
        _refused(broker, version, each, ErrorCode.INVALID_REQUEST)
    request = heartbeat(group_id, _UNKNOWN_EPOCH)
    _refused(broker, version, request, ErrorCode.GROUP_ID_NOT_FOUND)


@case(_API, _SOURCE)
def tasks_that_do_not_exist(broker: Subject, version: int) -> None:
    """A member that has a task without a partition is refused with INVALID_REQUEST.

    Join with a topic of 1 partition, send heartbeats with tasks 1 and -1, and of subtopology x.
    """
    with streams_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, topology(broker.topic().name))
        strange = owning(group_id, epoch, [0])
        assert strange.active_tasks is not None
        strange.active_tasks[0].subtopology_id = "x"
        for each in (owning(group_id, epoch, [1]), owning(group_id, epoch, [-1]), strange):
            _refused(broker, version, each, ErrorCode.INVALID_REQUEST)


@case(_API, _SOURCE)
def process_of_a_member(broker: Subject, version: int) -> None:
    """A member that is another process now gets another epoch, and is told its tasks if it joins.

    Join until there are tasks, join again with another process id.
    """
    wanted = topology(broker.topic().name)
    with streams_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, wanted)
        request = joining(group_id, wanted)
        request.process_id = "another process"
        answer = _accepted(broker, version, request)
        expect.equal(answer, "member_epoch", epoch + 1)
        expect.equal(answer, "active_tasks[0].partitions", [0])


@case(_API, _SOURCE)
def shutdown_of_the_application(broker: Subject, version: int) -> None:
    """A member that asks for a shutdown is heard by all members.

    Join with two members, ask with the first, send a heartbeat of the second.
    """
    wanted = topology(broker.topic().name)
    with streams_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, wanted)
        other = prepared(broker, joining(group_id, wanted, OTHER_MEMBER_ID)).member_epoch
        request = heartbeat(group_id, epoch)
        request.shutdown_application = True
        for each in (request, heartbeat(group_id, other, OTHER_MEMBER_ID)):
            answer = _accepted(broker, version, each)
            expect.equal(answer, "status[0].status_code", _SHUTDOWN)


@case(_API, _SOURCE)
def delayed_assignment(broker: Subject, version: int) -> None:
    """A new group may wait for more members before it assigns tasks.

    Join a group with an initial delay of an hour.
    """
    wanted = topology(broker.topic().name)
    with streams_group(broker, {_DELAY: "3600000"}) as group_id:
        prepared_until_status(broker, group_id, wanted, _DELAYED)
        answer = _accepted(broker, version, joining(group_id, wanted, OTHER_MEMBER_ID))
        expect.equal(answer, "active_tasks", [])
        expect.equal(answer, "status[0].status_code", _DELAYED)


@case(_API, _SOURCE)
def endpoints(broker: Subject, version: int) -> None:
    """Members that tell where they are learn which partitions the others have, once.

    Join with an endpoint, send heartbeats with the epoch of the answer, and with another one.
    """
    topic = broker.topic(partitions=2)
    wanted = topology(topic.name)
    with streams_group(broker) as group_id:
        member_epoch(broker, group_id, wanted, tasks=2)
        request = joining(group_id, wanted)
        request.user_endpoint = Endpoint(host="streams.example", port=65535)
        joined = prepared(broker, request)
        request = heartbeat(group_id, joined.member_epoch)
        request.endpoint_information_epoch = joined.endpoint_information_epoch
        known = _accepted(broker, version, request)
        expect.equal(known, "partitions_by_user_endpoint", None)
        expect.equal(known, "endpoint_information_epoch", joined.endpoint_information_epoch)
        request.endpoint_information_epoch += 1
        answer = _accepted(broker, version, request)
        place = "partitions_by_user_endpoint[0]"
        expect.equal(answer, f"{place}.user_endpoint.host", "streams.example")
        expect.equal(answer, f"{place}.user_endpoint.port", 65535)
        expect.equal(answer, f"{place}.active_partitions[0].topic", topic.name)
        expect.equal(answer, f"{place}.active_partitions[0].partitions", [0, 1])
        expect.equal(answer, f"{place}.standby_partitions", [])


@case(_API, _SOURCE)
def endpoint_of_a_new_member(broker: Subject, version: int) -> None:
    """A member that knows all endpoints is told when another one joins with its own.

    Join with an endpoint, join as another member with another endpoint, send a heartbeat of the
    first with the epoch that it knows.
    """
    wanted = topology(broker.topic(partitions=2).name)
    with streams_group(broker) as group_id:
        member_epoch(broker, group_id, wanted, tasks=2)
        request = joining(group_id, wanted)
        request.user_endpoint = Endpoint(host="first.example", port=1)
        first = prepared(broker, request)
        request = joining(group_id, wanted, OTHER_MEMBER_ID)
        request.user_endpoint = Endpoint(host="second.example", port=2)
        prepared(broker, request)
        request = heartbeat(group_id, first.member_epoch)
        request.endpoint_information_epoch = first.endpoint_information_epoch
        answer = _accepted(broker, version, request)
        found = answer.partitions_by_user_endpoint or ()
        hosts = [each.user_endpoint.host for each in found]
        path = "partitions_by_user_endpoint"
        expect.true("second.example" in hosts, "second.example", hosts, path)
        known, told = first.endpoint_information_epoch, answer.endpoint_information_epoch
        expect.true(told > known, f"more than {known}", told, "endpoint_information_epoch")


@case(_API, _SOURCE)
def topology_of_a_leaving_member(broker: Subject, version: int) -> None:
    """A member that leaves gives no topology: INVALID_REQUEST.

    Join until there are tasks, leave with the topology.
    """
    wanted = topology(broker.topic().name)
    with streams_group(broker) as group_id:
        member_epoch(broker, group_id, wanted)
        request = heartbeat(group_id, LEAVE_EPOCH)
        request.topology = wanted
        _refused(broker, version, request, ErrorCode.INVALID_REQUEST)
