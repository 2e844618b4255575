"""The metadata's part of a node: replica, controller, snapshots, and links to other controllers.

`apply_quorum_events` applies the quorum's events in order: committed records are replayed and
published, the controller becomes active or inactive, this node registers if it is not registered.
Requests of the broker's lifecycle go to this node's controller if it is active, without a link,
else to the active one (`local_broker`). A graceful stop first stops the broker, then resigns if the
replica leads. Metadata that cannot be replayed stops the process.

Not here: the broker (`broker_node`), requests and answers of clients (`node`, `controller_apis`),
requests of a broker's lifecycle (`broker_lifecycle`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import Parked
from kraft_wire.controller.controller import Controller
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image_draft import MetadataFault
from kraft_wire.model import (
    NO_REPLICA,
    DiskFull,
    LeaderEpoch,
    Offset,
    RandomSource,
    ReplicaId,
    ReportEvent,
    StorageError,
    Uuid,
    random_uuid,
    sooner,
)
from kraft_wire.node.config.node_config import NodeConfig
from kraft_wire.node.controller.host import ControllerHost
from kraft_wire.node.disks.opening import OpenDirectories, open_quorum, start_quorum
from kraft_wire.node.outputs import Output, ServeClients, StopProcess
from kraft_wire.node.quorum.metadata_opening import bootstrap_records_of
from kraft_wire.node.quorum.metadata_upkeep import MetadataUpkeep
from kraft_wire.node.quorum.raft_io import QuorumEvent, RaftIo
from kraft_wire.node.registration.broker_lifecycle import BrokerLifecycle
from kraft_wire.node.registration.cordoned_directories import CordonedDirectories
from kraft_wire.node.registration.incarnation import Registration
from kraft_wire.node.registration.local_broker import LocalBroker
from kraft_wire.raft.effects import (
    HighWatermarkAdvanced,
    LeaderChanged,
    LeadershipEnded,
    LeadershipEstablished,
    ShutdownCompleted,
)
from kraft_wire.raft.events import ShutdownRequested
from kraft_wire.raft.roles import Follower, Leader
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.files import FileSystem
from kraft_wire.wire.message import DecodeLimits, Message

if TYPE_CHECKING:
    from kraft_wire.node.authorization.guards import Guards
    from kraft_wire.node.controller.apis import ControllerApis
    from kraft_wire.node.links.forwarding import Forwarder

__all__ = ["QuorumNode"]

_SHUTDOWN_MS: Final = 5_000
"""Time that a leader waits for a successor when it stops."""


class QuorumNode:
    """The metadata's part of a node; see the module."""

    guards: "Guards | None" = None
    """The node's guards, which authorize requests on a controller's listeners."""

    def __init__(
        self,
        fs: FileSystem,
        config: NodeConfig,
        directories: OpenDirectories,
        random_source: RandomSource,
        *,
        publish: Callable[[MetadataDelta, int, int], None],
        retired: Callable[[int], None],
        disk_full: Callable[[DiskFull], None],
        link_ids: Iterator[int],
        report: ReportEvent,
        decode_limits: DecodeLimits,
        now_ms: int,
        wall_ms: int,
    ) -> None:
        """`start` must follow. `disk_full` is called when the disk has no room for metadata.

        `publish` takes the delta to each committed image. The first one has all records committed
        before this node started, and its broker: an older image must not decide which logs are
        strays. `retired` is called once the broker of a leaving node need not serve any more.
        """
        self.raft = open_quorum(
            fs, directories, config, random_source, link_ids, report, decode_limits, wall_ms
        )
        self.host = ControllerHost(
            Controller(
                node_id=config.node_id,
                settings=config.settings,
                random_source=random_source,
                cluster_id=directories.cluster_id,
            ),
            self.raft,
            bootstrap=lambda: bootstrap_records_of(fs, directories.metadata),
            registration=lambda: self.registration.arrival(self.host.controller),
            disk_full=disk_full,
            report=report,
        )
        self.registration = _registration(config, directories, random_uuid(random_source))
        self._failed_directories: list[Uuid] = []
        self._config, self._directories = config, directories
        self.local_broker = self._new_local_broker(random_source, report, retired)
        """The lifecycle of the broker, if the node has one."""
        self.has_static_voters = bool(config.voters)
        self.leaders_count = 0
        """Number of new leaders that this node has followed."""
        self._leader_epoch = LeaderEpoch(-1)
        """The epoch of the newest leader."""
        self._is_starting, self._is_caught_up = True, False
        self.upkeep = MetadataUpkeep(self.raft, config.settings, report, now_ms)
        self._publish_delta = publish
        self._link_ids = link_ids
        self._report = report
        self._decode_limits = decode_limits
        self._apis: ControllerApis | None = None
        self._outputs: list[Output] = []
        self._asked_count, self._followed_count = 0, -1
        self._is_leaving = self._has_announced = False
        """Whether `ServeClients` was put out."""

    def _new_local_broker(
        self,
        random_source: RandomSource,
        report: ReportEvent,
        retired: Callable[[int], None],
    ) -> LocalBroker | None:
        config = self._config
        if not config.is_broker:
            return None

        def leave(now_ms: int, wall_ms: int) -> None:
            retired(now_ms)
            self._resign(now_ms, wall_ms)

        return LocalBroker(
            BrokerLifecycle(
                config.node_id,
                self.registration,
                config.settings,
                CordonedDirectories(
                    config.node_id, config.settings, _directory_ids(self._directories.data)
                ),
                random_source,
                report,
            ),
            self.raft,
            self.host,
            apis=lambda: self.apis,
            apply_quorum_events=self._apply_all,
            retired=leave,
            failed_directories=self._failed_directories,
        )

    def start(self, now_ms: int, wall_ms: int) -> None:
        """Start the replica. An only voter leads, and its broker runs, when this returns."""

        def join() -> None:
            self.raft.start(now_ms, wall_ms)
            self._apply_all(now_ms, wall_ms)
            self._poll_local_broker(now_ms, wall_ms)

        if self.local_broker is not None:
            self.local_broker.lifecycle.start(now_ms)
            if self.raft.replica.quorum.is_only_voter:  # logs are opened once, with known leaders
                self.local_broker.lifecycle.logs_opened(now_ms)
        start_quorum(self.raft, self._directories, join)
        self._is_starting = False
        self._publish(now_ms, wall_ms)

    @property
    def broker_epoch(self) -> int:
        """The broker's epoch, -1 while it is not registered."""
        return -1 if self.local_broker is None else self.local_broker.lifecycle.broker_epoch

    @property
    def serves_clients(self) -> bool:
        """Whether the node has a broker that runs."""
        return self.local_broker is not None and self.local_broker.lifecycle.has_run

    @property
    def apis(self) -> "ControllerApis":
        """The controller's listeners and the forwarders, made when needed."""
        if self._apis is None:
            from kraft_wire.node.controller.apis import ControllerApis

            self._apis = ControllerApis(
                self._directories.cluster_id,
                self.raft,
                self.host,
                self._link_ids,
                self._report,
                self._decode_limits,
                self.guards,
                self._config.listener_protocols,
            )
        return self._apis

    @property
    def controller_apis_or_none(self) -> "ControllerApis | None":
        """`apis` if they exist; otherwise no request waits in them."""
        return self._apis

    def has_news(self) -> bool:
        """Return whether there may be events that `apply_quorum_events` has not applied yet."""
        if self._failed_directories:
            return True
        return self.raft.steps_count + self._asked_count != self._followed_count

    def ask(self, tag: str, request: Message, now_ms: int, wall_ms: int) -> Message | Parked:
        """Send a request of the broker to the active controller; it may answer at once."""
        self._asked_count += 1
        return self.apis.ask(tag, request, now_ms, wall_ms)

    def directory_failed(self, directory_id: Uuid) -> None:
        """Report a failed log directory of the broker to the controller."""
        assert self.local_broker is not None, "only a broker has more than one"
        self._failed_directories.append(directory_id)

    # -- time, links and flushes -----------------------------------------------------------------

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Do work that is due by time."""
        self.raft.tick(now_ms, wall_ms)
        self.host.tick(now_ms, wall_ms)
        if self.local_broker is not None:
            self.local_broker.lifecycle.tick(now_ms)
        if self._apis is not None:
            self._apis.tick(now_ms)
        self.upkeep.tick(now_ms, wall_ms)

    def deadline_ms(self) -> int:
        """Return when `tick` is needed next."""
        soonest_ms = sooner(self.raft.deadline_ms(), self.host.deadline_ms())
        if self.local_broker is not None:
            soonest_ms = sooner(soonest_ms, self.local_broker.lifecycle.deadline_ms())
        if self._apis is not None:
            soonest_ms = sooner(soonest_ms, self._apis.deadline_ms())
        upkeep_ms = self.upkeep.deadline_ms()
        return upkeep_ms if soonest_ms is None else min(soonest_ms, upkeep_ms)

    def links_of(self, link_id: int) -> "RaftIo | Forwarder":
        """Return the owner of a link."""
        owner = None if self._apis is None else self._apis.owner_of(link_id)
        return self.raft if owner is None else owner

    def take_outputs(self, flush_ids: Iterator[int]) -> list[Output]:
        """Return the outputs for the host: flushes, links, stop."""
        outputs, self._outputs = self._outputs, []
        if not self._has_announced and (self.serves_clients or self.local_broker is None):
            self._has_announced = True
            outputs.append(ServeClients())
        if self.raft.disk.wants_flush:
            order = self.raft.disk.begin_flush(next(flush_ids))
            if order is not None:
                outputs.append(order)
        outputs += self.raft.take_outputs()
        if self._apis is not None:
            outputs += self._apis.take_outputs()
        return outputs

    # -- the quorum's news -----------------------------------------------------------------------

    def apply_quorum_events(self, now_ms: int, wall_ms: int) -> None:
        """Apply the quorum's new events, and their consequences."""
        try:
            self._apply_all(now_ms, wall_ms)
            if not self._is_caught_up:
                # A snapshot may have all committed records before the leader's watermark is known.
                self._publish(now_ms, wall_ms)
            self._poll_local_broker(now_ms, wall_ms)
        except MetadataFault as fault:
            self._outputs.append(StopProcess(f"the committed metadata cannot be replayed: {fault}"))
        self._followed_count = self.raft.steps_count + self._asked_count
        self.raft.log_events.controller_is(
            active=self.host.is_active, epoch=self.raft.replica.quorum.epoch
        )

    def _apply_all(self, now_ms: int, wall_ms: int) -> None:
        while self.raft.quorum_events:
            quorum_events, self.raft.quorum_events = self.raft.quorum_events, []
            for each in quorum_events:
                self._apply(each, now_ms, wall_ms)

    def _apply(self, quorum_events: QuorumEvent, now_ms: int, wall_ms: int) -> None:
        match quorum_events:
            case HighWatermarkAdvanced(high_watermark):
                self._advance(high_watermark, now_ms, wall_ms)
            case LeadershipEstablished():
                self.host.leadership_established(quorum_events, now_ms, wall_ms)
            case LeadershipEnded():
                self.host.leadership_ended()
            case LeaderChanged(leader_id, leader_epoch):
                self._count_leader(leader_id, leader_epoch)
                self._register_controller(now_ms)
                if self._apis is not None:
                    self._apis.controller_changed(now_ms)
            case ShutdownCompleted():
                self._outputs.append(StopProcess(None))

    def _advance(self, high_watermark: Offset, now_ms: int, wall_ms: int) -> None:
        """Replay newly committed records, and update readers and the controller."""
        committed = self.raft.committed
        loads_before = committed.loads_count
        if committed.advance(high_watermark):
            self._publish(now_ms, wall_ms)
        if committed.loads_count > loads_before:
            self.upkeep.snapshot_loaded(now_ms)
        self.host.committed(now_ms, wall_ms)

    def _count_leader(self, leader_id: ReplicaId, leader_epoch: LeaderEpoch) -> None:
        """Count a leader once per epoch."""
        if leader_id != NO_REPLICA and leader_epoch > self._leader_epoch:
            self._leader_epoch = leader_epoch
            self.leaders_count += 1
            self.raft.log_events.leader_elected(leader_id, leader_epoch)

    def _publish(self, now_ms: int, wall_ms: int) -> None:
        """Publish the committed image, once it is complete and the start is over."""
        self._is_caught_up = self._is_caught_up or self._reaches_leader()
        if not self._is_caught_up or self._is_starting:
            return
        self._register_controller(now_ms)
        image, own = self.raft.committed.image, self.local_broker
        if own is None or own.sees_own_registration or self.registration.is_registered(image):
            self._publish_delta(self.raft.committed.take_delta(), now_ms, wall_ms)
            if own is not None:
                own.published(image, now_ms)

    def _poll_local_broker(self, now_ms: int, wall_ms: int) -> None:
        """Exchange requests and answers between the broker and its controller."""
        if self.local_broker is not None:
            self._outputs += self.local_broker.poll(now_ms, wall_ms)
            self._apply_all(now_ms, wall_ms)  # a node that need not serve any more has resigned
            # and the answer that it waited for is NOT_CONTROLLER
            self.local_broker.take_responses(now_ms)

    def _reaches_leader(self) -> bool:
        """Return whether everything below the leader's high watermark is replayed."""
        role = self.raft.replica.quorum.role
        if isinstance(role, Leader):
            known = role.high_watermark
        else:
            known = role.leader_high_watermark if isinstance(role, Follower) else None
        return known is not None and self.raft.committed.next_offset >= known

    def _register_controller(self, now_ms: int) -> None:
        """Register this controller at the active one; if it is active itself, by a record."""
        leader_id = self.raft.replica.quorum.leader_id
        if self._is_leaving or leader_id in (NO_REPLICA, self._config.node_id):
            return
        image = self.raft.committed.image
        if self._config.controller_listeners and not self.registration.is_known_in(image):
            self.apis.register(self.registration.controller_record(), now_ms)

    # -- the end ---------------------------------------------------------------------------------

    def leave(self, now_ms: int, wall_ms: int) -> None:
        """Begin the graceful stop, once; `StopProcess` ends it."""
        if self._is_leaving:
            return
        self._is_leaving = True
        if self.local_broker is None:
            self._resign(now_ms, wall_ms)
        else:
            self.local_broker.lifecycle.begin_stop(now_ms)

    def _resign(self, now_ms: int, wall_ms: int) -> None:
        self.raft.take(ShutdownRequested(_SHUTDOWN_MS), now_ms, wall_ms)

    def stop(self, now_ms: int, wall_ms: int) -> None:
        """Flush and close the metadata log.

        A quorum of one resigns first, if it has not yet. No other replica is waited for.
        """
        with suppress(StorageError):  # on a full disk it looks like a crash to the next start
            self.raft.disk.flushes_inline = self.raft.replica.quorum.is_only_voter
            self.leave(now_ms, wall_ms)
            self.raft.flush_now(now_ms, wall_ms)
            self._apply_all(now_ms, wall_ms)
            self._poll_local_broker(now_ms, wall_ms)
        self.raft.log.close()


def _registration(
    config: NodeConfig, directories: OpenDirectories, incarnation_id: Uuid
) -> Registration:
    return Registration(
        config,
        directories.cluster_id,
        incarnation_id,
        [*_directory_ids(directories.data).values()],
        _previous_broker_epoch(directories.data),
    )


def _directory_ids(directories: Sequence[LogDirectory]) -> dict[str, Uuid]:
    """Return the ids of the directories that have one, by path."""
    metas = [(directory.path, directory.meta) for directory in directories]
    return {
        path: meta.directory_id for path, meta in metas if meta is not None and meta.directory_id
    }


def _previous_broker_epoch(directories: Sequence[LogDirectory]) -> int:
    """Return the broker epoch before a clean stop, if all directories agree on it."""
    epochs = {directory.previous_broker_epoch for directory in directories}
    return epochs.pop() if len(epochs) == 1 else -1
