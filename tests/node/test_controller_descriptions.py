"""ApiVersions and DescribeCluster of a controller's listener (KIP-511, KIP-584, KIP-919)."""

from dataclasses import replace

import pytest

from kraft_wire.metadata.image import ControllerImage, EndpointImage, MetadataImage
from kraft_wire.model import ZERO_UUID
from kraft_wire.node.controller.descriptions import api_versions, describe_cluster
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.small_broker import context

RELEASED = {
    ("metadata.version", 7, 30),
    ("kraft.version", 0, 1),
    ("transaction.version", 0, 2),
    ("group.version", 0, 1),
    ("eligible.leader.replicas.version", 0, 1),
    ("share.version", 0, 1),
    ("streams.version", 0, 1),
}
"""What 4.3.1's `kafka-features describe` prints as supported."""


def asked(
    version: int, name: str = "kraft-wire", software_version: str = "1.0", *, kraft_version: int = 1
) -> ApiVersionsResponse:
    request = ApiVersionsRequest(
        client_software_name=name, client_software_version=software_version
    )
    served = {18: (0, 4), 52: (0, 2)}
    return api_versions(version, request, served, MetadataImage(), kraft_version)


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("spoilt", ["", "-a", "a-", ".a", "a.", "a b", "a_b", "ä"])
def test_software_that_kafka_would_not_take_is_refused_where_it_is_named(
    version: int, spoilt: str
) -> None:
    refused = ErrorCode.INVALID_REQUEST if version >= 3 else ErrorCode.NONE
    assert asked(version, name=spoilt).error_code == refused
    assert asked(version, software_version=spoilt).error_code == refused


@pytest.mark.parametrize("taken", ["a", "7", "a-b", "a.b", "apache-kafka-java", "4.3.1"])
def test_software_that_kafka_takes_is_taken(taken: str) -> None:
    assert asked(3, name=taken, software_version=taken).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(5))
def test_features_are_shown_from_version_3_on_and_those_from_0_from_version_4_on(
    version: int,
) -> None:
    """Java clients of older versions throw at a range that begins with 0 (KAFKA-17492)."""
    answer = asked(version)
    keys = [(each.api_key, each.min_version, each.max_version) for each in answer.api_keys]
    assert keys == [(18, 0, 4), (52, 0, 2)]
    shown = {(each.name, each.min_version, each.max_version) for each in answer.supported_features}
    assert shown == {3: {("metadata.version", 7, 30)}, 4: RELEASED}.get(version, set())
    finalized = [
        (each.name, each.min_version_level, each.max_version_level)
        for each in answer.finalized_features
    ]
    assert ("kraft.version", 1, 1) in finalized or version < 3


def test_a_feature_at_level_0_is_not_finalized() -> None:
    names = {each.name for each in asked(4, kraft_version=0).finalized_features}
    assert "kraft.version" not in names


# -- DescribeCluster ---------------------------------------------------------------------------


def controller_at(node_id: int, **ports: int) -> ControllerImage:
    endpoints = {name: EndpointImage(name, f"host{node_id}", port) for name, port in ports.items()}
    return ControllerImage(node_id, ZERO_UUID, endpoints, {}, zk_migration_ready=False)


CONTROLLERS = {
    each.controller_id: each
    for each in (
        controller_at(3, CONTROLLER=9093, INNER=9193),
        controller_at(1, CONTROLLER=9091),
        controller_at(2, INNER=9192),
    )
}


def described(
    *,
    level: int = 30,
    version: int = 2,
    endpoint_type: int = 2,
    operations: bool = False,
    leader_id: int = 3,
) -> DescribeClusterResponse:
    image = MetadataImage(finalized_features={"metadata.version": level}, controllers=CONTROLLERS)
    asked = DescribeClusterRequest(
        endpoint_type=endpoint_type, include_cluster_authorized_operations=operations
    )
    heard = replace(context(version), listener="CONTROLLER")
    return describe_cluster(heard, asked, image, cluster_id="a-cluster", leader_id=leader_id)


def test_controllers_with_the_listener_that_was_asked_are_described() -> None:
    answer = described()
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    assert (answer.cluster_id, answer.controller_id, answer.endpoint_type) == ("a-cluster", 3, 2)
    assert [(each.broker_id, each.host, each.port) for each in answer.brokers] == [
        (1, "host1", 9091),
        (3, "host3", 9093),
    ]
    assert answer.cluster_authorized_operations == -(1 << 31)
    assert described(leader_id=2).controller_id == -1, "AuthHelper of 4.3.1: it is not listed"
    assert described(leader_id=-1).controller_id == -1
    assert described(operations=True).cluster_authorized_operations > 0


@pytest.mark.parametrize(("level", "error"), [(14, ErrorCode.UNSUPPORTED_VERSION), (15, 0)])
def test_controllers_are_described_once_they_register(level: int, error: int) -> None:
    """metadata.version 3.7-IV0 (level 15) brings their registrations."""
    answer = described(level=level)
    assert (answer.error_code, bool(answer.error_message), len(answer.brokers)) == (
        *(error, bool(error)),
        0 if error else 2,
    )


@pytest.mark.parametrize(
    ("version", "endpoint_type", "error"),
    [
        (2, 1, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (1, 1, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, 1, ErrorCode.INVALID_REQUEST),
        (1, 3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (0, 3, ErrorCode.INVALID_REQUEST),
    ],
)
def test_other_endpoint_types_are_refused(
    version: int, endpoint_type: int, error: ErrorCode
) -> None:
    answer = described(version=version, endpoint_type=endpoint_type)
    assert (answer.error_code, answer.brokers) == (error, [])
    assert ("BROKER" if endpoint_type == 1 else "3") in (answer.error_message or "")
