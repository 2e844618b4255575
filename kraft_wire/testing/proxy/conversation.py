"""One client's connection through the proxy: bytes of both sides in, bytes for both sides out.

No sockets and no time here: a host feeds bytes, writes what is in `to_client` and `to_upstream`,
and applies `pauses` and `is_over`. Without rules and trace, requests pass unchanged, and so do
responses without addresses. Responses are sent in the order of the requests, including those that a
rule made.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct
from typing import Final, Protocol

from kraft_wire.model import Uuid
from kraft_wire.testing.exchanges import Client, Exchange, Recorder
from kraft_wire.testing.faults.rules import FaultRules
from kraft_wire.testing.faults.treatment import Fate, Treatment
from kraft_wire.testing.proxy.addresses import address_holders, carries_addresses, node_id_of
from kraft_wire.testing.proxy.cutter import Cutter
from kraft_wire.wire.frame import frame_prefix
from kraft_wire.wire.generated.metadata import MetadataResponse
from kraft_wire.wire.generated.produce import ProduceRequest
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.header import parse_request_header, parse_response_header
from kraft_wire.wire.message import Buffer, MalformedMessage

__all__ = ["Address", "Conversation", "Side", "World"]

Address = tuple[str, int]
Bytes = bytes | bytearray | memoryview

_REQUEST_HEAD: Final = Struct(">ihhi")
_RESPONSE_HEAD: Final = Struct(">ii")


class World(Protocol):
    """The shared state of all conversations of a proxy."""

    rules: FaultRules
    recorder: Recorder
    node_ids: dict[Address, int]
    """Ids of the nodes whose addresses were seen."""
    topic_names: dict[Uuid, str]

    def local_address(self, upstream: Address) -> Address:
        """Return where the proxy listens for an address of the cluster."""

    def not_understood(self, api_key: int, version: int) -> None:
        """Record a response whose addresses could not be replaced."""


@dataclass(slots=True, eq=False)
class _Pending:
    """A request that has no response yet."""

    correlation_id: int
    api_key: int
    version: int
    treatment: Treatment | None = None
    exchange: Exchange | None = None
    ready: list[Bytes] | None = None
    """The response that a rule made."""


@dataclass(slots=True)
class Side:
    """One direction: its cutter, its pause, and the bytes that wait for the end of the pause."""

    cutter: Cutter
    pause_ms: int = 0
    """Time that a host lets pass before it calls `resume`."""
    is_paused: bool = False
    then: Callable[[], None] | None = None
    held: list[bytes] = field(default_factory=list)


class Conversation:
    """The state of one connection of a client and the one behind it."""

    def __init__(self, world: World, client: Client, upstream: Address) -> None:
        self._world = world
        self._client = client
        self._upstream = upstream
        self._pending: deque[_Pending] = deque()
        self._current: _Pending | None = None
        self.requests = Side(Cutter(_REQUEST_HEAD.size, self._request_begins))
        self.responses = Side(Cutter(_RESPONSE_HEAD.size, self._response_begins))
        self.to_client: list[Bytes] = []
        self.to_upstream: list[Bytes] = []
        self.is_over = False
        """Whether both connections end once `to_client` is written."""
        self._is_silent = False

    @property
    def _watches(self) -> bool:
        return bool(self._world.rules.in_force) or self._world.recorder.is_on

    # -- both directions -------------------------------------------------------------------------

    def client_data(self, data: bytes) -> None:
        """Take bytes of the client. Errors: MalformedFrame."""
        if not self._is_silent:
            self._feed(self.requests, data, self._request, self.to_upstream)

    def upstream_data(self, data: bytes) -> None:
        """Take bytes of the cluster. Errors: MalformedFrame."""
        self._feed(self.responses, data, self._response, self.to_client)

    def _feed(
        self, side: Side, data: bytes, on_frame: Callable[[Buffer], None], out: list[Bytes]
    ) -> None:
        if side.is_paused:
            side.held.append(data)
            return
        side.cutter.feed(data)
        self._cut(side, on_frame, out)

    def _cut(self, side: Side, on_frame: Callable[[Buffer], None], out: list[Bytes]) -> None:
        while not side.is_paused and not self.is_over:
            piece = side.cutter.next_piece()
            if piece is None:
                return
            if piece.is_frame:
                on_frame(piece.data)
            else:
                out.append(piece.data)
                self._send_ready()

    def resume(self, side: Side) -> None:
        """Continue after a pause. Errors: MalformedFrame."""
        side.is_paused, side.pause_ms = False, 0
        then, side.then = side.then, None
        if then is not None:
            then()
        is_request = side is self.requests
        on_frame = self._request if is_request else self._response
        out = self.to_upstream if is_request else self.to_client
        self._cut(side, on_frame, out)
        while side.held and not side.is_paused:
            self._feed(side, side.held.pop(0), on_frame, out)

    @staticmethod
    def _pause(side: Side, delay_ms: int, then: Callable[[], None]) -> None:
        side.is_paused, side.pause_ms, side.then = True, delay_ms, then

    # -- requests --------------------------------------------------------------------------------

    def _request_begins(self, head: memoryview) -> bool:
        _, api_key, version, correlation_id = _REQUEST_HEAD.unpack(head)
        self._pending.append(_Pending(correlation_id, api_key, version))
        return self._watches

    def _request(self, frame: Buffer) -> None:
        """Let a request meet the rules."""
        pending, world = self._pending[-1], self._world
        node_id = world.node_ids.get(self._upstream, -1)
        treatment = pending.treatment = world.rules.on_request(node_id, frame)
        pending.exchange = world.recorder.begin(node_id, self._client, frame)
        if pending.exchange is not None:
            pending.exchange.treatment = treatment
        if treatment is None:
            self._forward(pending, frame)
        elif treatment.delay_ms:
            self._pause(self.requests, treatment.delay_ms, lambda: self._handle(pending, treatment))
        else:
            self._handle(pending, treatment)

    def _handle(self, pending: _Pending, treatment: Treatment) -> None:
        match treatment.fate:
            case Fate.PASS:
                self._forward(pending, treatment.frame)
            case Fate.ANSWER:
                pending.ready = self._finished(pending, treatment.answer)
                self._send_ready()
            case Fate.DISCONNECT:
                self._finish(pending, None)
                self.is_over = True
            case Fate.BLACKHOLE:
                self._finish(pending, None)
                self._is_silent = True
                self._pending.remove(pending)

    def _forward(self, pending: _Pending, frame: Buffer) -> None:
        self.to_upstream += [frame_prefix(len(frame)), frame]
        if pending.api_key == ProduceRequest.API_KEY and _expects_no_response(frame):
            self._finish(pending, None)
            self._pending.remove(pending)

    # -- responses -------------------------------------------------------------------------------

    def _response_begins(self, head: memoryview) -> bool:
        correlation_id = _RESPONSE_HEAD.unpack(head)[1]
        self._current = None
        while self._pending and self._pending[0].ready is None:
            pending = self._pending.popleft()  # one without a response had acks=0
            if pending.correlation_id == correlation_id:
                self._current = pending
                break
        pending_now = self._current
        if pending_now is None:
            return False
        is_special = pending_now.treatment is not None or pending_now.exchange is not None
        return is_special or carries_addresses(pending_now.api_key, pending_now.version)

    def _response(self, frame: Buffer) -> None:
        """Replace addresses, then let a response meet the rules."""
        pending = self._current
        assert pending is not None, "only responses to known requests are collected"
        data: Buffer = frame
        if carries_addresses(pending.api_key, pending.version):
            data = self._with_local_addresses(pending, frame)
        if pending.treatment is None:
            self.to_client += self._finished(pending, data)
        else:
            self._treat(pending, pending.treatment, bytes(data))
        self._send_ready()

    def _with_local_addresses(self, pending: _Pending, frame: Buffer) -> Buffer:
        """Return the same bytes, unless there are addresses in them."""
        key, version = pending.api_key, pending.version
        try:
            _, body_at = parse_response_header(frame, key, version)
            message, _ = response_class(key).decode(frame, version, body_at)
        except MalformedMessage:
            self._world.not_understood(key, version)
            return frame
        if isinstance(message, MetadataResponse):
            named = {Uuid(each.topic_id): each.name for each in message.topics if each.name}
            self._world.topic_names.update(named)
        is_changed = False
        for holder in address_holders(message, version):
            is_changed = True
            address = holder.host, holder.port
            node_id = node_id_of(holder)
            if node_id is not None:
                self._world.node_ids[address] = node_id
            holder.host, holder.port = self._world.local_address(address)
        return bytes(frame[:body_at]) + message.encode(version) if is_changed else frame

    def _treat(self, pending: _Pending, treatment: Treatment, frame: bytes) -> None:
        outcome = self._world.rules.on_response(treatment, frame)
        match outcome.fate:
            case Fate.DISCONNECT:
                self._finish(pending, None)
                self.is_over = True
                return
            case Fate.BLACKHOLE:
                self._finish(pending, None)
                self._is_silent = True
                self._pause(self.responses, 0, lambda: None)  # no host ever resumes it
                return
        sent = self._finished(pending, outcome.frame)
        is_cut = outcome.size_bytes_max is not None
        if is_cut:
            sent = [b"".join(sent)[: 4 + (outcome.size_bytes_max or 0)]]

        def send() -> None:
            self.to_client += sent
            self.is_over |= is_cut

        if outcome.delay_ms:
            self._pause(self.responses, outcome.delay_ms, send)
        else:
            send()

    def _send_ready(self) -> None:
        """Send the responses that rules made, up to the first missing response."""
        if self.responses.cutter.is_inside_frame or self.responses.is_paused:
            return
        while self._pending and self._pending[0].ready is not None:
            self.to_client += self._pending.popleft().ready or []

    def _finished(self, pending: _Pending, frame: Buffer) -> list[Bytes]:
        """Return a response as it is sent, and take note of it."""
        self._finish(pending, frame)
        return [frame_prefix(len(frame)), frame]

    def _finish(self, pending: _Pending, frame: Buffer | None) -> None:
        if pending.exchange is not None:
            self._world.recorder.end(pending.exchange, None if frame is None else bytes(frame))


def _expects_no_response(frame: Buffer) -> bool:
    """Whether a Produce request has acks=0."""
    try:
        header, body_at = parse_request_header(frame)
        request, _ = ProduceRequest.decode(frame, header.api_version, body_at)
    except MalformedMessage:
        return False
    return request.acks == 0
