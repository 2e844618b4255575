"""Drawn requests about topics: creation, growth and deletion, settings, Metadata."""

from kraft_wire.conformance.drawn.scene import MISSING, Scene
from kraft_wire.wire.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataRequestTopic

__all__ = [
    "create_partitions",
    "create_topics",
    "delete_topics",
    "describe_configs",
    "incremental_alter_configs",
    "metadata",
]

_TIMEOUT_MS = 5_000
_TOPIC = 2
_PARTITIONS_MAX = 3
_BAD_NAMES = ("", ".", "..", "a b", "x" * 250, "conform/slash")
_SETTINGS = (
    ("retention.ms", "1000"),
    ("retention.ms", "-2"),
    ("cleanup.policy", "compact,delete"),
    ("cleanup.policy", "burn"),
    ("max.message.bytes", "many"),
    ("no.such.key", "1"),
    ("compression.type", "lz4"),
    ("segment.bytes", "1"),
)


def create_topics(scene: Scene, version: int) -> CreateTopicsRequest:
    """Draw a creation; those with odd numbers are only validated."""
    names = [*scene.new_names, scene.topics[0].name, scene.pick(*_BAD_NAMES)]
    settings = [scene.pick(*_SETTINGS)] if scene.chance(40) else []
    topics = [
        CreatableTopic(
            name=scene.pick(*names),
            num_partitions=scene.pick(1, 2, 3, -1 if version >= 4 else 1),
            replication_factor=scene.pick(1, 1, 1, 3, -1 if version >= 4 else 1),
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in settings],
        )
        for _ in range(scene.pick(1, 1, 2))
    ]
    request = CreateTopicsRequest(topics=topics, timeout_ms=_TIMEOUT_MS)
    scene.with_oddity(request)
    are_few = all(each.num_partitions <= _PARTITIONS_MAX for each in topics)
    request.validate_only = not are_few or scene.chance(50)
    return request


def delete_topics(scene: Scene, version: int) -> DeleteTopicsRequest:
    """Draw a deletion of topics that the sequence may have created."""
    names = [scene.pick(*scene.new_names, MISSING.name) for _ in range(scene.pick(1, 1, 2))]
    request = DeleteTopicsRequest(timeout_ms=_TIMEOUT_MS)
    if version >= 6:
        request.topics = [DeleteTopicState(name=each) for each in names]
    else:
        request.topic_names = names
    return request


def create_partitions(scene: Scene, version: int) -> CreatePartitionsRequest:
    """Draw a growth; it is only validated."""
    names = [*scene.new_names, scene.topics[0].name, MISSING.name]
    topics = [
        CreatePartitionsTopic(name=scene.pick(*names), count=scene.pick(-1, 0, 1, 3, 4, 9))
        for _ in range(scene.pick(1, 1, 2))
    ]
    return CreatePartitionsRequest(topics=topics, timeout_ms=_TIMEOUT_MS, validate_only=True)


def describe_configs(scene: Scene, version: int) -> DescribeConfigsRequest:
    """Draw a question for a topic's settings."""
    keys = scene.pick(None, [], ["retention.ms", "cleanup.policy"], ["no.such.key"])
    resource = DescribeConfigsResource(
        resource_type=_TOPIC, resource_name=scene.topic().name, configuration_keys=keys
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=scene.pick(False, True))
    return request


def incremental_alter_configs(scene: Scene, version: int) -> IncrementalAlterConfigsRequest:
    """Draw a change of a topic's settings; it is only validated."""
    configs = [
        AlterableConfig(name=name, config_operation=scene.pick(0, 1, 2, 3), value=value)
        for name, value in (scene.pick(*_SETTINGS) for _ in range(scene.pick(1, 2)))
    ]
    resource = AlterConfigsResource(
        resource_type=_TOPIC, resource_name=scene.topic().name, configs=configs
    )
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)


def metadata(scene: Scene, version: int) -> MetadataRequest:
    """Draw a question for topics by name, and by id where the version has that."""
    topics = []
    for _ in range(scene.pick(1, 2)):
        topic = scene.topic()
        if version >= 12 and scene.chance(40):
            topics.append(MetadataRequestTopic(name=None, topic_id=topic.topic_id))
        else:
            topics.append(MetadataRequestTopic(name=topic.name))
    request = MetadataRequest(topics=topics)
    if version >= 4:
        request.allow_auto_topic_creation = False
    elif any(each.name == MISSING.name for each in topics):
        request.topics = [MetadataRequestTopic(name=scene.topics[0].name)]
    return request
