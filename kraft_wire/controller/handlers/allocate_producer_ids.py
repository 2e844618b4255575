"""AllocateProducerIds, API key 67, version 0.

Behaviour:   a broker gets the next 1,000 producer ids; each block is allocated once, even if the
             broker never uses it (KIP-730)
Versions:    v0
Left out:    nothing
"""

from typing import Final

from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.producer_ids_record import ProducerIdsRecord

__all__ = ["BLOCK_SIZE", "handle", "refuse"]

BLOCK_SIZE: Final = 1_000
_PRODUCER_ID_MAX: Final = (1 << 63) - 1


def handle(
    controller: Controller, context: ControllerContext, request: AllocateProducerIdsRequest
) -> ControllerResult:
    """Give a block of producer ids to a broker.

    Errors: STALE_BROKER_EPOCH (not registered, or another epoch), UNKNOWN_SERVER_ERROR (no ids).
    """
    assert context.api_version == 0, context.api_version
    broker = controller.image.brokers.get(request.broker_id)
    if broker is None or broker.broker_epoch != request.broker_epoch:
        return _refused(ErrorCode.STALE_BROKER_EPOCH)
    start = controller.image.next_producer_id
    if start > _PRODUCER_ID_MAX - BLOCK_SIZE:
        return _refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert 0 <= start < start + BLOCK_SIZE <= _PRODUCER_ID_MAX, start
    record = ProducerIdsRecord(
        broker_id=broker.broker_id,
        broker_epoch=broker.broker_epoch,
        next_producer_id=start + BLOCK_SIZE,
    )
    response = AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK_SIZE)
    return ControllerResult(response, [VersionedRecord(record)])


def refuse(
    request: AllocateProducerIdsRequest, error: ErrorCode, message: str | None
) -> AllocateProducerIdsResponse:
    """Return the answer that refuses the request; it has no error message."""
    assert error is not ErrorCode.NONE
    return AllocateProducerIdsResponse(error_code=error)


def _refused(error: ErrorCode) -> ControllerResult:
    assert error is not ErrorCode.NONE
    return ControllerResult(AllocateProducerIdsResponse(error_code=error))
