"""CreateTopics, API key 19: topics, their partitions and settings, and what is refused."""

from contextlib import suppress
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.verdict import NotSupported
from kraft_wire.model import ZERO_UUID
from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

_CODE: Final = "topics[0].error_code"
_DELETED_BY_NAME: Final = 5
"""The last version of DeleteTopics that knows topics by their names alone."""
_CONTROL: Final = "org.apache.kafka.controller.ReplicationControlManager, createTopics"
_NO_BROKER: Final = 123_456


def _topic(
    name: str, partitions: int = 1, replication_factor: int = 1, **configs: str
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def _create(
    broker: Subject, version: int, *topics: CreatableTopic, validate_only: bool = False
) -> CreateTopicsResponse:
    broker.made_topics += [] if validate_only else [each.name for each in topics]
    timeout_ms = int(broker.target.timeout_s * 1000)
    request = CreateTopicsRequest(
        topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only
    )
    return broker.ask(request, version, CreateTopicsResponse)


def _refused(broker: Subject, version: int, topic: CreatableTopic, code: ErrorCode) -> None:
    """State that a topic is refused. One that was made would disturb other rows: delete it."""
    answer = _create(broker, version, topic)
    if expect.at(answer, _CODE) == ErrorCode.NONE:
        request = DeleteTopicsRequest(topic_names=[topic.name], timeout_ms=5000)
        with suppress(NotSupported):
            broker.prepare(request, DeleteTopicsResponse, until=_DELETED_BY_NAME)
    expect.error(answer, _CODE, code)


def _exists(broker: Subject, name: str) -> bool:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    return broker.prepare(request, MetadataResponse).topics[0].error_code == 0


@case("CreateTopics", "KIP-4, CreateTopics")
def new_topic(broker: Subject, version: int) -> None:
    """A topic is created, and the response has its name without an error.

    Create a topic of two partitions.
    """
    name = broker.name()
    answer = _create(broker, version, _topic(name, 2))
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, "topics[0].name", name)


@case("CreateTopics", "KIP-525", since=5)
def what_was_created(broker: Subject, version: int) -> None:
    """The response has partitions, replication factor and settings of the new topic.

    Create a topic of two partitions with retention.ms=1000.
    """
    answer = _create(broker, version, _topic(broker.name(), 2, retention_ms="1000"))
    expect.equal(answer, "topics[0].num_partitions", 2)
    expect.equal(answer, "topics[0].replication_factor", 1)
    values = {each.name: each.value for each in answer.topics[0].configs or ()}
    seen = values.get("retention.ms")
    expect.true(seen == "1000", "retention.ms=1000", seen, "topics[0].configs")


@case("CreateTopics", "KIP-516, CreateTopics", since=7)
def topic_id(broker: Subject, version: int) -> None:
    """The response has the id of the new topic.

    Create a topic.
    """
    answer = _create(broker, version, _topic(broker.name()))
    seen = answer.topics[0].topic_id
    expect.true(seen != ZERO_UUID, "an id", seen, "topics[0].topic_id")


@case("CreateTopics", _CONTROL)
def existing_topic(broker: Subject, version: int) -> None:
    """A topic that exists is refused with TOPIC_ALREADY_EXISTS.

    Create a topic twice.
    """
    topic = _topic(broker.topic().name)
    _refused(broker, version, topic, ErrorCode.TOPIC_ALREADY_EXISTS)


@case("CreateTopics", _CONTROL)
def topic_named_twice(broker: Subject, version: int) -> None:
    """A topic that the request names twice is refused with INVALID_REQUEST.

    Create the same topic twice in one request.
    """
    name = broker.name()
    answer = _create(broker, version, _topic(name), _topic(name))
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)
    expect.true(len(answer.topics) == 1, "one result", len(answer.topics), "topics")


@case("CreateTopics", "org.apache.kafka.common.internals.Topic, validate")
def name_with_a_slash(broker: Subject, version: int) -> None:
    """A name with characters besides letters, digits, '.', '_' and '-' is refused.

    Create a topic whose name ends with "/": INVALID_TOPIC_EXCEPTION.
    """
    _refused(broker, version, _topic(f"{broker.name()}/"), ErrorCode.INVALID_TOPIC_EXCEPTION)


@case("CreateTopics", "org.apache.kafka.common.internals.Topic, validate")
def empty_name(broker: Subject, version: int) -> None:
    """An empty name is refused with INVALID_TOPIC_EXCEPTION.

    Create a topic without a name.
    """
    _refused(broker, version, _topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION)


