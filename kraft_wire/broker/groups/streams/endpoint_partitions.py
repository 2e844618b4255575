"""Which partitions a member's tasks read: interactive queries find their member so (KIP-1071)."""

from collections.abc import Mapping

from kraft_wire.broker.groups.java_collections import java_hash_set
from kraft_wire.broker.groups.streams.tasks import Tasks
from kraft_wire.broker.groups.streams.topology.configured_topology import ConfiguredSubtopology
from kraft_wire.broker.groups.streams.topology.failures import server_error
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.wire.generated.streams_group_heartbeat import (
    EndpointToPartitions,
    ResponseEndpoint,
    TopicPartition,
)

__all__ = ["endpoint_partitions"]


def endpoint_partitions(
    endpoint: ResponseEndpoint,
    active: Tasks,
    standby: Tasks,
    subtopologies: Mapping[str, ConfiguredSubtopology] | None,
    image: MetadataImage,
) -> EndpointToPartitions:
    """Return the input partitions of the tasks that a member has.

    A topic with fewer partitions than the member has tasks of the subtopology is cut to its
    partition count; otherwise a partition may be listed that the topic does not have, as by Kafka.
    TopologyRefused (UNKNOWN_SERVER_ERROR): a subtopology or a topic of it does not exist.
    """
    if subtopologies is None:
        raise server_error()
    return EndpointToPartitions(
        user_endpoint=endpoint,
        active_partitions=_partitions(active, subtopologies, image),
        standby_partitions=_partitions(standby, subtopologies, image),
    )


def _partitions(
    tasks: Tasks, subtopologies: Mapping[str, ConfiguredSubtopology], image: MetadataImage
) -> list[TopicPartition]:
    found: list[TopicPartition] = []
    for subtopology_id, partitions in tasks.items():
        subtopology = subtopologies.get(subtopology_id)
        if subtopology is None:
            raise server_error()
        names = (*subtopology.source_topics, *subtopology.repartition_sources)
        capacity = max(int(len(subtopology.source_topics) / 0.75) + 1, 16)
        for name in java_hash_set(names, capacity):
            topic = image.topic(name)
            if topic is None:
                raise server_error()
            listed = sorted(partitions)[: len(topic.partitions)]
            found.append(TopicPartition(topic=name, partitions=listed))
    return found
