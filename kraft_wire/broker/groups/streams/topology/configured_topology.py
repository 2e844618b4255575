"""A topology beside the topics that exist: its tasks, and the internal topics that are missing.

Equal topologies and images give Kafka's result, failures and their words included.
"""

from collections.abc import Iterable, Mapping

from kraft_wire.broker.groups.java_collections import JavaHashMap, java_hash_set, java_order
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.streams.topology.changelog_topics import (
    changelog_counts,
    largest_input_count,
)
from kraft_wire.broker.groups.streams.topology.copartitioning import (
    copartition_groups,
    copartitioned_counts,
)
from kraft_wire.broker.groups.streams.topology.failures import (
    GroupStatus,
    TopicsFailure,
    TopicsUnfit,
    TopologyRefused,
    server_error,
)
from kraft_wire.broker.groups.streams.topology.repartition_topics import repartition_counts
from kraft_wire.broker.groups.streams.topology.subtopologies import (
    CountOf,
    Subtopologies,
    required_topics,
    subtopologies_by_id,
)
from kraft_wire.frozen import frozen
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.settings.topic_names import topic_name_problem
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreatableTopicConfig
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_topology_value import (
    StreamsGroupTopologyValue,
    Subtopology,
    TopicConfig,
    TopicInfo,
)

__all__ = ["ConfiguredSubtopology", "ConfiguredTopology", "InternalTopic", "configure"]

_LISTED_MAX = 3
_BY_DEFAULT = -1


@frozen
class InternalTopic:
    """A repartition or changelog topic with the partitions that it must have."""

    name: str
    partitions: int
    replication_factor: int | None
    """None: the broker's default."""
    configs: Mapping[str, str]


