"""One Kafka node: broker and controller over one metadata log, synchronous and deterministic.

A host hands in frames and time, and drains `outputs` after every call: `receive` → decoder → router
→ handler of the broker, or of the controller, whose records are committed to the metadata log,
replayed, published to the broker, and only then answered. Answers that come later leave through the
broker's completions. Nothing here knows sockets, threads or clocks. Read next: `opening`,
`metadata_log`, `decoding`, `maintenance`.
"""

from collections.abc import Mapping
from contextlib import suppress
from struct import Struct
from typing import Final, NamedTuple

from kraft_wire.broker.api_table import API_TABLE, handler
from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import (
    CLOSE,
    NO_REPLY,
    PARKED,
    ReplyTo,
    RequestContext,
    Withheld,
)
from kraft_wire.broker.metadata_cache import OFFSETS_TOPIC
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.controller.api_table import API_TABLE as CONTROLLER_TABLE
from kraft_wire.controller.controller import Controller, ControllerResult
from kraft_wire.controller.image import EMPTY_IMAGE, TOPIC_RESOURCE, MetadataImage
from kraft_wire.model import (
    Chance,
    DiskFull,
    FileSlice,
    StorageError,
    TopicPartition,
    Uuid,
    random_uuid,
)
from kraft_wire.node.config import NodeConfig
from kraft_wire.node.decoding import Answered, Decoded, RequestDecoder, refused, unencodable
from kraft_wire.node.event_log import Report
from kraft_wire.node.flushing import Flushing
from kraft_wire.node.log_store import NodeLogStore
from kraft_wire.node.maintenance import Maintenance
from kraft_wire.node.opening import open_directories, open_metadata, set_strays_aside
from kraft_wire.node.outputs import Buffers, Close, NoReply, Output, Peer, Rejection, Reply
from kraft_wire.node.registration import (
    election_batches,
    farewell_batches,
    register_broker,
    register_controller,
    unfence,
)
from kraft_wire.node.uncommitted import uncommitted
from kraft_wire.storage.files import FileSystem
from kraft_wire.wire.header import RequestHeader, response_header_version
from kraft_wire.wire.message import DecodeLimits, Message, UnencodableMessage

__all__ = ["Node"]

_FETCH: Final = 1
_WITHOUT_TIMERS: Final = frozenset({0, 1, 2, 3, 18})
"""Produce, Fetch, ListOffsets, Metadata, ApiVersions: they set a timer only by parking."""
_ALLOCATE_PRODUCER_IDS: Final = 67
_HEAD: Final = Struct(">ii")
"""Frame length and correlation id."""
_LENGTH_BYTES: Final = 4


class _InFlight(NamedTuple):
    """A parked request: what its answer needs."""

    request_number: int
    header: RequestHeader


class _Moment(NamedTuple):
    """A request of this node's own, as the controller's context."""

    api_version: int


