"""IncrementalAlterConfigs, API key 44: settings are set, deleted, appended (KIP-339)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_CODE: Final = "responses[0].error_code"
_TOPIC: Final = 2
_BROKER: Final = 4
_SET: Final = 0
_DELETE: Final = 1
_APPEND: Final = 2
_SOURCE: Final = "org.apache.kafka.controller.ConfigurationControlManager"


def _alter(
    broker: Subject,
    version: int,
    name: str,
    key: str,
    operation: int,
    value: str | None = None,
    *,
    kind: int = _TOPIC,
) -> IncrementalAlterConfigsResponse:
    change = AlterableConfig(name=key, config_operation=operation, value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    return broker.ask(request, version, IncrementalAlterConfigsResponse)


@case("IncrementalAlterConfigs", "KIP-339")
def set_and_delete(broker: Subject, version: int) -> None:
    """A setting is set and deleted.

    Set retention.ms of a topic, then delete it.
    """
    name = broker.topic().name
    for operation, value in ((_SET, "1234"), (_DELETE, None)):
        answer = _alter(broker, version, name, "retention.ms", operation, value)
        expect.error(answer, _CODE, ErrorCode.NONE)


@case("IncrementalAlterConfigs", "KIP-339")
def append_to_a_list(broker: Subject, version: int) -> None:
    """A value is appended to a list.

    Append "compact" to cleanup.policy.
    """
    answer = _alter(broker, version, broker.topic().name, "cleanup.policy", _APPEND, "compact")
    expect.error(answer, _CODE, ErrorCode.NONE)


@case("IncrementalAlterConfigs", _SOURCE)
def append_to_a_number(broker: Subject, version: int) -> None:
    """Appending to a setting that is not a list is refused with INVALID_CONFIG.

    Append to retention.ms.
    """
    answer = _alter(broker, version, broker.topic().name, "retention.ms", _APPEND, "1")
    expect.error(answer, _CODE, ErrorCode.INVALID_CONFIG)


@case("IncrementalAlterConfigs", _SOURCE)
def value_of_the_wrong_type(broker: Subject, version: int) -> None:
    """A value of the wrong type is refused with INVALID_CONFIG.

    Set retention.ms to "soon".
    """
    answer = _alter(broker, version, broker.topic().name, "retention.ms", _SET, "soon")
    expect.error(answer, _CODE, ErrorCode.INVALID_CONFIG)


@case("IncrementalAlterConfigs", _SOURCE)
def unknown_setting(broker: Subject, version: int) -> None:
    """An unknown topic setting is refused with INVALID_CONFIG.

    Set no.such.setting.
    """
    answer = _alter(broker, version, broker.topic().name, "no.such.setting", _SET, "1")
    expect.error(answer, _CODE, ErrorCode.INVALID_CONFIG)


@case("IncrementalAlterConfigs", _SOURCE)
def unknown_topic(broker: Subject, version: int) -> None:
    """An unknown topic gets UNKNOWN_TOPIC_OR_PARTITION.

    Set retention.ms of a topic that does not exist.
    """
    answer = _alter(broker, version, broker.name("absent"), "retention.ms", _SET, "1")
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("IncrementalAlterConfigs", _SOURCE)
def unknown_resource_type(broker: Subject, version: int) -> None:
    """An unknown resource type is refused with INVALID_REQUEST.

    Set a setting of resource type 100.
    """
    answer = _alter(broker, version, "x", "retention.ms", _SET, "1", kind=100)
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)


def _validate(
    broker: Subject, version: int, name: str, key: str, value: str
) -> IncrementalAlterConfigsResponse:
    """Ask whether a setting of a broker may be set, without setting it."""
    change = AlterableConfig(name=key, config_operation=_SET, value=value)
    resource = AlterConfigsResource(resource_type=_BROKER, resource_name=name, configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
    return broker.ask(request, version, IncrementalAlterConfigsResponse)


@case("IncrementalAlterConfigs", "KIP-226")
def setting_of_the_broker(broker: Subject, version: int) -> None:
    """A broker has dynamic settings of its own.

    Validate log.retention.ms of the tested broker.
    """
    name = str(broker.target.node_id)
    answer = _validate(broker, version, name, "log.retention.ms", "1000")
    expect.error(answer, _CODE, ErrorCode.NONE)


@case("IncrementalAlterConfigs", "KIP-226")
def setting_of_one_broker_for_all(broker: Subject, version: int) -> None:
    """A setting of single brokers is refused for all brokers with INVALID_REQUEST.

    Validate ssl.keystore.location for all brokers.
    """
    answer = _validate(broker, version, "", "ssl.keystore.location", "/conform")
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)


@case("IncrementalAlterConfigs", _SOURCE)
def broker_that_is_no_number(broker: Subject, version: int) -> None:
    """A broker whose name is not a number is refused with INVALID_REQUEST.

    Validate log.retention.ms of the broker "one".
    """
    answer = _validate(broker, version, "one", "log.retention.ms", "1000")
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)