@frozen
class ConfiguredSubtopology:
    """A subtopology with its number of tasks: the largest partition count it reads."""

    number_of_tasks: int
    source_topics: tuple[str, ...]
    repartition_sources: Mapping[str, InternalTopic]
    repartition_sinks: tuple[str, ...]
    changelogs: Mapping[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        """Whether its tasks may have standby tasks."""
        return bool(self.changelogs)


@frozen
class ConfiguredTopology:
    """What a topology needs, as long as the metadata hash is that of the group's topics."""

    topology_epoch: int
    metadata_hash: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    """In the order of their ids; None if source topics are missing or counts do not fit."""
    internal_topics_to_create: Mapping[str, CreatableTopic]
    failure: TopicsFailure | None

    @property
    def is_ready(self) -> bool:
        """Whether tasks may be assigned."""
        return self.failure is None


def configure(
    topology: StreamsGroupTopologyValue, metadata_hash: int, image: MetadataImage
) -> ConfiguredTopology:
    """Return what a topology needs beside the topics of an image.

    Failures, first match wins: source topics are missing; copartitioned topics do not fit; an
    internal topic has another partition count; internal topics are missing.
    TopologyRefused (STREAMS_INVALID_TOPOLOGY, INVALID_TOPIC_EXCEPTION, UNKNOWN_SERVER_ERROR): the
    topology contradicts itself.
    """
    subtopologies = subtopologies_by_id(topology)
    groups = copartition_groups(subtopologies)
    try:
        _check_source_topics(subtopologies, image)
        counts = _decided_counts(subtopologies, groups, image)
        made = {name: _configured(each, counts, image) for name, each in subtopologies.items()}
        configured = {name: made[name] for name in sorted(made, key=java_order)}
        missing = _missing_topics(configured, subtopologies, image)
    except TopicsUnfit as unfit:
        return ConfiguredTopology(topology.epoch, metadata_hash, None, {}, unfit.failure)
    failure = None
    if missing:
        failure = TopicsFailure(
            GroupStatus.MISSING_INTERNAL_TOPICS,
            f"Internal topics are missing: {_summary(list(missing))}",
        )
    return ConfiguredTopology(topology.epoch, metadata_hash, configured, missing, failure)


def _check_source_topics(subtopologies: Subtopologies, image: MetadataImage) -> None:
    missing = {
        topic
        for subtopology in subtopologies.values()
        for topic in subtopology.source_topics
        if image.topic(topic) is None
    }
    if missing:
        listed = _summary(sorted(missing, key=java_order))
        raise TopicsUnfit(GroupStatus.MISSING_SOURCE_TOPICS, f"Source topics {listed} are missing.")


def _decided_counts(
    subtopologies: Subtopologies, groups: Iterable[JavaHashMap[str, None]], image: MetadataImage
) -> dict[str, int]:
    """Return the partition counts that internal topics must have."""
    counts: dict[str, int] = {}
    count_of = _count_of(image, counts)
    counts.update(repartition_counts(subtopologies, count_of))
    topics = [
        topic
        for subtopology in subtopologies.values()
        for topic in subtopology.repartition_source_topics
    ]
    fixed = {topic.name for topic in topics if topic.partitions != 0}
    # These counts stay: a group that decides on another one fails.
    fixed_counts = {count for name in fixed if (count := count_of(name)) is not None}
    flexible = {topic.name for topic in topics if topic.partitions == 0}
    for group in groups:
        counts.update(copartitioned_counts(group, fixed, fixed_counts, flexible, count_of))
    counts.update(changelog_counts(subtopologies, count_of))
    return counts


def _count_of(image: MetadataImage, decided: Mapping[str, int]) -> CountOf:
    """Return a function that looks in the image first."""

    def count_of(name: str) -> int | None:
        topic = image.topic(name)
        return decided.get(name) if topic is None else len(topic.partitions)

    return count_of


def _configured(
    subtopology: Subtopology, counts: Mapping[str, int], image: MetadataImage
) -> ConfiguredSubtopology:
    tasks = largest_input_count(subtopology, _count_of(image, counts))
    repartition_sources = _internal_topics(subtopology.repartition_source_topics, counts)
    changelogs = _internal_topics(subtopology.state_changelog_topics, counts)
    if tasks is None or tasks <= 0:
        raise server_error()
    return ConfiguredSubtopology(
        number_of_tasks=tasks,
        source_topics=_java_set(subtopology.source_topics),
        repartition_sources=repartition_sources,
        repartition_sinks=_java_set(subtopology.repartition_sink_topics),
        changelogs=changelogs,
    )


def _java_set(names: list[str]) -> tuple[str, ...]:
    return tuple(java_hash_set(names, max(int(len(names) / 0.75) + 1, 16)))


def _internal_topics(
    topics: Iterable[TopicInfo], counts: Mapping[str, int]
) -> dict[str, InternalTopic]:
    found: JavaHashMap[str, InternalTopic] = JavaHashMap()
    for topic in topics:
        internal = _internal_topic(topic, counts)
        if topic.name in found:
            raise server_error()
        found[topic.name] = internal
    return dict(found.items())


def _internal_topic(topic: TopicInfo, counts: Mapping[str, int]) -> InternalTopic:
    partitions = topic.partitions or counts.get(topic.name, 0)
    configs = _configs(topic.topic_configs)
    problem = topic_name_problem(topic.name)
    if problem is not None and (topic.partitions or topic.name in counts):
        raise TopologyRefused(Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem))
    if partitions < 1:
        raise server_error()
    return InternalTopic(topic.name, partitions, topic.replication_factor or None, configs)


def _configs(configs: Iterable[TopicConfig]) -> dict[str, str]:
    found: JavaHashMap[str, str] = JavaHashMap()
    for config in configs:
        if config.key in found:
            raise server_error()
        found[config.key] = config.value
    return dict(found.items())


def _missing_topics(
    configured: Mapping[str, ConfiguredSubtopology],
    subtopologies: Subtopologies,
    image: MetadataImage,
) -> dict[str, CreatableTopic]:
    """Return internal topics that do not exist. TopicsUnfit: one has another partition count."""
    wanted: JavaHashMap[str, InternalTopic] = JavaHashMap()
    for subtopology in configured.values():
        for topics in (subtopology.repartition_sources, subtopology.changelogs):
            for name, topic in topics.items():
                wanted[name] = topic
    for name in java_hash_set(required_topics(subtopologies)):
        existing = image.topic(name)
        if existing is None or name not in wanted:
            continue
        expected, found = wanted[name].partitions, len(existing.partitions)
        if expected != found:
            raise TopicsUnfit(
                GroupStatus.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {name} has different number of partitions: "
                f"expected {expected}, found {found}",
            )
    return {name: _creatable(each) for name, each in wanted.items() if image.topic(name) is None}


def _creatable(topic: InternalTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or _BY_DEFAULT,
        configs=[CreatableTopicConfig(name=key, value=each) for key, each in topic.configs.items()],
    )


def _summary(topics: list[str]) -> str:
    shown, more = ", ".join(topics[:_LISTED_MAX]), len(topics) - _LISTED_MAX
    return f"{shown} and {more} additional topics" if more > 0 else shown
