"""ApiVersions, API key 18, versions 0-4.

Behaviour:   lists exactly the served versions, Produce from version 0 for old librdkafka
             (KAFKA-18659) · lists a forwarded API only if the active controller serves it too
             (KIP-590) · clients may ask at any time and repeatedly · the node's decoder answers an
             unsupported version in the form of version 0 (KIP-511)
Versions:    v3 client software name and version (KIP-511), features (KIP-584) · v4 features whose
             lowest version is 0
Left out:    nothing
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from kraft_wire.apis.registry import FORWARDED, advertised
from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import RequestContext
from kraft_wire.metadata.image import FeatureRange
from kraft_wire.wire.generated.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["handle", "names_itself"]

_FIRST_SOFTWARE_VERSION: Final = 3
_FIRST_ZERO_FEATURE_VERSION: Final = 4
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(broker: Broker, context: RequestContext, request: ApiVersionsRequest) -> Message:
    """List the APIs and features of this broker; INVALID_REQUEST for an unnamed client (v3)."""
    version = context.api_version
    if version >= _FIRST_SOFTWARE_VERSION and not names_itself(request):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    image = broker.image
    own = image.brokers.get(broker.node_id)
    state = _State(
        broker.controller.controller_versions(),
        {} if own is None else own.features,
        image.finalized_features,
        image.finalized_features_epoch,
    )
    return broker.api_versions.answer(version, state, lambda: _made(state, version))


class _State(NamedTuple):
    """What an answer depends on, beside its version."""

    offered: Mapping[int, tuple[int, int]] | None
    """Versions that the active controller serves, None if it is on this node."""
    supported: Mapping[str, FeatureRange]
    finalized: Mapping[str, int]
    finalized_epoch: int


def _made(state: _State, version: int) -> ApiVersionsResponse:
    response = ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in _shown(state.offered).items()
        ]
    )
    if version >= _FIRST_SOFTWARE_VERSION:
        _add_features(state, version, response)
    return response


def _shown(offered: Mapping[int, tuple[int, int]] | None) -> dict[int, tuple[int, int]]:
    """Return the served APIs; of forwarded ones only those that the active controller serves."""
    shown = advertised()
    if offered is not None:
        for key, (low, high) in FORWARDED.items():
            first, last = offered.get(key, (0, -1))
            shown[key] = (max(low, first), min(high, last))
            if shown[key][0] > shown[key][1]:
                del shown[key]
    return shown


def names_itself(request: ApiVersionsRequest) -> bool:
    """Return whether a client's software name and version have the allowed form (KIP-511)."""
    return (
        _SOFTWARE.fullmatch(request.client_software_name) is not None
        and _SOFTWARE.fullmatch(request.client_software_version) is not None
    )


def _add_features(state: _State, version: int, response: ApiVersionsResponse) -> None:
    supported, shows_zero = state.supported, version >= _FIRST_ZERO_FEATURE_VERSION
    # Java clients below v4 throw at a feature whose range begins with 0 (KAFKA-17492).
    response.supported_features = [
        SupportedFeatureKey(name=name, min_version=levels.min_level, max_version=levels.max_level)
        for name, levels in supported.items()
        if shows_zero or levels.min_level > 0
    ]
    response.finalized_features_epoch = state.finalized_epoch
    # A log that Apache Kafka wrote may have finalised levels that this broker does not support.
    response.finalized_features = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in state.finalized.items()
        if name in supported and 0 < level <= supported[name].max_level
    ]
