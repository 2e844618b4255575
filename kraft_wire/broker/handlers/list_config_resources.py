"""ListConfigResources, API key 74, versions 0-1.

Behaviour:   lists resources that have, or may have, settings: groups and client-metrics
             subscriptions with settings, then the brokers that have the listener of the request,
             with their log levels, then every topic; an empty list of types means all
Versions:    v0 client metrics only (KIP-1000) · v1 types (KIP-1142)
Left out:    nothing
"""

from collections.abc import Iterator
from typing import Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import RequestContext
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

__all__ = ["handle"]

_TOPIC, _BROKER, _LOGGER, _CLIENT_METRICS, _GROUP = 2, 4, 8, 16, 32
_ALL_TYPES: Final = (_GROUP, _CLIENT_METRICS, _LOGGER, _BROKER, _TOPIC)


def handle(
    broker: Broker, context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """List resources by type. Error: UNSUPPORTED_VERSION for a type that does not exist."""
    if context.api_version == 0:
        wanted: tuple[int, ...] = (_CLIENT_METRICS,)
    else:
        wanted = tuple(request.resource_types) or _ALL_TYPES
    if any(each not in _ALL_TYPES for each in wanted):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    resources = [
        ConfigResource(resource_name=name, resource_type=kind)
        for kind in _ALL_TYPES
        if kind in wanted
        for name in _names(broker, kind, context.listener)
    ]
    return ListConfigResourcesResponse(config_resources=resources)


def _names(broker: Broker, kind: int, listener: str) -> Iterator[str]:
    if kind == _TOPIC:
        return (topic.name for topic in broker.image.topics())
    if kind in (_BROKER, _LOGGER):
        brokers = broker.image.brokers
        return (str(number) for number in sorted(brokers) if listener in brokers[number].endpoints)
    return iter(sorted(name for each, name in broker.image.configs if each == kind))
