"""DescribeCluster: brokers, controller, authorized operations, endpoint types."""

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.handlers.describe_cluster import handle
from kraft_wire.wire.generated.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.small_broker import broker_image, context, image_of, small_broker


@pytest.fixture
def broker() -> Broker:
    brokers = [
        broker_image(3),
        broker_image(1),
        broker_image(2, fenced=True),
        broker_image(4, listener="INTERNAL"),
    ]
    return small_broker(image_of({}, brokers))


def ask(broker: Broker, version: int = 2, **fields: bool | int) -> DescribeClusterResponse:
    return handle(broker, context(version), DescribeClusterRequest(**fields))  # type: ignore[arg-type]  # the test's own fields


def test_unfenced_brokers_of_the_listener_are_listed_by_id(broker: Broker) -> None:
    response = ask(broker)
    assert response.cluster_id == "tests-cluster"
    assert [(b.broker_id, b.host, b.port, b.is_fenced) for b in response.brokers] == [
        (1, "host1", 9001, False),
        (3, "host3", 9003, False),
    ]
    assert response.controller_id in (1, 3)


def test_fenced_brokers_are_listed_on_request(broker: Broker) -> None:
    response = ask(broker, include_fenced_brokers=True)
    assert [(b.broker_id, b.is_fenced) for b in response.brokers] == [
        (1, False),
        (2, True),
        (3, False),
    ]
    assert response.controller_id in (1, 3)


def test_cluster_without_reachable_broker_has_no_controller() -> None:
    broker = small_broker(image_of({}, [broker_image(1, fenced=True)]))
    assert ask(broker).controller_id == -1


@pytest.mark.parametrize(("asked", "expected"), [(True, 8096), (False, -(2**31))])
def test_operations_are_told_to_who_asks(broker: Broker, asked: bool, expected: int) -> None:
    response = ask(broker, include_cluster_authorized_operations=asked)
    assert response.cluster_authorized_operations == expected


@pytest.mark.parametrize(
    ("endpoint_type", "version", "error"),
    [
        (2, 2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (2, 1, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, 1, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (9, 2, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (9, 0, ErrorCode.INVALID_REQUEST),
    ],
)
def test_other_endpoint_type_is_refused(
    broker: Broker, endpoint_type: int, version: int, error: ErrorCode
) -> None:
    response = ask(broker, version, endpoint_type=endpoint_type)
    assert response.error_code == error
    assert response.error_message
    assert response.brokers == []
