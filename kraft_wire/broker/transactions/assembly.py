"""Build the transaction coordinator of a broker from the parts of the broker that it uses."""

from typing import TYPE_CHECKING

from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.broker.coordination.log import BrokerCoordinatorLog
from kraft_wire.broker.coordination.topic import CoordinatorTopic, CoordinatorTopicCreation
from kraft_wire.broker.inter_broker import InterBrokerClient
from kraft_wire.broker.metadata.metadata_cache import TRANSACTION_TOPIC
from kraft_wire.broker.transactions.coordinator import TransactionCoordinator
from kraft_wire.broker.transactions.environment import TransactionEnvironment
from kraft_wire.broker.transactions.markers import MarkerSender
from kraft_wire.metadata.features import TRANSACTION_VERSION
from kraft_wire.wire.compression.codecs import Compression

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["transaction_coordinator"]


def transaction_coordinator(broker: "Broker") -> TransactionCoordinator:
    """Return a coordinator over the partitions of `__transaction_state` that a broker leads."""
    topic = CoordinatorTopic(
        name=TRANSACTION_TOPIC,
        partition_count=lambda: broker.settings.transaction_state_log_num_partitions,
        commit_timeout_ms=lambda: broker.settings.source.integer("request.timeout.ms"),
        clean_up_interval_ms=lambda: (
            broker.settings.transaction_remove_expired_transaction_cleanup_interval_ms
        ),
    )
    log = BrokerCoordinatorLog(
        partition=lambda number: broker.partition(TRANSACTION_TOPIC, number),
        appended=broker.appended,
        flushed=broker.flushed,
        compression=Compression.NONE,
    )
    commits = CommitWaits(topic, broker.produce_purgatory, broker.complete, lambda: broker.now_ms)
    markers = MarkerSender(lambda: broker.image, broker.report)
    env = TransactionEnvironment(
        settings=lambda: broker.settings,
        transaction_version=lambda: broker.image.finalized_features.get(TRANSACTION_VERSION, 0),
        take_producer_id=broker.producer_ids.take,
        coordinator_epoch=lambda number: _leader_epoch(broker, number),
        markers=markers,
        report=broker.report,
    )
    creation = CoordinatorTopicCreation(TRANSACTION_TOPIC, broker.ask_controller)
    broker.inter_broker_clients.append(
        InterBrokerClient(
            f"broker-{broker.node_id}-txn-marker-sender",
            broker.settings.source.integer("request.timeout.ms"),
            lambda: markers.destinations,
        )
    )
    return TransactionCoordinator(
        broker.node_id, topic, log, commits, env, creation, broker.complete
    )


def _leader_epoch(broker: "Broker", number: int) -> int:
    """Return the leader epoch under which this broker coordinates a partition."""
    led = broker.partition(TRANSACTION_TOPIC, number)
    assert led is not None, number
    return led.leader_epoch
