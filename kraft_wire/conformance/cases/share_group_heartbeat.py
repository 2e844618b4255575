"""ShareGroupHeartbeat, API key 76: members of share groups join, stay and leave (KIP-932)."""

from collections.abc import Sequence
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.consumer_members import joined as joined_consumer
from kraft_wire.conformance.internal_topics import (
    BODY_AT,
    internal_topic,
    type_of,
    values_since,
)
from kraft_wire.conformance.share_members import (
    LEAVE_EPOCH,
    MEMBER_ID,
    OTHER_MEMBER_ID,
    ask_about_shares,
    assigned,
    heartbeat,
    joining,
    member_epoch,
    share_group,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kraft_wire.wire.generated.share_group_state_partition_metadata_key import (
    ShareGroupStatePartitionMetadataKey,
)
from kraft_wire.wire.generated.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicPartitionsInfo,
)

_API: Final = "ShareGroupHeartbeat"
_SOURCE: Final = "KIP-932, ShareGroupHeartbeat API"
_CHECKS: Final = "org.apache.kafka.coordinator.group.GroupCoordinatorService, shareGroupHeartbeat"
_ID_LENGTH_MAX: Final = 36
_UNKNOWN_EPOCH: Final = 7


def _sent(
    broker: Subject, version: int, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse:
    return ask_about_shares(broker, request, version, ShareGroupHeartbeatResponse)


def _refused(
    broker: Subject, version: int, request: ShareGroupHeartbeatRequest, code: ErrorCode
) -> None:
    """Send a request, and expect an error and nothing else."""
    answer = _sent(broker, version, request)
    expect.error(answer, "error_code", code)
    expect.equal(answer, "member_epoch", 0)
    expect.equal(answer, "assignment", None)


@case(_API, _SOURCE)
def first_member(broker: Subject, version: int) -> None:
    """The only member of a group gets all partitions once their state has begun.

    Join a new group with a topic of 2 partitions, send heartbeats until partitions are assigned.
    """
    topic = broker.topic(partitions=2)
    with share_group(broker) as group_id:
        answer = assigned(broker, group_id, topic, partitions=2)
        expect.equal(answer, "member_id", MEMBER_ID)
        expect.true(answer.member_epoch > 0, "an epoch", answer.member_epoch, "member_epoch")
        expect.equal(answer, "assignment.topic_partitions[0].topic_id", topic.topic_id)
        expect.equal(answer, "assignment.topic_partitions[0].partitions", [0, 1])
        interval = answer.heartbeat_interval_ms
        expect.true(interval > 0, "an interval", interval, "heartbeat_interval_ms")


@case(_API, _SOURCE)
def unchanged_member(broker: Subject, version: int) -> None:
    """A heartbeat that changes nothing is answered without an assignment.

    Join until partitions are assigned, send a heartbeat with the epoch of the response.
    """
    with share_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, broker.topic())
        answer = _sent(broker, version, heartbeat(group_id, epoch))
        expect.error(answer, "error_code", ErrorCode.NONE)
        expect.equal(answer, "member_id", MEMBER_ID)
        expect.equal(answer, "member_epoch", epoch)
        expect.equal(answer, "assignment", None)


@case(_API, _SOURCE)
def member_that_joins_again(broker: Subject, version: int) -> None:
    """A member that joins again keeps its epoch and is told its partitions.

    Join until partitions are assigned, join again with epoch 0.
    """
    topic = broker.topic()
    with share_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, topic)
        answer = _sent(broker, version, joining(group_id, topic.name))
        expect.error(answer, "error_code", ErrorCode.NONE)
        expect.equal(answer, "member_epoch", epoch)
        expect.equal(answer, "assignment.topic_partitions[0].topic_id", topic.topic_id)
        expect.equal(answer, "assignment.topic_partitions[0].partitions", [0])


