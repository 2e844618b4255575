"""IncrementalAlterConfigs: settings of brokers and of subscriptions to client metrics."""

from time import process_time

import pytest

from kraft_wire.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.settings.broker import FIXED_WHILE_RUNNING
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.controller.cluster import OneNodeCluster


@pytest.mark.parametrize(("node_id", "error"), [("1", 0), ("2", 0), ("3", 42), ("-1", 42)])
def test_settings_of_every_registered_node_are_taken(node_id: str, error: int) -> None:
    cluster = OneNodeCluster(brokers=2)
    config = AlterableConfig(name="log.cleaner.threads", config_operation=0, value="2")
    resource = AlterConfigsResource(resource_type=4, resource_name=node_id, configs=[config])
    response = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == error


@pytest.mark.parametrize(
    ("name", "error"), [("x" * 32_767, 0), ("x" * 32_766 + "\u00e9", 42), ("\ufffd" * 12_000, 42)]
)
def test_a_name_fits_into_a_record_or_is_refused_alone(name: str, error: int) -> None:
    """A record's string has 32,767 bytes at most; one invalid byte became a character of three."""
    cluster = OneNodeCluster()
    resources = [
        AlterConfigsResource(
            resource_type=GROUP_RESOURCE,
            resource_name=each,
            configs=[
                AlterableConfig(
                    name="consumer.session.timeout.ms", config_operation=0, value="50000"
                )
            ],
        )
        for each in (name, "g")
    ]
    response = cluster.ask(IncrementalAlterConfigsRequest(resources=resources), 1)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    assert [each.error_code for each in response.responses] == [error, 0]
    assert bool(cluster.loader.image.config(GROUP_RESOURCE, name)) == (not error)
    assert cluster.loader.image.config(GROUP_RESOURCE, "g")


LOGIN_ENTRY = "listener.name.secure.plain.sasl.jaas.config"


@pytest.mark.parametrize("key", [*sorted(FIXED_WHILE_RUNNING), "sasl.jaas.config", LOGIN_ENTRY])
def test_what_a_broker_reads_at_its_start_alone_is_not_recorded_but_may_be_taken_away(
    key: str,
) -> None:
    """SEC-PLAIN-09: 4.3.1 records a listener's login entry, which has no effect."""
    cluster = OneNodeCluster()

    def answer(*changes: AlterableConfig) -> tuple[int, str | None]:
        resource = AlterConfigsResource(
            resource_type=BROKER_RESOURCE, resource_name="1", configs=list(changes)
        )
        response = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert isinstance(response, IncrementalAlterConfigsResponse)
        return response.responses[0].error_code, response.responses[0].error_message

    recorded_by_apache = ConfigRecord(
        resource_type=BROKER_RESOURCE, resource_name="1", name=key, value="PLAINTEXT:PLAINTEXT"
    )
    cluster.commit([VersionedRecord(recorded_by_apache)])
    words = f"{key} cannot be changed while the broker runs: change its file, restart"
    change = AlterableConfig(name=key, config_operation=0, value="PLAINTEXT:PLAINTEXT")
    assert answer(change) == (ErrorCode.INVALID_REQUEST, words)
    other = AlterableConfig(name="log.cleaner.threads", config_operation=0, value="2")
    assert answer(other) == (ErrorCode.NONE, None), "what is recorded is in nobody's way"
    assert answer(AlterableConfig(name=key, config_operation=1)) == (ErrorCode.NONE, None)
    assert cluster.loader.image.config(BROKER_RESOURCE, "1") == {"log.cleaner.threads": "2"}


PATTERNS = [
    ("client_id=app-[0-9]+", True),
    ("client_software_name = apache.*", True),
    ("client_id=a|b=", True),
    ("client_id=[é-ü]+[a-\\u00ff]", True),
    ("client_id", False),
    ("client_id=", False),
    ("client_id=a=b", False),
    ("client=a", False),
    ("client_id=(", False),
    ("client_id=a{99999999999999999999}", False),
    ("client_id=" + "(" * 3_000 + ")" * 3_000, False),
    ("client_id=(?a)(?u)x", False),
    ("client_id=\\U0010ffff", False),
]
"""Whether 4.3.1 takes them: of expressions Java 17's own Pattern was asked."""


@pytest.mark.parametrize(("pattern", "is_taken"), PATTERNS, ids=[row[0][:20] for row in PATTERNS])
def test_pattern_of_a_subscription_is_taken_or_refused_whatever_it_says(
    pattern: str, is_taken: bool
) -> None:
    cluster = OneNodeCluster()
    match = AlterableConfig(name="match", config_operation=0, value=pattern)
    resource = AlterConfigsResource(resource_type=16, resource_name="mine", configs=[match])
    response = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    error = ErrorCode.NONE if is_taken else ErrorCode.INVALID_CONFIG
    assert response.responses[0].error_code == error


def test_pattern_of_far_reaching_classes_is_checked_in_the_time_of_any_other() -> None:
    cluster = OneNodeCluster()
    match = AlterableConfig(
        name="match", config_operation=0, value="client_id=" + "[^\0-\U0010ffff]" * 3_000
    )
    resource = AlterConfigsResource(resource_type=16, resource_name="mine", configs=[match])
    began_s = process_time()
    cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert process_time() - began_s < 2, "Python takes 12 seconds to compile it as it is"
    assert cluster.loader.image.config(16, "mine") == {"match": match.value}


@pytest.mark.parametrize(
    ("name", "key", "value", "words"),
    [
        ("", "node.id", "2", "Cannot update these configs dynamically: [node.id]"),
        ("", "listeners", "A://:1", "broker id must be specified: [listeners]"),
        ("1", "log.cleaner.threads", "x", "Invalid value x"),
        ("", "log.cleaner.threads", "2", ""),
        ("1", "nobody.knows.it", "2", ""),
    ],
)
def test_setting_of_brokers_is_refused_where_it_cannot_be_one(
    name: str, key: str, value: str, words: str
) -> None:
    """KIP-226: read at the start alone, of one broker's listeners for all, of another type."""
    cluster = OneNodeCluster()
    change = AlterableConfig(name=key, config_operation=0, value=value)
    resource = AlterConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name=name, configs=[change]
    )
    response = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    answer = response.responses[0]
    assert (answer.error_code == ErrorCode.NONE) == (words == "")
    assert words in (answer.error_message or "")
    assert bool(cluster.loader.image.config(BROKER_RESOURCE, name)) == (words == "")


@pytest.mark.parametrize(
    ("name", "value", "times", "error"),
    [
        ("no/name", "x", 2, ErrorCode.INVALID_REQUEST),
        ("no/name", None, 1, ErrorCode.INVALID_REQUEST),
        ("absent", "x", 1, ErrorCode.INVALID_CONFIG),
        ("no/name", "5", 1, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("absent", "5", 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_errors_in_order(name: str, value: str | None, times: int, error: ErrorCode) -> None:
    config = AlterableConfig(name="retention.ms", config_operation=0, value=value)
    resource = AlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=name, configs=[config]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource] * times)
    response = OneNodeCluster().ask(request, 1)
    assert isinstance(response, IncrementalAlterConfigsResponse)
    assert {each.error_code for each in response.responses} == {error}
