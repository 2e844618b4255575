"""Fetch of the metadata log, API key 1 (KIP-595 "Fetch", KIP-630 snapshots, KIP-1166 watermark).

Builder, request side, response side. The fetch offset is the acknowledgement: everything before it
is on the replica's disk. Sessions are not used; the topic is named by id, so from version 13 on.
"""

from kraft_wire.model import LeaderEpoch, Offset, ReplicaId, ReplicaKey
from kraft_wire.raft.divergence import Diverging, SnapshotNeeded, Valid, judge_fetch
from kraft_wire.raft.effects import Reply, ReplyWithRecords, SendRequest
from kraft_wire.raft.events import RequestReceived
from kraft_wire.raft.following import (
    append_fetched,
    renew_fetch_timeout,
    truncate,
    turn_to_snapshot,
)
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.leaders import learn, set_aside
from kraft_wire.raft.leading import count_fetch
from kraft_wire.raft.parked import ParkedFetch
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Follower, Leader
from kraft_wire.raft.rpc.checks import (
    METADATA_PARTITION,
    METADATA_TOPIC_ID,
    is_of_other_cluster,
    leader_only_error,
    leading_node,
    point_to_leader,
)
from kraft_wire.raft.voters import Address
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ReplicaState,
    SnapshotId,
)

__all__ = ["answer_parked", "answer_without_leader", "build_request", "on_request", "on_response"]

_UNKNOWN = Offset(-1)


