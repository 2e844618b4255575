"""What all shards of the group coordinator share: settings, memory, answers to clients."""

from collections.abc import Callable

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.consumer.metadata_hash import TopicHashes
from kraft_wire.broker.groups.consumer.topic_versions import TopicVersions
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.broker.share_persister import SharePersister
from kraft_wire.frozen import frozen
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import RandomSource
from kraft_wire.wire.message import Message

__all__ = ["GroupEnvironment"]


@frozen
class GroupEnvironment:
    """The neighbours of a shard, its log apart."""

    settings: Callable[[], BrokerSettings]
    """Read at each use: a dynamic change replaces the settings as a whole."""
    random_source: RandomSource
    complete: Callable[[ReplyTo, Message], None]
    """Answers a parked request; does nothing if the connection is closed."""
    commits: CommitWaits
    """Operations that wait for the ISR, of clients and of the coordinator itself."""
    memory: MemoryUse
    """Bounded by `group.coordinator.memory.max.bytes`, which Kafka does not have."""
    image: Callable[[], MetadataImage]
    topic_hashes: TopicHashes
    topic_versions: TopicVersions
    share_persister: Callable[[], SharePersister]
    """The client of all share coordinators, made on first use."""
