"""Puts a group coordinator into a broker."""

from typing import TYPE_CHECKING

from kraft_wire.broker.groups.coordinator import GroupCoordinator
from kraft_wire.broker.groups.environment import GroupEnvironment
from kraft_wire.broker.groups.offsets_topic import OffsetsTopicCreation
from kraft_wire.broker.groups.parking import CommitWaits
from kraft_wire.broker.groups.store import OFFSETS_TOPIC, PartitionOffsetsStore
from kraft_wire.wire.compression import Compression

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["attach_groups"]


def attach_groups(broker: "Broker") -> GroupCoordinator:
    """Give the broker a coordinator over its own partitions; it follows the broker from now on."""
    store = PartitionOffsetsStore(
        partition=lambda number: broker.partition(OFFSETS_TOPIC, number),
        appended=broker.appended,
        flushed=broker.flushed,
        compression=Compression(broker.settings.offsets_topic_compression_codec),
    )
    env = GroupEnvironment(
        settings=lambda: broker.settings,
        store=store,
        chance=broker.chance,
        complete=broker.complete,
        await_commit=CommitWaits(broker, lambda: coordinator.now_ms).await_commit,
    )
    coordinator = GroupCoordinator(broker.node_id, env, OffsetsTopicCreation(broker.ask_controller))
    broker.groups = coordinator
    broker.followers.append(coordinator)
    return coordinator
