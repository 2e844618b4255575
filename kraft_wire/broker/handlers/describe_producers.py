"""DescribeProducers, API key 61, version 0.

Behaviour:   returns the producers whose sequences a partition keeps, in the order of their first
             writes; a transaction is open if CurrentTxnStartOffset is not -1 · every replica
             answers, followers as well
Versions:    v0 (KIP-664)
Left out:    nothing
"""

from typing import Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.response_budget import ResponseBudget
from kraft_wire.settings.topic_names import topic_name_problem
from kraft_wire.wire.generated.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle"]

_NONE: Final = -1
_PRODUCER_BYTES: Final = 64
"""A little more than a producer takes of the answer."""


def handle(
    broker: Broker, context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """List the active producers of partitions (KIP-664), as many as an answer has room for.

    Errors per partition, first match wins: INVALID_TOPIC_EXCEPTION,
    UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER.
    """
    room = ResponseBudget(broker.settings, "topics", context.api_version)
    response = DescribeProducersResponse()
    for topic in request.topics:
        answer = TopicResponse(name=topic.name)
        for index in topic.partition_indexes:
            partition = _describe(broker, topic.name, index)
            room.take(_PRODUCER_BYTES * len(partition.active_producers))
            answer.partitions.append(partition)
        response.topics.append(answer)
    return response


def _describe(broker: Broker, topic: str, index: int) -> PartitionResponse:
    problem = topic_name_problem(topic)
    if problem is not None:
        return _refused(index, ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    partition = broker.partition(topic, index)
    known = broker.image.topic(topic)
    if known is None:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _refused(index, error, error.message)  # only this is explained in words, as by Kafka
    if index not in known.partitions:
        return _refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if partition is not None and partition.offline:
        return _refused(index, ErrorCode.KAFKA_STORAGE_ERROR)
    if partition is None:
        return _refused(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return PartitionResponse(partition_index=index, active_producers=_active(partition))


def _active(partition: Partition) -> list[ProducerState]:
    return [
        ProducerState(
            producer_id=state.producer_id,
            producer_epoch=state.producer_epoch,
            last_sequence=state.last_sequence,
            last_timestamp=state.last_timestamp,
            coordinator_epoch=state.coordinator_epoch,
            current_txn_start_offset=_NONE
            if state.transaction_first_offset is None
            else state.transaction_first_offset,
        )
        for state in partition.log.producer_states.active_producers()
    ]


def _refused(index: int, error: ErrorCode, message: str | None = None) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=error, error_message=message)
