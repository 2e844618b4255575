"""What tests/controller/test_admin_answers.py does not show: own keys, secrets, and the bound."""

from types import SimpleNamespace

import pytest

from kraft_wire.broker.handlers import describe_configs
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.metadata.image import EMPTY_IMAGE, TOPIC_RESOURCE
from kraft_wire.metadata.loader import MetadataLoader
from kraft_wire.settings.definition import ConfigSource
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

BROKER = 4


def ask(
    request: DescribeConfigsRequest, file: dict[str, str], *dynamic: tuple[str, str, str]
) -> DescribeConfigsResponse:
    """Describe with a file and dynamic values: resource name, key, value."""
    records = [
        ConfigRecord(resource_type=BROKER, resource_name=name, name=key, value=value)
        for name, key, value in dynamic
    ]
    image = MetadataLoader(EMPTY_IMAGE).replay_batch(records, 0, 1) if records else EMPTY_IMAGE
    settings = NodeSettings(file).with_dynamic(image.config(BROKER, ""), image.config(BROKER, "1"))
    broker = SimpleNamespace(node_id=1, image=image, settings=BrokerSettings.of(settings))
    context = SimpleNamespace(api_version=4)
    return describe_configs.handle(broker, context, request)  # type: ignore[arg-type]  # stand-ins


def described(
    file: dict[str, str], *dynamic: tuple[str, str, str], name: str = "1"
) -> dict[str, DescribeConfigsResourceResult]:
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name=name)
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = ask(request, file, *dynamic).results
    assert result.error_code == ErrorCode.NONE, result
    return {each.name: each for each in result.configs}


def test_own_keys_are_listed_and_internal_ones_only_when_set() -> None:
    entries = described({"log.initial.task.delay.ms": "1"})
    assert entries["request.max.elements"].value == "200000"
    assert entries["request.max.elements"].read_only
    assert entries["log.initial.task.delay.ms"].value == "1"
    assert "unstable.api.versions.enable" not in entries


def test_listeners_are_described_as_they_were_when_the_broker_started() -> None:
    entries = described({"listeners": "PLAINTEXT://:1"}, ("1", "listeners", "PLAINTEXT://:2"))
    assert (entries["listeners"].value, entries["listeners"].read_only) == ("PLAINTEXT://:1", True)
    assert not entries["max.connections"].read_only


@pytest.mark.parametrize("name", ["1", ""])
def test_secret_and_value_of_unknown_meaning_are_hidden(name: str) -> None:
    dynamic = [
        (name, "listener.name.plaintext.ssl.keystore.password", "secret"),
        (name, "what.is.this", "perhaps-secret"),
    ]
    entries = described({}, *dynamic, name=name)
    for _, key, _ in dynamic:
        entry = entries[key]
        assert (entry.value, entry.is_sensitive) == (None, True)
        assert [each.value for each in entry.synonyms] == [None]
    assert entries["what.is.this"].read_only, "nothing here takes it"
    assert described({"ssl.key.password": "secret"})["ssl.key.password"].value is None


@pytest.mark.parametrize(
    ("places", "sources"),
    [
        (["1"], [ConfigSource.DYNAMIC_BROKER]),
        ([""], [ConfigSource.DYNAMIC_DEFAULT_BROKER]),
        (["", "1"], [ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER]),
    ],
)
@pytest.mark.parametrize("key", ["what.is.this", "log.cleaner.threads"])
def test_own_value_of_a_broker_is_before_that_of_all_brokers(
    key: str, places: list[str], sources: list[ConfigSource]
) -> None:
    """KIP-226, of a key that this release knows and of another one."""
    entry = described({}, *((place, key, "7") for place in places))[key]
    assert entry.config_source == sources[0]
    found = [each.source for each in entry.synonyms]
    assert found == [*sources, *([ConfigSource.DEFAULT] if key.startswith("log") else [])]


def test_value_that_this_release_cannot_read_is_shown_as_it_was_written() -> None:
    """Another release may have recorded the value. The broker itself uses its default."""
    dynamic = ("", "log.cleaner.threads", "many")
    assert described({}, dynamic, name="")["log.cleaner.threads"].value == "many"
    assert described({}, dynamic)["log.cleaner.threads"].value == "1"


