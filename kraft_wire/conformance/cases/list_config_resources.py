"""ListConfigResources, API key 74: what has settings of its own (KIP-714, KIP-1142)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_TYPES_SINCE: Final = 1
_TOPIC, _BROKER, _BROKER_LOGGER, _UNKNOWN = 2, 4, 8, 99


def _listed(broker: Subject, version: int, *types: int) -> set[tuple[int, str]]:
    request = ListConfigResourcesRequest(resource_types=list(types))
    answer = broker.ask(request, version, ListConfigResourcesResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    return {(each.resource_type, each.resource_name) for each in answer.config_resources}


@case("ListConfigResources", "KIP-1142", since=_TYPES_SINCE)
def topics_are_listed(broker: Subject, version: int) -> None:
    """Topics are listed if requested, with or without settings of their own.

    List the resources of type 2, and those of type 4.
    """
    plain, topic = broker.topic(), broker.topic(configs={"retention.ms": "1000000"})
    wanted = {(_TOPIC, plain.name), (_TOPIC, topic.name)}
    found = _listed(broker, version, _TOPIC)
    expect.true(wanted <= found, str(wanted), len(found), "config_resources")
    found = {each for each in _listed(broker, version, _BROKER) if each[0] != _BROKER}
    expect.true(found == set(), "brokers alone", found, "config_resources")


@case("ListConfigResources", "KIP-1142", since=_TYPES_SINCE)
def all_types(broker: Subject, version: int) -> None:
    """An empty list of types requests all, including brokers and their loggers.

    List all resources.
    """
    topic = broker.topic()
    found = _listed(broker, version)
    own = str(broker.target.node_id)
    wanted = {(_TOPIC, topic.name), (_BROKER, own), (_BROKER_LOGGER, own)}
    expect.true(wanted <= found, str(wanted), wanted - found, "config_resources")


@case("ListConfigResources", "KIP-1142", since=_TYPES_SINCE)
def unknown_type(broker: Subject, version: int) -> None:
    """An unknown type is refused with UNSUPPORTED_VERSION.

    List the resources of type 99.
    """
    request = ListConfigResourcesRequest(resource_types=[_UNKNOWN])
    answer = broker.ask(request, version, ListConfigResourcesResponse)
    expect.error(answer, "error_code", ErrorCode.UNSUPPORTED_VERSION)


@case("ListConfigResources", "KIP-714, ListClientMetricsResources", until=0)
def client_metrics_alone(broker: Subject, version: int) -> None:
    """Version 0 lists only subscriptions of client metrics.

    Create a topic, list.
    """
    topic = broker.topic()
    names = {name for _, name in _listed(broker, version)}
    expect.true(topic.name not in names, "no topic", names, "config_resources")
