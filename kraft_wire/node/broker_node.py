"""The broker of a node, over its log directories: its flushes, and its work by the clock.

It follows the committed image. It opens its logs with the first image, which has the settings of
their topics, and because only a complete image shows which logs are strays.

Not here: requests (`node`), the metadata log (`raft_io`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.metadata.metadata_cache import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_TOPIC,
)
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import ControllerChannel
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.controller.controller import layered
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import EMPTY_IMAGE, TOPIC_RESOURCE, MetadataImage
from kraft_wire.model import RandomSource, ReportEvent, StorageError, TopicPartition, sooner
from kraft_wire.node.config.listeners import inter_broker_listener
from kraft_wire.node.config.node_config import NodeConfig
from kraft_wire.node.disks.flushing import Flushing
from kraft_wire.node.disks.log_store import NodeLogStore
from kraft_wire.node.disks.maintenance import Maintenance
from kraft_wire.node.disks.opening import set_strays_aside
from kraft_wire.node.disks.refused_appends import RefusedAppends
from kraft_wire.node.outputs import Output
from kraft_wire.node.quotas.replication_quota import ReplicationQuota
from kraft_wire.node.quotas.windows import Windows
from kraft_wire.node.registration.directory_assignments import DirectoryAssignments
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.files import FileSystem
from kraft_wire.wire.message import DecodeLimits, Message

if TYPE_CHECKING:
    from kraft_wire.broker.inter_broker import InterBrokerClient
    from kraft_wire.broker.replication.moving import ReplicaMoves
    from kraft_wire.node.links.broker_links import BrokerLinks
    from kraft_wire.node.requests.own_settings import OwnSettings
    from kraft_wire.node.security.store_changes import StoreChanges

__all__ = ["BrokerNode", "LinkNeeds", "own_settings", "store_changes"]

_MOVE_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"


class LinkNeeds(NamedTuple):
    """The node's values that links to other brokers need."""

    broker_epoch: Callable[[], int]
    """Returns the broker epoch, -1 while the broker is not registered."""
    link_ids: Iterator[int]
    """The node's link ids, which all owners of links share."""
    decode_limits: DecodeLimits


