"""The record of a topology, from the request that brings it."""

from kraft_wire.wire.generated import streams_group_heartbeat as request
from kraft_wire.wire.generated.streams_group_topology_value import (
    CopartitionGroup,
    StreamsGroupTopologyValue,
    Subtopology,
    TopicConfig,
    TopicInfo,
)

__all__ = ["topology_value"]


def topology_value(topology: request.Topology) -> StreamsGroupTopologyValue:
    """Return the value of record 23, with everything in the order of the request."""
    return StreamsGroupTopologyValue(
        epoch=topology.epoch, subtopologies=[_subtopology(each) for each in topology.subtopologies]
    )


def _subtopology(given: request.Subtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=given.subtopology_id,
        source_topics=list(given.source_topics),
        source_topic_regex=list(given.source_topic_regex),
        state_changelog_topics=[_topic(each) for each in given.state_changelog_topics],
        repartition_sink_topics=list(given.repartition_sink_topics),
        repartition_source_topics=[_topic(each) for each in given.repartition_source_topics],
        copartition_groups=[_copartition_group(each) for each in given.copartition_groups],
    )


def _topic(given: request.TopicInfo) -> TopicInfo:
    return TopicInfo(
        name=given.name,
        partitions=given.partitions,
        replication_factor=given.replication_factor,
        topic_configs=[TopicConfig(key=each.key, value=each.value) for each in given.topic_configs],
    )


def _copartition_group(given: request.CopartitionGroup) -> CopartitionGroup:
    return CopartitionGroup(
        source_topics=list(given.source_topics),
        source_topic_regex=list(given.source_topic_regex),
        repartition_source_topics=list(given.repartition_source_topics),
    )
