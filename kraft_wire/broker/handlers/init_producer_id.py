"""InitProducerId, API key 22, versions 0-5.

Behaviour:   an idempotent producer gets a new id with epoch 0, whatever id it had before · it waits
             until the controller allocates a block of ids; if this fails or takes five seconds, the
             error is COORDINATOR_LOAD_IN_PROGRESS, which clients retry · a producer with a
             transactional id waits likewise, and gets its id with the next epoch once that is
             committed; an open transaction is aborted first, and the client retries
Versions:    v3 current id and epoch (KIP-360) · v4 PRODUCER_FENCED · v6, two-phase commit
             (KIP-939), is marked unstable and not served
Left out:    nothing
"""

from typing import Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import PARKED, RequestContext, Withheld
from kraft_wire.broker.producing.producer_ids import id_answer
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

__all__ = ["handle"]

_NO_PRODUCER_ID: Final = -1
_NO_PRODUCER_EPOCH: Final = -1
_FENCED_ERROR_FROM: Final = 4


def handle(
    broker: Broker, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Withheld:
    """Give a producer its id and epoch (KIP-98).

    Errors, first match wins: INVALID_REQUEST (id without epoch or the reverse; empty transactional
    id), INVALID_TRANSACTION_TIMEOUT, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, then those of
    `transactions.init_producer_id.init_producer_id`.
    """
    error = _refusal(broker, request)
    if error is not ErrorCode.NONE:
        return id_answer(None, error)
    if request.transactional_id is not None:
        return _new_transactional(broker, context, request, request.transactional_id)
    producer_id = broker.producer_ids.take(context.now_ms)
    if producer_id is None and broker.producer_ids.park(context.reply_to):
        return PARKED
    return id_answer(producer_id)


def _refusal(broker: Broker, request: InitProducerIdRequest) -> ErrorCode:
    has_id = request.producer_id != _NO_PRODUCER_ID
    has_epoch = request.producer_epoch != _NO_PRODUCER_EPOCH
    if has_id != has_epoch or request.transactional_id == "":
        return ErrorCode.INVALID_REQUEST
    if request.transactional_id is None:
        return ErrorCode.NONE
    if not 0 < request.transaction_timeout_ms <= broker.settings.transaction_max_timeout_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NONE


def _new_transactional(
    broker: Broker, context: RequestContext, request: InitProducerIdRequest, name: str
) -> InitProducerIdResponse | Withheld:
    """Wait for a block of ids if there is none; every request may need one, so all wait."""

    def run() -> None:
        answer = _transactional(broker, context, request, name)
        if isinstance(answer, InitProducerIdResponse):
            broker.complete(context.reply_to, answer)

    if broker.producer_ids.await_block(context.reply_to, context.now_ms, run):
        return PARKED
    return _transactional(broker, context, request, name)


def _transactional(
    broker: Broker, context: RequestContext, request: InitProducerIdRequest, name: str
) -> InitProducerIdResponse | Withheld:
    # Idempotent producers need none of this, and most of a start is imports.
    from kraft_wire.broker.coordination.clock_reading import arrival_of
    from kraft_wire.broker.deferred_response import DeferredResponse
    from kraft_wire.broker.transactions.init_producer_id import ProducerIdentity, init_producer_id

    shard = broker.transactions.shard_of(name)
    if isinstance(shard, ErrorCode):
        return id_answer(None, shard)
    deferred = DeferredResponse[InitProducerIdResponse](broker.complete, context.reply_to)

    def answer(identity: ProducerIdentity) -> None:
        error, producer_id, producer_epoch = identity
        if error is ErrorCode.PRODUCER_FENCED and context.api_version < _FENCED_ERROR_FROM:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        deferred.send(
            InitProducerIdResponse(
                error_code=error, producer_id=producer_id, producer_epoch=producer_epoch
            )
        )

    expected = (request.producer_id, request.producer_epoch)
    timeout_ms = request.transaction_timeout_ms
    init_producer_id(shard, name, timeout_ms, expected, arrival_of(context), answer)
    return deferred.result()
