"""DescribeCluster, API key 60, versions 0-2.

Behaviour:   returns the unfenced brokers with their endpoint on the listener of the request;
             ControllerId is a broker, which forwards to the controller, as in KRaft brokers
Versions:    v1 endpoint type (KIP-919) · v2 fenced brokers (KIP-1073)
Left out:    nothing on the broker's side; the controller's listener answers for itself
"""

from typing import Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.metadata.metadata_cache import CLUSTER_OPERATIONS, NO_OPERATIONS
from kraft_wire.wire.generated.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle"]

_BROKERS: Final = 1
_CONTROLLERS: Final = 2
_NO_CONTROLLER: Final = -1


def handle(
    broker: Broker, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Describe the cluster (KIP-700).

    Errors, first match wins: UNSUPPORTED_ENDPOINT_TYPE or MISMATCHED_ENDPOINT_TYPE (version 0:
    INVALID_REQUEST for both).
    """
    if request.endpoint_type != _BROKERS:
        return _wrong_endpoint_type(request.endpoint_type, context.api_version)
    found = _brokers(broker, context.listener, include_fenced=request.include_fenced_brokers)
    alive = [each.broker_id for each in found if not each.is_fenced]
    asked = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=alive[broker.random_source.below(len(alive))] if alive else _NO_CONTROLLER,
        brokers=found,
        cluster_authorized_operations=CLUSTER_OPERATIONS if asked else NO_OPERATIONS,
    )


def _brokers(broker: Broker, listener: str, *, include_fenced: bool) -> list[DescribeClusterBroker]:
    found = []
    for broker_id, registered in sorted(broker.image.brokers.items()):
        endpoint = registered.endpoints.get(listener)
        if endpoint is None or (registered.fenced and not include_fenced):
            continue
        found.append(
            DescribeClusterBroker(
                broker_id=broker_id,
                host=endpoint.host,
                port=endpoint.port,
                rack=registered.rack,
                is_fenced=registered.fenced,
            )
        )
    return found


def _wrong_endpoint_type(endpoint_type: int, version: int) -> DescribeClusterResponse:
    if endpoint_type == _CONTROLLERS:
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = (
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of "
            "type CONTROLLER"
        )
    else:
        error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = f"Unsupported endpoint type {endpoint_type}"
    return DescribeClusterResponse(
        error_code=ErrorCode.INVALID_REQUEST if version == 0 else error, error_message=message
    )
