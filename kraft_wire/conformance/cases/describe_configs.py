"""DescribeConfigs, API key 32: settings of topics and brokers, and where they come from."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.verdict import NotSupported
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

_CODE: Final = "results[0].error_code"
_TOPIC: Final = 2
_BROKER: Final = 4
_LOGGER: Final = 8
_CLIENT_METRICS: Final = 16
_GROUP: Final = 32
_MANAGER: Final = "kafka.server.ConfigHelper"
_OF_THE_TOPIC: Final = 1
_DEFAULT: Final = 5
_LONG: Final = 5
_OF_THE_BROKER: Final = 2
_SET: Final = 0
_DELETE: Final = 1


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

    Describe a topic whose name ends with "/".
    """
    answer = _ask(broker, version, f"{broker.name()}/")
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


@case("DescribeConfigs", "KIP-226")
def synonyms_that_were_not_asked_for(broker: Subject, version: int) -> None:
    """A setting has no synonyms if the request does not ask for them.

    Create a topic with retention.ms=1234, describe it without synonyms.
    """
    topic = broker.topic(configs={"retention.ms": "1234"})
    resource = DescribeConfigsResource(
        resource_type=_TOPIC, resource_name=topic.name, configuration_keys=["retention.ms"]
    )
    request = DescribeConfigsRequest(resources=[resource])
    answer = broker.ask(request, version, DescribeConfigsResponse)
    expect.equal(answer, "results[0].configs[0].value", "1234")
    expect.equal(answer, "results[0].configs[0].synonyms", [])


@case("DescribeConfigs", _MANAGER)
def settings_by_name(broker: Subject, version: int) -> None:
    """Only the settings that are named are described; an unknown one is left out.

    Describe cleanup.policy, max.message.bytes and no.such.setting of a topic.
    """
    name = broker.topic().name
    answer = _ask(broker, version, name, "cleanup.policy", "max.message.bytes", "no.such.setting")
    names = sorted(each.name for each in answer.results[0].configs)
    wanted = ["cleanup.policy", "max.message.bytes"]
    expect.true(names == wanted, str(wanted), names, "results[0].configs")


