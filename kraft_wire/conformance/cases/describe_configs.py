"""DescribeConfigs, API key 32: settings of topics and brokers, and where they come from."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_CODE: Final = "results[0].error_code"
_TOPIC: Final = 2
_BROKER: Final = 4
_MANAGER: Final = "kafka.server.ConfigHelper"
_OF_THE_TOPIC: Final = 1
_DEFAULT: Final = 5
_LONG: Final = 5


def _ask(
    broker: Subject, version: int, name: str, *keys: str, kind: int = _TOPIC
) -> DescribeConfigsResponse:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    return broker.ask(request, version, DescribeConfigsResponse)


@case("DescribeConfigs", "KIP-133")
def setting_of_a_topic(broker: Subject, version: int) -> None:
    """A setting of a topic is described with its value and its source.

    Create a topic with retention.ms=1234, describe that key.
    """
    topic = broker.topic(configs={"retention.ms": "1234"})
    answer = _ask(broker, version, topic.name, "retention.ms")
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, "results[0].configs[0].name", "retention.ms")
    expect.equal(answer, "results[0].configs[0].value", "1234")
    expect.equal(answer, "results[0].configs[0].config_source", _OF_THE_TOPIC)
    expect.true(len(answer.results[0].configs) == 1, "one setting", "more", "results[0].configs")


@case("DescribeConfigs", "KIP-226")
def default_of_a_topic(broker: Subject, version: int) -> None:
    """A setting that is not set is described with its default.

    Describe file.delete.delay.ms of a new topic: 60000.
    """
    answer = _ask(broker, version, broker.topic().name, "file.delete.delay.ms")
    expect.equal(answer, "results[0].configs[0].value", "60000")
    expect.equal(answer, "results[0].configs[0].config_source", _DEFAULT)


@case("DescribeConfigs", "KIP-226")
def synonyms(broker: Subject, version: int) -> None:
    """Synonyms list every source of a value, the effective one first.

    Create a topic with retention.ms=1234, describe it with synonyms.
    """
    topic = broker.topic(configs={"retention.ms": "1234"})
    answer = _ask(broker, version, topic.name, "retention.ms")
    expect.equal(answer, "results[0].configs[0].synonyms[0].name", "retention.ms")
    expect.equal(answer, "results[0].configs[0].synonyms[0].value", "1234")
    expect.equal(answer, "results[0].configs[0].synonyms[0].source", _OF_THE_TOPIC)


@case("DescribeConfigs", "KIP-569", since=3)
def type_of_a_setting(broker: Subject, version: int) -> None:
    """A setting is described with its type.

    Describe retention.ms: LONG.
    """
    answer = _ask(broker, version, broker.topic().name, "retention.ms")
    expect.equal(answer, "results[0].configs[0].config_type", _LONG)


@case("DescribeConfigs", "KIP-133")
def all_settings(broker: Subject, version: int) -> None:
    """A null list of keys returns every setting of a topic.

    Describe a topic: retention.ms, cleanup.policy and segment.bytes are among them.
    """
    answer = _ask(broker, version, broker.topic().name)
    names = {each.name for each in answer.results[0].configs}
    wanted = {"retention.ms", "cleanup.policy", "segment.bytes"}
    expect.true(wanted <= names, str(sorted(wanted)), sorted(names), "results[0].configs")
    internal = [name for name in sorted(names) if name.startswith("internal.")]
    expect.true(not internal, "no internal setting", internal, "results[0].configs")


@case("DescribeConfigs", "kafka.server.ConfigHelper, describeConfigs")
def unknown_topic(broker: Subject, version: int) -> None:
    """An unknown topic gets UNKNOWN_TOPIC_OR_PARTITION.

    Describe a topic that does not exist.
    """
    answer = _ask(broker, version, broker.name("absent"))
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("DescribeConfigs", "kafka.server.ConfigHelper, describeConfigs")
def invalid_topic_name(broker: Subject, version: int) -> None:
    """An invalid topic name gets INVALID_TOPIC_EXCEPTION.

    Describe "no/topic".
    """
    answer = _ask(broker, version, "no/topic")
    expect.error(answer, _CODE, ErrorCode.INVALID_TOPIC_EXCEPTION)


@case("DescribeConfigs", _MANAGER)
def unknown_resource_type(broker: Subject, version: int) -> None:
    """An unknown resource type is refused with INVALID_REQUEST.

    Describe a resource of type 99.
    """
    expect.error(_ask(broker, version, "conform", kind=99), _CODE, ErrorCode.INVALID_REQUEST)


@case("DescribeConfigs", _MANAGER)
def broker_that_is_no_number(broker: Subject, version: int) -> None:
    """A broker whose name is not a number is refused with INVALID_REQUEST.

    Describe the broker "one".
    """
    expect.error(_ask(broker, version, "one", kind=_BROKER), _CODE, ErrorCode.INVALID_REQUEST)


@case("DescribeConfigs", "KIP-569", since=3)
def documentation(broker: Subject, version: int) -> None:
    """A setting has documentation only if the request asks for it.

    Describe retention.ms with and without documentation.
    """
    name = broker.topic().name
    answer = _ask(broker, version, name, "retention.ms")
    expect.equal(answer, "results[0].configs[0].documentation", None)
    resource = DescribeConfigsResource(
        resource_type=_TOPIC, resource_name=name, configuration_keys=["retention.ms"]
    )
    request = DescribeConfigsRequest(resources=[resource], include_documentation=True)
    answer = broker.ask(request, version, DescribeConfigsResponse)
    path = "results[0].configs[0].documentation"
    expect.true(bool(expect.at(answer, path)), "a text", expect.at(answer, path), path)
