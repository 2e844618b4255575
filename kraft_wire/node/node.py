"""One Kafka node: broker, controller or both over one metadata log, synchronous and deterministic.

A host passes frames and time, and drains `outputs` after every call: `receive` → decoder →
`requests.handling` → handler of the broker, of the controller, or the replica of the quorum. The
controller's records are appended through the quorum, committed, replayed, published to the broker,
and only then answered. Late answers come from the broker's completions, the controller's and the
replica's. There are no sockets, threads or clocks here. Read next: `opening`, `decoding`,
`handling`, `answers`, `quorum_node` (with `raft_io` and `controller_host`), `broker_node`.
"""

from collections.abc import Callable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Final

from kraft_wire.apis.api import ListenerType, Owner
from kraft_wire.apis.registry import owned, served
from kraft_wire.broker.broker import Broker
from kraft_wire.broker.response_cache import NoAnswersOfImage
from kraft_wire.controller.controller import Controller
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import DiskFull, RandomSource, ReportEvent, StorageError
from kraft_wire.node.authorization.configured import guards_of
from kraft_wire.node.broker_node import BrokerNode, LinkNeeds, own_settings, store_changes
from kraft_wire.node.config.connection_limits import limits_in_force
from kraft_wire.node.config.node_config import NodeConfig
from kraft_wire.node.disks.opening import open_directories
from kraft_wire.node.disks.refused_appends import RefusedAppends
from kraft_wire.node.events.metadata_events import MetadataEvents
from kraft_wire.node.links.controller_requests import ControllerRequests
from kraft_wire.node.outputs import Close, LimitsChanged, Output, Peer, Rejection
from kraft_wire.node.quorum.raft_io import RaftIo
from kraft_wire.node.quorum_node import QuorumNode
from kraft_wire.node.quotas.levels import has_clients
from kraft_wire.node.requests.answers import Answers
from kraft_wire.node.requests.decoding import RequestDecoder
from kraft_wire.node.requests.handling import RequestHandling
from kraft_wire.node.requests.replies import reply_of_bytes
from kraft_wire.node.requests.version_refusals import VersionRefusals
from kraft_wire.node.security.configured import logins_of
from kraft_wire.storage.directory.log_directory import METADATA_PARTITION, LogDirectory
from kraft_wire.storage.files import FileSystem
from kraft_wire.wire.message import Buffer, Message

if TYPE_CHECKING:
    from kraft_wire.node.controller.apis import ControllerApis
    from kraft_wire.node.links.broker_links import BrokerLinks
    from kraft_wire.node.links.forwarding import Forwarder
    from kraft_wire.node.links.peer_versions import PeerVersions
    from kraft_wire.node.quotas.client_quotas import ClientQuotas

__all__ = ["Node"]

_BROKERS: Final = frozenset(owned(Owner.BROKER, ListenerType.BROKER))
"""APIs that the broker itself answers; the controller decides its listeners' other requests."""


