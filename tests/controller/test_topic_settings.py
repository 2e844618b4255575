"""Settings of topics: lists, names, and the bounds of one atomic change."""

import pytest

from kraft_wire.metadata.image import TOPIC_RESOURCE
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.controller.cluster import OneNodeCluster
from tests.controller.plain_requests import create


def test_settings_larger_than_a_batch_are_refused() -> None:
    cluster = OneNodeCluster()
    changes = [
        AlterableConfig(name=f"own.key.{number}", config_operation=0, value="1")
        for number in range(10_001)
    ]
    resources = [
        AlterConfigsResource(resource_type=4, resource_name=name, configs=some)
        for name, some in (("", changes[:5_000]), ("1", changes[5_000:]))
    ]
    response = cluster.ask(IncrementalAlterConfigsRequest(resources=resources), 1)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    errors = [each.error_code for each in response.responses]
    assert errors == [ErrorCode.POLICY_VIOLATION] * 2, "all together, as in 4.3.1"
    assert not cluster.controller.image.configs


def test_member_of_a_list_is_appended_once() -> None:
    cluster = OneNodeCluster()
    create(cluster, CreatableTopic(name="t", num_partitions=1, replication_factor=1))
    for text in ("compact,delete", "compact,compact"):
        change = AlterableConfig(name="cleanup.policy", config_operation=2, value=text)
        resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=[change])
        response = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert isinstance(response, IncrementalAlterConfigsResponse)
        assert response.responses[0].error_code == ErrorCode.NONE
    values = cluster.controller.image.config(TOPIC_RESOURCE, "t")
    assert values == {"cleanup.policy": "delete,compact"}


@pytest.mark.parametrize(
    ("present", "operation", "asked", "left"),
    [
        ("delete", 2, "compact,compact", "delete,compact"),
        ("delete", 2, " compact", "delete, compact"),
        ("delete", 2, "delete,", "delete"),
        (None, 2, "compact", "delete,compact"),
        ("delete, compact", 3, "compact", "delete, compact"),
        ("delete,compact", 3, "compact, delete", "delete"),
        ("compact,delete,compact", 3, "compact", "delete,compact"),
    ],
)
def test_members_of_a_list_are_what_stands_between_its_commas(
    present: str | None, operation: int, asked: str, left: str
) -> None:
    """As Apache's own controller wrote them, blanks and all."""
    cluster = OneNodeCluster()
    create(cluster, CreatableTopic(name="t", num_partitions=1, replication_factor=1))
    if present is not None:
        before = ConfigRecord(
            resource_type=TOPIC_RESOURCE, resource_name="t", name="cleanup.policy", value=present
        )
        cluster.commit([VersionedRecord(before)])
    change = AlterableConfig(name="cleanup.policy", config_operation=operation, value=asked)
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=[change])
    response = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == ErrorCode.NONE
    values = cluster.controller.image.config(TOPIC_RESOURCE, "t")
    assert values.get("cleanup.policy") == left


def test_unknown_operation_and_log_level_are_invalid_requests() -> None:
    cluster = OneNodeCluster()
    operation = AlterableConfig(name="retention.ms", config_operation=9, value="1")
    level = AlterableConfig(name="root", config_operation=0, value="DEBUG")
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(resource_type=2, resource_name="t", configs=[operation]),
            AlterConfigsResource(resource_type=8, resource_name="1", configs=[level]),
        ]
    )
    response = cluster.ask(request, 1)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    codes = [each.error_code for each in response.responses]
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize(("name", "key"), [("", "\ufffd" * 20_000), ("\ufffd" * 20_000, "metrics")])
def test_name_that_grew_while_it_was_read_is_refused(name: str, key: str) -> None:
    cluster = OneNodeCluster()
    change = AlterableConfig(name=key, config_operation=0, value="*")
    kind = 16 if name else 4
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
    response = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == ErrorCode.INVALID_REQUEST
