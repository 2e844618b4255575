"""IncrementalAlterConfigs, API key 44: settings are set, deleted, appended (KIP-339)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import Listener, case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
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
_SUBTRACT: Final = 3
_CLIENT_METRICS: Final = 16
_GROUP: Final = 32
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


@case("IncrementalAlterConfigs", "KIP-1066")
def cordoned_directory_that_is_missing(broker: Subject, version: int) -> None:
    """A broker refuses to cordon a log directory that it does not have with INVALID_REQUEST.

    Validate cordoned.log.dirs of the tested broker.
    """
    name = str(broker.target.node_id)
    answer = _validate(broker, version, name, "cordoned.log.dirs", "/conform")
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)


@case("IncrementalAlterConfigs", "KIP-1066")
def cordoned_directories_of_all_brokers(broker: Subject, version: int) -> None:
    """Log directories are cordoned for single brokers only, else INVALID_REQUEST.

    Validate cordoned.log.dirs for all brokers.
    """
    answer = _validate(broker, version, "", "cordoned.log.dirs", "*")
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)


def _await_value(broker: Subject, name: str, key: str, wanted: str) -> None:
    """Wait until a topic's setting has a value; raises Mismatch."""
    resource = DescribeConfigsResource(
        resource_type=_TOPIC, resource_name=name, configuration_keys=[key]
    )
    for _ in broker.attempts(f"{key}={wanted}"):
        answer = broker.prepare(
            DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse
        )
        if answer.results[0].configs[0].value == wanted:
            return


@case("IncrementalAlterConfigs", "KIP-339")
def lists_are_changed(broker: Subject, version: int) -> None:
    """Values are appended to a list once, and subtracted from it.

    Append "compact" to cleanup.policy twice, subtract "delete", describe it each time.
    """
    name, key = broker.topic(configs={"cleanup.policy": "delete"}).name, "cleanup.policy"
    steps = ((_APPEND, "compact", "delete,compact"), (_APPEND, "compact", "delete,compact"))
    for operation, value, wanted in (*steps, (_SUBTRACT, "delete", "compact")):
        answer = _alter(broker, version, name, key, operation, value)
        expect.error(answer, _CODE, ErrorCode.NONE)
        _await_value(broker, name, key, wanted)


@case("IncrementalAlterConfigs", _SOURCE)
def null_value(broker: Subject, version: int) -> None:
    """A setting cannot be set to null: INVALID_REQUEST.

    Set retention.ms to null.
    """
    answer = _alter(broker, version, broker.topic().name, "retention.ms", _SET, None)
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)


@case("IncrementalAlterConfigs", _SOURCE)
def setting_named_twice(broker: Subject, version: int) -> None:
    """A setting that is named twice for a resource is refused with INVALID_REQUEST.

    Set retention.ms of a topic twice in one request.
    """
    changes = [
        AlterableConfig(name="retention.ms", config_operation=_SET, value=each)
        for each in ("1000", "2000")
    ]
    name = broker.topic().name
    resource = AlterConfigsResource(resource_type=_TOPIC, resource_name=name, configs=changes)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = broker.ask(request, version, IncrementalAlterConfigsResponse)
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)


@case("IncrementalAlterConfigs", _SOURCE)
def validation_alone(broker: Subject, version: int) -> None:
    """A request that only validates changes nothing; the error is that of the change.

    Validate retention.ms=1234 and retention.ms=soon, then set retention.bytes: only that is set.
    """
    name = broker.topic(configs={"retention.ms": "99"}).name
    for value, code in (("1234", ErrorCode.NONE), ("soon", ErrorCode.INVALID_CONFIG)):
        change = AlterableConfig(name="retention.ms", config_operation=_SET, value=value)
        resource = AlterConfigsResource(resource_type=_TOPIC, resource_name=name, configs=[change])
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
        answer = broker.ask(request, version, IncrementalAlterConfigsResponse)
        expect.error(answer, _CODE, code)
    answer = _alter(broker, version, name, "retention.bytes", _SET, "77")
    expect.error(answer, _CODE, ErrorCode.NONE)
    _await_value(broker, name, "retention.bytes", "77")
    _await_value(broker, name, "retention.ms", "99")


