"""Build the group coordinator of a broker from the parts of the broker that it uses."""

from collections.abc import Callable, Mapping

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.broker.coordination.log import BrokerCoordinatorLog
from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.coordination.topic import CoordinatorTopic, CoordinatorTopicCreation
from kraft_wire.broker.groups.consumer.metadata_hash import TopicHashes
from kraft_wire.broker.groups.consumer.topic_versions import TopicVersions
from kraft_wire.broker.groups.coordinator import GroupCoordinator
from kraft_wire.broker.groups.environment import GroupEnvironment
from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import AskController
from kraft_wire.broker.purgatory import DelayedOperationPurgatory
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.broker.share_persister import SharePersister
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Offset, RandomSource
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.message import Message

__all__ = ["group_coordinator", "offsets_topic"]


def offsets_topic(settings: Callable[[], BrokerSettings]) -> CoordinatorTopic:
    """Return the topic that groups and their offsets are kept in."""
    return CoordinatorTopic(
        name=OFFSETS_TOPIC,
        partition_count=lambda: settings().offsets_topic_num_partitions,
        commit_timeout_ms=lambda: settings().offsets_commit_timeout_ms,
        clean_up_interval_ms=lambda: settings().offsets_retention_check_interval_ms,
    )


def group_coordinator(
    *,
    node_id: int,
    settings: Callable[[], BrokerSettings],
    random_source: RandomSource,
    partition: Callable[[str, int], Partition | None],
    appended: Callable[[Partition], None],
    flushed: Callable[[Mapping[tuple[str, int], Offset], int], None],
    operations: DelayedOperationPurgatory,
    complete: Callable[[ReplyTo, Message], None],
    ask_controller: AskController,
    now_ms: Callable[[], int],
    image: Callable[[], MetadataImage],
    share_persister: Callable[[], SharePersister],
) -> GroupCoordinator:
    """Return a coordinator over the partitions of `__consumer_offsets` that a broker leads.

    `partition`, `appended`, `flushed`, `complete` and `ask_controller` are the broker's methods of
    these names. Requests that wait for the ISR are parked in `operations`.
    """
    topic = offsets_topic(settings)
    log = BrokerCoordinatorLog(
        partition=lambda number: partition(OFFSETS_TOPIC, number),
        appended=appended,
        flushed=flushed,
        compression=Compression(settings().offsets_topic_compression_codec),
    )
    commits = CommitWaits(topic, operations, complete, now_ms)
    memory = MemoryUse(lambda: settings().group_coordinator_memory_max_bytes)
    env = GroupEnvironment(
        settings,
        random_source,
        complete,
        commits,
        memory,
        image,
        TopicHashes(),
        TopicVersions(),
        share_persister,
    )
    creation = CoordinatorTopicCreation(OFFSETS_TOPIC, ask_controller)
    return GroupCoordinator(node_id, topic, log, env, creation, ask_controller)
