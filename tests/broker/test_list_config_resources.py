"""ListConfigResources: names of what has, or may have, settings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.handlers.list_config_resources import handle
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_config_resources import ListConfigResourcesRequest
from tests.broker.small_broker import (
    broker_image,
    context,
    image_of,
    partition_image,
    small_broker,
)

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


@pytest.fixture
def broker() -> Broker:
    topics = {name: [partition_image(0)] for name in ("b", "a")}
    image = image_of(topics, [broker_image(10), broker_image(9)])
    configs = {
        (CLIENT_METRICS, "latencies"): {"interval.ms": "1000"},
        (GROUP, "readers"): {"consumer.session.timeout.ms": "45000"},
        (TOPIC, "a"): {"retention.ms": "1"},
        (BROKER, ""): {"log.retention.ms": "1"},
    }
    return small_broker(replace(image, configs=configs))


def listed(broker: Broker, version: int, *kinds: int) -> list[tuple[int, str]]:
    request = ListConfigResourcesRequest(resource_types=list(kinds))
    response = handle(broker, context(version), request)
    assert response.error_code == ErrorCode.NONE
    return sorted((each.resource_type, each.resource_name) for each in response.config_resources)


def test_first_version_lists_subscriptions_to_client_metrics(broker: Broker) -> None:
    assert listed(broker, 0) == [(CLIENT_METRICS, "latencies")]


def test_no_types_mean_all(broker: Broker) -> None:
    assert listed(broker, 1) == [
        (TOPIC, "a"),
        (TOPIC, "b"),
        (BROKER, "10"),
        (BROKER, "9"),
        (LOGGER, "10"),
        (LOGGER, "9"),
        (CLIENT_METRICS, "latencies"),
        (GROUP, "readers"),
    ]


def test_types_come_in_the_order_of_4_3_1(broker: Broker) -> None:
    """4.3.1's `KafkaApis.handleListConfigResources`."""
    kinds = (GROUP, CLIENT_METRICS, LOGGER, BROKER, TOPIC)
    for asked in (kinds, kinds[::-1], ()):
        request = ListConfigResourcesRequest(resource_types=list(asked))
        found = handle(broker, context(1), request).config_resources
        assert tuple(dict.fromkeys(each.resource_type for each in found)) == kinds


def test_type_that_is_asked_for_twice_is_listed_once(broker: Broker) -> None:
    assert listed(broker, 1, GROUP, GROUP) == [(GROUP, "readers")]


def test_types_have_an_order_of_their_own(broker: Broker) -> None:
    """KafkaApis.handleListConfigResources of 4.3.1, whatever the order of the request."""
    request = ListConfigResourcesRequest(resource_types=[TOPIC, BROKER, LOGGER, GROUP])
    response = handle(broker, context(1), request)
    kinds = [each.resource_type for each in response.config_resources]
    assert kinds == [GROUP, LOGGER, LOGGER, BROKER, BROKER, TOPIC, TOPIC]


def test_brokers_without_the_listener_of_the_request_are_not_listed(broker: Broker) -> None:
    """KRaftMetadataCache.getBrokerNodes of 4.3.1."""
    brokers = broker.image.brokers
    elsewhere = replace(brokers[9], endpoints={})
    image = replace(broker.image, brokers={**brokers, 9: elsewhere})
    assert listed(small_broker(image), 1, BROKER, LOGGER) == [(BROKER, "10"), (LOGGER, "10")]


def test_type_that_does_not_exist_refuses_the_request(broker: Broker) -> None:
    request = ListConfigResourcesRequest(resource_types=[TOPIC, 3])
    response = handle(broker, context(1), request)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.config_resources == []
