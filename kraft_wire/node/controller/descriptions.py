"""ApiVersions and DescribeCluster as a controller's listener answers them (KIP-584, KIP-919).

kraft.version and the leader come from the quorum, everything else from the committed image.
"""

import re
from collections.abc import Mapping
from typing import Final

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.metadata.metadata_cache import CLUSTER_OPERATIONS, NO_OPERATIONS
from kraft_wire.metadata.features import CONTROLLERS_FROM, KRAFT_VERSION, SUPPORTED_FEATURES
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.wire.generated.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kraft_wire.wire.generated.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["api_versions", "describe_cluster"]

_FIRST_SOFTWARE_VERSION: Final = 3
_FIRST_ZERO_FEATURE_VERSION: Final = 4
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_BROKERS, _CONTROLLERS = 1, 2
_NO_CONTROLLER: Final = -1


def api_versions(
    version: int,
    request: Message,
    served: Mapping[int, tuple[int, int]],
    image: MetadataImage,
    kraft_version: int,
) -> ApiVersionsResponse:
    """List APIs and features; INVALID_REQUEST for an unnamed client (v3)."""
    assert isinstance(request, ApiVersionsRequest), request
    if version >= _FIRST_SOFTWARE_VERSION and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    response = ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in served.items()
        ]
    )
    if version < _FIRST_SOFTWARE_VERSION:
        return response
    shows_zero = version >= _FIRST_ZERO_FEATURE_VERSION
    response.supported_features = [
        SupportedFeatureKey(name=name, min_version=levels.min_level, max_version=levels.max_level)
        for name, levels in SUPPORTED_FEATURES.items()
        if shows_zero or levels.min_level > 0
    ]
    response.finalized_features_epoch = image.finalized_features_epoch
    finalized = {**image.finalized_features, KRAFT_VERSION: kraft_version}
    response.finalized_features = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in finalized.items()
        if name in SUPPORTED_FEATURES and level > 0
    ]
    return response


def describe_cluster(
    context: RequestContext,
    request: Message,
    image: MetadataImage,
    *,
    cluster_id: str,
    leader_id: int,
) -> DescribeClusterResponse:
    """Describe the registered controllers that have the listener of the request.

    Errors, first match wins: UNSUPPORTED_VERSION (metadata.version before controllers registered),
    UNSUPPORTED_ENDPOINT_TYPE, MISMATCHED_ENDPOINT_TYPE (version 0: INVALID_REQUEST for both).
    """
    assert isinstance(request, DescribeClusterRequest), request
    if image.metadata_version < CONTROLLERS_FROM:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            error_message="Direct-to-controller communication is not supported with the current "
            "MetadataVersion.",
        )
    if request.endpoint_type != _CONTROLLERS:
        return _wrong_endpoint_type(request.endpoint_type, context.api_version)
    asked = request.include_cluster_authorized_operations
    found = [
        DescribeClusterBroker(broker_id=node_id, host=endpoint.host, port=endpoint.port)
        for node_id, registered in sorted(image.controllers.items())
        for endpoint in [registered.endpoints.get(context.listener)]
        if endpoint is not None
    ]
    is_listed = any(each.broker_id == leader_id for each in found)
    return DescribeClusterResponse(
        endpoint_type=_CONTROLLERS,
        cluster_id=cluster_id,
        controller_id=leader_id if is_listed else _NO_CONTROLLER,
        brokers=found,
        cluster_authorized_operations=CLUSTER_OPERATIONS if asked else NO_OPERATIONS,
    )


def _wrong_endpoint_type(endpoint_type: int, version: int) -> DescribeClusterResponse:
    if endpoint_type == _BROKERS:
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = (
            "The request was sent to an endpoint of type CONTROLLER, but we wanted an endpoint of "
            "type BROKER"
        )
    else:
        error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = f"Unsupported endpoint type {endpoint_type}"
    return DescribeClusterResponse(
        error_code=ErrorCode.INVALID_REQUEST if version == 0 else error,
        error_message=message,
    )
