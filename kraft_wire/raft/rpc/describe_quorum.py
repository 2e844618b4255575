"""DescribeQuorum, API key 55, versions 0-2 (KIP-595, KIP-836 times, KIP-853 directories).

Request side only: replicas do not send it. Times are times of day, computed from that of the
request; -1 if unknown.
"""

from kraft_wire.model import ZERO_UUID, Offset
from kraft_wire.raft.effects import Reply
from kraft_wire.raft.events import RequestReceived
from kraft_wire.raft.leading import durable_ends
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Leader, ReplicaProgress
from kraft_wire.raft.rpc.checks import METADATA_PARTITION, METADATA_TOPIC, sole_partition
from kraft_wire.wire.generated.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["on_request"]

_FIRST_DIRECTORY_VERSION = 2
"""Older versions have neither directory ids nor nodes; an id cannot be encoded."""


def on_request(
    quorum: Quorum, event: RequestReceived, request: DescribeQuorumRequest, now_ms: int
) -> None:
    """Describe voters and observers as the leader sees them.

    Errors, first match wins, per partition: UNKNOWN_TOPIC_OR_PARTITION for every one that was asked
    unless it is the metadata partition alone, NOT_LEADER_OR_FOLLOWER.
    Effects: exactly one Reply.
    """
    role = quorum.role
    if sole_partition(request.topics) is None:
        response = _of_errors(request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    elif not isinstance(role, Leader):
        response = _of_errors(request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    else:
        response = _description(quorum, event, role, now_ms)
    assert isinstance(response, DescribeQuorumResponse)
    quorum.effects.append(Reply(event.reply_to, response))


def _of_errors(request: DescribeQuorumRequest, error: ErrorCode) -> DescribeQuorumResponse:
    topics = [
        ResponseTopicData(
            topic_name=topic.topic_name,
            partitions=[
                ResponsePartitionData(
                    partition_index=partition.partition_index,
                    error_code=error,
                    error_message=error.message,
                )
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    assert len(topics) == len(request.topics)
    return DescribeQuorumResponse(topics=topics)


def _description(
    quorum: Quorum, event: RequestReceived, leader: Leader, now_ms: int
) -> DescribeQuorumResponse:
    voters = quorum.voters.latest
    known = leader.high_watermark
    partition = ResponsePartitionData(
        partition_index=METADATA_PARTITION,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
        high_watermark=-1 if known is None else known,
        current_voters=_voter_states(quorum, event, leader, now_ms),
        observers=[
            _state(event, progress, now_ms)
            for key, progress in sorted(leader.progress.items())
            if not voters.is_voter(key)
        ],
    )
    topic = ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    response = DescribeQuorumResponse(topics=[topic])
    if event.version >= _FIRST_DIRECTORY_VERSION:
        response.nodes = [
            Node(
                node_id=node.key.id,
                listeners=[
                    Listener(name=name, host=address.host, port=address.port)
                    for name, address in node.endpoints.items()
                ],
            )
            for node in voters.nodes.values()
        ]
    assert len(partition.current_voters) == len(voters)
    return response


def _voter_states(
    quorum: Quorum, event: RequestReceived, leader: Leader, now_ms: int
) -> list[ReplicaState]:
    states: list[ReplicaState] = []
    voters = quorum.voters.latest.nodes.values()
    for node, end in zip(voters, durable_ends(quorum, leader), strict=True):
        progress = leader.progress.get(node.key, ReplicaProgress(node.key, end))
        if node.key.id == quorum.config.key.id and quorum.is_voter:
            end = quorum.log.log_end_offset
            progress = ReplicaProgress(node.key, end, now_ms, now_ms)
        states.append(_state(event, progress, now_ms))
    assert len(states) == len(quorum.voters.latest)
    return states


def _state(event: RequestReceived, progress: ReplicaProgress, now_ms: int) -> ReplicaState:
    def time_of_day(at_ms: int | None) -> int:
        return -1 if at_ms is None else event.wall_ms - (now_ms - at_ms)

    end, has_directory = progress.end_offset, event.version >= _FIRST_DIRECTORY_VERSION
    assert end is None or end >= 0, progress
    return ReplicaState(
        replica_id=progress.key.id,
        replica_directory_id=progress.key.directory_id if has_directory else ZERO_UUID,
        log_end_offset=Offset(-1) if end is None else end,
        last_fetch_timestamp=time_of_day(progress.last_fetch_ms),
        last_caught_up_timestamp=time_of_day(progress.last_caught_up_ms),
    )
