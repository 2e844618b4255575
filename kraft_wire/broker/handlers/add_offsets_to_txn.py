"""AddOffsetsToTxn, API key 25, versions 0-4.

Behaviour:   adds the partition of `__consumer_offsets` that has a group's offsets; neither the
             group nor the partition has to exist
Versions:    v2 PRODUCER_FENCED (KIP-588) · v4 TRANSACTION_ABORTABLE (KIP-890), which this node
             never sends
Left out:    nothing
"""

from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.deferred_response import DeferredResponse
from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC
from kraft_wire.broker.transactions.add_partitions import add_partitions
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]

_FENCED_ERROR_FROM: Final = 2


def handle(
    broker: "Broker", context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Parked:
    """Add the offsets of a group to a transaction (KIP-98).

    Errors, first match wins: INVALID_REQUEST (empty transactional id), NOT_COORDINATOR,
    COORDINATOR_LOAD_IN_PROGRESS, then those of `transactions.add_partitions.add_partitions`.
    """
    name = request.transactional_id
    if not name:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    shard = broker.transactions.shard_of(name)
    if isinstance(shard, ErrorCode):
        return AddOffsetsToTxnResponse(error_code=shard)
    deferred = DeferredResponse[AddOffsetsToTxnResponse](broker.complete, context.reply_to)

    def answer(error: ErrorCode) -> None:
        if error is ErrorCode.PRODUCER_FENCED and context.api_version < _FENCED_ERROR_FROM:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        deferred.send(AddOffsetsToTxnResponse(error_code=error))

    producer = (request.producer_id, request.producer_epoch)
    offsets = TopicPartition(OFFSETS_TOPIC, broker.groups.partition_of(request.group_id))
    add_partitions(shard, name, producer, {offsets: None}, 0, arrival_of(context), answer)
    return deferred.result()
