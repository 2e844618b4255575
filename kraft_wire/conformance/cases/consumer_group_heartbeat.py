"""ConsumerGroupHeartbeat, API key 68: members of consumer groups join, stay and leave (KIP-848)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.consumer_members import (
    LEAVE_EPOCH,
    MEMBER_ID,
    heartbeat,
    joined,
    joining,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kraft_wire.wire.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_API: Final = "ConsumerGroupHeartbeat"
_SOURCE: Final = "KIP-848, ConsumerGroupHeartbeat API"
_CLIENT_IDS_FROM: Final = 1
_OTHER_MEMBER_ID: Final = "the-other-member"
_LEFT_FOR_A_WHILE: Final = -2
_MATCHED_WITHIN_S: Final = 20


def _refused(
    broker: Subject, version: int, request: ConsumerGroupHeartbeatRequest, code: ErrorCode
) -> None:
    """Send a request, and expect an error and nothing else."""
    answer = broker.ask(request, version, ConsumerGroupHeartbeatResponse)
    expect.error(answer, "error_code", code)
    expect.equal(answer, "member_epoch", 0)
    expect.equal(answer, "assignment", None)


@case(_API, _SOURCE)
def first_member(broker: Subject, version: int) -> None:
    """The first member of a new group gets an epoch and all partitions.

    Join a new group with a topic of 2 partitions.
    """
    topic = broker.topic(partitions=2)
    answer = joined(broker, version, broker.group(), topic)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.true(answer.member_epoch > 0, "an epoch", answer.member_epoch, "member_epoch")
    expect.equal(answer, "assignment.topic_partitions[0].topic_id", topic.topic_id)
    expect.equal(answer, "assignment.topic_partitions[0].partitions", [0, 1])


@case(_API, _SOURCE)
def unchanged_member(broker: Subject, version: int) -> None:
    """A heartbeat that changes nothing is answered without an assignment.

    Join a new group, send a heartbeat with the epoch of the answer.
    """
    group_id = broker.group()
    epoch = joined(broker, version, group_id, broker.topic()).member_epoch
    request = heartbeat(group_id, epoch)
    answer = broker.ask(request, version, ConsumerGroupHeartbeatResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.equal(answer, "member_epoch", epoch)
    expect.equal(answer, "assignment", None)


@case(_API, _SOURCE)
def leaving_member(broker: Subject, version: int) -> None:
    """A member that left is unknown.

    Join a new group, leave with epoch -1, send a heartbeat.
    """
    group_id = broker.group()
    epoch = joined(broker, version, group_id, broker.topic()).member_epoch
    left = broker.ask(heartbeat(group_id, LEAVE_EPOCH), version, ConsumerGroupHeartbeatResponse)
    expect.error(left, "error_code", ErrorCode.NONE)
    expect.equal(left, "member_epoch", LEAVE_EPOCH)
    request = heartbeat(group_id, epoch)
    _refused(broker, version, request, ErrorCode.UNKNOWN_MEMBER_ID)


@case(_API, _SOURCE)
def greater_epoch(broker: Subject, version: int) -> None:
    """A member epoch above the coordinator's is refused with FENCED_MEMBER_EPOCH.

    Join a new group, send a heartbeat with a greater epoch than that of the answer.
    """
    group_id = broker.group()
    epoch = joined(broker, version, group_id, broker.topic()).member_epoch
    request = heartbeat(group_id, epoch + 1)
    _refused(broker, version, request, ErrorCode.FENCED_MEMBER_EPOCH)


@case(_API, _SOURCE)
def unknown_member(broker: Subject, version: int) -> None:
    """An unknown member with an epoch is refused with UNKNOWN_MEMBER_ID.

    Join a new group, send a heartbeat of another member.
    """
    group_id = broker.group()
    epoch = joined(broker, version, group_id, broker.topic()).member_epoch
    request = heartbeat(group_id, epoch, "made-up")
    _refused(broker, version, request, ErrorCode.UNKNOWN_MEMBER_ID)


@case(_API, _SOURCE)
def unknown_group(broker: Subject, version: int) -> None:
    """An epoch of a group that does not exist is refused with GROUP_ID_NOT_FOUND.

    Send a heartbeat to a new group.
    """
    request = heartbeat(broker.group(), 1)
    _refused(broker, version, request, ErrorCode.GROUP_ID_NOT_FOUND)


@case(_API, _SOURCE)
def unknown_assignor(broker: Subject, version: int) -> None:
    """A server assignor that does not exist is refused with UNSUPPORTED_ASSIGNOR.

    Join a new group with a server assignor of an unknown name.
    """
    request = joining(broker.group(), broker.topic().name)
    request.server_assignor = "made-up"
    _refused(broker, version, request, ErrorCode.UNSUPPORTED_ASSIGNOR)


@case(_API, "KIP-1082", since=_CLIENT_IDS_FROM)
def empty_member_id(broker: Subject, version: int) -> None:
    """A member without an id is refused with INVALID_REQUEST since v1.

    Join a new group without a member id.
    """
    request = joining(broker.group(), broker.topic().name)
    request.member_id = ""
    _refused(broker, version, request, ErrorCode.INVALID_REQUEST)


def _accepted(
    broker: Subject, version: int, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    answer = broker.ask(request, version, ConsumerGroupHeartbeatResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    return answer


def _prepared(
    broker: Subject, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """Send a heartbeat that only waits for something."""
    answer = broker.prepare(request, ConsumerGroupHeartbeatResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    return answer


def _until_assigned(broker: Subject, request: ConsumerGroupHeartbeatRequest) -> list[int]:
    """Send heartbeats until the member is told partitions of its topic; return them."""
    for _ in broker.attempts(f"an assignment of member {request.member_id}"):
        answer = _prepared(broker, request)
        request.member_epoch = answer.member_epoch
        if answer.assignment is not None and answer.assignment.topic_partitions:
            return answer.assignment.topic_partitions[0].partitions
        if answer.assignment is not None and request.topic_partitions is not None:
            return []
    raise AssertionError("attempts end in an exception")


@case(_API, _SOURCE)
def partition_moves_to_another_member(broker: Subject, version: int) -> None:
    """A partition is given to another member once its owner reports that it has none of it.

    Join with a topic of 2 partitions, join with a second member; the first reports no partitions.
    """
    group_id, topic = broker.group(), broker.topic(partitions=2)
    first = joined(broker, version, group_id, topic)
    expect.equal(first, "assignment.topic_partitions[0].partitions", [0, 1])
    request = joining(group_id, topic.name)
    request.member_id = _OTHER_MEMBER_ID
    other = _accepted(broker, version, request)
    expect.equal(other, "assignment.topic_partitions", [])
    request = heartbeat(group_id, first.member_epoch)
    request.topic_partitions = []
    kept = _until_assigned(broker, request)
    expect.true(len(kept) == 1, "one of its partitions", kept, "assignment")
    request = heartbeat(group_id, other.member_epoch, _OTHER_MEMBER_ID)
    given = _until_assigned(broker, request)
    both = sorted([*kept, *given])
    expect.true(both == [0, 1], "the other partition", given, "assignment")
    expect.equal(_accepted(broker, version, request), "assignment", None)


@case(_API, "KIP-848, Static Membership")
def static_member_that_comes_back(broker: Subject, version: int) -> None:
    """An instance that left for a while is taken over by another member; before, it is refused.

    Join with an instance id, join as another member, leave with epoch -2, join as another member.
    """
    group_id, topic = broker.group(), broker.topic()
    joined(broker, version, broker.group(), topic)
    request = joining(group_id, topic.name)
    request.instance_id = "the-instance"
    epoch = _accepted(broker, version, request).member_epoch
    request.member_id = _OTHER_MEMBER_ID
    _refused(broker, version, request, ErrorCode.UNRELEASED_INSTANCE_ID)
    leaving = heartbeat(group_id, _LEFT_FOR_A_WHILE)
    leaving.instance_id = request.instance_id
    expect.equal(_accepted(broker, version, leaving), "member_epoch", _LEFT_FOR_A_WHILE)
    expect.equal(_accepted(broker, version, request), "member_id", _OTHER_MEMBER_ID)
    leaving = heartbeat(group_id, epoch)
    leaving.instance_id = request.instance_id
    _refused(broker, version, leaving, ErrorCode.FENCED_INSTANCE_ID)


@case(_API, _SOURCE)
def partitions_that_come_later(broker: Subject, version: int) -> None:
    """A member is given the partitions that its topic gets.

    Join with a topic of 1 partition, create another, send heartbeats until there are 2.
    """
    group_id, topic = broker.group(), broker.topic()
    epoch = joined(broker, version, group_id, topic).member_epoch
    wanted = CreatePartitionsTopic(name=topic.name, count=2, assignments=None)
    grown = CreatePartitionsRequest(topics=[wanted], timeout_ms=5000)
    expect.error(
        broker.prepare(grown, CreatePartitionsResponse), "results[0].error_code", ErrorCode.NONE
    )
    for _ in broker.attempts(f"2 partitions of {topic.name}"):
        answer = _prepared(broker, heartbeat(group_id, epoch, MEMBER_ID))
        epoch = answer.member_epoch
        if answer.assignment is not None:
            break
    expect.equal(answer, "assignment.topic_partitions[0].partitions", [0, 1])
    _accepted(broker, version, heartbeat(group_id, epoch, MEMBER_ID))


@case(_API, _SOURCE)
def members_with_different_topics(broker: Subject, version: int) -> None:
    """A member gets the partitions of its topic, and those of the others stay where they are.

    Join with one topic, join as another member with another topic of 2 partitions.
    """
    group_id, own, other = broker.group(), broker.topic(), broker.topic(partitions=2)
    joined(broker, version, broker.group(), other)
    epoch = joined(broker, version, group_id, own).member_epoch
    request = joining(group_id, other.name)
    request.member_id = _OTHER_MEMBER_ID
    epoch_of_other = _accepted(broker, version, request).member_epoch
    given = _until_assigned(broker, heartbeat(group_id, epoch_of_other, _OTHER_MEMBER_ID))
    expect.true(given == [0, 1], "all partitions of its topic", given, "assignment")
    answer = _accepted(broker, version, heartbeat(group_id, epoch))
    expect.equal(answer, "assignment", None)


@case(_API, _SOURCE)
def topic_that_is_subscribed_no_longer(broker: Subject, version: int) -> None:
    """A member that subscribes to one of its two topics, and reports that it has that, keeps it.

    Join with two topics, send a heartbeat with one of them and its partition.
    """
    group_id, kept, left = broker.group(), broker.topic(), broker.topic()
    joined(broker, version, broker.group(), left)
    epoch = joined(broker, version, group_id, kept).member_epoch
    request = heartbeat(group_id, epoch)
    request.subscribed_topic_names = [kept.name, left.name]
    for _ in broker.attempts(f"partitions of {left.name}"):
        answer = _prepared(broker, request)
        request.member_epoch = answer.member_epoch
        if answer.assignment is not None and len(answer.assignment.topic_partitions) == 2:
            break
    request.subscribed_topic_names = [kept.name]
    request.topic_partitions = [TopicPartitions(topic_id=kept.topic_id, partitions=[0])]
    for _ in broker.attempts(f"no partitions of {left.name}"):
        answer = _prepared(broker, request)
        request.member_epoch = answer.member_epoch
        if answer.assignment is not None:
            found = [each.topic_id for each in answer.assignment.topic_partitions]
            expect.true(found == [kept.topic_id], "the other topic", found, "assignment")
            break
    _accepted(broker, version, heartbeat(group_id, request.member_epoch))


@case(_API, _SOURCE)
def partition_that_is_not_given_up_yet(broker: Subject, version: int) -> None:
    """A member keeps its epoch until it reports that it has given up what it is to give up.

    Join with a topic of 2 partitions, join with a second member; the first is to keep one, still
    reports both, then the one. Until then the second member has none.
    """
    group_id, topic = broker.group(), broker.topic(partitions=2)
    first = joined(broker, version, group_id, topic)
    request = joining(group_id, topic.name)
    request.member_id = _OTHER_MEMBER_ID
    other = _accepted(broker, version, request)
    both = TopicPartitions(topic_id=topic.topic_id, partitions=[0, 1])
    request = heartbeat(group_id, first.member_epoch)
    request.topic_partitions = [both]
    for _ in broker.attempts("the member to give up a partition"):
        answer = _prepared(broker, request)
        if answer.assignment is not None:
            (kept,) = answer.assignment.topic_partitions[0].partitions
            break
    expect.equal(_accepted(broker, version, request), "member_epoch", first.member_epoch)
    waiting = heartbeat(group_id, other.member_epoch, _OTHER_MEMBER_ID)
    waiting.member_epoch = _accepted(broker, version, waiting).member_epoch
    expect.equal(_accepted(broker, version, waiting), "assignment", None)
    request.topic_partitions = [TopicPartitions(topic_id=topic.topic_id, partitions=[kept])]
    expect.equal(_accepted(broker, version, request), "member_epoch", first.member_epoch + 1)
    given = _until_assigned(broker, waiting)
    expect.true(given == [1 - kept], "the other partition", given, "assignment")


@case(_API, "KIP-848, Server side assignors")
def assignor_of_a_member(broker: Subject, version: int) -> None:
    """The assignor `range` gives the members ranges of partitions, in the order of their ids.

    Join with a topic of 3 partitions and the assignor range, join with a second member; the first
    reports what it keeps.
    """
    group_id, topic = broker.group(), broker.topic(partitions=3)
    joined(broker, version, broker.group(), topic)
    request = joining(group_id, topic.name)
    request.server_assignor = "range"
    first = _accepted(broker, version, request)
    expect.equal(first, "assignment.topic_partitions[0].partitions", [0, 1, 2])
    request.member_id = _OTHER_MEMBER_ID
    other = _accepted(broker, version, request)
    request = heartbeat(group_id, first.member_epoch)
    request.topic_partitions = []
    kept = _until_assigned(broker, request)
    expect.true(kept == [0, 1], "[0, 1]", kept, "assignment")
    given = _until_assigned(broker, heartbeat(group_id, other.member_epoch, _OTHER_MEMBER_ID))
    expect.true(given == [2], "[2]", given, "assignment")


@case(_API, "KIP-848, ConsumerGroupHeartbeat API", since=_CLIENT_IDS_FROM)
def regular_expression(broker: Subject, version: int) -> None:
    """A member subscribes to the topics whose whole names match a regular expression.

    Join with the name of a topic, its last character replaced by `.`, until there is an assignment;
    then send a heartbeat with everything, as a member that had no answer.
    """
    group_id, topic = broker.group(), broker.topic()
    joined(broker, version, broker.group(), topic)
    request = joining(group_id, topic.name)
    request.subscribed_topic_names = []
    request.subscribed_topic_regex = f"{topic.name[:-1]}."
    for _ in broker.attempts("partitions of the topic that matches"):
        answer = broker.prepare(request, ConsumerGroupHeartbeatResponse)
        request.member_epoch = answer.member_epoch
        if answer.assignment is not None and answer.assignment.topic_partitions:
            break
    answer = _accepted(broker, version, request)
    expect.equal(answer, "member_epoch", request.member_epoch)
    expect.equal(answer, "assignment.topic_partitions[0].topic_id", topic.topic_id)
    expect.equal(answer, "assignment.topic_partitions[0].partitions", [0])


@case(_API, "KIP-848, ConsumerGroupHeartbeat API", since=_CLIENT_IDS_FROM)
def topic_that_matches_later(broker: Subject, version: int) -> None:
    """A member is given the partitions of a topic that is created later and matches.

    Join with the beginning of a topic's name and `.*` until there is an assignment, create another
    topic, send heartbeats until there is a new assignment. A broker may match again after 10 s.
    """
    group_id, topic = broker.group(), broker.topic()
    request = joining(group_id, topic.name)
    request.subscribed_topic_names = []
    request.subscribed_topic_regex = f"{topic.name}.*"
    for _ in broker.attempts("partitions of the topic that matches"):
        answer = _prepared(broker, request)
        request.member_epoch = answer.member_epoch
        if answer.assignment is not None and answer.assignment.topic_partitions:
            break
    later = broker.topic(name=f"{topic.name}-later")
    epoch = request.member_epoch
    for _ in broker.attempts("partitions of the later topic", seconds=_MATCHED_WITHIN_S):
        answer = _prepared(broker, heartbeat(group_id, epoch, request.member_id))
        epoch = answer.member_epoch
        if answer.assignment is not None:
            break
    found = answer.assignment.topic_partitions if answer.assignment is not None else ()
    expect.true(
        {each.topic_id for each in found} == {topic.topic_id, later.topic_id}, "both", found
    )
    _accepted(broker, version, heartbeat(group_id, epoch, request.member_id))


@case(_API, _SOURCE, since=_CLIENT_IDS_FROM)
def many_members_that_leave(broker: Subject, version: int) -> None:
    """Members that join and leave at once do not affect one that stays.

    Join, have a hundred other members join and leave, send heartbeats of the first and of the last.
    """
    group_id, topic = broker.group(), broker.topic()
    epoch = joined(broker, version, group_id, topic).member_epoch
    for number in range(100):
        request = joining(group_id, topic.name)
        request.member_id = f"guest-{number}"
        _prepared(broker, request)
        _prepared(broker, heartbeat(group_id, LEAVE_EPOCH, request.member_id))
    _prepared(broker, heartbeat(group_id, epoch, MEMBER_ID))
    unknown = heartbeat(group_id, epoch, request.member_id)
    _refused(broker, version, unknown, ErrorCode.UNKNOWN_MEMBER_ID)


@case(_API, "KIP-848, ConsumerGroupHeartbeat API", since=_CLIENT_IDS_FROM)
def invalid_regular_expression(broker: Subject, version: int) -> None:
    """An invalid regular expression is refused with INVALID_REGULAR_EXPRESSION.

    Join with the expression "(".
    """
    request = joining(broker.group(), broker.topic().name)
    request.subscribed_topic_names, request.subscribed_topic_regex = [], "("
    _refused(broker, version, request, ErrorCode.INVALID_REGULAR_EXPRESSION)
