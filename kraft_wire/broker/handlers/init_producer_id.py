"""InitProducerId, API key 22, versions 0-5.

Behaviour:   an idempotent producer gets a new id with epoch 0, whatever id it had before · it waits
             for the controller to hand out a block of ids; where none comes in five seconds, or is
             refused, the answer is COORDINATOR_LOAD_IN_PROGRESS, which clients retry
Versions:    v3 current id and epoch (KIP-360) · v4 PRODUCER_FENCED · v6, two-phase commit
             (KIP-939), is marked unstable and not served
Left out:    transactions: a transactional id gets UNSUPPORTED_VERSION, see docs/DEVIATIONS.md
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
_TRANSACTION_TIMEOUT_MS_MAX: Final = 900_000
"""Default of `transaction.max.timeout.ms`."""


def handle(
    broker: Broker, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Withheld:
    """Give an idempotent producer its id (KIP-98).

    Errors, first match wins: INVALID_REQUEST (id without epoch or the reverse; empty transactional
    id), INVALID_TRANSACTION_TIMEOUT, UNSUPPORTED_VERSION (transactional id),
    COORDINATOR_LOAD_IN_PROGRESS.
    """
    error = _refusal(request)
    if error is not ErrorCode.NONE:
        return id_answer(None, error)
    producer_id = broker.producer_ids.take(context.now_ms)
    if producer_id is None and broker.producer_ids.park(context.reply_to):
        return PARKED
    return id_answer(producer_id)


def _refusal(request: InitProducerIdRequest) -> ErrorCode:
    has_id = request.producer_id != _NO_PRODUCER_ID
    has_epoch = request.producer_epoch != _NO_PRODUCER_EPOCH
    if has_id != has_epoch or request.transactional_id == "":
        return ErrorCode.INVALID_REQUEST
    if request.transactional_id is None:
        return ErrorCode.NONE
    if not 0 < request.transaction_timeout_ms <= _TRANSACTION_TIMEOUT_MS_MAX:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.UNSUPPORTED_VERSION