class Node:
    """A running node; the constructor opens it, `stop` closes it as Kafka does."""

    def __init__(
        self,
        config: NodeConfig,
        fs: FileSystem,
        random_source: RandomSource,
        *,
        now_ms: int,
        wall_ms: int,
        cluster_id: str | None = None,
        report: ReportEvent = lambda name, **fields: None,
    ) -> None:
        """Open the data and join the quorum; a quorum of one leads and serves at once.

        `report` takes log lines. Errors: StartError, a line for the user; StorageError.
        """
        self.config = config
        self.outputs: list[Output] = []
        self.random_source = random_source
        self._own_requests: list[tuple[str, Message]] = []
        """The broker's requests to the controller, by tag; the pump sends them."""
        self._quorum_deadline_ms: int | None = None
        """The quorum's share in `deadline_ms`, None after the pump, which may change it."""
        self._answers = Answers(config.settings.integer("purgatory.max.requests"))
        self._flush_ids, self._limits, self._is_stopped = count(1), config.limits, False
        self._refused_appends, self._guards = RefusedAppends(report), guards_of(config, report)
        self.stores = store_changes(config, report)
        self._metadata_events = MetadataEvents(config.node_id, report)
        self._version_refusals = VersionRefusals(report)
        self._last_error: StorageError | None = None
        """The reason to end the process after the current call."""
        self._directories = open_directories(fs, config, random_source, cluster_id, wall_ms, report)
        self.cluster_id = self._directories.cluster_id
        limits, link_ids = config.decode_limits, count(1)
        self._decoder = RequestDecoder(served(ListenerType.BROKER), limits)
        self._controller_listeners = frozenset(each.name for each in config.controller_listeners)
        self._quorum = QuorumNode(
            fs,
            config,
            self._directories,
            random_source,
            publish=self._publish,
            retired=self._retire,
            disk_full=self._disk_full,
            link_ids=link_ids,
            report=report,
            decode_limits=limits,
            now_ms=now_ms,
            wall_ms=wall_ms,
        )
        self._quorum.guards = self._guards
        links = LinkNeeds(lambda: self.broker_epoch, link_ids, limits)
        make = self._new_broker_node
        self._broker = make(fs, report, links, now_ms) if config.is_broker else None
        self._requests = self._new_request_handling()
        self.logins = logins_of(config, self._decoder_of, self._image, random_source)
        self._quorum.start(now_ms, wall_ms)
        self._pump(now_ms, wall_ms)

    def _image(self) -> MetadataImage:
        return self.raft.committed.image

    def _decoder_of(self, listener: str) -> RequestDecoder:
        of_controllers = listener in self._controller_listeners
        return self.controller_apis.decoder if of_controllers else self._decoder

    def _new_broker_node(
        self, fs: FileSystem, report: ReportEvent, links: LinkNeeds, now_ms: int
    ) -> BrokerNode:
        node = BrokerNode(
            fs,
            self.config,
            self._directories.data,
            self.random_source,
            ControllerRequests(self._own_requests, self._ask_controller, self._controller_versions),
            report,
            now_ms,
            links,
            self._directory_failed,
            self._refused_appends,
        )
        if self._guards is not None:
            self._guards.join(node.broker)
            node.broker.described_topics = NoAnswersOfImage()
        return node

    def _new_request_handling(self) -> RequestHandling:
        return RequestHandling(
            self._answers,
            None if self._broker is None else self._broker.broker,
            self._quorum,
            self._controller_listeners,
            self._guards,
            lambda: own_settings(self.config, self.stores),
        )

    @property
    def raft(self) -> RaftIo:
        """The replica with its log; read by metrics and the simulator."""
        return self._quorum.raft

    @property
    def quorum(self) -> QuorumNode:
        """The metadata's part of this node; read by metrics."""
        return self._quorum

    @property
    def broker(self) -> Broker:
        """The broker of a node that has one."""
        assert self._broker is not None, "this node is not a broker"
        return self._broker.broker

    @property
    def has_broker(self) -> bool:
        """Whether this node is a broker."""
        return self._broker is not None

    @property
    def controller(self) -> Controller:
        """The controller, active or not."""
        return self._quorum.host.controller

    @property
    def controller_apis(self) -> "ControllerApis":
        """The controller's listeners and the forwarder, made when needed."""
        return self._quorum.apis

    @property
    def quotas(self) -> "ClientQuotas | None":
        """The quotas of clients; None until the first one is set."""
        return self._requests.quotas

    @property
    def requests_by_api(self) -> Mapping[int, int]:
        """Numbers of requests by API key."""
        return self._requests.by_api

    @property
    def parked_count(self) -> int:
        """Requests with a late response."""
        return len(self._answers.parked)

    @property
    def appends_refused_count(self) -> int:
        """Appends that a full disk has refused."""
        return self._refused_appends.count

    @property
    def broker_epoch(self) -> int:
        """The broker's epoch, -1 while it is not registered."""
        return self._quorum.broker_epoch

    @property
    def serves_clients(self) -> bool:
        """Whether the broker runs; if it starts later, `ServeClients` announces it."""
        return self._quorum.serves_clients

    @property
    def flushes_every_append(self) -> bool:
        """Whether acknowledged records survive power loss, unless a topic overrides the setting."""
        settings = self.config.settings if self._broker is None else self._broker.settings
        return settings.integer("log.flush.interval.messages") == 1

    # -- the host's calls ------------------------------------------------------------------------

    def connection_opened(self, peer: Peer) -> None:
        """Note a new connection, before any byte is received."""
        if self.logins is not None:
            self.logins.begin(peer)

    def receive(self, peer: Peer, frame: bytearray, now_ms: int, wall_ms: int) -> None:
        """Handle one request; the outputs have its answer, `NoReply` or `Close`."""
        peer.requests_count += 1
        of_broker_alone = peer.listener not in self._controller_listeners
        taken = None if peer.login is None else peer.login.take(frame, now_ms, wall_ms)
        if taken is None:
            decoder = self._decoder if of_broker_alone else self.controller_apis.decoder
            decoded = decoder.decode(frame)
            if isinstance(decoded, tuple):
                if of_broker_alone:
                    of_broker_alone = decoded[0].api_key in _BROKERS
                self._requests.handle(
                    self.outputs, peer, decoded, len(frame), of_broker_alone, now_ms, wall_ms
                )
            elif isinstance(decoded, Rejection):
                self.outputs.append(Close(peer.connection_id, decoded))
            else:
                self._version_refusals.note(peer, decoded, now_ms)
                self.outputs.append(reply_of_bytes(peer.connection_id, decoded))
        else:
            self.outputs += taken
        if of_broker_alone:
            self._pump_broker(now_ms, wall_ms)
        else:
            self._pump(now_ms, wall_ms)

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Do work that is due by time; needed at `deadline_ms`, harmless earlier."""
        self._quorum.tick(now_ms, wall_ms)
        self._refused_appends.tick(now_ms)
        self._version_refusals.tick(now_ms)
        if self._guards is not None:
            self._guards.tick(now_ms)
        quotas = self._requests.quotas
        if quotas is not None:
            quotas.tick(self.outputs, now_ms)
        if self._broker is not None:
            self._broker.tick(now_ms, wall_ms)
            self._ask_controller(now_ms, wall_ms)
            self._broker.maintain(now_ms, wall_ms)
        self._pump(now_ms, wall_ms)

    def deadline_ms(self) -> int:
        """Return when `tick` is needed next; the host calls it after every call."""
        deadline_ms = self._quorum_deadline_ms
        if deadline_ms is None:
            deadline_ms = self._quorum_deadline_ms = self._quorum.deadline_ms()
        quotas = self._requests.quotas
        if quotas is not None:
            deadline_ms = min(deadline_ms, quotas.throttled.deadline_ms() or deadline_ms)
        return deadline_ms if self._broker is None else min(deadline_ms, self._broker.deadline_ms())

    def flushed(self, flush_id: int, now_ms: int, wall_ms: int) -> None:
        """Note a completed `FlushLogs`; ignored after `stop`."""
        if self._is_stopped:
            return
        of_broker_alone = not self.raft.flushed(flush_id, now_ms, wall_ms)
        if of_broker_alone:
            assert self._broker is not None, flush_id
            self._broker.flushed(flush_id, now_ms)
        if of_broker_alone:
            self._pump_broker(now_ms, wall_ms)
        else:
            self._pump(now_ms, wall_ms)

    def link_up(self, link_id: int, now_ms: int, wall_ms: int) -> None:
        """Note a successful `Connect`."""
        links, pump = self._links_of(link_id)
        links.link_up(link_id, now_ms, wall_ms)
        pump(now_ms, wall_ms)

    def link_frame(self, link_id: int, frame: Buffer, now_ms: int, wall_ms: int) -> None:
        """Handle one whole frame of a link, without its length."""
        links, pump = self._links_of(link_id)
        links.link_frame(link_id, frame, now_ms, wall_ms)
        pump(now_ms, wall_ms)

    def link_down(self, link_id: int, now_ms: int, wall_ms: int) -> None:
        """Note that a link was refused, closed or broken."""
        links, pump = self._links_of(link_id)
        links.link_down(link_id, now_ms, wall_ms)
        pump(now_ms, wall_ms)

    def _links_of(
        self, link_id: int
    ) -> "tuple[RaftIo | Forwarder | BrokerLinks, Callable[[int, int], None]]":
        """Return the owner of a link, and the pump of the events that it may cause."""
        for links in () if self._broker is None else self._broker.links:
            if links.owns(link_id):
                return links, self._pump_broker
        return self._quorum.links_of(link_id), self._pump

    def connection_closed(self, connection_id: int) -> None:
        """Drop a closed connection and its parked request."""
        quotas = self._requests.quotas
        if quotas is not None:
            quotas.throttled.forget(connection_id)
        if self._broker is not None:
            self.broker.connection_closed(connection_id)
        if self._answers.parked.pop(connection_id, None) is None:
            return
        if self._guards is not None:
            self._guards.forget(connection_id)
        self._requests.connection_closed(connection_id)
        if self._quorum.controller_apis_or_none is not None:
            self._quorum.controller_apis_or_none.connection_closed(connection_id)

    def begin_stop(self, now_ms: int, wall_ms: int) -> None:
        """Give up leadership and answer waiting requests; then `StopProcess` follows.

        Clients are served until `serves_clients` is false.
        """
        # Non-obvious 20: the stop has its own time, never an older one.
        self._quorum.leave(now_ms, wall_ms)
        self._pump(now_ms, wall_ms)

    def stop(self, now_ms: int, wall_ms: int) -> None:
        """Flush and close everything, and write the clean-shutdown markers."""
        self._quorum.stop(now_ms, wall_ms)
        self._is_stopped = True
        self._directories.close(self.broker_epoch)

    # -- what the quorum wants of the rest -------------------------------------------------------

    def _publish(self, delta: MetadataDelta, now_ms: int, wall_ms: int) -> None:
        """Show a committed image to the broker, and changed limits to the host.

        The authorizer comes first: no request is checked against ACLs older than the broker's
        image.
        """
        if self._guards is not None:
            self._guards.follow(delta)
        has_quotas_changed = delta.after.client_quotas is not delta.before.client_quotas
        if has_quotas_changed or delta.changes_settings_of(self.config.node_id):
            self._change_limits(delta.after)
        if has_quotas_changed and (self.quotas or has_clients(delta.after.client_quotas)):
            self._follow_quotas(delta.after)
        if self.stores is not None:
            self.stores.publish(delta)
        self._metadata_events.published(delta, is_active=self._quorum.host.is_active)
        if self._broker is not None:
            self._broker.publish(delta, now_ms, wall_ms)

    def _follow_quotas(self, image: MetadataImage) -> None:
        """Enforce the quotas of an image; the first one brings the modules."""
        quotas = self._requests.quotas
        if quotas is None:
            from kraft_wire.node.quotas.client_quotas import ClientQuotas

            quotas = ClientQuotas(self.config.settings, self._controller_listeners)
            self._requests.quotas = self.controller.topic_change_quota = quotas
            if self._broker is not None:
                self.broker.fetch_quota = quotas
        quotas.follow(image.client_quotas)

    def _retire(self, now_ms: int) -> None:
        """Stop the broker: it leads no partition any more."""
        self.broker.stop(now_ms)

    def _change_limits(self, image: MetadataImage) -> None:
        limits = limits_in_force(self.config, image)
        if limits != self._limits:
            self._limits = limits
            self.outputs.append(LimitsChanged(limits))

    def _directory_failed(self, directory: LogDirectory) -> None:
        """Stop the process if the metadata's directory failed; report others to the controller."""
        meta = directory.meta
        assert meta is not None, "opened directories are formatted"
        if directory is self._directories.metadata:
            self._last_error = directory.offline
        elif meta.directory_id is not None:
            self._quorum.directory_failed(meta.directory_id)

    def _disk_full(self, error: DiskFull) -> None:
        directory = self._directories.metadata
        if self._broker is not None:
            self._broker.store.directory_failed(directory, error)
        else:
            directory.note_error(None, error)
        self._refused_appends.note(directory, METADATA_PARTITION)

    def _ask_controller(self, now_ms: int, wall_ms: int) -> None:
        """Send the broker's requests to the controller, and those that answers cause."""
        while self._own_requests:
            asked = self._own_requests[:]
            self._own_requests.clear()
            for tag, request in asked:
                answer = self._quorum.ask(tag, request, now_ms, wall_ms)
                if isinstance(answer, Message):
                    self.broker.controller_answered(tag, answer, now_ms)

    def _controller_versions(self) -> "PeerVersions | None":
        apis = self._quorum.controller_apis_or_none
        return None if apis is None else apis.active_versions

    # -- the pump --------------------------------------------------------------------------------

    def _pump(self, now_ms: int, wall_ms: int) -> None:
        """End a call: follow the quorum, run woken fetches, order flushes, encode late answers."""
        quorum, broker = self._quorum, self._broker
        self._follow_quorum(now_ms, wall_ms)
        # A controller that writes too late has resigned, and gets its refusal at once.
        while self._own_requests or quorum.has_news():
            self._follow_quorum(now_ms, wall_ms)
        if broker is not None and broker.broker.completions:
            self._complete_all(broker.broker, now_ms)
        self.outputs += quorum.take_outputs(self._flush_ids)
        self._quorum_deadline_ms = None
        if self._last_error is not None:
            raise self._last_error

    def _follow_quorum(self, now_ms: int, wall_ms: int) -> None:
        """Apply the quorum's events, and answer requests that waited for them."""
        broker = self._broker
        self._ask_controller(now_ms, wall_ms)
        self._quorum.apply_quorum_events(now_ms, wall_ms)
        if broker is not None:
            broker.after(self.outputs, self._flush_ids, now_ms, wall_ms)
        self._answer_waiting(now_ms, wall_ms)
        if broker is not None:  # the controller's answers may bring more to do
            broker.after(self.outputs, self._flush_ids, now_ms, wall_ms)

    def _pump_broker(self, now_ms: int, wall_ms: int) -> None:
        """End a call that only concerns the broker: the same, without the quorum.

        The quorum is included if the broker sent the controller a request, a log directory failed,
        or the replica made a step.
        """
        broker = self._broker
        assert broker is not None, "a node without a broker has no such calls"
        broker.after(self.outputs, self._flush_ids, now_ms, wall_ms)
        if self._own_requests or self._quorum.has_news() or self._last_error is not None:
            self._pump(now_ms, wall_ms)
        elif broker.broker.completions:
            self._complete_all(broker.broker, now_ms)

    # -- answers ---------------------------------------------------------------------------------

    def _answer_waiting(self, now_ms: int, wall_ms: int) -> None:
        """Encode the controller's answers to parked requests."""
        apis = self._quorum.controller_apis_or_none
        if apis is None:
            return
        apis.answer_waiting(now_ms, wall_ms)
        for to, answer in apis.take_answers():
            if isinstance(to, str):
                assert answer is not None, to
                self.broker.controller_answered(to, answer, now_ms)
            elif answer is None:
                self.outputs.append(Close(to.connection_id, None))
            else:
                late = self._requests.finished(to, answer)
                self._answers.complete(self.outputs, to, late, now_ms)

    def _complete_all(self, broker: Broker, now_ms: int) -> None:
        completions, broker.completions = broker.completions, []
        if self._guards is not None:
            finished = self._guards.finished
            completions = [(to, finished(to, response)) for to, response in completions]
        for reply_to, response in completions:
            self._answers.complete(self.outputs, reply_to, response, now_ms)
