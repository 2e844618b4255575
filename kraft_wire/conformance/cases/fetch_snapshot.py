"""FetchSnapshot, API key 59: snapshots of the metadata log, in chunks (KIP-630)."""

import time
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import Listener, case
from kraft_wire.conformance.quorum import (
    QuorumFacts,
    metadata_fetch,
    quorum_facts,
    snapshot_request,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.verdict import NotSupported
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchResponse, SnapshotId
from kraft_wire.wire.generated.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    PartitionSnapshot,
)

_CODE: Final = "topics[0].partitions[0].error_code"
_SOURCE: Final = "KIP-630, FetchSnapshot"
_FETCH_VERSION: Final = 17
_CHUNK_BYTES: Final = 100
_PATIENCE_S: Final = 10
"""How long a young controller may take for its first snapshot."""


def _refused(answer: FetchSnapshotResponse, code: ErrorCode) -> None:
    """State that the partition is refused with `code`.

    4.3.1 cannot encode a refusal of a partition: its records are null, and the response becomes
    UNKNOWN_SERVER_ERROR without topics.
    """
    if answer.error_code != ErrorCode.UNKNOWN_SERVER_ERROR:
        expect.error(answer, "error_code", ErrorCode.NONE)
        expect.error(answer, _CODE, code)


@case("FetchSnapshot", _SOURCE, listener=Listener.CONTROLLER)
def unknown_snapshot(controller: Subject, version: int) -> None:
    """A snapshot that the leader does not have gets SNAPSHOT_NOT_FOUND.

    Ask for a snapshot that ends at offset 1 of epoch 0.
    """
    request = snapshot_request(quorum_facts(controller))
    answer = controller.ask(request, version, FetchSnapshotResponse)
    _refused(answer, ErrorCode.SNAPSHOT_NOT_FOUND)


@case("FetchSnapshot", _SOURCE, listener=Listener.CONTROLLER)
def older_leader_epoch(controller: Subject, version: int) -> None:
    """A leader epoch below the leader's gets FENCED_LEADER_EPOCH.

    Ask with the epoch before the leader's.
    """
    facts = quorum_facts(controller)
    request = snapshot_request(facts, epoch=facts.leader_epoch - 1)
    answer = controller.ask(request, version, FetchSnapshotResponse)
    _refused(answer, ErrorCode.FENCED_LEADER_EPOCH)


@case("FetchSnapshot", _SOURCE, listener=Listener.CONTROLLER)
def newer_leader_epoch(controller: Subject, version: int) -> None:
    """A leader epoch above the leader's gets UNKNOWN_LEADER_EPOCH.

    Ask with a much larger epoch.
    """
    facts = quorum_facts(controller)
    request = snapshot_request(facts, epoch=facts.leader_epoch + 1000)
    answer = controller.ask(request, version, FetchSnapshotResponse)
    _refused(answer, ErrorCode.UNKNOWN_LEADER_EPOCH)


@case("FetchSnapshot", _SOURCE, listener=Listener.CONTROLLER)
def other_cluster(controller: Subject, version: int) -> None:
    """A replica of another cluster is refused with INCONSISTENT_CLUSTER_ID.

    Ask with another cluster id.
    """
    request = snapshot_request(quorum_facts(controller), cluster_id="anotherClusterAAAAAAAA")
    answer = controller.ask(request, version, FetchSnapshotResponse)
    expect.error(answer, "error_code", ErrorCode.INCONSISTENT_CLUSTER_ID)


@case("FetchSnapshot", _SOURCE, listener=Listener.CONTROLLER)
def other_topic(controller: Subject, version: int) -> None:
    """A snapshot of another topic gets UNKNOWN_TOPIC_OR_PARTITION.

    Ask for a snapshot of another topic.
    """
    request = snapshot_request(quorum_facts(controller), topic="conform")
    answer = controller.ask(request, version, FetchSnapshotResponse)
    _refused(answer, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _latest_snapshot(controller: Subject, facts: QuorumFacts) -> SnapshotId:
    """Return the id of the snapshot that an empty observer is sent to; NotSupported without one."""
    request = metadata_fetch(
        _FETCH_VERSION, offset=0, epoch=facts.leader_epoch, last_fetched_epoch=0
    )
    until = time.monotonic() + _PATIENCE_S
    for _ in controller.attempts("a snapshot"):
        answer = controller.prepare(request, FetchResponse, until=_FETCH_VERSION)
        found = answer.responses[0].partitions[0].snapshot_id
        if found is not None and found.end_offset > 0:
            return found
        if time.monotonic() > until:
            break
    raise NotSupported("the controller has no snapshot yet")


def _chunk(
    controller: Subject, version: int, request: FetchSnapshotRequest, position: int
) -> FetchSnapshotResponse:
    """Ask for the chunk of a snapshot at a position."""
    wanted = request.topics[0].partitions[0]
    assert isinstance(wanted, PartitionSnapshot)
    wanted.position = position
    return controller.ask(request, version, FetchSnapshotResponse)


def _size(answer: FetchSnapshotResponse) -> int:
    """Return how many bytes a chunk has."""
    records = answer.topics[0].partitions[0].unaligned_records
    assert isinstance(records, bytes | bytearray | memoryview | None)
    return len(records or b"")


@case("FetchSnapshot", _SOURCE, listener=Listener.CONTROLLER)
def chunks_of_a_snapshot(controller: Subject, version: int) -> None:
    """A chunk has the bytes at its position, and at most max_bytes; none begins at the end.

    Fetch the metadata log from offset 0, which names a snapshot. Ask for it with max_bytes=100
    at position 0, at its last byte, and at its end.
    """
    facts = quorum_facts(controller)
    snapshot = _latest_snapshot(controller, facts)
    request = snapshot_request(facts)
    named = request.topics[0].partitions[0].snapshot_id
    named.end_offset, named.epoch = snapshot.end_offset, snapshot.epoch
    request.max_bytes = _CHUNK_BYTES
    first = _chunk(controller, version, request, 0)
    expect.error(first, _CODE, ErrorCode.NONE)
    path = "topics[0].partitions[0]"
    size = first.topics[0].partitions[0].size
    expect.equal(first, f"{path}.snapshot_id.end_offset", snapshot.end_offset)
    seen = _size(first)
    expect.true(0 < seen <= _CHUNK_BYTES < size, "a first chunk", seen, f"{path}.unaligned_records")
    last = _chunk(controller, version, request, size - 1)
    expect.error(last, _CODE, ErrorCode.NONE)
    expect.equal(last, f"{path}.position", size - 1)
    seen = _size(last)
    expect.true(seen == 1, "one byte", seen, f"{path}.unaligned_records")
    _refused(_chunk(controller, version, request, size), ErrorCode.POSITION_OUT_OF_RANGE)