class Node:
    """A running node; the constructor opens it, `stop` leaves it as Kafka would."""

    def __init__(
        self,
        config: NodeConfig,
        fs: FileSystem,
        chance: Chance,
        *,
        now_ms: int,
        wall_ms: int,
        cluster_id: str | None = None,
        report: Report = lambda name, **fields: None,
    ) -> None:
        """Open the data, replay the metadata, register, and lead the partitions.

        `report` takes log lines. Errors: StartError, a line for the user; StorageError.
        """
        self.config = config
        self.outputs: list[Output] = []
        self.chance = chance
        self.requests_by_api: dict[int, int] = {}
        self.timers_changed = True
        """Whether `deadline_ms` may have come nearer since it was asked."""
        self.trailing_bytes_seen = 0
        """Requests that had bytes behind their body, which is tolerated."""
        self._now_ms, self._wall_ms = now_ms, wall_ms
        self._parked: dict[int, _InFlight] = {}
        self._parked_max = config.settings.integer("purgatory.max.requests")
        self._directories = open_directories(fs, config, chance, cluster_id, wall_ms)
        meta = self._directories[0].meta
        assert meta is not None, "opened directories are formatted"
        self.cluster_id = meta.cluster_id
        self._metadata = open_metadata(fs, self._directories, config.node_id, wall_ms)
        self.broker_epoch = self._register()
        image = self._metadata.image
        self._store = NodeLogStore(fs, self._directories, config.settings, report)
        self._store.wall_ms = wall_ms
        self._store.learn(_topic_configs(image))
        self._store.load(wall_ms)
        for path in set_strays_aside(fs, self._directories, image):
            report("stray_log_set_aside", path=path)
        self.controller = Controller(
            node_id=config.node_id, settings=config.settings, chance=chance, image=image
        )
        self.broker = Broker(
            node_id=config.node_id,
            cluster_id=self.cluster_id,
            settings=BrokerSettings.of(self.controller.settings),
            logs=self._store,
            controller=self,
            image=EMPTY_IMAGE,
            chance=chance,
        )
        self._flushing = Flushing(self.broker)
        self._maintenance = Maintenance(
            fs, self._store, self.controller.settings, now_ms, self._disk_failed
        )
        self._decoder = RequestDecoder(_served_versions(), _decode_limits(config))
        self._publish(image)
        if image.topic(OFFSETS_TOPIC) is not None:
            assert self.broker.groups is not None, "committed offsets are loaded from the start on"

    def _disk_failed(self, name: TopicPartition, error: StorageError) -> None:
        """Take what the clock's work met as if a request had met it."""
        partition = self.broker.partitions.get(name)
        if partition is not None:
            partition.failed(error)
        else:
            self._store.failed(name, error)

    def _register(self) -> int:
        """Join the cluster: registrations, unfencing, elections. Returns the broker epoch."""
        config, log, wall_ms = self.config, self._metadata, self._wall_ms
        incarnation_id = random_uuid(self.chance)
        controller = register_controller(config.node_id, incarnation_id, config.controller_listener)
        log.append([controller], wall_ms)
        broker_epoch = log.log_end_offset
        directory_ids: list[Uuid] = []
        for directory in self._directories:
            assert directory.meta is not None, directory.path
            assert directory.meta.directory_id is not None, directory.path
            directory_ids.append(directory.meta.directory_id)
        broker = register_broker(
            log.image,
            node_id=config.node_id,
            incarnation_id=incarnation_id,
            broker_epoch=broker_epoch,
            listeners=config.listeners,
            rack=config.settings.text("broker.rack"),
            log_dirs=directory_ids,
        )
        log.append([broker], wall_ms)
        log.append([unfence(config.node_id, broker_epoch)], wall_ms)
        for batch in list(election_batches(log.image, config.node_id)):
            log.append(batch, wall_ms)
        return broker_epoch

    @property
    def flushes_every_append(self) -> bool:
        """Whether acknowledgements promise to survive power loss, as far as no topic differs."""
        return self.controller.settings.integer("log.flush.interval.messages") == 1

    # -- the host's calls ------------------------------------------------------------------------

    def receive(self, peer: Peer, frame: bytearray, now_ms: int, wall_ms: int) -> None:
        """Take one request; its answer, silence or the connection's end is among the outputs."""
        self._now_ms, self._wall_ms = now_ms, wall_ms
        peer.requests_count += 1
        decoded = self._decoder.decode(frame)
        if isinstance(decoded, Decoded):
            self._handle(peer, decoded, now_ms, wall_ms)
        elif isinstance(decoded, Rejection):
            self.outputs.append(Close(peer.connection_id, decoded))
        else:
            self._answer_bytes(peer.connection_id, decoded)
        self._after()

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Act on time; needed at `deadline_ms`, harmless earlier."""
        self._now_ms, self._wall_ms = now_ms, wall_ms
        self._store.wall_ms = wall_ms
        self.timers_changed = True
        self.broker.tick(now_ms, wall_ms)
        self._maintenance.tick(now_ms, wall_ms)
        self._after()

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next; worth asking when `timers_changed`."""
        self.timers_changed = False
        deadline = self.broker.deadline_ms()
        maintenance = self._maintenance.deadline_ms()
        return maintenance if deadline is None else min(deadline, maintenance)

    def flushed(self, flush_id: int, now_ms: int) -> None:
        """Take note that a `FlushLogs` was carried out."""
        self._now_ms = now_ms
        self.broker.flushed(self._flushing.completed(flush_id), now_ms)
        self._after()

    def connection_closed(self, connection_id: int) -> None:
        """Forget a connection and what it was waiting for."""
        if self._parked.pop(connection_id, None) is not None:
            self.broker.connection_closed(connection_id)

    def begin_stop(self, now_ms: int) -> None:
        """Answer whoever waits, and let the groups go, so that connections can be closed."""
        self._now_ms = now_ms
        self.broker.stop(now_ms)
        self._after()

    def stop(self) -> None:
        """Give up leadership, flush and close everything, leaving the mark of a clean stop."""
        with suppress(StorageError):  # on a full disk it looks like a crash to the next start
            for batch in list(farewell_batches(self._metadata.image, self.config.node_id)):
                self._metadata.append(batch, self._wall_ms)
        self._metadata.log.close()
        for directory in self._directories:
            directory.close(broker_epoch=self.broker_epoch)

    # -- requests --------------------------------------------------------------------------------

    def _handle(self, peer: Peer, decoded: Decoded, now_ms: int, wall_ms: int) -> None:
        header, request = decoded.header, decoded.request
        if decoded.trailing_bytes:
            self.trailing_bytes_seen += 1
        peer.client_id = header.client_id
        counts = self.requests_by_api
        counts[header.api_key] = counts.get(header.api_key, 0) + 1
        number = peer.requests_count
        context = RequestContext(
            ReplyTo(peer.connection_id, number),
            header.api_version,
            now_ms,
            wall_ms,
            header.client_id,
            peer.client_host,
            peer.listener,
        )
        if header.api_key not in _WITHOUT_TIMERS:
            self.timers_changed = True
        try:
            answer = self._route(context, header.api_key, request)
        except UnencodableMessage as problem:  # before anything was written
            self.outputs.append(Close(peer.connection_id, unencodable(header, problem)))
            return
        if answer is PARKED:
            self.timers_changed = True
            self._parked[peer.connection_id] = _InFlight(number, header)
            if len(self._parked) > self._parked_max:
                refusal = refused(header, "too_many_parked_requests")
                self.outputs.append(Close(peer.connection_id, refusal))
        elif answer is NO_REPLY:
            self.outputs.append(NoReply(peer.connection_id))
        elif answer is CLOSE:
            self.outputs.append(Close(peer.connection_id, None))
        else:
            self._reply(peer.connection_id, header, answer)

    def _route(self, context: RequestContext, api_key: int, request: Message) -> Message | Withheld:
        if api_key in API_TABLE:
            return handler(api_key)(self.broker, context, request)
        self._store.wall_ms = context.wall_ms
        result = self.controller.handle(context, request, context.now_ms, context.wall_ms)
        return self._committed(result)

    def send(self, tag: str, request: Message) -> None:
        """Carry a request of the broker's own to the controller (`broker.ControllerChannel`)."""
        self._store.wall_ms = self._wall_ms
        context = _Moment(request.MAX_VERSION)
        result = self.controller.handle(context, request, self._now_ms, self._wall_ms)
        self.broker.controller_answered(tag, self._committed(result))

    def _committed(self, result: ControllerResult) -> Message:
        """Commit what the controller decided and return its answer, or a refusal on a full disk.

        Any other error of the metadata's disk is for the host: it stops the process, as Kafka does.
        """
        if not result.records:
            return result.response
        try:
            image = self._metadata.append(result.records, self._wall_ms)
        except DiskFull as error:
            self._store.directory_failed(self._directories[0], error)
            return uncommitted(result.response)
        self._publish(image)
        return result.response

    def _publish(self, image: MetadataImage) -> None:
        """Show a committed image to controller and broker."""
        settings = self.controller.settings
        self.controller.publish(image)
        if self.controller.settings is not settings:
            self.broker.settings = BrokerSettings.of(self.controller.settings)
            self._store.configure_all(self.controller.settings)
        self.broker.publish(image, self._now_ms, self._wall_ms)
        self.timers_changed = True

    # -- answers ---------------------------------------------------------------------------------

    def _after(self) -> None:
        """End a call: run the fetches that were woken, order flushes, encode late answers."""
        self.broker.fetch_purgatory.run_woken(self._now_ms)
        if self.broker.unflushed:
            order = self._flushing.begin()
            if order is not None:
                self.outputs.append(order)
        if self.broker.completions:
            completions, self.broker.completions = self.broker.completions, []
            for reply_to, response in completions:
                parked = self._parked.get(reply_to.connection_id)
                if parked is not None and parked.request_number == reply_to.request_number:
                    del self._parked[reply_to.connection_id]
                    self._reply(reply_to.connection_id, parked.header, response)

    def _reply(self, connection_id: int, header: RequestHeader, response: Message) -> None:
        try:
            self._encode_reply(connection_id, header, response)
        except UnencodableMessage as problem:
            self.outputs.append(Close(connection_id, unencodable(header, problem)))

    def _encode_reply(self, connection_id: int, header: RequestHeader, response: Message) -> None:
        flexible = response_header_version(header.api_key, header.api_version)
        size = _HEAD.size - _LENGTH_BYTES + flexible
        if header.api_key != _FETCH:
            body = response.encode(header.api_version)
            size += len(body)
            head = _HEAD.pack(size, header.correlation_id)
            frame = head + b"\0" + body if flexible else head + body
            self.outputs.append(Reply(connection_id, [frame], size + _LENGTH_BYTES))
            return
        parts: Buffers = response.encode_parts(header.api_version)
        for part in parts:
            size += part.size_bytes if part.__class__ is FileSlice else len(part)  # type: ignore[arg-type]  # two kinds of parts
        head = _HEAD.pack(size, header.correlation_id)
        parts.insert(0, head + b"\0" if flexible else head)
        self.outputs.append(Reply(connection_id, parts, size + _LENGTH_BYTES))

    def _answer_bytes(self, connection_id: int, answer: Answered) -> None:
        size = _HEAD.size - _LENGTH_BYTES + len(answer.body)
        frame = _HEAD.pack(size, answer.correlation_id) + answer.body
        self.outputs.append(Reply(connection_id, [frame], len(frame)))


def _topic_configs(image: MetadataImage) -> dict[str, Mapping[str, str]]:
    return {topic.name: image.config(TOPIC_RESOURCE, topic.name) for topic in image.topics()}


def _served_versions() -> dict[int, tuple[int, int]]:
    served = {key: (each.min_version, each.max_version) for key, each in API_TABLE.items()}
    for key, each in CONTROLLER_TABLE.items():
        if key != _ALLOCATE_PRODUCER_IDS:
            served[key] = (each.min_version, each.max_version)
    return served


def _decode_limits(config: NodeConfig) -> DecodeLimits:
    return DecodeLimits(
        elements=config.settings.integer("request.max.elements"),
        tagged_fields=config.settings.integer("request.tagged.fields.max"),
        tagged_bytes=config.settings.integer("request.tagged.fields.max.bytes"),
    )
