"""The broker: its replicas, its coordinators, waiting requests, and its metadata.

Handlers (`handlers/`, one file per API) are functions over a `Broker`. `publish` follows the
metadata image; `tick` follows time; delayed answers leave through `completions`, which the node
drains. Read next: `replicas` (the partitions that it leads or follows). Not here: sockets,
decoding, and the controller.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from kraft_wire.broker.context import ReplyTo, Silence
from kraft_wire.broker.fetching.fetch_sessions import FetchSessionCache
from kraft_wire.broker.inter_broker import InterBrokerClient
from kraft_wire.broker.metadata.metadata_cache import (
    OFFSETS_TOPIC,
    TRANSACTION_TOPIC,
)
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import ControllerChannel, LogStore
from kraft_wire.broker.producing.producer_ids import ProducerIds
from kraft_wire.broker.producing.producer_refusals import ProducerRefusals
from kraft_wire.broker.purgatory import DelayedOperationPurgatory, FetchPurgatory
from kraft_wire.broker.replicas import ReplicaEnvironment, Replicas
from kraft_wire.broker.response_cache import (
    AnswersOfImage,
    NoAnswersOfImage,
    ResponseCache,
)
from kraft_wire.broker.rights import Rights
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import (
    RandomSource,
    ReportEvent,
    Uuid,
)
from kraft_wire.wire.message import Message

if TYPE_CHECKING:
    from kraft_wire.broker.fetching.fetch_quota import FetchQuota
    from kraft_wire.broker.groups.coordinator import GroupCoordinator
    from kraft_wire.broker.metadata.topic_creation import TopicCreation
    from kraft_wire.broker.producing.transaction_verifier import TransactionVerifier
    from kraft_wire.broker.replication.moving import ReplicaMoves
    from kraft_wire.broker.replication.throttle import ReplicationThrottle
    from kraft_wire.broker.share_fetch.share_partitions import SharePartitions
    from kraft_wire.broker.share_persister import SharePersister
    from kraft_wire.broker.share_state.share_states import ShareStates
    from kraft_wire.broker.transactions.coordinator import TransactionCoordinator

__all__ = ["Broker", "MetadataFollower"]


class MetadataFollower(Protocol):
    """A part of the broker that keeps state per topic or partition: the group coordinator."""

    def published(self, delta: MetadataDelta, now_ms: int) -> None:
        """Follow the changes of the metadata."""
        ...

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Act on time."""
        ...

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next."""
        ...

    def stop(self) -> None:
        """Answer all waiting requests, because the broker stops."""
        ...


class Broker:
    """One broker's state; every method runs on the node's one thread."""

    rights: Rights | None = None
    """Decides about topics that no request names; None without an authorizer."""
    share_partitions: "SharePartitions | None" = None
    """The share partitions that are led here; None before the first request about one."""
    fetch_quota: "FetchQuota | None" = None
    """Measures the fetches of consumers; None until the first quota is set."""
    leader_throttle: "ReplicationThrottle | None" = None
    """Bounds what followers get of throttled partitions; None while there are none (KIP-73)."""
    follower_throttle: "ReplicationThrottle | None" = None
    """Bounds what this broker fetches of them."""
    new_moves: "Callable[[], ReplicaMoves] | None" = None
    """Creates the moves between log directories; the node sets it."""
    described_topics: AnswersOfImage | NoAnswersOfImage
    _moves: "ReplicaMoves | None" = None
    _share_states: "ShareStates | None" = None
    listener_protocols: Mapping[str, str] = MappingProxyType({})
    """The security protocol of each listener; one that is not named is PLAINTEXT."""

    def __init__(
        self,
        *,
        node_id: int,
        cluster_id: str,
        settings: BrokerSettings,
        logs: LogStore,
        controller: ControllerChannel,
        image: MetadataImage,
        random_source: RandomSource,
        broker_epoch: Callable[[], int],
        report: ReportEvent = lambda name, **fields: None,
    ) -> None:
        """Start with an image without topics; `broker_epoch` is -1 while it is not registered."""
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.settings = settings
        self.logs = logs
        self.controller = controller
        self.image = image
        self.random_source = random_source
        self.broker_epoch = broker_epoch
        self.report = report
        self.producer_refusals = ProducerRefusals(report)
        self.completions: list[tuple[ReplyTo, Message | Silence]] = []
        self.bytes_out = self.replica_bytes_out = 0  # of records read, for metrics
        self.fetch_purgatory = FetchPurgatory()
        self.produce_purgatory = DelayedOperationPurgatory()
        self.delete_records_purgatory = DelayedOperationPurgatory()
        self.inter_broker_clients: list[InterBrokerClient] = []
        """The parts that send requests to other brokers, added when they are first needed."""
        self.replicas = self._new_replicas()
        self.partitions = self.replicas.partitions
        """Those that have a replica here; the same object as that of `replicas`."""
        self.fetch_sessions = _fetch_sessions(settings, random_source)
        self.producer_ids = ProducerIds(
            node_id, self._registered_epoch, self.ask_controller, self.complete
        )
        self.api_versions, self.described_topics = ResponseCache(), AnswersOfImage()
        self.followers: list[MetadataFollower] = []
        self._topic_creation: TopicCreation | None = None
        self.is_stopping = False
        self._groups: GroupCoordinator | None = None
        self._transactions: TransactionCoordinator | None = None
        self._transaction_verifier: TransactionVerifier | None = None
        self._now_ms = self._asked = 0
        self._awaited: dict[str, Callable[[Message, int], None]] = {}

    def _new_replicas(self) -> Replicas:
        env = ReplicaEnvironment(
            node_id=self.node_id,
            logs=self.logs,
            image=lambda: self.image,
            settings=lambda: self.settings,
            broker_epoch=self.broker_epoch,
            ask_controller=self.ask_controller,
            fetches=self.fetch_purgatory,
            produces=self.produce_purgatory,
            deletions=self.delete_records_purgatory,
            add_client=self.inter_broker_clients.append,
            follower_throttle=lambda: self.follower_throttle,
            report=self.report,
        )
        return Replicas(env)

    @property
    def groups(self) -> "GroupCoordinator":
        """The group coordinator, put in when it is first asked for: most of a start is imports."""
        if self._groups is None:
            self._groups = self._new_groups()
            self.followers.append(self._groups)
            self._groups.runtime.follow(self.image.topic(OFFSETS_TOPIC), self._now_ms)
        return self._groups

    def _new_groups(self) -> "GroupCoordinator":
        from kraft_wire.broker.groups.assembly import group_coordinator

        return group_coordinator(
            node_id=self.node_id,
            settings=lambda: self.settings,
            random_source=self.random_source,
            partition=self.partition,
            appended=self.replicas.appended,
            flushed=self.replicas.flushed,
            operations=self.produce_purgatory,
            complete=self.complete,
            ask_controller=self.ask_controller,
            now_ms=lambda: self._now_ms,
            image=lambda: self.image,
            share_persister=lambda: self.share_persister,
        )

    @property
    def transactions(self) -> "TransactionCoordinator":
        """The transaction coordinator, put in when it is first asked for, as that of groups."""
        if self._transactions is None:
            from kraft_wire.broker.transactions.assembly import coordinator_of

            self._transactions = coordinator_of(self)
            self.followers.append(self._transactions)
            self._transactions.follow(self.image.topic(TRANSACTION_TOPIC), self._now_ms)
        return self._transactions

    @property
    def moves(self) -> "ReplicaMoves":
        """The moves of replicas between log directories, created on first use."""
        if self._moves is None:
            assert self.new_moves is not None, "a broker with log directories can move replicas"
            self._moves = self.new_moves()
            self.followers.append(self._moves)
        return self._moves

    @property
    def share_states(self) -> "ShareStates":
        """The share coordinator and the client of all of them, created on first use."""
        if self._share_states is None:
            from kraft_wire.broker.share_state.share_states import ShareStates

            self._share_states = ShareStates(self)
        return self._share_states

    @property
    def share_persister(self) -> "SharePersister":
        """The client of all share coordinators."""
        return self.share_states.persister

    @property
    def now_ms(self) -> int:
        """The time of the last publication or tick."""
        return self._now_ms

    @property
    def groups_in_use(self) -> "GroupCoordinator | None":
        """The group coordinator, None before its first use."""
        return self._groups

    @property
    def transactions_in_use(self) -> "TransactionCoordinator | None":
        """The transaction coordinator, None before its first use."""
        return self._transactions

    @property
    def transaction_verifier(self) -> "TransactionVerifier":
        """The client of transaction coordinators, created for the first transactional producer."""
        if self._transaction_verifier is None:
            from kraft_wire.broker.producing.transaction_verifier import TransactionVerifier

            verifier = TransactionVerifier(self.node_id, lambda: self.image)
            self._transaction_verifier = verifier
            self.followers.append(verifier)
            client = verifier.client(self.settings.request_timeout_ms)
            self.inter_broker_clients.append(client)
        return self._transaction_verifier

    @property
    def topic_creation(self) -> "TopicCreation":
        """Has the controller create topics that clients name; created on first use."""
        if self._topic_creation is None:
            from kraft_wire.broker.metadata.topic_creation import TopicCreation

            self._topic_creation = TopicCreation(self.ask_controller)
        return self._topic_creation

    def partition(self, topic: str, partition: int) -> Partition | None:
        """Return a partition that this broker leads or replicates."""
        return self.partitions.get((topic, partition))

    def topic_name(self, topic_id: Uuid) -> str | None:
        """Return the topic that has an id now."""
        topic = self.image.topic_by_id(topic_id)
        return None if topic is None else topic.name

    def complete(self, reply_to: ReplyTo, response: Message | Silence) -> None:
        """Answer a parked request, or report that it gets no answer."""
        self.completions.append((reply_to, response))

    def ask_controller(self, request: Message, answered: Callable[[Message, int], None]) -> None:
        """Send a request of the broker's own; `answered` runs after this has returned, or never."""
        self._asked += 1
        tag = f"broker-{self._asked}"
        self._awaited[tag] = answered
        self.controller.send(tag, request)

    def controller_answered(self, tag: str, response: Message, now_ms: int) -> None:
        """Hand an answer of the controller to the request that waits for it."""
        answered = self._awaited.pop(tag, None)
        assert answered is not None, tag
        answered(response, now_ms)

    def publish(self, delta: MetadataDelta, now_ms: int, wall_ms: int) -> None:
        """Follow a new image: first the replicas, then the other followers."""
        assert delta.before is self.image, "nothing was left out on the way"
        self.image = delta.after
        self._now_ms = now_ms
        self.replicas.follow(delta, now_ms, wall_ms)
        for follower in self.followers:
            follower.published(delta, now_ms)
        self.fetch_purgatory.run_woken(now_ms)

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Answer the requests whose deadline has passed."""
        self._now_ms = now_ms
        self.replicas.open_again(now_ms, wall_ms)
        for follower in self.followers:
            follower.tick(now_ms, wall_ms)
        self.fetch_purgatory.run_woken(now_ms)
        self.fetch_purgatory.expire(now_ms)
        self.produce_purgatory.expire(now_ms)
        self.delete_records_purgatory.expire(now_ms)
        leading = self.replicas.leading
        if leading is not None:
            leading.tick(now_ms)
        self.producer_ids.expire(now_ms)
        self.producer_refusals.tick(now_ms)

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next, None if nothing waits."""
        leading = self.replicas.leading
        deadlines = [
            self.fetch_purgatory.deadline_ms(),
            self.produce_purgatory.deadline_ms(),
            self.delete_records_purgatory.deadline_ms(),
            None if leading is None else leading.deadline_ms(),
            self.producer_ids.deadline_ms(),
        ]
        deadlines += [follower.deadline_ms() for follower in self.followers]
        return min((at for at in deadlines if at is not None), default=None)

    def connection_closed(self, connection_id: int) -> None:
        """Drop the waiting requests of a closed connection, and end its share sessions."""
        self.fetch_purgatory.forget(connection_id)
        self.produce_purgatory.forget(connection_id)
        self.delete_records_purgatory.forget(connection_id)
        self.producer_ids.forget(connection_id)
        if self.share_partitions is not None:
            self.share_partitions.connection_closed(connection_id)

    def stop(self, now_ms: int) -> None:
        """Stop fetchers, unload groups and answer waiting requests, so that connections close."""
        self.is_stopping = True
        self.replicas.stop()
        for follower in self.followers:
            follower.stop()
        self.fetch_purgatory.complete_all(now_ms)
        self.producer_ids.answer_waiting()

    def _registered_epoch(self) -> int | None:
        registered = self.image.brokers.get(self.node_id)
        return None if registered is None else registered.broker_epoch


def _fetch_sessions(settings: BrokerSettings, random_source: RandomSource) -> FetchSessionCache:
    return FetchSessionCache(
        settings.max_incremental_fetch_session_cache_slots,
        random_source,
        partitions=settings.max_incremental_fetch_session_cache_partitions,
    )