@case(_API, _SOURCE)
def members_share_a_partition(broker: Subject, version: int) -> None:
    """Two members get the same partition.

    Join with a topic of 1 partition until it is assigned, then with a second member.
    """
    topic = broker.topic()
    with share_group(broker) as group_id:
        member_epoch(broker, group_id, topic)
        answer = assigned(broker, group_id, topic, OTHER_MEMBER_ID)
        expect.equal(answer, "member_id", OTHER_MEMBER_ID)
        expect.equal(answer, "assignment.topic_partitions[0].partitions", [0])
        again = _sent(broker, version, joining(group_id, topic.name))
        expect.equal(again, "assignment.topic_partitions[0].partitions", [0])


@case(_API, _SOURCE)
def members_divide_partitions(broker: Subject, version: int) -> None:
    """Two members of two partitions get one each.

    Join until there are two partitions, join as another member, ask for the partitions of both.
    """
    topic = broker.topic(partitions=2)
    with share_group(broker) as group_id:
        member_epoch(broker, group_id, topic, OTHER_MEMBER_ID, partitions=2)
        member_epoch(broker, group_id, topic)
        found = []
        for member_id in (MEMBER_ID, OTHER_MEMBER_ID):
            answer = _sent(broker, version, joining(group_id, topic.name, member_id=member_id))
            expect.error(answer, "error_code", ErrorCode.NONE)
            given = answer.assignment.topic_partitions if answer.assignment is not None else []
            found += [list(each.partitions) for each in given]
        expect.true(sorted(found) == [[0], [1]], "one partition each", found, "assignment")


@case(_API, "ShareGroupStatePartitionMetadataValue.json")
def record_of_the_partitions(broker: Subject, version: int) -> None:
    """The log of groups names partitions while their state begins, and then as begun.

    Join with a topic of 2 partitions until they are assigned, read what was written to
    __consumer_offsets.
    """
    topic = broker.topic(partitions=2)
    log = internal_topic(broker, broker.offsets_topic().name)
    with share_group(broker) as group_id:
        _sent(broker, version, joining(group_id, topic.name))
        member_epoch(broker, group_id, topic, partitions=2)
        key = ShareGroupStatePartitionMetadataKey.RECORD_TYPE
        seen = [
            [_partitions(found.initializing_topics), _partitions(found.initialized_topics)]
            for each, value in values_since(broker, log)
            if type_of(each) == key and group_id.encode() in each
            for found, _ in [ShareGroupStatePartitionMetadataValue.decode(value, 0, BODY_AT)]
        ]
        wanted = [[[0, 1], []], [[], [0, 1]]]
        is_right = [*seen[:1], *seen[-1:]] == wanted  # a state may fail to begin at first
        expect.true(is_right, str(wanted), seen)


def _partitions(topics: Sequence[TopicPartitionsInfo]) -> list[int]:
    return sorted(partition for each in topics for partition in each.partitions)


@case(_API, _SOURCE)
def changed_subscription(broker: Subject, version: int) -> None:
    """A member that subscribes to another topic loses its partitions at once.

    Join until partitions are assigned, subscribe to a topic that does not exist.
    """
    with share_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, broker.topic())
        request = heartbeat(group_id, epoch)
        request.subscribed_topic_names = [broker.name()]
        answer = _sent(broker, version, request)
        expect.error(answer, "error_code", ErrorCode.NONE)
        expect.equal(answer, "assignment.topic_partitions", [])


@case(_API, _SOURCE)
def leaving_member(broker: Subject, version: int) -> None:
    """A member that left is unknown.

    Join until partitions are assigned, leave with epoch -1, send a heartbeat.
    """
    with share_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, broker.topic())
        left = _sent(broker, version, heartbeat(group_id, LEAVE_EPOCH))
        expect.error(left, "error_code", ErrorCode.NONE)
        expect.equal(left, "member_epoch", LEAVE_EPOCH)
        expect.equal(left, "assignment", None)
        _refused(broker, version, heartbeat(group_id, epoch), ErrorCode.UNKNOWN_MEMBER_ID)