@case("IncrementalAlterConfigs", _SOURCE)
def resources_on_their_own(broker: Subject, version: int) -> None:
    """Resources of one request succeed and fail on their own.

    Set retention.ms of a topic, and of one that does not exist.
    """
    present, absent = broker.topic().name, broker.name("absent")
    change = AlterableConfig(name="retention.ms", config_operation=_SET, value="1234")
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(resource_type=_TOPIC, resource_name=each, configs=[change])
            for each in (absent, present)
        ]
    )
    answer = broker.ask(request, version, IncrementalAlterConfigsResponse)
    codes = {each.resource_name: each.error_code for each in answer.responses}
    wanted = {present: 0, absent: int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
    expect.true(codes == wanted, str(wanted), codes, "responses")
    _await_value(broker, present, "retention.ms", "1234")


@case("IncrementalAlterConfigs", "KIP-848, Group configurations")
def settings_of_a_group(broker: Subject, version: int) -> None:
    """A group's setting has the broker's bounds: INVALID_CONFIG outside of them.

    Set consumer.session.timeout.ms of a group to 50000 and to 1, and delete it.
    """
    group_id, key = broker.group(), "consumer.session.timeout.ms"
    for operation, value, code in (
        (_SET, "50000", ErrorCode.NONE),
        (_SET, "1", ErrorCode.INVALID_CONFIG),
        (_DELETE, None, ErrorCode.NONE),
    ):
        answer = _alter(broker, version, group_id, key, operation, value, kind=_GROUP)
        expect.error(answer, _CODE, code)


@case("IncrementalAlterConfigs", "KIP-919", listener=Listener.CONTROLLER)
def brokers_that_a_controller_does_not_know(controller: Subject, version: int) -> None:
    """A controller takes the settings of brokers that are registered, named by their number.

    Set log.cleaner.threads of the brokers x, -1 and 2147483647.
    """
    for name, code in (
        ("x", ErrorCode.INVALID_REQUEST),
        ("-1", ErrorCode.INVALID_REQUEST),
        ("2147483647", ErrorCode.BROKER_ID_NOT_REGISTERED),
    ):
        answer = _alter(controller, version, name, "log.cleaner.threads", _SET, "2", kind=_BROKER)
        expect.error(answer, _CODE, code)


@case("IncrementalAlterConfigs", _SOURCE)
def unknown_operation(broker: Subject, version: int) -> None:
    """An operation other than the four is refused; Apache Kafka fails over it.

    Change retention.ms with operation 9.
    """
    answer = _alter(broker, version, broker.topic().name, "retention.ms", 9, "1234")
    code = expect.at(answer, _CODE)
    expect.true(code != ErrorCode.NONE, "an error", code, _CODE)


@case("IncrementalAlterConfigs", "KIP-714, Client metrics configuration")
def settings_of_client_metrics(broker: Subject, version: int) -> None:
    """A subscription of client metrics has settings of its own, each checked: INVALID_REQUEST.

    Set interval.ms to 99 and to 100, match to a selector that does not exist and to one that does,
    metrics to a name, an unknown key, and delete all.
    """
    name = broker.name("metrics")
    known = ("interval.ms", "match", "metrics")
    for key, operation, value, code in (
        ("interval.ms", _SET, "99", ErrorCode.INVALID_REQUEST),
        ("interval.ms", _SET, "100", ErrorCode.NONE),
        ("interval.ms", _SET, "3600001", ErrorCode.INVALID_REQUEST),
        ("interval.ms", _SET, "soon", ErrorCode.INVALID_CONFIG),
        ("match", _SET, "made.up=conform", ErrorCode.INVALID_CONFIG),
        ("match", _SET, "client_id=[", ErrorCode.INVALID_CONFIG),
        ("match", _SET, "client_id", ErrorCode.INVALID_CONFIG),
        ("match", _SET, "client_id=conform.*", ErrorCode.NONE),
        ("metrics", _SET, "org.apache.kafka.conform", ErrorCode.NONE),
        ("made.up", _SET, "1", ErrorCode.INVALID_REQUEST),
        *((key, _DELETE, None, ErrorCode.NONE) for key in known),
    ):
        answer = _alter(broker, version, name, key, operation, value, kind=_CLIENT_METRICS)
        expect.error(answer, _CODE, code)
    answer = _alter(broker, version, "", "interval.ms", _SET, "100", kind=_CLIENT_METRICS)
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)


@case("IncrementalAlterConfigs", "KIP-848, Group configurations")
def wrong_settings_of_a_group(broker: Subject, version: int) -> None:
    """A group has only settings of groups, and its session is longer than its heartbeat interval.

    Set an unknown key, a setting of topics, session times outside of the broker's bounds, a value
    other than a number, more standby replicas than the broker allows.
    """
    group_id = broker.group()
    for key, value in (
        ("made.up", "1"),
        ("retention.ms", "1"),
        ("consumer.heartbeat.interval.ms", "soon"),
        ("consumer.heartbeat.interval.ms", "1"),
        ("consumer.session.timeout.ms", "999999999"),
        ("share.auto.offset.reset", "made-up"),
        ("share.record.lock.duration.ms", "1"),
        ("streams.num.standby.replicas", "99"),
        ("streams.session.timeout.ms", "1"),
    ):
        answer = _alter(broker, version, group_id, key, _SET, value, kind=_GROUP)
        expect.error(answer, _CODE, ErrorCode.INVALID_CONFIG)