def _codes(broker: Subject, version: int, names: list[tuple[int, str]]) -> dict[str, int]:
    """Describe resources in one request; return the errors by the names of the resources."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=["retention.ms"]
            )
            for kind, name in names
        ]
    )
    answer = broker.ask(request, version, DescribeConfigsResponse)
    return {each.resource_name: each.error_code for each in answer.results}


def _several(
    broker: Subject, version: int, names: list[tuple[int, str]], codes: list[ErrorCode]
) -> None:
    """State that the resources of one request get these errors."""
    found = _codes(broker, version, names)
    wanted = {name: int(code) for (_, name), code in zip(names, codes, strict=True)}
    expect.true(found == wanted, str(wanted), found, "results")


@case("DescribeConfigs", _MANAGER)
def several_resources(broker: Subject, version: int) -> None:
    """Resources of one request are described, and refused, on their own.

    Describe a topic, one that does not exist, and another broker.
    """
    names = [(_TOPIC, broker.topic().name), (_TOPIC, broker.name("absent")), (_BROKER, "9999999")]
    codes = [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    ]
    _several(broker, version, names, codes)


@case("DescribeConfigs", "kafka.server.ConfigHelper, handleDescribeConfigsRequest")
def unknown_type_beside_a_topic(broker: Subject, version: int) -> None:
    """An unknown resource type is INVALID_REQUEST; Apache Kafka fails all resources by that.

    Describe a topic, and a resource of type 99.
    """
    names = [(_TOPIC, broker.topic().name), (99, "conform")]
    found = _codes(broker, version, names)
    (_, topic), (_, unknown) = names
    code = int(ErrorCode.INVALID_REQUEST)
    expect.true(found.get(unknown) == code, "INVALID_REQUEST", found, "results")
    expect.as_release(found.get(topic) == code, "INVALID_REQUEST of both", found, "results")


@case("DescribeConfigs", "KIP-226")
def settings_of_the_broker(broker: Subject, version: int) -> None:
    """A setting of the broker that cannot change is read-only; a password has no value.

    Describe log.cleaner.threads, node.id and ssl.keystore.password of the tested broker.
    """
    name = str(broker.target.node_id)
    keys = ("log.cleaner.threads", "node.id", "ssl.keystore.password")
    answer = _ask(broker, version, name, *keys, kind=_BROKER)
    expect.error(answer, _CODE, ErrorCode.NONE)
    found = {each.name: each for each in answer.results[0].configs}
    expect.true(sorted(found) == sorted(keys), str(keys), sorted(found), "results[0].configs")
    fixed = [found[each].read_only for each in keys]
    expect.true(fixed == [False, True, False], "node.id", fixed, "results[0].configs")
    secret = found["ssl.keystore.password"]
    expect.true(secret.is_sensitive, "a sensitive setting", secret, "results[0].configs")
    expect.true(secret.value is None, "no value", secret.value, "results[0].configs")
    expect.true(found["node.id"].value == name, name, found["node.id"].value, "results[0].configs")


@case("DescribeConfigs", _MANAGER)
def another_broker(broker: Subject, version: int) -> None:
    """A broker describes no other broker: INVALID_REQUEST.

    Describe the broker 9999999.
    """
    answer = _ask(broker, version, "9999999", kind=_BROKER)
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)


@case("DescribeConfigs", "KIP-226")
def settings_of_all_brokers(broker: Subject, version: int) -> None:
    """The broker without a name stands for the settings of all brokers.

    Describe node.id of the broker "": it is not set for all brokers.
    """
    answer = _ask(broker, version, "", "node.id", kind=_BROKER)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, "results[0].configs", [])


@case("DescribeConfigs", "KIP-412")
def levels_of_loggers(broker: Subject, version: int) -> None:
    """The level of a logger is described; an empty name and another broker: INVALID_REQUEST.

    Describe the logger "root" of the tested broker, of "" and of the broker 9999999.
    """
    answer = _ask(broker, version, str(broker.target.node_id), "root", kind=_LOGGER)
    if expect.at(answer, _CODE) == ErrorCode.INVALID_REQUEST:
        raise NotSupported("the broker does not describe its loggers")
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, "results[0].configs[0].name", "root")
    seen = answer.results[0].configs[0].value
    expect.true(bool(seen), "a level", seen, "results[0].configs[0].value")
    for name in ("", "9999999"):
        answer = _ask(broker, version, name, "root", kind=_LOGGER)
        expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)


@case("DescribeConfigs", "KIP-848, Group configurations")
def settings_of_a_group(broker: Subject, version: int) -> None:
    """A group has settings of its own; a group without a name: INVALID_REQUEST.

    Describe consumer.session.timeout.ms of a new group, and of the group "".
    """
    group_id = broker.group()
    answer = _ask(broker, version, group_id, "consumer.session.timeout.ms", kind=_GROUP)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, "results[0].configs[0].name", "consumer.session.timeout.ms")
    answer = _ask(broker, version, "", kind=_GROUP)
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)


@case("DescribeConfigs", "KIP-714")
def subscription_to_metrics(broker: Subject, version: int) -> None:
    """A subscription to metrics has defaults; one without a name: INVALID_REQUEST.

    Describe a subscription that does not exist, and the one named "".
    """
    answer = _ask(broker, version, broker.name("metrics"), kind=_CLIENT_METRICS)
    expect.error(answer, _CODE, ErrorCode.NONE)
    names = sorted(each.name for each in answer.results[0].configs)
    wanted = ["interval.ms", "match", "metrics"]
    expect.true(names in (wanted, []), f"{wanted} or none", names, "results[0].configs")
    answer = _ask(broker, version, "", kind=_CLIENT_METRICS)
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)


def _change(broker: Subject, key: str, operation: int, value: str | None) -> None:
    """Set or delete a setting of the tested broker."""
    change = AlterableConfig(name=key, config_operation=operation, value=value)
    resource = AlterConfigsResource(
        resource_type=_BROKER, resource_name=str(broker.target.node_id), configs=[change]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = broker.prepare(request, IncrementalAlterConfigsResponse)
    expect.error(answer, "responses[0].error_code", ErrorCode.NONE)


def _await_setting(broker: Subject, name: str, key: str) -> None:
    """Wait until a broker has a setting; raises Mismatch."""
    resource = DescribeConfigsResource(
        resource_type=_BROKER, resource_name=name, configuration_keys=[key]
    )
    request = DescribeConfigsRequest(resources=[resource])
    for _ in broker.attempts(f"the setting {key}"):
        if broker.prepare(request, DescribeConfigsResponse).results[0].configs:
            return


@case("DescribeConfigs", "kafka.server.ConfigHelper, createBrokerConfigEntry")
def unknown_setting_of_the_broker(broker: Subject, version: int) -> None:
    """A setting of unknown meaning is sensitive: its value is not returned.

    Set conform.secret of the tested broker, describe it, delete it.
    """
    name, key = str(broker.target.node_id), broker.name("secret")
    _change(broker, key, _SET, "secret")
    try:
        _await_setting(broker, name, key)
        answer = _ask(broker, version, name, key, kind=_BROKER)
        expect.equal(answer, "results[0].configs[0].name", key)
        expect.equal(answer, "results[0].configs[0].value", None)
        expect.equal(answer, "results[0].configs[0].is_sensitive", True)
        expect.equal(answer, "results[0].configs[0].config_source", _OF_THE_BROKER)
    finally:
        _change(broker, key, _DELETE, None)
