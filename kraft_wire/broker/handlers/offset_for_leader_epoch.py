"""OffsetForLeaderEpoch, API key 23, versions 2-4.

Behaviour:   returns the largest known epoch up to the requested one, and its end offset · an epoch
             above all known ones, or -1, gets epoch -1 and end offset -1
Versions:    v3 replica id · v4 flexible (KIP-482)
Left out:    nothing
"""

from typing import Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.metadata.metadata_cache import no_replica_error
from kraft_wire.broker.partition import Partition
from kraft_wire.model import LeaderEpoch, OffsetAndEpoch
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

__all__ = ["handle"]

_UNDEFINED: Final = -1


def handle(
    broker: Broker, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Say where a leader epoch ended, so that a client can see that its position was cut off.

    KIP-101, KIP-320. Errors per partition, first match wins: UNKNOWN_TOPIC_OR_PARTITION,
    KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER (not ours), FENCED_LEADER_EPOCH,
    UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER.
    """
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_answer(broker, topic.topic, asked) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _answer(broker: Broker, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    partition = broker.partition(topic, asked.partition)
    error = _refusal(broker, topic, asked, partition)
    if error is not ErrorCode.NONE:
        return EpochEndOffset(error_code=error, partition=asked.partition)
    assert partition is not None
    return _end_of_epoch(partition, asked)


def _refusal(
    broker: Broker, topic: str, asked: OffsetForLeaderPartition, partition: Partition | None
) -> ErrorCode:
    if partition is None:
        return no_replica_error(broker.image, topic, asked.partition)
    if partition.offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    fenced = partition.check_leader_epoch(asked.current_leader_epoch)
    if fenced is not ErrorCode.NONE:
        return fenced
    return ErrorCode.NONE if partition.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _end_of_epoch(partition: Partition, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    """Answer by the log's epochs, with the leader's own on top, which may have no record yet."""
    epoch = asked.leader_epoch
    # Non-obvious 9: a metadata log answers its end here.
    if epoch == _UNDEFINED or epoch > partition.leader_epoch:
        return EpochEndOffset(partition=asked.partition)
    if epoch == partition.leader_epoch:
        # Non-obvious 10: no batch need carry this epoch yet.
        end = OffsetAndEpoch(partition.log_end_offset, partition.leader_epoch)
    else:
        end = partition.end_offset_for_epoch(LeaderEpoch(epoch))
    return EpochEndOffset(partition=asked.partition, leader_epoch=end.epoch, end_offset=end.offset)
