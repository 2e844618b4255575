"""Administers topics over one connection, for the `topics` verbs, with plain values.

Every call is one or two requests; an answer with an error becomes `AdminRefused`, which names the
topic, the error and the broker's own words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kraft_wire.client import BrokerConnection, BrokerConnectionError
from kraft_wire.client.refused import AdminRefused
from kraft_wire.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from kraft_wire.model import ZERO_UUID, Uuid, uuid_to_text
from kraft_wire.settings.definition import ConfigSource
from kraft_wire.wire.generated.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

__all__ = [
    "AdminRefused",
    "ConfigFacts",
    "CreatedTopic",
    "TopicFacts",
    "add_partitions",
    "alter_configs",
    "create_topic",
    "delete_topics",
    "describe_configs",
    "id_text",
    "topics",
]

T = TypeVar("T")

_SET, _DELETE = 0, 1
_TIMEOUT_MS = 30_000
_NAMES_ONLY_BELOW = 6
"""First DeleteTopics version with one struct for each topic."""


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """One topic as Metadata shows it."""

    name: str
    topic_id: str | None
    internal: bool
    partitions_count: int
    replication_factor: int
    """Replicas of the first partition, 0 without partitions."""


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """The result of a creation; None if the broker's version does not report it.

    It is not requested again: another broker may learn of the topic only a moment later.
    """

    name: str
    topic_id: str | None
    partitions_count: int | None
    replication_factor: int | None


@dataclass(frozen=True, slots=True)
class ConfigFacts:
    """One setting of a topic."""

    name: str
    value: str | None
    source: str
    documentation: str | None


def topics(connection: BrokerConnection, names: Sequence[str] | None = None) -> list[TopicFacts]:
    """Return the named topics, or all of them, in name order."""
    asked = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
    answer = connection.send(request, MetadataResponse)
    for topic in answer.topics:
        if topic.error_code:
            raise AdminRefused(f"topic {topic.name}", topic.error_code, None)
    return sorted(map(_facts, answer.topics), key=lambda topic: topic.name)


def create_topic(
    connection: BrokerConnection,
    name: str,
    partitions: int,
    replication_factor: int,
    configs: Mapping[str, str],
    assignment: Sequence[list[int]] = (),
) -> CreatedTopic:
    """Create a topic, by counts or by the brokers of each partition; return the result."""
    assert not assignment or (partitions, replication_factor) == (-1, -1), assignment
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=brokers)
            for partition, brokers in enumerate(assignment)
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS)
    result = _first(connection.send(request, CreateTopicsResponse).topics, name)
    if result.error_code:
        raise AdminRefused(f"topic {name}", result.error_code, result.error_message)
    return CreatedTopic(
        name=name,
        topic_id=id_text(result.topic_id),
        partitions_count=result.num_partitions if result.num_partitions > 0 else None,
        replication_factor=result.replication_factor if result.replication_factor > 0 else None,
    )


def delete_topics(connection: BrokerConnection, names: Sequence[str]) -> list[AdminRefused]:
    """Delete topics and return the refusals."""
    request = DeleteTopicsRequest(timeout_ms=_TIMEOUT_MS)
    if connection.version_of(request) < _NAMES_ONLY_BELOW:
        request.topic_names = list(names)
    else:
        request.topics = [DeleteTopicState(name=name) for name in names]
    answer = connection.send(request, DeleteTopicsResponse)
    return [
        AdminRefused(f"topic {result.name}", result.error_code, result.error_message)
        for result in answer.responses
        if result.error_code
    ]


def describe_configs(
    connection: BrokerConnection, name: str, resource_type: int = TOPIC_RESOURCE
) -> list[ConfigFacts]:
    """Return every setting of a topic or another resource, in name order."""
    resource = DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource])
    if connection.version_of(request) >= 3:
        request.include_documentation = True
    result = _first(connection.send(request, DescribeConfigsResponse).results, name)
    if result.error_code:
        raise AdminRefused(
            _resource_text(resource_type, name), result.error_code, result.error_message
        )
    return sorted(
        (
            ConfigFacts(each.name, each.value, _source_name(each.config_source), each.documentation)
            for each in result.configs
        ),
        key=lambda config: config.name,
    )


def alter_configs(
    connection: BrokerConnection,
    name: str,
    values: Mapping[str, str],
    removed: Sequence[str],
    resource_type: int = TOPIC_RESOURCE,
) -> None:
    """Set and remove settings of a topic or another resource."""
    changes = [
        AlterableConfig(name=key, config_operation=_SET, value=value)
        for key, value in values.items()
    ]
    changes += [AlterableConfig(name=key, config_operation=_DELETE, value=None) for key in removed]
    resource = AlterConfigsResource(
        resource_type=resource_type, resource_name=name, configs=changes
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    for result in connection.send(request, IncrementalAlterConfigsResponse).responses:
        if result.error_code:
            raise AdminRefused(
                _resource_text(resource_type, name), result.error_code, result.error_message
            )


def add_partitions(
    connection: BrokerConnection,
    name: str,
    partitions: int,
    assignment: Sequence[list[int]] = (),
    *,
    validate_only: bool = False,
) -> None:
    """Bring a topic to a number of partitions, the new ones on the brokers of `assignment`."""
    new = [CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignment]
    topic = CreatePartitionsTopic(name=name, count=partitions, assignments=new or None)
    request = CreatePartitionsRequest(
        topics=[topic], timeout_ms=_TIMEOUT_MS, validate_only=validate_only
    )
    result = _first(connection.send(request, CreatePartitionsResponse).results, name)
    if result.error_code:
        raise AdminRefused(f"topic {name}", result.error_code, result.error_message)


def id_text(topic_id: Uuid) -> str | None:
    """Return an id in Kafka's 22 characters; None for the zero id."""
    return None if topic_id == ZERO_UUID else uuid_to_text(topic_id)


def _first(found: Sequence[T], topic: str) -> T:
    """Return the one requested result. Errors: BrokerConnectionError without a result."""
    if not found:
        raise BrokerConnectionError(f"the broker's response lacks topic {topic}")
    return found[0]


def _resource_text(resource_type: int, name: str) -> str:
    if resource_type == BROKER_RESOURCE:
        return f"broker {name}" if name else "all brokers"
    return f"{'topic' if resource_type == TOPIC_RESOURCE else 'group'} {name}"


def _facts(topic: MetadataResponseTopic) -> TopicFacts:
    first = topic.partitions[0].replica_nodes if topic.partitions else ()
    return TopicFacts(
        name=topic.name or "",
        topic_id=id_text(topic.topic_id),
        internal=topic.is_internal,
        partitions_count=len(topic.partitions),
        replication_factor=len(first),
    )


def _source_name(source: int) -> str:
    try:
        return ConfigSource(source).name.lower().replace("_", " ")
    except ValueError:
        return f"source {source}"