@case(_API, _SOURCE)
def greater_epoch(broker: Subject, version: int) -> None:
    """A member epoch above the coordinator's is refused with FENCED_MEMBER_EPOCH.

    Join until partitions are assigned, send a heartbeat with a greater epoch.
    """
    with share_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, broker.topic())
        request = heartbeat(group_id, epoch + 1)
        _refused(broker, version, request, ErrorCode.FENCED_MEMBER_EPOCH)


@case(_API, _SOURCE)
def epoch_before_the_previous(broker: Subject, version: int) -> None:
    """The previous member epoch is accepted, an older one is refused with FENCED_MEMBER_EPOCH.

    Join, change the subscription twice, send heartbeats with the previous and the first epoch.
    """
    with share_group(broker) as group_id:
        epochs = [member_epoch(broker, group_id, broker.topic())]
        for each in (broker.name(), broker.name()):
            request = heartbeat(group_id, epochs[-1])
            request.subscribed_topic_names = [each]
            answer = _sent(broker, version, request)
            expect.error(answer, "error_code", ErrorCode.NONE)
            epochs.append(answer.member_epoch)
        answer = _sent(broker, version, heartbeat(group_id, epochs[1]))
        expect.error(answer, "error_code", ErrorCode.NONE)
        expect.equal(answer, "member_epoch", epochs[2])
        request = heartbeat(group_id, epochs[0])
        _refused(broker, version, request, ErrorCode.FENCED_MEMBER_EPOCH)


@case(_API, _SOURCE)
def unknown_member(broker: Subject, version: int) -> None:
    """An unknown member with an epoch is refused with UNKNOWN_MEMBER_ID.

    Join until partitions are assigned, send heartbeats of another member: with an epoch, leaving.
    """
    with share_group(broker) as group_id:
        epoch = member_epoch(broker, group_id, broker.topic())
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

    Join a consumer group, join it as a share group.
    """
    group_id, topic = broker.group(), broker.topic()
    joined_consumer(broker, 1, group_id, topic)
    _refused(broker, version, joining(group_id, topic.name), ErrorCode.GROUP_ID_NOT_FOUND)


@case(_API, _CHECKS)
def member_id_without_text(broker: Subject, version: int) -> None:
    """A member id that is empty or has more than 36 characters is refused with INVALID_REQUEST.

    Join a new group with both.
    """
    for each in ("", "x" * (_ID_LENGTH_MAX + 1)):
        request = joining(broker.group(), broker.name(), member_id=each)
        _refused(broker, version, request, ErrorCode.INVALID_REQUEST)


@case(_API, _CHECKS)
def errors_in_order(broker: Subject, version: int) -> None:
    """Each fault of a request is refused with INVALID_REQUEST before the group is looked up.

    Join with an empty group id, an empty rack, no topics, and an epoch below -1.
    """
    group_id, topic = broker.group(), broker.name()
    no_group, no_rack = joining("", topic), joining(group_id, topic)
    no_rack.rack_id = ""
    without_names = heartbeat(group_id, 0)
    below = heartbeat(group_id, LEAVE_EPOCH - 1)
    for each in (no_group, no_rack, without_names, joining(group_id), below):
        _refused(broker, version, each, ErrorCode.INVALID_REQUEST)
    _refused(broker, version, heartbeat(group_id, 1), ErrorCode.GROUP_ID_NOT_FOUND)


@case(_API, _CHECKS)
def texts_of_spaces(broker: Subject, version: int) -> None:
    """A member id or a rack of spaces alone is refused with INVALID_REQUEST.

    Join a new group with each of them.
    """
    group_id, topic = broker.group(), broker.topic()
    for name in ("member_id", "rack_id"):
        request = joining(group_id, topic.name)
        setattr(request, name, "  ")
        _refused(broker, version, request, ErrorCode.INVALID_REQUEST)
