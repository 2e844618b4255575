"""DescribeConfigs, API key 32, versions 1-4.

Behaviour:   returns every setting of a topic, this broker, all brokers (empty name), a group or a
             client metrics subscription: value, source, whether it can change, type; synonyms and
             documentation if requested; a list of keys, if not empty, limits the response
Versions:    v1 sources and synonyms (KIP-226) · v3 types and documentation (KIP-569) · v4 flexible
Left out:    a broker's log levels are one fixed entry, see docs/DEVIATIONS.md
"""

from collections.abc import Callable, Iterable
from typing import Final

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.metadata.config_entries import (
    broker_entries,
    client_metrics_entries,
    default_broker_entries,
    group_entries,
    topic_entries,
)
from kraft_wire.broker.metadata.metadata_reader import MetadataReader
from kraft_wire.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from kraft_wire.settings.broker import node_number
from kraft_wire.settings.definition import ConfigSource
from kraft_wire.settings.topic_names import topic_name_problem
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle"]

_LOGGER_RESOURCE: Final = 8
"""Of requests alone: log levels are in no record."""
_ROOT_LOGGER: Final = "root"
_NO_TYPE: Final = 0

_MESSAGE_CHARACTERS_MAX: Final = 4_000
"""A message may quote a name that is as long as a string can be, and has to be one itself."""
_TOO_MANY: Final = "Too many settings for one answer: ask for fewer resources at a time."

Entries = Iterable[DescribeConfigsResourceResult]


class _Refused(Exception):
    """Why one resource is not described; caught by `handle`."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message[:_MESSAGE_CHARACTERS_MAX]


def handle(
    broker: MetadataReader, context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Describe the settings of resources.

    Errors of all resources: INVALID_REQUEST (one has an unknown type). Errors per resource, first
    match wins: INVALID_REQUEST (the answer is full, empty name, another broker),
    INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION.
    """
    is_known = all(each.resource_type in _DESCRIBERS for each in request.resources)
    # A resource takes ten bytes of the request and thirty-three entries of the answer, so the
    # bound on what a request may make us build has to hold for the answer too.
    room = broker.settings.source.integer("request.max.elements")
    results = []
    for resource in request.resources:
        result = DescribeConfigsResult(
            error_message="",
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            if not is_known:
                raise _Refused(ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST.message)
            if room <= 0:
                raise _Refused(ErrorCode.INVALID_REQUEST, _TOO_MANY)
            result.configs = _described(broker, request, resource)
            room -= len(result.configs)
        except _Refused as refused:
            result.error_code = refused.error
            result.error_message = refused.message
        results.append(result)
    return DescribeConfigsResponse(results=results)


def _described(
    broker: MetadataReader, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> list[DescribeConfigsResourceResult]:
    describer = _DESCRIBERS[resource.resource_type]
    wanted = set(resource.configuration_keys or ())
    entries = [
        entry
        for entry in describer(broker, resource.resource_name)
        if not wanted or entry.name in wanted
    ]
    for entry in entries:
        if not request.include_synonyms:
            entry.synonyms = []
        if not request.include_documentation and resource.resource_type != _LOGGER_RESOURCE:
            entry.documentation = None
    return entries


def _topic(broker: MetadataReader, name: str) -> Entries:
    problem = topic_name_problem(name)
    if problem is not None:
        raise _Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if broker.image.topic(name) is None:
        raise _Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    return topic_entries(broker.image.config(TOPIC_RESOURCE, name), broker.settings.source)


def _broker(broker: MetadataReader, name: str) -> Entries:
    cluster = broker.image.config(BROKER_RESOURCE, "")
    if not name:
        return default_broker_entries(cluster)
    if _broker_id(name) != broker.node_id:
        words = (
            f"Unexpected broker id, expected {broker.node_id} or empty string, but received {name}"
        )
        raise _Refused(ErrorCode.INVALID_REQUEST, words)
    own = broker.image.config(BROKER_RESOURCE, str(broker.node_id))
    return broker_entries(broker.settings.source, (own, cluster))


def _logger(broker: MetadataReader, name: str) -> Entries:
    if not name:
        raise _Refused(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    if _broker_id(name) != broker.node_id:
        words = f"Unexpected broker id, expected {broker.node_id} but received {name}"
        raise _Refused(ErrorCode.INVALID_REQUEST, words)
    root = DescribeConfigsResourceResult(
        name=_ROOT_LOGGER,
        value="INFO",
        config_source=ConfigSource.DYNAMIC_BROKER_LOGGER,
        config_type=_NO_TYPE,
        documentation="",  # 4.3.1 sets neither, whatever was asked for
    )
    return [root]


def _group(broker: MetadataReader, name: str) -> Entries:
    if not name:
        raise _Refused(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    return group_entries(broker.image.config(GROUP_RESOURCE, name), broker.settings.source)


def _client_metrics(broker: MetadataReader, name: str) -> Entries:
    if not name:
        words = "Client metrics subscription name must not be empty"
        raise _Refused(ErrorCode.INVALID_REQUEST, words)
    return client_metrics_entries(broker.image.config(CLIENT_METRICS_RESOURCE, name))


def _broker_id(name: str) -> int:
    number = node_number(name)
    if number is None:
        words = f"Broker id must be an integer, but it is: {name}"
        raise _Refused(ErrorCode.INVALID_REQUEST, words)
    return number


_DESCRIBERS: Final[dict[int, Callable[[MetadataReader, str], Entries]]] = {
    TOPIC_RESOURCE: _topic,
    BROKER_RESOURCE: _broker,
    _LOGGER_RESOURCE: _logger,
    CLIENT_METRICS_RESOURCE: _client_metrics,
    GROUP_RESOURCE: _group,
}
