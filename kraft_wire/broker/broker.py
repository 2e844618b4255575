"""The broker: the partitions that it leads or follows, waiting requests, and its metadata.

Handlers (`handlers/`, one file per API) are functions over a `Broker`. `publish` follows the
metadata image; `tick` follows time; delayed answers leave through `completions`, which the node
drains. Partitions that other brokers lead are fetched from them (`replication/`). Not here:
sockets, decoding, and the controller.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from kraft_wire.broker.context import ReplyTo, RequestContext, Silence
from kraft_wire.broker.fetching.fetch_sessions import FetchSessionCache
from kraft_wire.broker.inter_broker import InterBrokerClient
from kraft_wire.broker.metadata.metadata_cache import (
    OFFSETS_TOPIC,
    TRANSACTION_TOPIC,
    no_replica_error,
)
from kraft_wire.broker.offline_log import OfflineLog
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import ControllerChannel, LogStore, PartitionLog
from kraft_wire.broker.producing.producer_ids import ProducerIds
from kraft_wire.broker.producing.producer_refusals import ProducerRefusals
from kraft_wire.broker.purgatory import DelayedOperationPurgatory, FetchPurgatory
from kraft_wire.broker.response_cache import (
    AnswersOfImage,
    NoAnswersOfImage,
    ResponseCache,
)
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import TOPIC_RESOURCE, MetadataImage, PartitionImage, TopicImage
from kraft_wire.model import (
    NO_REPLICA,
    LeaderEpoch,
    Offset,
    RandomSource,
    ReportEvent,
    StorageError,
    TopicPartition,
    Uuid,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

if TYPE_CHECKING:
    from kraft_wire.broker.fetching.fetch_quota import FetchQuota
    from kraft_wire.broker.groups.coordinator import GroupCoordinator
    from kraft_wire.broker.metadata.topic_creation import TopicCreation
    from kraft_wire.broker.producing.transaction_verifier import TransactionVerifier
    from kraft_wire.broker.replication.fetchers import ReplicaFetchers
    from kraft_wire.broker.replication.leader_side import LeaderSide
    from kraft_wire.broker.replication.throttle import ReplicationThrottle
    from kraft_wire.broker.share_fetch.share_partitions import SharePartitions, ShareRights
    from kraft_wire.broker.share_persister import SharePersister
    from kraft_wire.broker.share_state.share_states import ShareStates
    from kraft_wire.broker.transactions.coordinator import TransactionCoordinator

__all__ = ["Broker", "FetchRights", "MetadataFollower", "TopicRights"]


class FetchRights(Protocol):
    """The authorizer's decisions about one fetch."""

    def __call__(
        self, context: RequestContext, *, is_follower: bool
    ) -> Callable[[str | None], bool]:
        """Return whether a topic may be read; None is a topic that does not exist."""
        ...


