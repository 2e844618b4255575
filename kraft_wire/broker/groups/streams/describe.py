"""A streams group as StreamsGroupDescribe shows it."""

from collections.abc import Iterable

from kraft_wire.broker.groups.java_collections import java_hash_set, java_order
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.member import StreamsMember
from kraft_wire.broker.groups.streams.tasks import NO_TASKS, Tasks, TasksTuple
from kraft_wire.broker.groups.streams.topology.configured_topology import (
    ConfiguredSubtopology,
    ConfiguredTopology,
    InternalTopic,
)
from kraft_wire.wire.generated.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from kraft_wire.wire.generated.streams_group_topology_value import (
    StreamsGroupTopologyValue,
)
from kraft_wire.wire.generated.streams_group_topology_value import (
    Subtopology as StoredSubtopology,
)
from kraft_wire.wire.generated.streams_group_topology_value import (
    TopicInfo as StoredTopicInfo,
)

__all__ = ["described_streams_group"]


def described_streams_group(group: StreamsGroup) -> DescribedGroup:
    """Describe a group; internal topics have their partition counts once all are there.

    Kafka fails if a group has no topology; here the topology is null then.
    """
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group),
        members=[_member(group, each) for each in group.members.values()],
    )


# --- Topology --------------------------------------------------------------------------------


def _topology(group: StreamsGroup) -> Topology | None:
    configured, stored = group.configured, group.topology
    if configured is not None and configured.is_ready:
        return _configured_topology(configured)
    return None if stored is None else _stored_topology(stored)


def _configured_topology(configured: ConfiguredTopology) -> Topology:
    subtopologies = configured.subtopologies or {}
    return Topology(
        epoch=configured.topology_epoch,
        subtopologies=[
            _configured_subtopology(subtopology_id, subtopologies[subtopology_id])
            for subtopology_id in sorted(subtopologies, key=java_order)
        ],
    )


def _configured_subtopology(subtopology_id: str, each: ConfiguredSubtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=subtopology_id,
        source_topics=_sorted(each.source_topics),
        repartition_sink_topics=_sorted(each.repartition_sinks),
        state_changelog_topics=_internal_topics(each.changelogs.values()),
        repartition_source_topics=_internal_topics(each.repartition_sources.values()),
    )


def _internal_topics(topics: Iterable[InternalTopic]) -> list[TopicInfo]:
    return _by_name(
        TopicInfo(
            name=each.name,
            partitions=each.partitions,
            replication_factor=each.replication_factor or 0,
            topic_configs=[KeyValue(key=key, value=value) for key, value in each.configs.items()],
        )
        for each in topics
    )


def _stored_topology(stored: StreamsGroupTopologyValue) -> Topology:
    of_ids = {each.subtopology_id: each for each in stored.subtopologies}
    return Topology(
        epoch=stored.epoch,
        subtopologies=[_stored_subtopology(of_ids[each]) for each in _sorted(of_ids)],
    )


def _stored_subtopology(each: StoredSubtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=each.subtopology_id,
        source_topics=_sorted(each.source_topics),
        repartition_sink_topics=_sorted(each.repartition_sink_topics),
        state_changelog_topics=_stored_topics(each.state_changelog_topics),
        repartition_source_topics=_stored_topics(each.repartition_source_topics),
    )


def _stored_topics(topics: Iterable[StoredTopicInfo]) -> list[TopicInfo]:
    return _by_name(
        TopicInfo(
            name=each.name,
            partitions=each.partitions,
            replication_factor=each.replication_factor,
            topic_configs=[
                KeyValue(key=config.key, value=config.value) for config in each.topic_configs
            ],
        )
        for each in topics
    )


def _by_name(topics: Iterable[TopicInfo]) -> list[TopicInfo]:
    return sorted(topics, key=lambda topic: java_order(topic.name))


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted(names, key=java_order)


# --- Members ---------------------------------------------------------------------------------


def _member(group: StreamsGroup, member: StreamsMember) -> Member:
    endpoint = member.user_endpoint
    return Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[
            KeyValue(key=key, value=member.client_tags[key])
            for key in java_hash_set(member.client_tags)
        ],
        assignment=_assignment(member.assigned.without_epochs),
        target_assignment=_assignment(group.targets.get(member.member_id) or NO_TASKS),
    )


def _assignment(tasks: TasksTuple) -> Assignment:
    return Assignment(
        active_tasks=_task_ids(tasks.active),
        standby_tasks=_task_ids(tasks.standby),
        warmup_tasks=_task_ids(tasks.warmup),
    )


def _task_ids(tasks: Tasks) -> list[TaskIds]:
    return [TaskIds(subtopology_id=each, partitions=sorted(tasks[each])) for each in _sorted(tasks)]
