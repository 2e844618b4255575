"""A broker's share coordinator, and its clients of others and of leaders, created on first use."""

from functools import cached_property

from kraft_wire.broker.coordination.host import CoordinatorHost
from kraft_wire.broker.end_offsets import EndOffsets
from kraft_wire.broker.metadata.metadata_cache import SHARE_STATE_TOPIC
from kraft_wire.broker.share_persister import SharePersister
from kraft_wire.broker.share_state.assembly import share_coordinator
from kraft_wire.broker.share_state.coordinator import ShareCoordinator
from kraft_wire.broker.share_state.persister import CoordinatedPersister

__all__ = ["ShareStates"]


class ShareStates:
    """What a broker has to do with the states of share partitions, and with their lag."""

    def __init__(self, broker: CoordinatorHost) -> None:
        self._broker = broker

    @cached_property
    def coordinator(self) -> ShareCoordinator:
        """The coordinator of the partitions of `__share_group_state` that this broker leads."""
        broker = self._broker
        coordinator = share_coordinator(
            node_id=broker.node_id,
            settings=lambda: broker.settings,
            image=lambda: broker.image,
            partition=broker.partition,
            appended=broker.replicas.appended,
            flushed=broker.replicas.flushed,
            operations=broker.produce_purgatory,
            complete=broker.complete,
            ask_controller=broker.ask_controller,
            now_ms=lambda: broker.now_ms,
        )
        broker.followers.append(coordinator)
        coordinator.follow(broker.image.topic(SHARE_STATE_TOPIC), broker.now_ms)
        return coordinator

    @cached_property
    def persister(self) -> SharePersister:
        """The client of all share coordinators."""
        broker = self._broker
        persister = CoordinatedPersister(
            broker.node_id,
            lambda: broker.image,
            broker.random_source,
            call_here=lambda *call: self.coordinator.call(*call),
            create_topic=lambda now_ms: self.coordinator.topic_creation.request(
                broker.settings, now_ms
            ),
        )
        broker.followers.append(persister)
        broker.inter_broker_clients.append(persister.client())
        return persister

    @cached_property
    def end_offsets(self) -> EndOffsets:
        """The client of the leaders of partitions, by whose ends the lag is known."""
        broker = self._broker
        end_offsets = EndOffsets(lambda: broker.image, broker.random_source)
        broker.inter_broker_clients.append(end_offsets.client())
        return end_offsets