def build_request(quorum: Quorum) -> FetchRequest:
    """Fetch from the log's end; a replica that flushes has all records before it on its disk.

    The replica id is in the field of version 15 and later, that is of every release since 3.5.
    """
    log, timing, key = quorum.log, quorum.config.timing, quorum.config.key
    assert not quorum.log_is_changing, "the log's end is not what LogView says"
    assert not quorum.config.is_controller or log.flushed_end_offset == log.log_end_offset
    high_watermark = quorum.high_watermark
    partition = FetchPartition(
        partition=METADATA_PARTITION,
        current_leader_epoch=quorum.epoch,
        fetch_offset=log.log_end_offset,
        last_fetched_epoch=log.last_epoch,
        replica_directory_id=key.directory_id,
        high_watermark=_UNKNOWN if high_watermark is None else high_watermark,
    )
    return FetchRequest(
        cluster_id=quorum.config.cluster_id,
        replica_state=ReplicaState(replica_id=key.id),
        max_wait_ms=timing.fetch_max_wait_ms,
        max_bytes=timing.fetch_max_bytes,
        topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


def on_request(quorum: Quorum, event: RequestReceived, request: FetchRequest, now_ms: int) -> None:
    """Answer a replica's fetch, or park it until there is news.

    Errors, first match wins: INCONSISTENT_CLUSTER_ID and INVALID_REQUEST at the top; for the
    partition INVALID_REQUEST, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER,
    BROKER_NOT_AVAILABLE, UNKNOWN_SERVER_ERROR (for our own id, or a negative size).
    Effects: at most one reply; HighWatermarkAdvanced before it if it moved.
    """
    if is_of_other_cluster(quorum, request.cluster_id):
        _refuse(quorum, event, ErrorCode.INCONSISTENT_CLUSTER_ID)
        return
    asked = _sole_partition(request)
    if asked is None:
        _refuse(quorum, event, ErrorCode.INVALID_REQUEST)
        return
    error = _request_error(quorum, request, asked)
    if error is not ErrorCode.NONE:
        _answer_error(quorum, event, error)
        return
    key = _requester(request, asked)
    assert isinstance(quorum.role, Leader), quorum.role
    offset = Offset(asked.fetch_offset)
    last_epoch = LeaderEpoch(asked.last_fetched_epoch)
    verdict = judge_fetch(offset, last_epoch, quorum.log, quorum.snapshots)
    if isinstance(verdict, Valid) and (
        key.id == quorum.config.key.id or _has_negative_size(quorum, request, offset)
    ):
        # A replica that must truncate, or load a snapshot, gets that answer in any case.
        _answer_error(quorum, event, ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    if isinstance(verdict, Valid) and key.id >= 0:
        count_fetch(quorum, quorum.role, key, offset, now_ms)
    if isinstance(verdict, Valid) and _may_park(quorum, request, asked):
        deadline_ms = now_ms + request.max_wait_ms
        quorum.parked.park(ParkedFetch(event, offset, deadline_ms))
        return
    _answer_verdict(quorum, event, request, offset, verdict)


def _sole_partition(request: FetchRequest) -> FetchPartition | None:
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    topic, partition = request.topics[0], request.topics[0].partitions[0]
    assert len(topic.topic_id) == 16, topic
    is_metadata = topic.topic_id == METADATA_TOPIC_ID
    return partition if is_metadata and partition.partition == METADATA_PARTITION else None


def _request_error(quorum: Quorum, request: FetchRequest, asked: FetchPartition) -> ErrorCode:
    epoch, last_epoch = asked.current_leader_epoch, asked.last_fetched_epoch
    assert asked.partition == METADATA_PARTITION
    if min(request.max_wait_ms, asked.fetch_offset, last_epoch) < 0 or last_epoch > epoch:
        return ErrorCode.INVALID_REQUEST
    return leader_only_error(quorum, epoch)


def _requester(request: FetchRequest, asked: FetchPartition) -> ReplicaKey:
    """Return the fetching replica; before version 15 its id was a top-level field."""
    state = request.replica_state
    replica_id = state.replica_id if state is not None else request.replica_id
    assert len(asked.replica_directory_id) == 16, asked
    return ReplicaKey(ReplicaId(replica_id), asked.replica_directory_id)


def _has_negative_size(quorum: Quorum, request: FetchRequest, offset: Offset) -> bool:
    """Return whether records would be read with a maximum size that Kafka's log refuses."""
    assert offset <= quorum.log.log_end_offset, offset
    return request.max_bytes < 0 and offset < quorum.log.log_end_offset


def _may_park(quorum: Quorum, request: FetchRequest, asked: FetchPartition) -> bool:
    """Return whether a fetch must wait: no records, no higher watermark (version 18)."""
    assert isinstance(quorum.role, Leader), quorum.role
    high_watermark = quorum.role.high_watermark
    knows_less = high_watermark is not None and high_watermark > asked.high_watermark
    has_records = quorum.log.log_end_offset > asked.fetch_offset
    return request.max_wait_ms > 0 and not has_records and not knows_less


def answer_parked(quorum: Quorum, parked: ParkedFetch) -> None:
    """Handle a woken fetch again and answer it, even if empty; it is not counted twice."""
    request = parked.origin.request
    assert isinstance(request, FetchRequest), request
    asked = _sole_partition(request)
    assert asked is not None, request
    error = _request_error(quorum, request, asked)
    if error is not ErrorCode.NONE:
        _answer_error(quorum, parked.origin, error)
        return
    last_epoch = LeaderEpoch(asked.last_fetched_epoch)
    verdict = judge_fetch(parked.fetch_offset, last_epoch, quorum.log, quorum.snapshots)
    _answer_verdict(quorum, parked.origin, request, parked.fetch_offset, verdict)


def answer_without_leader(quorum: Quorum, parked: ParkedFetch) -> None:
    """Answer a parked fetch because the leadership ended."""
    assert not isinstance(quorum.role, Leader), quorum.role
    _answer_error(quorum, parked.origin, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _answer_verdict(
    quorum: Quorum,
    event: RequestReceived,
    request: FetchRequest,
    offset: Offset,
    verdict: Valid | Diverging | SnapshotNeeded,
) -> None:
    response, partition = _response(quorum, event, ErrorCode.NONE)
    match verdict:
        case Valid():
            bytes_max = max(0, request.max_bytes)  # negative at the log's end
            reply = ReplyWithRecords(event.reply_to, response, offset, bytes_max)
            quorum.effects.append(reply)
            return
        case Diverging(point):
            assert point.epoch >= 0, point
            partition.diverging_epoch = EpochEndOffset(epoch=point.epoch, end_offset=point.offset)
        case SnapshotNeeded(snapshot_id):
            assert snapshot_id.offset > 0, "the formatted checkpoint is never served"
            partition.snapshot_id = SnapshotId(
                end_offset=snapshot_id.offset, epoch=snapshot_id.epoch
            )
    quorum.effects.append(Reply(event.reply_to, response))


def _refuse(quorum: Quorum, event: RequestReceived, error: ErrorCode) -> None:
    assert error is not ErrorCode.NONE
    quorum.effects.append(Reply(event.reply_to, FetchResponse(error_code=error)))


def _answer_error(quorum: Quorum, event: RequestReceived, error: ErrorCode) -> None:
    assert error is not ErrorCode.NONE
    response, partition = _response(quorum, event, error)
    partition.high_watermark = _UNKNOWN
    quorum.effects.append(Reply(event.reply_to, response))


def _response(
    quorum: Quorum, event: RequestReceived, error: ErrorCode
) -> tuple[FetchResponse, PartitionData]:
    """Build an answer without records: with leader, log start and high watermark."""
    role = quorum.role
    known = role.high_watermark if isinstance(role, Leader) else quorum.high_watermark
    partition = PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=error,
        high_watermark=_UNKNOWN if known is None else known,
        log_start_offset=quorum.log.log_start_offset,
        current_leader=LeaderIdAndEpoch(leader_id=quorum.leader_id, leader_epoch=quorum.epoch),
        records=b"",
    )
    topic = FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=[partition])
    response = FetchResponse(responses=[topic])
    response.node_endpoints = leading_node(quorum, event, NodeEndpoint, since=17)
    assert len(response.responses) == 1
    return response, partition


def on_response(quorum: Quorum, sent: SendRequest, response: FetchResponse, now_ms: int) -> None:
    """Apply a leader's answer: adopt the leader, truncate, fetch a snapshot, or append.

    An answer counts only for the log's end in its request, which the one outstanding request per
    peer and the comparison here ensure. An answer that contradicts the high watermark is refused.
    Effects: TruncateLog, or AppendFetched and FlushLog, or HighWatermarkAdvanced, or none.
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
    if error != ErrorCode.NONE:
        set_aside(quorum, sent, Ignored.PARTITION_ERROR, now_ms)
        return
    role = quorum.role
    if not isinstance(role, Follower):
        set_aside(quorum, sent, Ignored.ROLE_CHANGED, now_ms)
        return
    assert isinstance(sent.request, FetchRequest), sent
    if address is not None and not quorum.peers.is_trusted(quorum.leader_id):
        _follow_to(quorum, role, address)
    # Non-obvious 18: after a truncation it is about another log.
    if not _asks_for_end(quorum, sent.request):
        set_aside(quorum, sent, Ignored.LATE_ANSWER, now_ms)
        return
    role.has_fetched = not quorum.has_leader_resigned
    renew_fetch_timeout(quorum, role, now_ms)
    diverging, snapshot = data.diverging_epoch, data.snapshot_id
    if diverging is not None and diverging.epoch >= 0:
        truncate(quorum, sent, diverging.epoch, diverging.end_offset, now_ms)
    elif snapshot is not None and max(snapshot.end_offset, snapshot.epoch) >= 0:
        turn_to_snapshot(quorum, sent, role, snapshot.epoch, snapshot.end_offset, now_ms)
    else:
        append_fetched(quorum, role, data.records, data.high_watermark)


def _follow_to(quorum: Quorum, role: Follower, address: Address) -> None:
    """Take the address in a leader's own answer, as it does not answer at the known one.

    Only a leader answers without an error. A replica that lags may know the former address alone,
    from its log. Fetches that reach the leader as a bootstrap server bring records, but no
    snapshot.
    """
    if role.leader_endpoints.get(quorum.config.listener) != address:
        role.leader_endpoints = {**role.leader_endpoints, quorum.config.listener: address}
        quorum.peers.trust(quorum.leader_id)
    assert quorum.role is role, quorum.role


def _asks_for_end(quorum: Quorum, request: FetchRequest) -> bool:
    """Return whether the log's end is still the fetch offset of this request."""
    asked = request.topics[0].partitions[0]
    position = (quorum.log.log_end_offset, quorum.log.last_epoch)
    assert asked.partition == METADATA_PARTITION
    return (asked.fetch_offset, asked.last_fetched_epoch) == position


def _sole_answer(response: FetchResponse) -> PartitionData | None:
    if len(response.responses) != 1 or len(response.responses[0].partitions) != 1:
        return None
    topic, partition = response.responses[0], response.responses[0].partitions[0]
    assert len(topic.topic_id) == 16, topic
    is_metadata = topic.topic_id == METADATA_TOPIC_ID
    return partition if is_metadata and partition.partition_index == METADATA_PARTITION else None
