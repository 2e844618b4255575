"""Changes of settings by a broker's client, and by one that asks a controller (ControllerApis).

The words are those of release 4.3.1: ConfigAdminManager checks a request at a broker, and
ControllerApis with ConfigurationControlManager one at a controller.
"""

import pytest

from kraft_wire.controller.broker_names import foreign_broker_problem
from kraft_wire.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from kraft_wire.settings.broker import node_number
from kraft_wire.wire.generated.alter_configs import (
    AlterableConfig as LegacyConfig,
)
from kraft_wire.wire.generated.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
)
from kraft_wire.wire.generated.alter_configs import (
    AlterConfigsResource as LegacyResource,
)
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.controller.cluster import OneNodeCluster

SET, DELETE, APPEND, SUBTRACT = range(4)
INVALID_REQUEST, INVALID_CONFIG = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG
LOGGERS = 8


@pytest.fixture
def cluster() -> OneNodeCluster:
    made = OneNodeCluster()
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    made.ask(CreateTopicsRequest(topics=[topic]), 7)
    return made


def resource(kind: int, name: str, *changes: tuple[str, int, str | None]) -> AlterConfigsResource:
    configs = [AlterableConfig(name=k, config_operation=o, value=v) for k, o, v in changes]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def altered(
    cluster: OneNodeCluster, *resources: AlterConfigsResource, is_direct: bool = False
) -> list[tuple[int, str | None]]:
    request = IncrementalAlterConfigsRequest(resources=list(resources))
    response = cluster.ask(request, 1, is_direct=is_direct)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    return [(each.error_code, each.error_message) for each in response.responses]


def replaced(
    cluster: OneNodeCluster, kind: int, name: str, *, times: int = 1, is_direct: bool = False
) -> list[tuple[int, str | None]]:
    configs = [LegacyConfig(name="retention.ms", value=value) for value in ("1000", None)]
    asked = LegacyResource(resource_type=kind, resource_name=name, configs=configs)
    response = cluster.ask(AlterConfigsRequest(resources=[asked] * times), 2, is_direct=is_direct)
    assert isinstance(response, AlterConfigsResponse)
    return [(each.error_code, each.error_message) for each in response.responses]


def test_null_values_are_named_with_blanks_between_them(cluster: OneNodeCluster) -> None:
    asked = resource(
        TOPIC_RESOURCE, "t", ("b", SET, None), ("c", DELETE, None), ("a", APPEND, None)
    )
    assert altered(cluster, asked) == [(INVALID_REQUEST, "Null value not supported for : b, a")]


def test_older_request_knows_no_log_levels(cluster: OneNodeCluster) -> None:
    asked = LegacyResource(resource_type=LOGGERS, resource_name="1", configs=[])
    response = cluster.ask(AlterConfigsRequest(resources=[asked]), 2)
    assert isinstance(response, AlterConfigsResponse)
    assert response.responses[0].error_code == INVALID_REQUEST
    assert response.responses[0].error_message == "Unknown resource type 8"


@pytest.mark.parametrize(
    ("key", "operation", "error", "words"),
    [
        ("no.key", APPEND, INVALID_CONFIG, "Unknown config name: no.key"),
        (
            "num.io.threads",
            APPEND,
            INVALID_CONFIG,
            "Config value append is not allowed for config key: num.io.threads",
        ),
        (
            "node.id",
            SUBTRACT,
            INVALID_CONFIG,
            "Config value subtract is not allowed for config key: node.id",
        ),
        (
            "group.coordinator.rebalance.protocols",
            APPEND,
            INVALID_REQUEST,
            "Cannot update these configs dynamically: [group.coordinator.rebalance.protocols]",
        ),
        ("num.io.threads", 9, INVALID_REQUEST, "Unknown operations type 9"),
    ],
)
def test_a_broker_judges_the_operations_on_its_own_settings(
    cluster: OneNodeCluster, key: str, operation: int, error: ErrorCode, words: str
) -> None:
    """ConfigAdminManager.prepareIncrementalConfigs."""
    asked = resource(BROKER_RESOURCE, "1", (key, operation, "1"))
    assert altered(cluster, asked) == [(error, words)]


def test_a_controller_judges_the_operations_on_a_broker_s_settings_in_other_words(
    cluster: OneNodeCluster,
) -> None:
    """ConfigurationControlManager.incrementalAlterConfigResource."""
    asked = resource(BROKER_RESOURCE, "1", ("no.key", APPEND, "1"))
    words = "Can't APPEND to key no.key because its type is not LIST."
    assert altered(cluster, asked, is_direct=True) == [(INVALID_CONFIG, words)]


