"""UnregisterBroker, API key 64: a broker is forgotten (KIP-500)."""

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


@case("UnregisterBroker", "org.apache.kafka.controller.ClusterControlManager, unregisterBroker")
def unknown_broker(broker: Subject, version: int) -> None:
    """A broker that does not exist is BROKER_ID_NOT_REGISTERED.

    Unregister a broker that does not exist.
    """
    request = UnregisterBrokerRequest(broker_id=9_999_999)
    answer = broker.ask(request, version, UnregisterBrokerResponse)
    expect.error(answer, "error_code", ErrorCode.BROKER_ID_NOT_REGISTERED)