@case("CreateTopics", "org.apache.kafka.common.internals.Topic, validate")
def name_of_250_characters(broker: Subject, version: int) -> None:
    """A name of more than 249 characters is refused with INVALID_TOPIC_EXCEPTION.

    Create a topic with a name of 250 characters.
    """
    _refused(
        broker, version, _topic(broker.name().ljust(250, "x")), ErrorCode.INVALID_TOPIC_EXCEPTION
    )


@case("CreateTopics", "org.apache.kafka.common.internals.Topic, hasCollision")
def name_that_collides(broker: Subject, version: int) -> None:
    """A name that differs from an existing one only in '.' and '_' is refused.

    Create "x.y" where "x_y" exists: INVALID_TOPIC_EXCEPTION.
    """
    stem = broker.name()
    expect.error(_create(broker, version, _topic(f"{stem}_y")), _CODE, ErrorCode.NONE)
    _refused(broker, version, _topic(f"{stem}.y"), ErrorCode.INVALID_TOPIC_EXCEPTION)


@case("CreateTopics", _CONTROL)
def no_partitions(broker: Subject, version: int) -> None:
    """Zero partitions are refused with INVALID_PARTITIONS.

    Create a topic of 0 partitions.
    """
    _refused(broker, version, _topic(broker.name(), 0), ErrorCode.INVALID_PARTITIONS)


@case("CreateTopics", _CONTROL)
def no_replicas(broker: Subject, version: int) -> None:
    """A replication factor of zero is refused with INVALID_REPLICATION_FACTOR.

    Create a topic with replication factor 0.
    """
    topic = _topic(broker.name(), 1, 0)
    _refused(broker, version, topic, ErrorCode.INVALID_REPLICATION_FACTOR)


@case("CreateTopics", _CONTROL)
def more_replicas_than_brokers(broker: Subject, version: int) -> None:
    """More replicas than brokers are refused with INVALID_REPLICATION_FACTOR.

    Create a topic with replication factor 1,000.
    """
    topic = _topic(broker.name(), 1, 1000)
    _refused(broker, version, topic, ErrorCode.INVALID_REPLICATION_FACTOR)


@case("CreateTopics", "KIP-464", since=4)
def defaults_of_the_broker(broker: Subject, version: int) -> None:
    """-1 partitions and replicas mean the broker's defaults.

    Create a topic with -1 and -1.
    """
    expect.error(_create(broker, version, _topic(broker.name(), -1, -1)), _CODE, ErrorCode.NONE)


@case("CreateTopics", _CONTROL)
def unknown_setting(broker: Subject, version: int) -> None:
    """An unknown topic setting is refused with INVALID_CONFIG.

    Create a topic with no.such.setting=1.
    """
    topic = _topic(broker.name(), no_such_setting="1")
    _refused(broker, version, topic, ErrorCode.INVALID_CONFIG)


@case("CreateTopics", _CONTROL)
def value_that_is_no_number(broker: Subject, version: int) -> None:
    """A value of the wrong type is refused with INVALID_CONFIG.

    Create a topic with retention.ms=soon.
    """
    topic = _topic(broker.name(), retention_ms="soon")
    _refused(broker, version, topic, ErrorCode.INVALID_CONFIG)


@case("CreateTopics", _CONTROL)
def assignment_to_an_unknown_broker(broker: Subject, version: int) -> None:
    """A replica on a broker that does not exist is refused with INVALID_REPLICA_ASSIGNMENT.

    Create a topic whose partition 0 is on broker 123456.
    """
    topic = _topic(broker.name(), -1, -1)
    topic.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=[_NO_BROKER])]
    _refused(broker, version, topic, ErrorCode.INVALID_REPLICA_ASSIGNMENT)


@case("CreateTopics", _CONTROL)
def assignment_and_counts(broker: Subject, version: int) -> None:
    """An assignment with a number of partitions is refused with INVALID_REQUEST.

    Create a topic with an assignment and three partitions.
    """
    topic = _topic(broker.name(), 3, -1)
    topic.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=[0])]
    _refused(broker, version, topic, ErrorCode.INVALID_REQUEST)


@case("CreateTopics", _CONTROL)
def assignment_with_a_gap(broker: Subject, version: int) -> None:
    """Assigned partitions are numbered from 0 without gaps: INVALID_REPLICA_ASSIGNMENT.

    Create a topic with an assignment of partition 1 only.
    """
    topic = _topic(broker.name(), -1, -1)
    node_id = max(broker.target.node_id, 0)
    topic.assignments = [CreatableReplicaAssignment(partition_index=1, broker_ids=[node_id])]
    _refused(broker, version, topic, ErrorCode.INVALID_REPLICA_ASSIGNMENT)


