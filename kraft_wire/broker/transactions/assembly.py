"""Build the transaction coordinator of a broker from the parts of the broker that it uses."""

from collections.abc import Callable, Mapping

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.broker.coordination.host import CoordinatorHost
from kraft_wire.broker.coordination.log import BrokerCoordinatorLog
from kraft_wire.broker.coordination.topic import CoordinatorTopic, CoordinatorTopicCreation
from kraft_wire.broker.inter_broker import InterBrokerClient
from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC, TRANSACTION_TOPIC
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import AskController
from kraft_wire.broker.purgatory import DelayedOperationPurgatory
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.broker.transactions.coordinator import TransactionCoordinator
from kraft_wire.broker.transactions.environment import TransactionEnvironment
from kraft_wire.broker.transactions.markers import MarkerSender
from kraft_wire.metadata.features import TRANSACTION_VERSION
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Offset, ReportEvent
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.message import Message

__all__ = ["coordinator_of", "transaction_coordinator"]


def coordinator_of(broker: CoordinatorHost) -> TransactionCoordinator:
    """Return the coordinator of a broker."""
    return transaction_coordinator(
        node_id=broker.node_id,
        settings=lambda: broker.settings,
        image=lambda: broker.image,
        partition=broker.partition,
        appended=broker.replicas.appended,
        flushed=broker.replicas.flushed,
        operations=broker.produce_purgatory,
        complete=broker.complete,
        ask_controller=broker.ask_controller,
        take_producer_id=broker.producer_ids.take,
        inter_broker_clients=broker.inter_broker_clients,
        now_ms=lambda: broker.now_ms,
        report=broker.report,
    )


def transaction_coordinator(
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
    take_producer_id: Callable[[int], int | None],
    inter_broker_clients: list[InterBrokerClient],
    now_ms: Callable[[], int],
    report: ReportEvent,
) -> TransactionCoordinator:
    """Return a coordinator over the partitions of `__transaction_state` that a broker leads.

    The arguments are the broker's methods and attributes of these names; `inter_broker_clients`
    gets the sender of markers. Requests that wait for the ISR are parked in `operations`.
    """
    timeout_ms = settings().source.integer("request.timeout.ms")
    topic = CoordinatorTopic(
        name=TRANSACTION_TOPIC,
        partition_count=lambda: settings().transaction_state_log_num_partitions,
        commit_timeout_ms=lambda: settings().source.integer("request.timeout.ms"),
        clean_up_interval_ms=lambda: (
            settings().transaction_remove_expired_transaction_cleanup_interval_ms
        ),
    )
    log = BrokerCoordinatorLog(
        partition=lambda number: partition(TRANSACTION_TOPIC, number),
        appended=appended,
        flushed=flushed,
        compression=Compression.NONE,
    )

    def leader_epoch(number: int) -> int:
        led = partition(TRANSACTION_TOPIC, number)
        assert led is not None, number
        return led.leader_epoch

    offsets_topic = CoordinatorTopicCreation(OFFSETS_TOPIC, ask_controller)
    markers = MarkerSender(image, lambda now_ms: offsets_topic.request(settings(), now_ms), report)
    env = TransactionEnvironment(
        settings=settings,
        transaction_version=lambda: image().finalized_features.get(TRANSACTION_VERSION, 0),
        take_producer_id=take_producer_id,
        coordinator_epoch=leader_epoch,
        markers=markers,
        report=report,
    )
    client_id = f"broker-{node_id}-txn-marker-sender"
    inter_broker_clients.append(
        InterBrokerClient(client_id, timeout_ms, lambda: markers.destinations)
    )
    commits = CommitWaits(topic, operations, complete, now_ms)
    creation = CoordinatorTopicCreation(TRANSACTION_TOPIC, ask_controller)
    return TransactionCoordinator(node_id, topic, log, commits, env, creation, complete)
