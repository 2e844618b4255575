"""UnregisterBroker, API key 64, version 0.

Behaviour:   removes a decommissioned broker from every ISR, then from the metadata (KIP-631)
Versions:    v0
Left out:    nothing
"""

from kraft_wire.controller.broker_changes import BrokerChanges
from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

__all__ = ["handle", "refuse"]


def handle(
    controller: Controller, context: ControllerContext, request: UnregisterBrokerRequest
) -> ControllerResult:
    """Remove a broker, alive or not.

    A live broker gets STALE_BROKER_EPOCH until it is restarted.

    Errors: BROKER_ID_NOT_REGISTERED.
    """
    assert context.api_version == 0, context.api_version
    broker_id = request.broker_id
    if broker_id not in controller.image.brokers:
        words = f"Broker ID {broker_id} is not currently registered"
        return ControllerResult(refuse(request, ErrorCode.BROKER_ID_NOT_REGISTERED, words))
    records = BrokerChanges(controller.image, controller.settings, broker_id).unregister()
    assert records, broker_id
    return ControllerResult(UnregisterBrokerResponse(), records, is_atomic=False)


def refuse(
    request: UnregisterBrokerRequest, error: ErrorCode, message: str | None
) -> UnregisterBrokerResponse:
    """Return the answer that refuses the request."""
    assert error is not ErrorCode.NONE
    return UnregisterBrokerResponse(error_code=error, error_message=message)