@case("CreateTopics", _CONTROL)
def assignment_named_twice(broker: Subject, version: int) -> None:
    """A partition that is assigned twice is refused with INVALID_REPLICA_ASSIGNMENT.

    Create a topic with two assignments of partition 0.
    """
    topic = _topic(broker.name(), -1, -1)
    node_id = max(broker.target.node_id, 0)
    topic.assignments = [
        CreatableReplicaAssignment(partition_index=0, broker_ids=[node_id]) for _ in range(2)
    ]
    _refused(broker, version, topic, ErrorCode.INVALID_REPLICA_ASSIGNMENT)


@case("CreateTopics", "KIP-4, CreateTopics")
def validation_only(broker: Subject, version: int) -> None:
    """validate_only checks a topic and creates nothing.

    Validate a valid topic: no error, and Metadata does not list it.
    """
    name = broker.name()
    answer = _create(broker, version, _topic(name), validate_only=True)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.true(not _exists(broker, name), "no topic", "a topic that exists")


@case("CreateTopics", "KIP-4, CreateTopics")
def one_of_two_is_refused(broker: Subject, version: int) -> None:
    """Topics of one request succeed and fail on their own.

    Create a valid topic and one of 0 partitions.
    """
    proper, wrong = broker.name(), broker.name()
    answer = _create(broker, version, _topic(proper), _topic(wrong, 0))
    codes = {each.name: each.error_code for each in answer.topics}
    wanted = {proper: int(ErrorCode.NONE), wrong: int(ErrorCode.INVALID_PARTITIONS)}
    expect.true(codes == wanted, str(wanted), codes, "topics")


@case("CreateTopics", _CONTROL)
def name_that_collides_by_an_underscore(broker: Subject, version: int) -> None:
    """Names that differ in a dot for an underscore collide: INVALID_TOPIC_EXCEPTION.

    Create a topic with an underscore, then the same name with a dot.
    """
    name = broker.topic(name=broker.name("with_mark")).name
    _refused(broker, version, _topic(name.replace("_", ".")), ErrorCode.INVALID_TOPIC_EXCEPTION)


@case("CreateTopics", _CONTROL)
def metadata_topic(broker: Subject, version: int) -> None:
    """The topic of the metadata log cannot be created: INVALID_REQUEST.

    Create __cluster_metadata, validated alone.
    """
    answer = _create(broker, version, _topic("__cluster_metadata"), validate_only=True)
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)


@case("CreateTopics", _CONTROL)
def negative_counts(broker: Subject, version: int) -> None:
    """Counts below -1 are refused as 0 is.

    Create topics with -2 partitions, and with a replication factor of -2.
    """
    counts = (
        (-2, 1, ErrorCode.INVALID_PARTITIONS),
        (1, -2, ErrorCode.INVALID_REPLICATION_FACTOR),
    )
    for partitions, replicas, code in counts:
        _refused(broker, version, _topic(broker.name(), partitions, replicas), code)


@case("CreateTopics", "KIP-525", since=5)
def settings_of_a_refused_topic(broker: Subject, version: int) -> None:
    """A topic that is refused has no counts and no settings.

    Create a topic that exists.
    """
    answer = _create(broker, version, _topic(broker.topic().name))
    expect.error(answer, _CODE, ErrorCode.TOPIC_ALREADY_EXISTS)
    expect.equal(answer, "topics[0].num_partitions", -1)
    expect.equal(answer, "topics[0].replication_factor", -1)
    seen = answer.topics[0].configs
    expect.true(not seen, "no settings", seen, "topics[0].configs")
    expect.as_release(seen == [], "an empty list", seen, "topics[0].configs")


@case("CreateTopics", "KIP-525", since=5)
def settings_of_a_validated_topic(broker: Subject, version: int) -> None:
    """A topic that is only validated is described as it would be created.

    Validate a topic of three partitions with cleanup.policy=compact.
    """
    topic = _topic(broker.name(), 3, cleanup_policy="compact")
    answer = _create(broker, version, topic, validate_only=True)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, "topics[0].num_partitions", 3)
    values = {each.name: each.value for each in answer.topics[0].configs or ()}
    seen = values.get("cleanup.policy")
    expect.true(seen == "compact", "cleanup.policy=compact", seen, "topics[0].configs")


@case("CreateTopics", _CONTROL)
def setting_without_a_value(broker: Subject, version: int) -> None:
    """A setting without a value is refused with INVALID_CONFIG.

    Create a topic with retention.ms=null.
    """
    topic = _topic(broker.name())
    topic.configs = [CreatableTopicConfig(name="retention.ms", value=None)]
    _refused(broker, version, topic, ErrorCode.INVALID_CONFIG)
