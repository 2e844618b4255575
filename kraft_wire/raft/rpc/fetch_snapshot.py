"""FetchSnapshot, API key 59, versions 0-1 (KIP-630 "FetchSnapshot").

Builder, request side, response side. Chunks need not end at a batch. The leader reads them from the
file; the follower writes them at the requested position and freezes the file when it is whole.
"""

from kraft_wire.model import FileSlice, LeaderEpoch, Offset, OffsetAndEpoch, ReplicaId, ReplicaKey
from kraft_wire.raft.effects import (
    AppendSnapshotChunk,
    InstallSnapshot,
    Reply,
    ReplyWithSnapshotSlice,
    SendRequest,
)
from kraft_wire.raft.events import RequestReceived
from kraft_wire.raft.following import renew_fetch_timeout
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.leaders import learn, set_aside
from kraft_wire.raft.leading import note_contact
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Follower, Leader, SnapshotTransfer
from kraft_wire.raft.rpc.checks import (
    METADATA_PARTITION,
    METADATA_TOPIC,
    is_of_other_cluster,
    leader_only_error,
    leading_node,
    point_to_leader,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionSnapshot,
    ResponsePartitionSnapshot,
    ResponseSnapshotId,
    ResponseTopicSnapshot,
    SnapshotId,
    TopicSnapshot,
)

__all__ = ["build_request", "on_request", "on_response"]

_POSITION_MAX = (1 << 31) - 1


def build_request(quorum: Quorum, transfer: SnapshotTransfer) -> FetchSnapshotRequest:
    """Request the next chunk."""
    key, wanted = quorum.config.key, transfer.snapshot_id
    assert transfer.received_bytes >= 0, transfer
    partition = PartitionSnapshot(
        partition=METADATA_PARTITION,
        current_leader_epoch=quorum.epoch,
        snapshot_id=SnapshotId(end_offset=wanted.offset, epoch=wanted.epoch),
        position=transfer.received_bytes,
        replica_directory_id=key.directory_id,
    )
    return FetchSnapshotRequest(
        cluster_id=quorum.config.cluster_id,
        replica_id=key.id,
        max_bytes=quorum.config.timing.fetch_snapshot_max_bytes,
        topics=[TopicSnapshot(name=METADATA_TOPIC, partitions=[partition])],
    )


def on_request(
    quorum: Quorum, event: RequestReceived, request: FetchSnapshotRequest, now_ms: int
) -> None:
    """Answer with a chunk; the request counts as contact, not as an acknowledgement.

    Errors, first match wins: INCONSISTENT_CLUSTER_ID and INVALID_REQUEST at the top; for the
    partition UNKNOWN_TOPIC_OR_PARTITION, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH,
    NOT_LEADER_OR_FOLLOWER, BROKER_NOT_AVAILABLE, SNAPSHOT_NOT_FOUND, POSITION_OUT_OF_RANGE;
    UNKNOWN_SERVER_ERROR at the top for a position beyond any possible file.
    Effects: exactly one reply.
    """
    if is_of_other_cluster(quorum, request.cluster_id):
        _refuse(quorum, event, ErrorCode.INCONSISTENT_CLUSTER_ID)
        return
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        _refuse(quorum, event, ErrorCode.INVALID_REQUEST)
        return
    topic, asked = request.topics[0], request.topics[0].partitions[0]
    if topic.name != METADATA_TOPIC or asked.partition != METADATA_PARTITION:
        _answer_unknown(quorum, event, topic.name, asked.partition)
        return
    error = leader_only_error(quorum, asked.current_leader_epoch)
    if error is not ErrorCode.NONE:
        _answer(quorum, event, asked, error)
        return
    assert isinstance(quorum.role, Leader), quorum.role
    wanted = _wanted(asked)
    size_bytes = quorum.snapshots.size_bytes(wanted) if wanted is not None else None
    if wanted is None or size_bytes is None:
        _answer(quorum, event, asked, ErrorCode.SNAPSHOT_NOT_FOUND)
    elif not 0 <= asked.position < size_bytes:
        _answer(quorum, event, asked, ErrorCode.POSITION_OUT_OF_RANGE)
    elif asked.position > _POSITION_MAX:
        _refuse(quorum, event, ErrorCode.UNKNOWN_SERVER_ERROR)
    else:
        key = ReplicaKey(ReplicaId(request.replica_id), asked.replica_directory_id)
        note_contact(quorum, quorum.role, key, now_ms)
        bytes_max = max(0, request.max_bytes)
        _answer_slice(quorum, event, asked, wanted, size_bytes, bytes_max)


def _wanted(asked: PartitionSnapshot) -> OffsetAndEpoch | None:
    """Return the requested id; None for invalid ones and the formatted (0, 0) checkpoint."""
    offset, epoch = asked.snapshot_id.end_offset, asked.snapshot_id.epoch
    assert asked.partition == METADATA_PARTITION
    if min(offset, epoch) < 0 or (offset, epoch) == (0, 0):
        return None
    return OffsetAndEpoch(Offset(offset), LeaderEpoch(epoch))


def _refuse(quorum: Quorum, event: RequestReceived, error: ErrorCode) -> None:
    assert error is not ErrorCode.NONE
    quorum.effects.append(Reply(event.reply_to, FetchSnapshotResponse(error_code=error)))


def _answer_unknown(quorum: Quorum, event: RequestReceived, name: str, index: int) -> None:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partition = ResponsePartitionSnapshot(index=index, error_code=error, unaligned_records=b"")
    topic = ResponseTopicSnapshot(name=name, partitions=[partition])
    assert partition.current_leader is None, "only the own log is described"
    quorum.effects.append(Reply(event.reply_to, FetchSnapshotResponse(topics=[topic])))


