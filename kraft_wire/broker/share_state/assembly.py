"""Build the share coordinator of a broker, and the client of all, from parts of the broker."""

from collections.abc import Callable, Mapping

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.broker.coordination.log import BrokerCoordinatorLog
from kraft_wire.broker.coordination.topic import CoordinatorTopic, CoordinatorTopicCreation
from kraft_wire.broker.metadata.metadata_cache import SHARE_STATE_TOPIC
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import AskController
from kraft_wire.broker.purgatory import DelayedOperationPurgatory
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.broker.share_persister import SharePartitionKey
from kraft_wire.broker.share_state.coordinator import ShareCoordinator
from kraft_wire.broker.share_state.environment import ShareStateEnvironment
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Offset, StorageError
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.message import Message

__all__ = ["share_coordinator"]


def share_coordinator(
    *,
    node_id: int,
    settings: Callable[[], BrokerSettings],
    image: Callable[[], MetadataImage],
    partition: Callable[[str, int], Partition | None],
    appended: Callable[[Partition], None],
    flushed: Callable[[Mapping[tuple[str, int], Offset], int], None],
    operations: DelayedOperationPurgatory,
    complete: Callable[[ReplyTo, Message], None],
    ask_controller: AskController,
    now_ms: Callable[[], int],
) -> ShareCoordinator:
    """Return a coordinator over the partitions of `__share_group_state` that a broker leads.

    The arguments are the broker's methods and attributes of these names. Requests that wait for
    the ISR are parked in `operations`.
    """

    def integer(name: str) -> int:
        return settings().source.integer(name)

    def led(number: int) -> Partition | None:
        return partition(SHARE_STATE_TOPIC, number)

    topic = CoordinatorTopic(
        name=SHARE_STATE_TOPIC,
        partition_count=lambda: integer("share.coordinator.state.topic.num.partitions"),
        commit_timeout_ms=lambda: integer("share.coordinator.write.timeout.ms"),
        clean_up_interval_ms=lambda: integer(
            "share.coordinator.cold.partition.snapshot.interval.ms"
        ),
    )
    codec = Compression(integer("share.coordinator.state.topic.compression.codec"))
    log = BrokerCoordinatorLog(led, appended, flushed, codec)

    def has_partition(key: SharePartitionKey) -> bool:
        topic = image().topic_by_id(key.topic_id)
        return topic is not None and key.partition in topic.partitions

    env = ShareStateEnvironment(
        settings, has_partition, lambda number, offset: _delete_records(led(number), offset)
    )
    commits = CommitWaits(topic, operations, complete, now_ms)
    creation = CoordinatorTopicCreation(SHARE_STATE_TOPIC, ask_controller)
    return ShareCoordinator(node_id, topic, log, commits, env, creation, complete)


def _delete_records(partition: Partition | None, offset: int) -> None:
    """Move the log start of a partition that is still led and has the offset committed."""
    if partition is None or partition.offline or offset > partition.high_watermark:
        return
    try:
        partition.log.advance_log_start_offset(Offset(offset))
    except StorageError as error:
        partition.failed(error)
