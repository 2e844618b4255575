"""The replicas of this broker: opened, led, fetched from leaders, taken offline, and deleted.

`follow` applies changed metadata; a failed disk takes replicas offline (`Partition.failed`), and
`open_again` retries those that have no log. `appended` and `flushed` are called after a log has
grown. Read next: `partition`, `replication.leader_side`, `replication.fetchers`. Not here: requests
(`handlers`), and the state of one partition's other replicas (`replication.leadership`).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kraft_wire.broker.inter_broker import InterBrokerClient
from kraft_wire.broker.metadata.metadata_cache import no_replica_error
from kraft_wire.broker.offline_log import OfflineLog
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import AskController, LogStore, PartitionLog
from kraft_wire.broker.purgatory import DelayedOperationPurgatory, FetchPurgatory
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.frozen import frozen
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import TOPIC_RESOURCE, MetadataImage, PartitionImage, TopicImage
from kraft_wire.model import (
    NO_REPLICA,
    LeaderEpoch,
    Offset,
    ReportEvent,
    StorageError,
    TopicPartition,
)
from kraft_wire.wire.generated.error_code import ErrorCode

if TYPE_CHECKING:
    from kraft_wire.broker.replication.fetchers import ReplicaFetchers
    from kraft_wire.broker.replication.leader_side import LeaderSide
    from kraft_wire.broker.replication.throttle import ReplicationThrottle

__all__ = ["ReplicaEnvironment", "Replicas"]


@frozen
class ReplicaEnvironment:
    """The parts of a broker that its replicas use."""

    node_id: int
    logs: LogStore
    image: Callable[[], MetadataImage]
    settings: Callable[[], BrokerSettings]
    """Read at each use: a dynamic change replaces the settings as a whole."""
    broker_epoch: Callable[[], int]
    """Epoch of this incarnation, -1 while it is not registered."""
    ask_controller: AskController
    fetches: FetchPurgatory
    produces: DelayedOperationPurgatory
    deletions: DelayedOperationPurgatory
    add_client: Callable[[InterBrokerClient], None]
    """Takes the client that fetches from other brokers."""
    follower_throttle: "Callable[[], ReplicationThrottle | None]"
    """Returns the bound for fetches of throttled partitions (KIP-73)."""
    report: ReportEvent


class Replicas:
    """The partitions of which this broker has a replica."""

    def __init__(self, env: ReplicaEnvironment) -> None:
        """Start without any."""
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.unflushed: dict[tuple[str, int], Partition] = {}
        """Partitions with an append that must reach the disk before it is acknowledged."""
        self.leading: LeaderSide | None = None
        """The led partitions with other replicas, None before the first one."""
        self.fetchers: ReplicaFetchers | None = None
        """The followed partitions, None before the first one."""
        self.has_replicated = False
        """Whether a partition ever had other replicas than this broker's."""
        self._env = env
        self._unopened: dict[TopicPartition, StorageError] = {}
        """Partitions without a log, because the disk failed or the log is damaged."""
        self._offline: dict[str, dict[int, None]] = {}
        """Partitions out of use, those without a log among them, by topic."""

    # -- a log has grown -------------------------------------------------------------------------

    def appended(self, partition: Partition) -> None:
        """Wake requests that wait for a partition's growth, or have it flushed first."""
        log = partition.log
        if partition.leadership is not None:
            assert self.leading is not None, "a leader of other replicas has its state"
            self.leading.appended(partition)
        elif log.high_watermark < log.log_end_offset:
            self.unflushed[partition.topic, partition.partition] = partition
        else:
            self._env.fetches.wake(partition)

    def flushed(self, ends: Mapping[tuple[str, int], Offset], now_ms: int) -> None:
        """Acknowledge the records of a flush, up to the end of each log at its start."""
        for name, end_offset in ends.items():
            partition = self.partitions.get(name)
            if partition is not None:
                before = partition.log.high_watermark
                partition.flushed(end_offset, now_ms)
                if partition.log.high_watermark != before:
                    self._env.fetches.wake_readers(partition)
                self._env.produces.check(partition)
        self._env.fetches.run_woken(now_ms)

    # -- the metadata ----------------------------------------------------------------------------

    def follow(self, delta: MetadataDelta, now_ms: int, wall_ms: int) -> None:
        """Create, reconfigure and delete partitions; the cost depends on the changes.

        But a change of brokers or settings concerns all led partitions with other replicas.
        """
        for name in delta.deleted.values():
            self._delete_topic(delta.before.topics_by_name[name])
        for name, numbers in delta.topics.items():
            self._follow_topic(delta.after.topics_by_name[name], numbers, now_ms, wall_ms)
        for name in delta.configured_topics:
            self._configure_topic(delta.after.topics_by_name[name])
        self._env.logs.settle()
        if self.leading is not None and (delta.changes_brokers or delta.configs):
            self.leading.look_again(now_ms)
        if self.fetchers is not None:
            self.fetchers.retain(delta.after.brokers)

    def stop(self) -> None:
        """Stop to fetch from leaders."""
        if self.fetchers is not None:
            self.fetchers.stop()

    def _follow_topic(
        self, topic: TopicImage, changed: Sequence[int], now_ms: int, wall_ms: int
    ) -> None:
        """Follow the partitions that have changed, and try those again that are offline."""
        config = self._env.image().config(TOPIC_RESOURCE, topic.name)
        offline = self._offline.get(topic.name)
        numbers = sorted({*changed, *offline}) if offline else changed
        for number in numbers:
            view = topic.partitions[number]
            if self._env.node_id in view.replicas:
                self._follow_partition(topic, view, config, now_ms, wall_ms)
            else:
                self._leave_partition(TopicPartition(topic.name, number))

    def _configure_topic(self, topic: TopicImage) -> None:
        config = self._env.image().config(TOPIC_RESOURCE, topic.name)
        for number in topic.partitions:
            if (topic.name, number) in self.partitions:
                self._env.logs.configure(TopicPartition(topic.name, number), config)

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
            if tuple(view.replicas) == (self._env.node_id,):
                # The only replica commits alone. With other replicas the checkpoint has the high
                # watermark.
                partition.log.high_watermark = partition.log.log_end_offset
        is_leader = view.leader == self._env.node_id
        if is_leader and view.leader_epoch > (partition.log.epochs.latest or 0):
            # KIP-101: an epoch begins where its leader found the log, records or none.
            epoch = LeaderEpoch(view.leader_epoch)
            partition.log.epochs.announce(epoch, partition.log.log_end_offset)
        if view.leader_epoch != partition.leader_epoch:
            partition.verifications = None  # another leader may have appended since
        partition.leader_epoch = LeaderEpoch(view.leader_epoch)
        partition.is_leader = is_leader
        self._lead(partition, view, now_ms)
        assert partition.leadership is None or partition.is_leader, name
        self._env.fetches.wake(partition)
        if not partition.is_leader:
            self._env.produces.check(partition)
            self._env.deletions.check(partition)
        self.has_replicated = self.has_replicated or len(view.replicas) > 1
        if view.leader in (self._env.node_id, NO_REPLICA) or partition.offline:
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
            self._env.produces.check(partition)
            self._env.deletions.check(partition)

    def _fetch(self, partition: Partition, leader_id: int, now_ms: int) -> None:
        """Follow a partition; the first one imports the modules that only a follower needs."""
        if self.fetchers is None:
            self.fetchers = self._new_fetchers()
        self.fetchers.follow(partition, leader_id, now_ms)

    def _new_leader_side(self, now_ms: int) -> "LeaderSide":
        from kraft_wire.broker.replication.leader_side import LeaderEnvironment, LeaderSide

        env = LeaderEnvironment(
            node_id=self._env.node_id,
            image=self._env.image,
            settings=self._env.settings,
            broker_epoch=self._env.broker_epoch,
            ask_controller=self._env.ask_controller,
            order_flush=self._order_flush,
            fetches=self._env.fetches,
            produces=self._env.produces,
            deletions=self._env.deletions,
            report=self._env.report,
        )
        return LeaderSide(env, now_ms)

    def _new_fetchers(self) -> "ReplicaFetchers":
        from kraft_wire.broker.replication.fetchers import ReplicaFetchers
        from kraft_wire.broker.replication.following import FollowerEnvironment

        env = FollowerEnvironment(
            report=self._env.report,
            expect_gaps=self._env.logs.expect_gaps,
            grew=self._env.fetches.wake_readers,
        )
        fetchers = ReplicaFetchers(self._env.node_id, self._env.settings, env, self._order_flush)
        fetchers.throttle = self._env.follower_throttle
        self._env.add_client(
            InterBrokerClient(
                f"broker-{self._env.node_id}-fetcher-0",
                self._env.settings().source.integer("replica.socket.timeout.ms"),
                lambda: fetchers.by_leader,
            )
        )
        return fetchers

    def _order_flush(self, partition: Partition) -> None:
        self.unflushed[partition.topic_partition] = partition

    def _open_partition(
        self, topic: TopicImage, name: TopicPartition, config: Mapping[str, str], wall_ms: int
    ) -> Partition:
        """Return the partition with its log, or offline if the disk gives none."""
        log: PartitionLog | None = None
        try:
            log = self._env.logs.get(name)
            if log is None:
                log = self._env.logs.create(name, topic.topic_id, config, wall_ms)
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

    def open_again(self, now_ms: int, wall_ms: int) -> None:
        """Retry the partitions whose log could not be created, now that the disk may work again."""
        if not self._unopened:
            return
        for name in list(self._unopened):
            topic = self._env.image().topic(name.topic)
            view = None if topic is None else topic.partitions.get(name.partition)
            if topic is None or view is None:
                del self._unopened[name]  # deleted meanwhile
            elif not self._is_refused_still(name):
                config = self._env.image().config(TOPIC_RESOURCE, topic.name)
                self._follow_partition(topic, view, config, now_ms, wall_ms)
        self._env.logs.settle()

    def _is_refused_still(self, name: TopicPartition) -> bool:
        """Whether a log is there and refused as before: a directory that failed may have many."""
        try:
            self._env.logs.get(name)
        except StorageError as error:
            return error is self._unopened[name]
        return False

    def _disk_failed(self, name: TopicPartition, error: StorageError) -> None:
        """Take the partitions offline that the log store reports as lost with this error."""
        for lost in self._env.logs.failed(name, error):
            partition = self.partitions.get(lost)
            if partition is not None:
                partition.offline = True
                self._offline.setdefault(lost.topic, {})[lost.partition] = None
                self._env.fetches.wake(partition)
                self._env.produces.check(partition)
                self._env.deletions.check(partition)
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
            self._env.fetches.wake(partition)
            self._env.produces.fail(name, no_replica_error(self._env.image(), *name))
            self._env.deletions.fail(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if self.leading is not None:
                self.leading.resign(partition)
            if self.fetchers is not None:
                self.fetchers.forget(partition)
            self.unflushed.pop(name, None)
            self._env.logs.delete(name)
