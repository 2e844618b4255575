"""AlterConfigs: a resource has what is given and nothing else; errors in Kafka's order."""

import pytest

from kraft_wire.wire.generated.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
)
from kraft_wire.wire.generated.create_topics import CreatableTopic
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.controller.cluster import OneNodeCluster
from tests.controller.plain_requests import create

TOPIC, BROKER = 2, 4


@pytest.fixture
def cluster() -> OneNodeCluster:
    """The topic `t` keeps records for 5 ms, in segments of 2000 bytes."""
    made = OneNodeCluster()
    create(made, CreatableTopic(name="t", num_partitions=1, replication_factor=1))
    assert alter(made, given(**{"retention.ms": "5", "segment.bytes": "2000000"})) == [E.NONE]
    return made


def given(name: str = "t", kind: int = TOPIC, /, **configs: str | None) -> AlterConfigsResource:
    changes = [AlterableConfig(name=key, value=value) for key, value in configs.items()]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)


def alter(
    cluster: OneNodeCluster, *resources: AlterConfigsResource, validate_only: bool = False
) -> list[int]:
    request = AlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    response = cluster.ask(request, 2)
    assert isinstance(response, AlterConfigsResponse)
    return [each.error_code for each in response.responses]


def settings(cluster: OneNodeCluster, kind: int = TOPIC, name: str = "t") -> dict[str, str]:
    return dict(cluster.loader.image.config(kind, name))


def test_setting_that_is_not_named_goes_back_to_its_default(cluster: OneNodeCluster) -> None:
    assert alter(cluster, given(**{"retention.ms": "6"})) == [E.NONE]
    assert settings(cluster) == {"retention.ms": "6"}
    assert alter(cluster, given()) == [E.NONE]
    assert settings(cluster) == {}


def test_validation_changes_nothing(cluster: OneNodeCluster) -> None:
    before = settings(cluster)
    assert alter(cluster, given(), validate_only=True) == [E.NONE]
    assert alter(cluster, given(**{"retention.ms": "x"}), validate_only=True) == [E.INVALID_CONFIG]
    assert settings(cluster) == before


@pytest.mark.parametrize(
    ("resources", "errors"),
    [
        ([given("x", **{"retention.ms": "y"})] * 2, [E.INVALID_REQUEST] * 2),
        ([given("x", **{"retention.ms": None})], [E.INVALID_REQUEST]),
        ([given("7", BROKER, **{"log.cleaner.threads": "2"})], [E.INVALID_REQUEST]),
        ([given("t", 99)], [E.INVALID_REQUEST]),
        ([given("t", **{"retention.ms": "y"})], [E.INVALID_CONFIG]),
        ([given("no/name", **{"retention.ms": "5"})], [E.INVALID_TOPIC_EXCEPTION]),
        ([given("x", **{"retention.ms": "5"})], [E.UNKNOWN_TOPIC_OR_PARTITION]),
        ([given("1", BROKER, **{"log.cleaner.threads": "2"})], [E.NONE]),
    ],
)
def test_first_error_in_kafka_s_order_is_answered(
    cluster: OneNodeCluster, resources: list[AlterConfigsResource], errors: list[int]
) -> None:
    before = settings(cluster)
    assert alter(cluster, *resources) == errors
    assert settings(cluster) == before


def test_resource_that_is_refused_leaves_the_others_theirs(cluster: OneNodeCluster) -> None:
    assert alter(cluster, given("x"), given("1", BROKER, **{"log.cleaner.threads": "2"})) == [
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.NONE,
    ]
    assert settings(cluster, BROKER, "1") == {"log.cleaner.threads": "2"}


def test_more_changes_than_one_request_may_have_change_nothing(cluster: OneNodeCluster) -> None:
    """BoundedList of 4.3.1: 10,000 records; POLICY_VIOLATION for each resource."""
    before = settings(cluster)
    many = {f"setting.{number}": "1" for number in range(10_000)}
    fits = given("", BROKER, **many)
    assert alter(cluster, fits, validate_only=True) == [E.NONE]
    assert alter(cluster, fits, given(**{"retention.ms": "7"})) == [E.POLICY_VIOLATION] * 2
    assert settings(cluster) == before
    assert settings(cluster, BROKER, "") == {}


def test_settings_of_a_broker_that_is_not_registered_are_refused_by_controllers() -> None:
    """QuorumController.configResourceExistenceChecker of 4.3.1: on a node without a broker."""
    alone = OneNodeCluster(brokers=0)
    alone.add_broker(5)
    request = AlterConfigsRequest(
        resources=[given(name, BROKER, **{"log.cleaner.threads": "2"}) for name in ("5", "6", "1")]
    )
    response = alone.ask(request, 2)
    assert isinstance(response, AlterConfigsResponse)
    assert [(each.error_code, each.error_message) for each in response.responses] == [
        (E.NONE, None),
        (E.BROKER_ID_NOT_REGISTERED, "No node with id 6 found."),
        (E.NONE, None),
    ]
    assert settings(alone, BROKER, "6") == {}