def test_a_value_that_grows_too_long_is_refused_for_that(cluster: OneNodeCluster) -> None:
    """ConfigurationControlManager.validateAlterConfig: before the value itself is looked at."""
    words = (
        "The configuration value cannot be added because it exceeds the maximum value size of "
        "32767 bytes."
    )
    asked = resource(TOPIC_RESOURCE, "t", ("cleanup.policy", APPEND, "x" * 32_767))
    assert altered(cluster, asked) == [(INVALID_CONFIG, words)]
    asked = resource(TOPIC_RESOURCE, "t", ("cleanup.policy", SET, "x" * 32_767))
    assert altered(cluster, asked)[0][1] != words
    asked = resource(TOPIC_RESOURCE, "t", ("cleanup.policy", SET, "\ufffd" * 12_000))
    assert altered(cluster, asked)[0][1] != words


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("0", 0),
        ("+7", 7),
        ("-7", -7),
        ("0000000000000007", 7),
        ("2147483647", (1 << 31) - 1),
        ("-2147483648", -1 << 31),
        ("2147483648", None),
        ("-2147483649", None),
        ("7 ", None),
        ("", None),
        ("+", None),
        ("one", None),
    ],
)
def test_a_node_s_number_is_read_as_by_java(name: str, number: int | None) -> None:
    assert node_number(name) == number


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("one", "Node id must be an integer, but it is: one"),
        ("9999999999", "Node id must be an integer, but it is: 9999999999"),
        ("+7", "Unexpected broker id, expected 1, but received +7"),
        ("007", "Unexpected broker id, expected 1, but received 007"),
        ("-1", "Unexpected broker id, expected 1, but received -1"),
    ],
)
def test_a_broker_refuses_the_settings_of_an_unknown_node(
    cluster: OneNodeCluster, name: str, words: str
) -> None:
    """ConfigAdminManager.validateResourceNameIsCurrentNodeId."""
    asked = resource(BROKER_RESOURCE, name, ("num.io.threads", SET, "8"))
    assert altered(cluster, asked) == [(INVALID_REQUEST, words)]
    assert foreign_broker_problem(cluster.loader.image, 1, name) == words


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("one", INVALID_REQUEST, "Unable to parse broker name as a base 10 number."),
        ("-7", INVALID_REQUEST, "Invalid negative broker ID."),
        ("+7", ErrorCode.BROKER_ID_NOT_REGISTERED, "No node with id 7 found."),
    ],
)
def test_a_controller_refuses_the_settings_of_an_unknown_node(
    cluster: OneNodeCluster, name: str, error: ErrorCode, words: str
) -> None:
    """ControllerConfigurationValidator and ConfigResourceExistenceChecker."""
    asked = resource(BROKER_RESOURCE, name, ("num.io.threads", SET, "8"))
    assert altered(cluster, asked, is_direct=True) == [(error, words)]


def test_a_controller_answers_a_repeated_resource_once(cluster: OneNodeCluster) -> None:
    asked = resource(TOPIC_RESOURCE, "t", ("retention.ms", SET, "5"))
    other = resource(BROKER_RESOURCE, "1", ("num.io.threads", SET, "8"))
    answers = altered(cluster, other, asked, asked, asked, is_direct=True)
    assert answers == [(INVALID_REQUEST, "Duplicate resource."), (ErrorCode.NONE, None)]
    once = replaced(cluster, TOPIC_RESOURCE, "t", times=3, is_direct=True)
    assert once == [(INVALID_REQUEST, "Duplicate resource.")]
    assert cluster.loader.image.config(TOPIC_RESOURCE, "t") == {}


def test_a_controller_takes_the_last_of_repeated_keys_and_null_for_none(
    cluster: OneNodeCluster,
) -> None:
    changes: tuple[tuple[str, int, str | None], ...] = (
        ("retention.ms", SET, "x"),
        ("retention.ms", SET, "5"),
        ("segment.bytes", SET, "2000000"),
    )
    fine = [(ErrorCode.NONE, None)]
    asked = resource(TOPIC_RESOURCE, "t", *changes)
    assert altered(cluster, asked, is_direct=True) == fine
    own = {"retention.ms": "5", "segment.bytes": "2000000"}
    assert cluster.loader.image.config(TOPIC_RESOURCE, "t") == own
    asked = resource(TOPIC_RESOURCE, "t", ("segment.bytes", SET, None))
    assert altered(cluster, asked, is_direct=True) == fine
    assert cluster.loader.image.config(TOPIC_RESOURCE, "t") == {"retention.ms": "5"}
    assert replaced(cluster, TOPIC_RESOURCE, "t", is_direct=True) == fine
    assert cluster.loader.image.config(TOPIC_RESOURCE, "t") == {}


@pytest.mark.parametrize("kind", [0, 55, -1])
def test_a_controller_names_the_version_as_what_lacks_a_type(
    cluster: OneNodeCluster, kind: int
) -> None:
    expected = [(ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource type {kind}.")]
    assert altered(cluster, resource(kind, "t"), is_direct=True) == expected
    assert replaced(cluster, kind, "t", is_direct=True) == expected


def test_a_controller_knows_log_levels_but_not_in_the_older_request(
    cluster: OneNodeCluster,
) -> None:
    words = "Unexpected resource type BROKER_LOGGER."
    assert replaced(cluster, LOGGERS, "1", is_direct=True) == [(INVALID_REQUEST, words)]


@pytest.mark.parametrize("operation", [APPEND, 9])
def test_a_broker_looks_at_the_type_before_the_operation(
    cluster: OneNodeCluster, operation: int
) -> None:
    """`ConfigAdminManager.preprocess` of 4.3.1, before anything is prepared."""
    asked = resource(3, "t", ("retention.ms", operation, "5"))
    assert altered(cluster, asked) == [(INVALID_REQUEST, "Unknown resource type 3")]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("one", "Node id must be an integer, but it is: one"),
        ("", "Node id must be an integer, but it is: "),
        ("+77", "Unexpected node id. Expected 1, but received 77"),
    ],
)
@pytest.mark.parametrize("is_direct", [False, True])
def test_log_levels_are_those_of_a_node(
    cluster: OneNodeCluster, name: str, words: str, is_direct: bool
) -> None:
    """`RuntimeLoggerManager.validateResourceNameIsNodeId`; a broker looks at the keys first."""
    asked = resource(LOGGERS, name, ("root", 9, None))
    nulls = (INVALID_REQUEST, "Null value not supported for : root")
    expected = [(INVALID_REQUEST, words)] if is_direct else [nulls]
    assert altered(cluster, asked, is_direct=is_direct) == expected
    asked = resource(LOGGERS, name, ("root", SET, "WARN"))
    assert altered(cluster, asked, is_direct=is_direct) == [(INVALID_REQUEST, words)]
