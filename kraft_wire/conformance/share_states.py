"""The state of share partitions at a share coordinator (KIP-932), for the cases about it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from kraft_wire.conformance import expect
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.verdict import Mismatch, NotSupported
from kraft_wire.model import Uuid, uuid_to_text
from kraft_wire.wire.generated import delete_share_group_state as deleting
from kraft_wire.wire.generated import initialize_share_group_state as initializing
from kraft_wire.wire.generated import read_share_group_state as reading
from kraft_wire.wire.generated import read_share_group_state_summary as summing
from kraft_wire.wire.generated import write_share_group_state as writing
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

__all__ = [
    "ERROR",
    "FIRST_STATE_EPOCH",
    "LEADER_EPOCH",
    "MADE_UP",
    "START_OFFSET",
    "Batch",
    "SharePartition",
    "begun",
    "coordinated",
    "delete",
    "initialize",
    "read",
    "result",
    "share_partition",
    "state_batches",
    "summarize",
    "write",
    "written_state",
]

ERROR: Final = "results[0].partitions[0].error_code"
FIRST_STATE_EPOCH: Final = 3
LEADER_EPOCH: Final = 5
START_OFFSET: Final = 10
MADE_UP: Final = Uuid(bytes(range(1, 17)))
"""A topic id that no topic has."""
Batch = tuple[int, int, int, int]
"""First offset, last offset, delivery state and count."""
_SHARE: Final = 2
_ATTEMPTED: Final = 64
_NOT_YET: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


class SharePartition(NamedTuple):
    """A partition of a topic, as a share group reads it."""

    group_id: str
    topic_id: Uuid
    partition: int = 0


def result(field: str) -> str:
    """Return the path of a field of the first partition of a response."""
    return f"results[0].partitions[0].{field}"


@contextmanager
def share_partition(broker: Subject, partition: int = 0) -> Iterator[SharePartition]:
    """Return a partition without state whose share coordinator is the broker under judgment.

    The topic has partition 0 only; others do not exist, and have a coordinator all the same.

    Afterwards its state is deleted.
    """
    topic_id = broker.topic().topic_id
    found = coordinated(broker, topic_id, partition)
    try:
        yield found
    finally:
        reported = len(broker.exchanges)
        with suppress(Mismatch, NotSupported, OSError):
            broker.prepare(delete(found), deleting.DeleteShareGroupStateResponse)
        del broker.exchanges[reported:]  # A report of a failed row ends with the field at fault.


def coordinated(broker: Subject, topic_id: Uuid, partition: int = 0) -> SharePartition:
    """Return a partition without state whose share coordinator is the broker under judgment."""
    for _ in range(_ATTEMPTED):
        found = SharePartition(broker.name("group"), topic_id, partition)
        if _coordinator(broker, found) == broker.target.node_id or broker.target.node_id < 0:
            _await_state(broker, found)
            return found
    raise NotSupported(f"the broker coordinates none of {_ATTEMPTED} share partitions")


def _coordinator(broker: Subject, of: SharePartition) -> int:
    key = f"{of.group_id}:{uuid_to_text(of.topic_id)}:{of.partition}"
    for _ in broker.attempts(f"a share coordinator of {key}"):
        request = FindCoordinatorRequest(key_type=_SHARE, coordinator_keys=[key])
        found = broker.prepare(request, FindCoordinatorResponse).coordinators[0]
        if found.error_code == ErrorCode.INVALID_REQUEST:
            raise NotSupported("FindCoordinator finds no share coordinators")
        if found.error_code == ErrorCode.NONE:
            return found.node_id
    raise AssertionError("attempts end in an exception")


def _await_state(broker: Subject, of: SharePartition) -> None:
    """Wait until the coordinator has loaded its partition of states, and knows the topic."""
    is_there = of.topic_id != MADE_UP and of.partition == 0
    for _ in broker.attempts("the share coordinator to serve"):
        summary = broker.prepare(summarize(of), summing.ReadShareGroupStateSummaryResponse)
        code = summary.results[0].partitions[0].error_code
        is_unknown = is_there and code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if code not in _NOT_YET and not is_unknown:
            return


def initialize(
    of: SharePartition, epoch: int = FIRST_STATE_EPOCH, start_offset: int = START_OFFSET
) -> initializing.InitializeShareGroupStateRequest:
    """Return a request that begins a partition's state."""
    named = initializing.PartitionData(
        partition=of.partition, state_epoch=epoch, start_offset=start_offset
    )
    topics = [initializing.InitializeStateData(topic_id=of.topic_id, partitions=[named])]
    return initializing.InitializeShareGroupStateRequest(group_id=of.group_id, topics=topics)


def read(of: SharePartition, leader_epoch: int = -1) -> reading.ReadShareGroupStateRequest:
    """Return a request for a partition's state."""
    named = reading.PartitionData(partition=of.partition, leader_epoch=leader_epoch)
    topics = [reading.ReadStateData(topic_id=of.topic_id, partitions=[named])]
    return reading.ReadShareGroupStateRequest(group_id=of.group_id, topics=topics)


def summarize(
    of: SharePartition, leader_epoch: int = -1
) -> summing.ReadShareGroupStateSummaryRequest:
    """Return a request for the summary of a partition's state."""
    named = summing.PartitionData(partition=of.partition, leader_epoch=leader_epoch)
    topics = [summing.ReadStateSummaryData(topic_id=of.topic_id, partitions=[named])]
    return summing.ReadShareGroupStateSummaryRequest(group_id=of.group_id, topics=topics)


def write(
    of: SharePartition,
    *batches: Batch,
    epoch: int = FIRST_STATE_EPOCH,
    leader_epoch: int = LEADER_EPOCH,
    start_offset: int = -1,
    complete_count: int = -1,
) -> writing.WriteShareGroupStateRequest:
    """Return a request that writes batches of a partition's state."""
    named = writing.PartitionData(
        partition=of.partition,
        state_epoch=epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=complete_count,
        state_batches=[
            writing.StateBatch(
                first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
            )
            for first, last, state, count in batches
        ],
    )
    topics = [writing.WriteStateData(topic_id=of.topic_id, partitions=[named])]
    return writing.WriteShareGroupStateRequest(group_id=of.group_id, topics=topics)


def delete(of: SharePartition) -> deleting.DeleteShareGroupStateRequest:
    """Return a request that deletes a partition's state."""
    named = deleting.PartitionData(partition=of.partition)
    topics = [deleting.DeleteStateData(topic_id=of.topic_id, partitions=[named])]
    return deleting.DeleteShareGroupStateRequest(group_id=of.group_id, topics=topics)


def begun(broker: Subject, of: SharePartition, epoch: int = FIRST_STATE_EPOCH) -> None:
    """Begin a partition's state; raises Mismatch."""
    request = initialize(of, epoch)
    answer = broker.prepare(request, initializing.InitializeShareGroupStateResponse)
    expect.error(answer, ERROR, ErrorCode.NONE)


def written_state(broker: Subject, request: writing.WriteShareGroupStateRequest) -> None:
    """Write batches of a partition's state; raises Mismatch."""
    answer = broker.prepare(request, writing.WriteShareGroupStateResponse)
    expect.error(answer, ERROR, ErrorCode.NONE)


def state_batches(broker: Subject, of: SharePartition) -> list[Batch]:
    """Read the batches of a partition's state; raises Mismatch."""
    answer = broker.prepare(read(of), reading.ReadShareGroupStateResponse)
    expect.error(answer, ERROR, ErrorCode.NONE)
    return [
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in answer.results[0].partitions[0].state_batches
    ]