class BrokerNode:
    """A broker with the parts of a node that only brokers need."""

    def __init__(
        self,
        fs: FileSystem,
        config: NodeConfig,
        directories: list[LogDirectory],
        random_source: RandomSource,
        controller: ControllerChannel,
        report: ReportEvent,
        now_ms: int,
        link_needs: LinkNeeds,
        went_offline: Callable[[LogDirectory], None],
        refused: RefusedAppends,
    ) -> None:
        """Call `went_offline` once for each log directory that fails."""
        meta = directories[0].meta
        assert meta is not None, "opened directories are formatted"
        self.settings = config.settings
        """The node's settings under the dynamic values of the published image."""
        self.store = NodeLogStore(
            fs, directories, config.settings, report, self._directory_failed, refused
        )
        self.broker = Broker(
            node_id=config.node_id,
            cluster_id=meta.cluster_id,
            settings=BrokerSettings.of(config.settings),
            logs=self.store,
            controller=controller,
            image=EMPTY_IMAGE,
            random_source=random_source,
            broker_epoch=link_needs.broker_epoch,
            report=report,
        )
        self.broker.listener_protocols = config.listener_protocols
        self._places = DirectoryAssignments(
            config.node_id, directories, link_needs.broker_epoch, self.broker.ask_controller
        )
        self.broker.followers.append(self._places)
        self.broker.new_moves = self._new_moves
        self.links: list[BrokerLinks] = []  # to other brokers, one for each inter-broker client
        self.flushing = Flushing(self.broker.replicas)
        self.maintenance = Maintenance(
            fs,
            self.store,
            config.settings,
            now_ms,
            self._disk_failed,
            lambda: self.broker.replicas.has_replicated,
            report,
        )
        windows = Windows.of(config.settings, "replication.")
        self.leader_throttle = ReplicationQuota("leader", config.node_id, windows)
        self.follower_throttle = ReplicationQuota("follower", config.node_id, windows)
        self.move_throttle = _move_throttle(config)
        self._link_needs = link_needs
        self._went_offline = went_offline
        self._fs = fs
        self._config = config
        self._directories: Sequence[LogDirectory] = directories
        self._report = report
        self._is_open = self._has_copies = False

    def publish(self, delta: MetadataDelta, now_ms: int, wall_ms: int) -> None:
        """Apply the delta to a committed image; the first one opens the logs."""
        image = delta.after
        if delta.changes_settings_of(self._config.node_id):
            self.settings = layered(self._config.settings, image, self._config.node_id)
            self.broker.settings = BrokerSettings.of(self.settings)
            self.store.configure_all(self.settings)
            self.maintenance.configure(self.settings)
        self._follow_throttles(delta)
        if not self._is_open:
            self._open(image, wall_ms)
        self.broker.publish(delta, now_ms, wall_ms)
        if self._has_copies:
            self._has_copies = False
            assert self.broker.moves is not None, "moves continue from the start on"
        if image.topic(OFFSETS_TOPIC) is not None:
            assert self.broker.groups is not None, "committed offsets are loaded from the start on"
        if image.topic(TRANSACTION_TOPIC) is not None:
            assert self.broker.transactions is not None, "as are transactions"
        if image.topic(SHARE_STATE_TOPIC) is not None:
            assert self.broker.share_states.coordinator is not None, (
                "and states of share partitions"
            )

    def _follow_throttles(self, delta: MetadataDelta) -> None:
        """Throttle the replicas that topics list, with the rates of this broker (KIP-73)."""
        leader, follower = self.leader_throttle, self.follower_throttle
        leader.follow(delta)
        follower.follow(delta)
        self.move_throttle.follow(delta)
        self.broker.leader_throttle = leader if leader.has_replicas else None
        self.broker.follower_throttle = follower if follower.has_replicas else None

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Do the broker's work that is due by time; `maintain` must follow."""
        self.broker.tick(now_ms, wall_ms)
        for links in self.links:
            links.tick(now_ms, wall_ms)

    def maintain(self, now_ms: int, wall_ms: int) -> None:
        """Do the disks' tasks that are due."""
        self.maintenance.tick(now_ms, wall_ms)

    def deadline_ms(self) -> int:
        """Return when `tick` and `maintain` are needed next."""
        deadline = self.broker.deadline_ms()
        for links in self.links:
            deadline = sooner(deadline, links.deadline_ms())
        maintenance = self.maintenance.deadline_ms()
        return maintenance if deadline is None else min(deadline, maintenance)

    def after(
        self, outputs: list[Output], flush_ids: Iterator[int], now_ms: int, wall_ms: int
    ) -> None:
        """End a call of the node: send inter-broker requests, run woken fetches, order a flush."""
        broker = self.broker
        if broker.inter_broker_clients:
            self._exchange(outputs, now_ms, wall_ms)
        if broker.fetch_purgatory.woken:
            broker.fetch_purgatory.run_woken(now_ms)
        if broker.replicas.unflushed:
            order = self.flushing.begin(flush_ids)
            if order is not None:
                outputs.append(order)

    def _exchange(self, outputs: list[Output], now_ms: int, wall_ms: int) -> None:
        """Send the requests of inter-broker clients; a local response may cause more."""
        for client in self.broker.inter_broker_clients[len(self.links) :]:
            self.links.append(self._new_links(client))
        is_pumped = False
        while not is_pumped or self._deliver_local(now_ms, wall_ms):
            for links in self.links:
                links.pump(now_ms, wall_ms)
            is_pumped = True
        for links in self.links:
            outputs += links.take_outputs()

    def _deliver_local(self, now_ms: int, wall_ms: int) -> bool:
        """Deliver responses to the broker's requests to itself; return whether there were any."""
        broker = self.broker
        local = [each for each in broker.completions if each[0].connection_id < 0]
        if not local:
            return False
        broker.completions = [each for each in broker.completions if each[0].connection_id >= 0]
        for reply_to, response in local:
            assert isinstance(response, Message), "no request between brokers goes unanswered"
            is_taken = any(
                each.local_completed(reply_to, response, now_ms, wall_ms) for each in self.links
            )
            assert is_taken, (reply_to, response)
        return True

    def _new_links(self, client: "InterBrokerClient") -> "BrokerLinks":
        # Imported on first use: a node that leads all its partitions does not need it.
        from kraft_wire.node.links.broker_links import BrokerLinks

        listener = inter_broker_listener(self._config.settings, self._config.listeners)
        assert listener is not None, "a broker has listeners"
        return BrokerLinks(self.broker, client, listener.name, *self._link_needs, self._report)

    def flushed(self, flush_id: int, now_ms: int) -> None:
        """Note a completed flush of partitions."""
        self.broker.replicas.flushed(self.flushing.completed(flush_id), now_ms)

    def _open(self, image: MetadataImage, wall_ms: int) -> None:
        self._is_open = True
        self.store.load(_topic_configs(image), wall_ms)
        for path in set_strays_aside(self._fs, self._directories, image, self._config.node_id):
            self._report("stray_log_set_aside", path=path)
        if len(self._directories) > 1 or any(each.futures for each in self._directories):
            self._resolve_copies(image, wall_ms)
        self.store.look_at_directories()

    def _resolve_copies(self, image: MetadataImage, wall_ms: int) -> None:
        """Decide about logs and copies that a stop during a move has left."""
        from kraft_wire.node.disks.future_opening import place_in, resolve_copies

        place = place_in(image, self._config.node_id)
        self.store.doomed += resolve_copies(
            self._fs, self._directories, place, wall_ms, self._report
        )
        self._has_copies = any(each.futures for each in self._directories)

    def _new_moves(self) -> "ReplicaMoves":
        """Create the moves between log directories; imported on first use."""
        from kraft_wire.broker.replication.moving import MovesEnvironment, ReplicaMoves
        from kraft_wire.node.disks.replica_copies import NodeReplicaCopies

        broker, report = self.broker, self._report
        env = MovesEnvironment(
            partitions=broker.partitions,
            copies=NodeReplicaCopies(self._fs, self.store, self._disk_failed, report),
            places=self._places,
            settings=lambda: broker.settings,
            throttle=self.move_throttle,
            promoted=self._promoted,
            report=report,
        )
        return ReplicaMoves(env, broker.now_ms)

    def _promoted(self, partition: Partition, now_ms: int) -> None:
        """Answer requests that wait for a flush of a log that is on another disk now."""
        replicas = self.broker.replicas
        replicas.unflushed.pop(partition.topic_partition, None)
        replicas.flushed({partition.topic_partition: partition.log_end_offset}, now_ms)

    def _directory_failed(self, directory: LogDirectory) -> None:
        """Take the partitions of a failed directory offline, and report the directory."""
        assert directory.offline is not None, directory.path
        for name in list(directory.logs):
            self._disk_failed(name, directory.offline)
        self._went_offline(directory)

    def _disk_failed(self, name: TopicPartition, error: StorageError) -> None:
        """Handle a disk error of a periodic task like that of a request."""
        partition = self.broker.partitions.get(name)
        if partition is not None:
            partition.failed(error)
        else:
            self.store.failed(name, error)


def _move_throttle(config: NodeConfig) -> ReplicationQuota:
    """Return the throttle of moves between log directories (KIP-113)."""
    windows = Windows.of(config.settings, "alter.log.dirs.replication.")
    return ReplicationQuota("move", config.node_id, windows, rate_key=_MOVE_RATE)


def _topic_configs(image: MetadataImage) -> dict[str, Mapping[str, str]]:
    return {topic.name: image.config(TOPIC_RESOURCE, topic.name) for topic in image.topics()}


def store_changes(config: NodeConfig, report: ReportEvent) -> "StoreChanges | None":
    """Return the changes of stores, imported only if a listener has TLS."""
    if all(each.tls is None for each in config.security.values()):
        return None
    from kraft_wire.node.security.store_changes import StoreChanges

    return StoreChanges(config, report)


def own_settings(config: NodeConfig, stores: "StoreChanges | None") -> "OwnSettings":
    """Return the checks of changes of a broker's own settings, imported for the first change."""
    from kraft_wire.node.requests.own_settings import OwnSettings

    return OwnSettings(config, None if stores is None else stores.problem)
