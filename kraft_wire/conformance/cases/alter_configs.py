"""AlterConfigs, API key 33: all settings of a topic at once (KIP-133)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
)
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_SOURCE: Final = "org.apache.kafka.controller.ConfigurationControlManager, legacyAlterConfigs"
_TOPIC: Final = 2
_CODE: Final = "responses[0].error_code"
_OF_TOPIC: Final = 1


def _alter(
    broker: Subject,
    version: int,
    topic: str,
    configs: list[tuple[str, str | None]],
    *,
    validate_only: bool = False,
    resource_type: int = _TOPIC,
) -> AlterConfigsResponse:
    resource = AlterConfigsResource(
        resource_type=resource_type,
        resource_name=topic,
        configs=[AlterableConfig(name=name, value=value) for name, value in configs],
    )
    request = AlterConfigsRequest(resources=[resource], validate_only=validate_only)
    return broker.ask(request, version, AlterConfigsResponse)


def _own(broker: Subject, topic: str) -> dict[str, str | None]:
    """Return the settings that the topic itself has."""
    resource = DescribeConfigsResource(
        resource_type=_TOPIC, resource_name=topic, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource])
    answer = broker.prepare(request, DescribeConfigsResponse)
    found = answer.results[0].configs
    return {each.name: each.value for each in found if each.config_source == _OF_TOPIC}


def _become(broker: Subject, topic: str, wanted: dict[str, str | None]) -> None:
    for _ in broker.attempts(f"the settings {wanted}"):
        if _own(broker, topic) == wanted:
            return


@case("AlterConfigs", "KIP-133")
def what_is_not_named_is_removed(broker: Subject, version: int) -> None:
    """The settings of a request replace all settings of a topic.

    Create a topic with a retention, set its segment size, describe it.
    """
    topic = broker.topic(configs={"retention.ms": "1000000"})
    answer = _alter(broker, version, topic.name, [("segment.bytes", "2000000")])
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, "responses[0].resource_type", _TOPIC)
    expect.equal(answer, "responses[0].resource_name", topic.name)
    _become(broker, topic.name, {"segment.bytes": "2000000"})


@case("AlterConfigs", "KIP-133")
def validation_only(broker: Subject, version: int) -> None:
    """validate_only checks settings and changes nothing.

    Validate a segment size, describe the topic; validate a wrong one.
    """
    topic = broker.topic(configs={"retention.ms": "1000000"})
    configs: list[tuple[str, str | None]] = [("segment.bytes", "2000000")]
    answer = _alter(broker, version, topic.name, configs, validate_only=True)
    expect.error(answer, _CODE, ErrorCode.NONE)
    wanted = {"retention.ms": "1000000"}
    found = _own(broker, topic.name)
    expect.true(found == wanted, str(wanted), found)
    configs = [("segment.bytes", "many")]
    answer = _alter(broker, version, topic.name, configs, validate_only=True)
    expect.error(answer, _CODE, ErrorCode.INVALID_CONFIG)


@case("AlterConfigs", _SOURCE)
def unknown_setting(broker: Subject, version: int) -> None:
    """An unknown topic setting is refused with INVALID_CONFIG.

    Set "no.such.setting".
    """
    answer = _alter(broker, version, broker.topic().name, [("no.such.setting", "1")])
    expect.error(answer, _CODE, ErrorCode.INVALID_CONFIG)


@case("AlterConfigs", _SOURCE)
def null_value(broker: Subject, version: int) -> None:
    """A null value is refused.

    Set a segment size of null.
    """
    answer = _alter(broker, version, broker.topic().name, [("segment.bytes", None)])
    found = expect.at(answer, _CODE)
    expect.true(found != ErrorCode.NONE, "an error", found, _CODE)


@case("AlterConfigs", _SOURCE)
def unknown_topic(broker: Subject, version: int) -> None:
    """A topic that does not exist is UNKNOWN_TOPIC_OR_PARTITION.

    Set a setting of a new name.
    """
    answer = _alter(broker, version, broker.name(), [("segment.bytes", "2000000")])
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("AlterConfigs", _SOURCE)
def unknown_type(broker: Subject, version: int) -> None:
    """An unknown resource type is refused with INVALID_REQUEST.

    Set a setting of type 99.
    """
    answer = _alter(broker, version, "x", [("a", "b")], resource_type=99)
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)