def test_synonyms_are_shown_as_they_were_written() -> None:
    """ConfigHelper.configSynonyms of 4.3.1, and its entries of all brokers: the very texts."""
    policy, threads = "log.cleanup.policy", "log.cleaner.threads"
    dynamic = [("", threads, " 2 "), ("1", policy, "delete , compact")]
    entries = described({policy: "compact, delete"}, *dynamic)
    assert entries[policy].value == "delete,compact"
    shown = [each.value for each in entries[policy].synonyms]
    assert shown == ["delete , compact", "compact, delete", "delete"]
    assert entries[threads].value == "2"
    assert [each.value for each in entries[threads].synonyms] == [" 2 ", "1"]
    entry = described({}, *dynamic, name="")[threads]
    assert (entry.value, [each.value for each in entry.synonyms]) == (" 2 ", [" 2 "])


@pytest.mark.parametrize(("name", "is_own"), [("+1", True), ("01", True), ("4294967297", False)])
def test_the_number_of_a_broker_is_read_as_by_java(name: str, is_own: bool) -> None:
    """ConfigHelper.resourceNameToBrokerId of 4.3.1."""
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name=name)
    (result,) = ask(DescribeConfigsRequest(resources=[resource]), {}).results
    words = "" if is_own else f"Broker id must be an integer, but it is: {name}"
    assert (result.error_message, result.resource_name) == (words, name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("1", ""),
        ("+1", ""),
        ("0" * 5_000 + "1", ""),
        ("2147483647", "Unexpected broker id, expected 1 or empty string, but received {}"),
        ("-2147483648", "Unexpected broker id, expected 1 or empty string, but received {}"),
        ("2147483648", "Broker id must be an integer, but it is: {}"),
        ("--1", "Broker id must be an integer, but it is: {}"),
        ("+", "Broker id must be an integer, but it is: {}"),
        ("9" * 5_000, "Broker id must be an integer, but it is: {}"),
    ],
)
def test_id_of_a_broker_is_read_as_java_reads_a_number(name: str, message: str) -> None:
    """4.3.1's `ConfigHelper.resourceNameToBrokerId`; the settings are those of the broker."""
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name=name)
    own = ("1", "what.is.this", "7")
    (result,) = ask(DescribeConfigsRequest(resources=[resource]), {}, own).results
    assert result.error_message == message.format(name)[:4_000]
    assert result.resource_name == name
    if not message:
        assert "what.is.this" in [each.name for each in result.configs]


def test_log_levels_are_one_entry() -> None:
    resource = DescribeConfigsResource(resource_type=8, resource_name="1")
    (result,) = ask(DescribeConfigsRequest(resources=[resource]), {}).results
    assert [(each.name, each.value) for each in result.configs] == [("root", "INFO")]
    (root,) = result.configs
    assert (root.config_type, root.documentation) == (0, ""), "as 4.3.1, which sets neither"


def test_resources_beyond_the_bound_of_an_answer_are_refused() -> None:
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="1")
    request = DescribeConfigsRequest(resources=[resource] * 50_000)
    results = ask(request, {"request.max.elements": "1000"}).results
    assert len(results) == 50_000
    assert sum(len(each.configs) for each in results) < 1_500
    assert results[-1].error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("resource_type", [2, 4, 8])
def test_refusal_of_the_longest_name_fits_into_an_answer(resource_type: int) -> None:
    resource = DescribeConfigsResource(
        resource_type=resource_type, resource_name="é" * 16_000, configuration_keys=None
    )
    answer = ask(DescribeConfigsRequest(resources=[resource]), {})
    assert answer.results[0].error_code != ErrorCode.NONE
    assert len(answer.encode(4)) < 65_536


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (99, "no/name", ErrorCode.INVALID_REQUEST),
        (TOPIC_RESOURCE, "no/name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC_RESOURCE, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC_RESOURCE, "absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_errors_in_order(kind: int, name: str, error: ErrorCode) -> None:
    """No topic exists."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name)
    (result,) = ask(DescribeConfigsRequest(resources=[resource]), {}).results
    assert result.error_code == error


def test_unknown_type_fails_every_resource_of_the_request() -> None:
    """`ConfigHelper.handleDescribeConfigsRequest` throws at it before it describes anything."""
    known = DescribeConfigsResource(resource_type=BROKER, resource_name="1")
    unknown = DescribeConfigsResource(resource_type=99, resource_name="conform")
    answer = ask(DescribeConfigsRequest(resources=[known, unknown]), {})
    refused = ErrorCode.INVALID_REQUEST
    assert [each.error_code for each in answer.results] == [refused, refused]
    assert [each.configs for each in answer.results] == [[], []]