def _answer(
    quorum: Quorum, event: RequestReceived, asked: PartitionSnapshot, error: ErrorCode
) -> None:
    response, _ = _response(quorum, event, asked, error)
    assert error is not ErrorCode.NONE
    quorum.effects.append(Reply(event.reply_to, response))


def _answer_slice(
    quorum: Quorum,
    event: RequestReceived,
    asked: PartitionSnapshot,
    wanted: OffsetAndEpoch,
    size_bytes: int,
    bytes_max: int,
) -> None:
    response, partition = _response(quorum, event, asked, ErrorCode.NONE)
    partition.size = size_bytes
    partition.position = asked.position
    assert 0 <= asked.position < size_bytes, asked
    bytes_max = min(bytes_max, size_bytes - asked.position)
    reply = ReplyWithSnapshotSlice(event.reply_to, response, wanted, asked.position, bytes_max)
    quorum.effects.append(reply)


def _response(
    quorum: Quorum, event: RequestReceived, asked: PartitionSnapshot, error: ErrorCode
) -> tuple[FetchSnapshotResponse, ResponsePartitionSnapshot]:
    partition = ResponsePartitionSnapshot(
        index=METADATA_PARTITION,
        error_code=error,
        snapshot_id=ResponseSnapshotId(
            end_offset=asked.snapshot_id.end_offset, epoch=asked.snapshot_id.epoch
        ),
        current_leader=LeaderIdAndEpoch(leader_id=quorum.leader_id, leader_epoch=quorum.epoch),
        unaligned_records=b"",
    )
    topic = ResponseTopicSnapshot(name=METADATA_TOPIC, partitions=[partition])
    response = FetchSnapshotResponse(topics=[topic])
    response.node_endpoints = leading_node(quorum, event, NodeEndpoint, since=1)
    assert partition.current_leader is not None
    return response, partition


def on_response(
    quorum: Quorum, sent: SendRequest, response: FetchSnapshotResponse, now_ms: int
) -> None:
    """Write a chunk, and install the snapshot when it is whole.

    Any other chunk than the requested one ends the transfer; then Fetch finds the snapshot or
    the leader again. So does SNAPSHOT_NOT_FOUND; after other errors the received part is kept.
    Effects: AppendSnapshotChunk, and InstallSnapshot behind the last one; or none.
    """
    if response.error_code != ErrorCode.NONE:
        set_aside(quorum, sent, Ignored.TOP_LEVEL_ERROR, now_ms)
        return
    data = _sole_answer(response)
    if data is None:
        set_aside(quorum, sent, Ignored.BAD_SHAPE, now_ms)
        return
    leader = data.current_leader or LeaderIdAndEpoch()
    address = point_to_leader(leader.leader_id, response.node_endpoints)
    error = data.error_code
    if not learn(quorum, sent, error, leader.leader_id, leader.leader_epoch, address, now_ms):
        return
    role = quorum.role
    if not isinstance(role, Follower) or role.transfer is None:
        set_aside(quorum, sent, Ignored.ROLE_CHANGED, now_ms)
        return
    assert role.transfer.received_bytes >= 0, role.transfer
    snapshot_id = data.snapshot_id
    if error == ErrorCode.SNAPSHOT_NOT_FOUND or min(snapshot_id.end_offset, snapshot_id.epoch) < 0:
        role.transfer = None
        renew_fetch_timeout(quorum, role, now_ms)
        set_aside(quorum, sent, Ignored.SNAPSHOT_GONE, now_ms)
    elif error != ErrorCode.NONE:
        set_aside(quorum, sent, Ignored.PARTITION_ERROR, now_ms)
    else:
        _take_chunk(quorum, sent, role, role.transfer, data, now_ms)


def _sole_answer(response: FetchSnapshotResponse) -> ResponsePartitionSnapshot | None:
    if len(response.topics) != 1 or len(response.topics[0].partitions) != 1:
        return None
    topic, partition = response.topics[0], response.topics[0].partitions[0]
    assert len(response.topics) == 1
    is_metadata = topic.name == METADATA_TOPIC and partition.index == METADATA_PARTITION
    return partition if is_metadata else None


def _take_chunk(
    quorum: Quorum,
    sent: SendRequest,
    role: Follower,
    transfer: SnapshotTransfer,
    data: ResponsePartitionSnapshot,
    now_ms: int,
) -> None:
    renew_fetch_timeout(quorum, role, now_ms)
    wanted = transfer.snapshot_id
    got = (data.snapshot_id.end_offset, data.snapshot_id.epoch, data.position)
    if got != (wanted.offset, wanted.epoch, transfer.received_bytes):
        role.transfer = None
        set_aside(quorum, sent, Ignored.OTHER_SNAPSHOT, now_ms)
        return
    chunk = data.unaligned_records if data.unaligned_records is not None else b""
    chunk_bytes = chunk.size_bytes if isinstance(chunk, FileSlice) else len(chunk)
    held_bytes = transfer.received_bytes + chunk_bytes
    if chunk_bytes == 0 or held_bytes > data.size:
        role.transfer = None
        set_aside(quorum, sent, Ignored.CHUNK_OUT_OF_RANGE, now_ms)
        return
    assert 0 < held_bytes <= data.size, (held_bytes, data.size)
    quorum.effects.append(AppendSnapshotChunk(wanted, transfer.received_bytes, chunk))
    transfer.received_bytes = held_bytes
    if held_bytes == data.size:
        role.transfer = None
        quorum.effects.append(InstallSnapshot(wanted))
        quorum.log_is_changing = True
