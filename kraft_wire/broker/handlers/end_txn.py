"""EndTxn, API key 26, versions 0-5.

Behaviour:   the response is sent when the decision is committed in `__transaction_state`; markers
             are written after it, and until they are, the next request of the transactional id gets
             CONCURRENT_TRANSACTIONS
Versions:    v2 PRODUCER_FENCED (KIP-588) · v4 TRANSACTION_ABORTABLE (KIP-890), which this node
             never sends · v5 increments the epoch and returns id and epoch for the next transaction
             (KIP-890)
Left out:    nothing
"""

from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.deferred_response import DeferredResponse
from kraft_wire.broker.transactions.end_transaction import end_transaction
from kraft_wire.broker.transactions.init_producer_id import ProducerIdentity
from kraft_wire.broker.transactions.states import TransactionEvent
from kraft_wire.broker.transactions.transition import V2
from kraft_wire.wire.generated.end_txn import EndTxnRequest, EndTxnResponse
from kraft_wire.wire.generated.error_code import ErrorCode

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]

_FENCED_ERROR_FROM: Final = 2
_EPOCH_RAISED_FROM: Final = 5


def handle(
    broker: "Broker", context: RequestContext, request: EndTxnRequest
) -> EndTxnResponse | Parked:
    """Commit or abort a transaction (KIP-98).

    Errors, first match wins: INVALID_REQUEST (empty transactional id), NOT_COORDINATOR,
    COORDINATOR_LOAD_IN_PROGRESS, then those of `transactions.end_transaction.end_transaction`.
    """
    name = request.transactional_id
    if not name:
        return _response(ProducerIdentity(ErrorCode.INVALID_REQUEST), context)
    shard = broker.transactions.shard_of(name)
    if isinstance(shard, ErrorCode):
        return _response(ProducerIdentity(shard), context)
    deferred = DeferredResponse[EndTxnResponse](broker.complete, context.reply_to)
    end_transaction(
        shard,
        name,
        (request.producer_id, request.producer_epoch),
        TransactionEvent.COMMITTED if request.committed else TransactionEvent.ABORTED,
        V2 if context.api_version >= _EPOCH_RAISED_FROM else 0,
        arrival_of(context),
        lambda identity: deferred.send(_response(identity, context)),
    )
    return deferred.result()


def _response(identity: ProducerIdentity, context: RequestContext) -> EndTxnResponse:
    error, producer_id, producer_epoch = identity
    if error is ErrorCode.PRODUCER_FENCED and context.api_version < _FENCED_ERROR_FROM:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    if context.api_version < _EPOCH_RAISED_FROM:
        return EndTxnResponse(error_code=error)
    return EndTxnResponse(error_code=error, producer_id=producer_id, producer_epoch=producer_epoch)
