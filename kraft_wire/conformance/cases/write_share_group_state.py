"""WriteShareGroupState, API key 85: leaders of partitions write what groups consume (KIP-932)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.internal_topics import (
    BODY_AT,
    internal_topic,
    type_of,
    values_since,
)
from kraft_wire.conformance.share_states import (
    ERROR,
    FIRST_STATE_EPOCH,
    LEADER_EPOCH,
    START_OFFSET,
    Batch,
    SharePartition,
    begun,
    read,
    result,
    share_partition,
    state_batches,
    summarize,
    write,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.read_share_group_state import ReadShareGroupStateResponse
from kraft_wire.wire.generated.read_share_group_state_summary import (
    ReadShareGroupStateSummaryResponse,
)
from kraft_wire.wire.generated.share_snapshot_value import ShareSnapshotValue
from kraft_wire.wire.generated.share_update_value import ShareUpdateValue
from kraft_wire.wire.generated.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)

_API: Final = "WriteShareGroupState"
_SOURCE: Final = "KIP-932, WriteShareGroupState API"
_CHECKS: Final = "org.apache.kafka.coordinator.share.ShareCoordinatorShard, writeState"
_COUNT_SINCE: Final = 1
_ARCHIVED: Final = 4
_SNAPSHOT, _UPDATE = 0, 1


def _answered(
    broker: Subject, version: int, request: WriteShareGroupStateRequest, code: ErrorCode
) -> WriteShareGroupStateResponse:
    answer = broker.ask(request, version, WriteShareGroupStateResponse)
    expect.error(answer, ERROR, code)
    return answer


def _expect_batches(broker: Subject, of: SharePartition, *wanted: Batch) -> None:
    seen = state_batches(broker, of)
    expect.true(seen == list(wanted), str(list(wanted)), seen)


@case(_API, _SOURCE)
def neighbours_are_joined(broker: Subject, version: int) -> None:
    """Batches that follow each other are one if their state and count are the same.

    Begin a state, write three batches in two requests, the last with another count, read it.
    """
    with share_partition(broker) as of:
        begun(broker, of)
        answer = _answered(broker, version, write(of, (10, 11, 0, 1)), ErrorCode.NONE)
        expect.equal(answer, "results[0].topic_id", of.topic_id)
        expect.equal(answer, result("partition"), 0)
        request = write(of, (12, 13, 0, 1), (14, 15, 0, 2))
        _answered(broker, version, request, ErrorCode.NONE)
        _expect_batches(broker, of, (10, 13, 0, 1), (14, 15, 0, 2))


@case(_API, _SOURCE)
def overlapping_batches(broker: Subject, version: int) -> None:
    """Where batches overlap the greater count is kept, and the greater state of the same count.

    Begin a state, write batches with counts 2, 1 and 2 that overlap, read it.
    """
    with share_partition(broker) as of:
        begun(broker, of)
        for each in ((10, 19, 0, 2), (12, 13, _ARCHIVED, 1), (15, 16, _ARCHIVED, 2)):
            _answered(broker, version, write(of, each), ErrorCode.NONE)
        archived = (15, 16, _ARCHIVED, 2)
        _expect_batches(broker, of, (10, 14, 0, 2), archived, (17, 19, 0, 2))


@case(_API, _SOURCE)
def start_offset(broker: Subject, version: int) -> None:
    """A start offset cuts off what is below it; start offset -1 changes nothing.

    Begin a state, write a batch, write start offset 13, write without one, read it.
    """
    with share_partition(broker) as of:
        begun(broker, of)
        _answered(broker, version, write(of, (START_OFFSET, 15, 0, 1)), ErrorCode.NONE)
        for each in (13, -1):
            request = write(of, start_offset=each)
            _answered(broker, version, request, ErrorCode.NONE)
            found = broker.prepare(read(of), ReadShareGroupStateResponse)
            expect.equal(found, result("start_offset"), 13)
        _expect_batches(broker, of, (13, 15, 0, 1))


@case(_API, "KIP-1226", since=_COUNT_SINCE)
def complete_count(broker: Subject, version: int) -> None:
    """The number of completed deliveries is kept.

    Begin a state, write a batch with a count of 2, read the summary.
    """
    with share_partition(broker) as of:
        begun(broker, of)
        request = write(of, (12, 13, _ARCHIVED, 1), complete_count=2)
        _answered(broker, version, request, ErrorCode.NONE)
        found = broker.prepare(summarize(of), ReadShareGroupStateSummaryResponse)
        expect.equal(found, result("delivery_complete_count"), 2)


@case(_API, _SOURCE)
def older_epochs(broker: Subject, version: int) -> None:
    """An older leader epoch is FENCED_LEADER_EPOCH, and before an older state epoch's error.

    Begin a state, read it with leader epoch 5; write with an older state and leader epoch, with an
    older state epoch, with both as known.
    """
    with share_partition(broker) as of:
        begun(broker, of)
        broker.prepare(read(of, LEADER_EPOCH), ReadShareGroupStateResponse)
        state, leader = FIRST_STATE_EPOCH - 1, LEADER_EPOCH - 1
        request = write(of, (10, 10, 0, 1), epoch=state, leader_epoch=leader)
        _answered(broker, version, request, ErrorCode.FENCED_LEADER_EPOCH)
        request = write(of, (10, 10, 0, 1), epoch=state)
        _answered(broker, version, request, ErrorCode.FENCED_STATE_EPOCH)
        _expect_batches(broker, of)
        _answered(broker, version, write(of, (10, 10, 0, 1)), ErrorCode.NONE)


@case(_API, _CHECKS)
def state_that_has_not_begun(broker: Subject, version: int) -> None:
    """A state that has not begun, or a negative partition, is refused with INVALID_REQUEST.

    Write the state of a new group, write that of partition -1.
    """
    for partition in (0, -1):
        with share_partition(broker, partition) as of:
            request = write(of, (10, 10, 0, 1))
            _answered(broker, version, request, ErrorCode.INVALID_REQUEST)


@case(_API, _SOURCE)
def nothing_to_write(broker: Subject, version: int) -> None:
    """A request without topics, or without a group, has a response without results.

    Send both, then one with a topic.
    """
    with share_partition(broker) as of:
        without_topics = WriteShareGroupStateRequest(group_id=of.group_id, topics=[])
        for request in (without_topics, write(SharePartition("", of.topic_id))):
            answer = broker.ask(request, version, WriteShareGroupStateResponse)
            expect.equal(answer, "results", [])
        _answered(broker, version, write(of), ErrorCode.INVALID_REQUEST)


@case(_API, "ShareUpdateValue.json", since=_COUNT_SINCE)
def record_of_an_update(broker: Subject, version: int) -> None:
    """The log of states has what was written, and the number of the snapshot before it.

    Begin a state, write a batch with a count of 2, read what was written to __share_group_state.
    """
    with share_partition(broker) as of:
        log = internal_topic(broker, "__share_group_state")
        begun(broker, of)
        request = write(of, (10, 11, 2, 1), start_offset=10, complete_count=2)
        _answered(broker, version, request, ErrorCode.NONE)
        mine = [each for each in values_since(broker, log) if of.group_id.encode() in each[0]]
        types = [type_of(key) for key, _ in mine]
        expect.true(types == [_SNAPSHOT, _UPDATE], "a snapshot and an update", types)
        snapshot, _ = ShareSnapshotValue.decode(mine[0][1], 0, BODY_AT)
        update, _ = ShareUpdateValue.decode(mine[1][1], 0, BODY_AT)
        epochs = snapshot.snapshot_epoch, update.snapshot_epoch
        expect.true(epochs[0] == epochs[1], "one snapshot", epochs)
        expect.true(update.start_offset == 10, "10", update.start_offset)
        expect.true(update.delivery_complete_count == 2, "2", update.delivery_complete_count)
        batches = [
            (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in update.state_batches
        ]
        expect.true(batches == [(10, 11, 2, 1)], "[(10, 11, 2, 1)]", batches)