class TopicRights(Protocol):
    """The authorizer's decisions about topics that no request names."""

    def __call__(self, context: RequestContext) -> Callable[[str], bool]:
        """Return whether a request's principal has a right on a topic."""
        ...


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

    fetch_rights: FetchRights | None = None
    """Authorizes the partitions of fetches; None without an authorizer."""
    topic_rights: TopicRights | None = None
    """Authorizes the topics that regular expressions match; None without an authorizer."""
    creation_rights: TopicRights | None = None
    """Authorizes the internal topics of streams groups; None without an authorizer."""
    share_rights: "ShareRights | None" = None
    """Authorizes the topics of share fetches and acknowledgements; None without an authorizer."""
    share_partitions: "SharePartitions | None" = None
    """The share partitions that are led here; None before the first request about one."""
    fetch_quota: "FetchQuota | None" = None
    """Measures the fetches of consumers; None until the first quota is set."""
    leader_throttle: "ReplicationThrottle | None" = None
    """Bounds what followers get of throttled partitions; None while there are none (KIP-73)."""
    follower_throttle: "ReplicationThrottle | None" = None
    """Bounds what this broker fetches of them."""
    described_topics: AnswersOfImage | NoAnswersOfImage
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
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.completions: list[tuple[ReplyTo, Message | Silence]] = []
        self.unflushed: dict[tuple[str, int], Partition] = {}
        """Partitions with an append that must reach the disk before it is acknowledged."""
        self.bytes_out = self.replica_bytes_out = 0  # of records read, for metrics
        self.fetch_purgatory = FetchPurgatory()
        self.produce_purgatory = DelayedOperationPurgatory()
        self.delete_records_purgatory = DelayedOperationPurgatory()
        self.fetch_sessions = _fetch_sessions(settings, random_source)
        self.producer_ids = ProducerIds(
            node_id, self._registered_epoch, self.ask_controller, self.complete
        )
        self.api_versions, self.described_topics = ResponseCache(), AnswersOfImage()
        self.followers: list[MetadataFollower] = []
        self.inter_broker_clients: list[InterBrokerClient] = []
        """The parts that send requests to other brokers, added when they are first needed."""
        self.leading: LeaderSide | None = None
        """The led partitions with other replicas, None before the first one."""
        self.fetchers: ReplicaFetchers | None = None
        """The followed partitions, None before the first one."""
        self._topic_creation: TopicCreation | None = None
        self.is_stopping = False
        self.has_replicated = False
        """Whether a partition ever had other replicas than this broker's."""
        self._groups: GroupCoordinator | None = None
        self._transactions: TransactionCoordinator | None = None
        self._transaction_verifier: TransactionVerifier | None = None
        self._now_ms = self._asked = 0
        self._awaited: dict[str, Callable[[Message, int], None]] = {}
        self._unopened: dict[TopicPartition, StorageError] = {}
        """Partitions without a log, because the disk failed or the log is damaged."""
        self._offline: dict[str, dict[int, None]] = {}
        """Partitions out of use, those without a log among them, by topic."""

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
            appended=self.appended,
            flushed=self.flushed,
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

    def appended(self, partition: Partition) -> None:
        """Wake requests that wait for a partition's growth, or have it flushed first."""
        log = partition.log
        if partition.leadership is not None:
            assert self.leading is not None, "a leader of other replicas has its state"
            self.leading.appended(partition)
        elif log.high_watermark < log.log_end_offset:
            self.unflushed[partition.topic, partition.partition] = partition
        else:
            self.fetch_purgatory.wake(partition)

    def flushed(self, ends: Mapping[tuple[str, int], Offset], now_ms: int) -> None:
        """Acknowledge the records of a flush, up to the end of each log at its start."""
        for name, end_offset in ends.items():
            partition = self.partitions.get(name)
            if partition is not None:
                before = partition.log.high_watermark
                partition.flushed(end_offset, now_ms)
                if partition.log.high_watermark != before:
                    self.fetch_purgatory.wake_readers(partition)
                self.produce_purgatory.check(partition)
        self.fetch_purgatory.run_woken(now_ms)

    def publish(self, delta: MetadataDelta, now_ms: int, wall_ms: int) -> None:
        """Follow a new image: create, reconfigure and delete partitions, then tell followers.

        The cost depends on the changes; but a change of brokers or settings concerns all led
        partitions with other replicas.
        """
        assert delta.before is self.image, "nothing was left out on the way"
        self.image = delta.after
        self._now_ms = now_ms
        for name in delta.deleted.values():
            self._delete_topic(delta.before.topics_by_name[name])
        for name, numbers in delta.topics.items():
            self._follow_topic(delta.after.topics_by_name[name], numbers, now_ms, wall_ms)
        for name in delta.configured_topics:
            self._configure_topic(delta.after.topics_by_name[name])
        self.logs.settle()
        if self.leading is not None and (delta.changes_brokers or delta.configs):
            self.leading.look_again(now_ms)
        if self.fetchers is not None:
            self.fetchers.retain(delta.after.brokers)
        for follower in self.followers:
            follower.published(delta, now_ms)
        self.fetch_purgatory.run_woken(now_ms)

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Answer the requests whose deadline has passed."""
        self._now_ms = now_ms
        if self._unopened:
            self._open_again(now_ms, wall_ms)
        for follower in self.followers:
            follower.tick(now_ms, wall_ms)
        self.fetch_purgatory.run_woken(now_ms)
        self.fetch_purgatory.expire(now_ms)
        self.produce_purgatory.expire(now_ms)
        self.delete_records_purgatory.expire(now_ms)
        if self.leading is not None:
            self.leading.tick(now_ms)
        self.producer_ids.expire(now_ms)

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next, None if nothing waits."""
        deadlines = [
            self.fetch_purgatory.deadline_ms(),
            self.produce_purgatory.deadline_ms(),
            self.delete_records_purgatory.deadline_ms(),
            None if self.leading is None else self.leading.deadline_ms(),
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
        if self.fetchers is not None:
            self.fetchers.stop()
        for follower in self.followers:
            follower.stop()
        self.fetch_purgatory.complete_all(now_ms)
        self.producer_ids.answer_waiting()

    def _follow_topic(
        self, topic: TopicImage, changed: Sequence[int], now_ms: int, wall_ms: int
    ) -> None:
        """Follow the partitions that have changed, and try those again that are offline."""
        config = self.image.config(TOPIC_RESOURCE, topic.name)
        offline = self._offline.get(topic.name)
        numbers = sorted({*changed, *offline}) if offline else changed
        for number in numbers:
            view = topic.partitions[number]
            if self.node_id in view.replicas:
                self._follow_partition(topic, view, config, now_ms, wall_ms)
            else:
                self._leave_partition(TopicPartition(topic.name, number))

    def _configure_topic(self, topic: TopicImage) -> None:
        config = self.image.config(TOPIC_RESOURCE, topic.name)
        for number in topic.partitions:
            if (topic.name, number) in self.partitions:
                self.logs.configure(TopicPartition(topic.name, number), config)

    def _follow_partition(
        self,
        topic: TopicImage,
        view: PartitionImage,
        config: Mapping[str, str],
        now_ms: int,
        wall_ms: int,
    ) -> None:
        name = TopicPartition(topic.name, view.partition)
        partition = self.partitions.get(name)
        if partition is None or name in self._unopened:
            partition = self._open_partition(topic, name, config, wall_ms)
            if tuple(view.replicas) == (self.node_id,):
                # The only replica commits alone. With other replicas the checkpoint has the high
                # watermark.
                partition.log.high_watermark = partition.log.log_end_offset
        if view.leader == self.node_id and view.leader_epoch > (partition.log.epochs.latest or 0):
            # KIP-101: an epoch begins where its leader found the log, records or none.
            epoch = LeaderEpoch(view.leader_epoch)
            partition.log.epochs.announce(epoch, partition.log.log_end_offset)
        if view.leader_epoch != partition.leader_epoch:
            partition.verifications = None  # another leader may have appended since
        partition.leader_epoch = LeaderEpoch(view.leader_epoch)
        partition.is_leader = view.leader == self.node_id
        self._lead(partition, view, now_ms)
        self.fetch_purgatory.wake(partition)
        if not partition.is_leader:
            self.produce_purgatory.check(partition)
            self.delete_records_purgatory.check(partition)
        self.has_replicated = self.has_replicated or len(view.replicas) > 1
        if view.leader in (self.node_id, NO_REPLICA) or partition.offline:
            if self.fetchers is not None:
                self.fetchers.forget(partition)
        else:
            self._fetch(partition, view.leader, now_ms)

    def _lead(self, partition: Partition, view: PartitionImage, now_ms: int) -> None:
        """Start or stop to lead a partition, with its other replicas or alone."""
        leads = partition.is_leader and not partition.offline
        if leads and len(view.replicas) > 1:
            if self.leading is None:
                self.leading = self._new_leader_side(now_ms)
            self.leading.lead(partition, view, now_ms)
            return
        if self.leading is not None:
            self.leading.resign(partition)
        if leads:
            partition.lead_alone()
            self.produce_purgatory.check(partition)
            self.delete_records_purgatory.check(partition)

    def _fetch(self, partition: Partition, leader_id: int, now_ms: int) -> None:
        """Follow a partition; the first one imports the modules that only a follower needs."""
        if self.fetchers is None:
            self.fetchers = self._new_fetchers()
        self.fetchers.follow(partition, leader_id, now_ms)

    def _new_leader_side(self, now_ms: int) -> "LeaderSide":
        from kraft_wire.broker.replication.leader_side import LeaderEnvironment, LeaderSide

        env = LeaderEnvironment(
            node_id=self.node_id,
            image=lambda: self.image,
            settings=lambda: self.settings,
            broker_epoch=self.broker_epoch,
            ask_controller=self.ask_controller,
            order_flush=self._order_flush,
            fetches=self.fetch_purgatory,
            produces=self.produce_purgatory,
            deletions=self.delete_records_purgatory,
            report=self.report,
        )
        return LeaderSide(env, now_ms)

    def _new_fetchers(self) -> "ReplicaFetchers":
        from kraft_wire.broker.replication.fetchers import ReplicaFetchers
        from kraft_wire.broker.replication.following import FollowerEnvironment

        env = FollowerEnvironment(
            report=self.report,
            expect_gaps=self.logs.expect_gaps,
            grew=self.fetch_purgatory.wake_readers,
        )
        fetchers = ReplicaFetchers(self.node_id, lambda: self.settings, env, self._order_flush)
        fetchers.throttle = lambda: self.follower_throttle
        self.inter_broker_clients.append(
            InterBrokerClient(
                f"broker-{self.node_id}-fetcher-0",
                self.settings.source.integer("replica.socket.timeout.ms"),
                lambda: fetchers.by_leader,
            )
        )
        return fetchers

    def _order_flush(self, partition: Partition) -> None:
        self.unflushed[partition.topic_partition] = partition

    def _registered_epoch(self) -> int | None:
        registered = self.image.brokers.get(self.node_id)
        return None if registered is None else registered.broker_epoch

    def _open_partition(
        self, topic: TopicImage, name: TopicPartition, config: Mapping[str, str], wall_ms: int
    ) -> Partition:
        """Return the partition with its log, or offline if the disk gives none."""
        log: PartitionLog | None = None
        try:
            log = self.logs.get(name)
            if log is None:
                log = self.logs.create(name, topic.topic_id, config, wall_ms)
            self._unopened.pop(name, None)
        except StorageError as error:
            log = OfflineLog(error)
            self._unopened[name] = error
        partition = Partition(topic.name, topic.topic_id, name.partition, log, LeaderEpoch(0))
        partition.offline = name in self._unopened
        partition.failed = partial(self._disk_failed, name)
        self.partitions[name] = partition
        self._offline.get(name.topic, {}).pop(name.partition, None)
        if name in self._unopened:
            self._disk_failed(name, self._unopened[name])
        return partition

    def _open_again(self, now_ms: int, wall_ms: int) -> None:
        """Retry the partitions whose log could not be created, now that the disk may work again."""
        for name in list(self._unopened):
            topic = self.image.topic(name.topic)
            view = None if topic is None else topic.partitions.get(name.partition)
            if topic is None or view is None:
                del self._unopened[name]  # deleted meanwhile
            elif not self._is_refused_still(name):
                config = self.image.config(TOPIC_RESOURCE, topic.name)
                self._follow_partition(topic, view, config, now_ms, wall_ms)
        self.logs.settle()

    def _is_refused_still(self, name: TopicPartition) -> bool:
        """Whether a log is there and refused as before: a directory that failed may have many."""
        try:
            self.logs.get(name)
        except StorageError as error:
            return error is self._unopened[name]
        return False

    def _disk_failed(self, name: TopicPartition, error: StorageError) -> None:
        """Take the partitions offline that the log store reports as lost with this error."""
        for lost in self.logs.failed(name, error):
            partition = self.partitions.get(lost)
            if partition is not None:
                partition.offline = True
                self._offline.setdefault(lost.topic, {})[lost.partition] = None
                self.fetch_purgatory.wake(partition)
                self.produce_purgatory.check(partition)
                self.delete_records_purgatory.check(partition)
                if self.fetchers is not None:
                    self.fetchers.forget(partition)

    def _delete_topic(self, topic: TopicImage) -> None:
        for number in topic.partitions:
            self._leave_partition(TopicPartition(topic.name, number))
        assert not self._offline.pop(topic.name, None), topic.name

    def _leave_partition(self, name: TopicPartition) -> None:
        """Delete the log of a partition that is deleted, or reassigned to other brokers."""
        partition = self.partitions.pop(name, None)
        self._unopened.pop(name, None)
        self._offline.get(name.topic, {}).pop(name.partition, None)
        if partition is not None:
            # Non-obvious 1: a session or a parked fetch may still hold the partition.
            partition.is_leader = False
            self.fetch_purgatory.wake(partition)
            self.produce_purgatory.fail(name, no_replica_error(self.image, *name))
            self.delete_records_purgatory.fail(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if self.leading is not None:
                self.leading.resign(partition)
            if self.fetchers is not None:
                self.fetchers.forget(partition)
            self.unflushed.pop(name, None)
            self.logs.delete(name)


def _fetch_sessions(settings: BrokerSettings, random_source: RandomSource) -> FetchSessionCache:
    return FetchSessionCache(
        settings.max_incremental_fetch_session_cache_slots,
        random_source,
        partitions=settings.max_incremental_fetch_session_cache_partitions,
    )
