"""Build the group coordinator of a broker from the parts of the broker that it uses."""

from collections.abc import Callable, Mapping

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.groups.commit_waits import CommitWaits
from kraft_wire.broker.groups.coordinator import GroupCoordinator
from kraft_wire.broker.groups.environment import GroupEnvironment
from kraft_wire.broker.groups.offsets_topic import OffsetsTopicCreation
from kraft_wire.broker.groups.store import OFFSETS_TOPIC, PartitionOffsetsStore
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.purgatory import OperationPurgatory
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.model import Chance, Offset
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.message import Message

__all__ = ["group_coordinator"]


def group_coordinator(
    *,
    node_id: int,
    settings: Callable[[], BrokerSettings],
    chance: Chance,
    partition: Callable[[str, int], Partition | None],
    appended: Callable[[Partition], None],
    flushed: Callable[[Mapping[tuple[str, int], Offset], int], None],
    operations: OperationPurgatory,
    complete: Callable[[ReplyTo, Message], None],
    ask_controller: Callable[[Message, Callable[[Message], None]], None],
    now_ms: Callable[[], int],
) -> GroupCoordinator:
    """Return a coordinator over the partitions of `__consumer_offsets` that a broker leads.

    `partition`, `appended`, `flushed`, `complete` and `ask_controller` are the broker's methods of
    these names. What waits for the ISR is parked in `operations`.
    """
    store = PartitionOffsetsStore(
        partition=lambda number: partition(OFFSETS_TOPIC, number),
        appended=appended,
        flushed=flushed,
        compression=Compression(settings().offsets_topic_compression_codec),
    )
    commits = CommitWaits(operations, settings, complete, now_ms)
    env = GroupEnvironment(settings, store, chance, complete, commits)
    return GroupCoordinator(node_id, env, OffsetsTopicCreation(ask_controller))
