"""Outbound requests to peers over links, as bytes: versions, framing, time limits, back-off.

One link for each peer (node id and address), opened when it is first needed. Its first frame is
ApiVersions in version 4, sent again in an older version if the peer requires it (KIP-511). Then
every request is sent in the newest version that both sides support. A peer's mistake closes the
link with a named log line and fails its requests; it never raises. After a failure to connect the
peer is in a backoff that doubles, in which its requests fail at once.

Memory is bounded by the number of peers, by requests for each of them, and by the host's limit on a
frame. Not here: the requests and their receivers (`raft`, `forwarding`); sockets (the host).
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kraft_wire.model import ReportEvent, sooner
from kraft_wire.node.links.peer_versions import (
    PeerVersions,
    common_version,
    read_node_api_versions,
    unsupported,
)
from kraft_wire.node.outputs import Connect, Disconnect, Output, SendBytes
from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.events import RequestFailed, ResponseReceived
from kraft_wire.raft.voters import Address
from kraft_wire.wire.frame import FRAME_PREFIX_BYTES, frame_prefix
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.messages import RELEASE
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.header import RequestHeader, encode_request_header, parse_response_header
from kraft_wire.wire.message import (
    Buffer,
    DecodeLimits,
    MalformedMessage,
    Message,
    UnencodableMessage,
)

__all__ = ["ChannelEvent", "ChannelLimits", "PeerChannels"]

ChannelEvent = ResponseReceived | RequestFailed
_SOFTWARE_NAME: Final = "kraft-wire"
_CORRELATION_ID_BYTES: Final = 4
_HANDSHAKE_ID: Final = -1
"""The request id of the ApiVersions request that a new link begins with."""
_FIRST_SOFTWARE_VERSION: Final = 3
_CORRELATION_IDS: Final = (1 << 31) - 1
"""The last one is that of logins, whose answers the node does not see."""
_LINE_EVERY_MS: Final = 1_000
"""Limits the log lines about one peer's mistakes."""
_OTHER_CLUSTER: Final = int(ErrorCode.INCONSISTENT_CLUSTER_ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelLimits:
    """Time and memory that peers may take; the defaults are those of Kafka's raft client."""

    request_timeout_ms: int = 2_000
    """`controller.quorum.request.timeout.ms`."""
    setup_timeout_ms: int = 10_000
    """`socket.connection.setup.timeout.ms`: until a link is up and its versions are known."""
    idle_ms: int = 600_000
    """`connections.max.idle.ms`: an idle link is closed."""
    backoff_ms: int = 20
    """Backoff after the first failure to reach a peer; it doubles up to `backoff_max_ms`."""
    backoff_max_ms: int = 200
    peers_max: int = 64
    """Most peers; beyond it the least recently used one is dropped, and its link closed."""
    requests_max: int = 128
    """Requests of one peer that wait or are in progress; more fail at once."""


class _Asked(NamedTuple):
    """A request that waits for its link or for its answer."""

    request_id: int
    request: Message
    until_ms: int
    api_version: int = -1
    """Version of a sent request, and so of its answer."""


_PeerKey = tuple[int, Address]


@dataclass(slots=True, eq=False)
class _Peer:
    """A peer with its link and its requests. Link 0: none is open."""

    key: _PeerKey
    link_id: int = 0
    is_up: bool = False
    versions: PeerVersions | None = None
    """The peer's versions, None until they are known."""
    setup_until_ms: int = 0
    used_ms: int = 0
    failures: int = 0
    """Successive failures to open a link and get the peer's versions."""
    rests_until_ms: int = 0
    next_line_ms: int = 0
    next_correlation_id: int = 0
    waiting: deque[_Asked] = field(default_factory=deque)
    in_flight: dict[int, _Asked] = field(default_factory=dict)
    """By correlation id, in the order of sending."""

    @property
    def requests_count(self) -> int:
        return len(self.waiting) + len(self.in_flight)


class PeerChannels:
    """All links of one owner: the replica, or the forwarder."""

    def __init__(
        self,
        client_id: str,
        link_ids: Iterator[int],
        report: ReportEvent,
        limits: ChannelLimits | None = None,
        decode_limits: DecodeLimits | None = None,
        listener: str = "",
    ) -> None:
        """`link_ids` gives out the node's link ids; owners share it.

        `listener` is the peer's listener, empty for that of the controllers.
        """
        self._listener = listener
        self.outputs: list[Output] = []
        """Outputs for the host, drained by the node."""
        self._client_id = client_id
        self._link_ids = link_ids
        self._report = report
        self._limits = limits or ChannelLimits()
        self._decode_limits = decode_limits or DecodeLimits()
        self._peers: dict[_PeerKey, _Peer] = {}
        """In the order of last use."""
        self._by_link: dict[int, _Peer] = {}

    # -- the owner's calls -----------------------------------------------------------------------

    def send(self, sent: SendRequest, now_ms: int) -> list[ChannelEvent]:
        """Send a request, over a new link if needed; return the events that are known at once.

        Without a common version that has its fields: an answer with UNSUPPORTED_VERSION, or
        RequestFailed if the answer has no top-level error. RequestFailed also during the backoff
        of a peer, or if the peer has `requests_max` requests already.
        """
        peer, events = self._peer((sent.node_id, sent.address), now_ms)
        if now_ms < peer.rests_until_ms or peer.requests_count >= self._limits.requests_max:
            return [*events, RequestFailed(sent.request_id)]
        patience_ms = max(1, self._limits.request_timeout_ms)
        asked = _Asked(sent.request_id, sent.request, now_ms + patience_ms)
        if peer.versions is not None:
            return events + self._transmit(peer, asked)
        if not peer.link_id:
            self._open(peer, now_ms)
        # Non-obvious 15: its epoch and offset may be outdated when it is sent.
        peer.waiting.append(asked)
        return events

    def owns(self, link_id: int) -> bool:
        """Return whether a link belongs to this owner and is in use."""
        return link_id in self._by_link

    def versions_of(self, node_id: int, address: Address) -> PeerVersions | None:
        """Return a peer's versions, None if unknown."""
        peer = self._peers.get((node_id, address))
        return None if peer is None else peer.versions

    def close_all(self) -> list[ChannelEvent]:
        """Close every link, as at a stop; return the failures of requests."""
        events: list[ChannelEvent] = []
        for peer in list(self._by_link.values()):
            events += self._close(peer)
        return events

    # -- what happens to links -------------------------------------------------------------------

    def link_up(self, link_id: int, now_ms: int) -> list[ChannelEvent]:
        """Handle a connected link: request the peer's versions."""
        peer = self._by_link.get(link_id)
        if peer is None or peer.is_up:
            return []
        peer.is_up, peer.used_ms = True, now_ms
        # Non-obvious 16: it is due although the owner may have nothing to send.
        self._ask_versions(peer, ApiVersionsRequest.MAX_VERSION)
        return []

    def link_frame(self, link_id: int, frame: Buffer, now_ms: int) -> list[ChannelEvent]:
        """Handle one answer, without its length; records in it are slices of `frame`."""
        peer = self._by_link.get(link_id)
        if peer is None:
            return []
        peer.used_ms = now_ms
        correlation_id = int.from_bytes(frame[:_CORRELATION_ID_BYTES], "big", signed=True)
        is_cut = len(frame) < _CORRELATION_ID_BYTES
        asked = None if is_cut else peer.in_flight.pop(correlation_id, None)
        if asked is None:
            return self._broken(peer, now_ms, "unexpected_answer", correlation=correlation_id)
        view = memoryview(frame)
        try:
            if asked.request_id == _HANDSHAKE_ID:
                return self._negotiated(peer, asked.api_version, view, now_ms)
            answer = self._decoded(asked, view)
        except MalformedMessage as problem:
            peer.in_flight[correlation_id] = asked
            return self._broken(
                peer,
                now_ms,
                problem.kind.value,
                api=asked.request.NAME.removesuffix("Request"),
                version=asked.api_version,
                correlation=correlation_id,
                field=problem.field,
                byte=problem.byte,
            )
        if getattr(answer, "error_code", 0) == _OTHER_CLUSTER:
            self._warn(peer, now_ms, "peer_of_another_cluster")
        return [ResponseReceived(asked.request_id, answer)]

    def link_down(self, link_id: int, now_ms: int) -> list[ChannelEvent]:
        """Handle a link that was refused, closed or broken."""
        peer = self._by_link.get(link_id)
        return [] if peer is None else self._lost(peer, now_ms)

    # -- time ------------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> list[ChannelEvent]:
        """Close links that are late or idle; their requests fail."""
        events: list[ChannelEvent] = []
        for peer in list(self._by_link.values()):
            if self._until_ms(peer) > now_ms:
                continue
            if peer.requests_count or peer.versions is None:
                reason = "setup_timeout" if peer.versions is None else "request_timeout"
                events += self._broken(peer, now_ms, reason)
            else:
                events += self._close(peer)
        return events

    def deadline_ms(self) -> int | None:
        """Return when `tick` has something to do."""
        soonest_ms: int | None = None
        for peer in self._by_link.values():
            until_ms = self._until_ms(peer)
            if soonest_ms is None or until_ms < soonest_ms:
                soonest_ms = until_ms
        return soonest_ms

    def _until_ms(self, peer: _Peer) -> int:
        """Return when a link is late or idle. Limits are equal, so the oldest request decides."""
        until_ms = peer.setup_until_ms if peer.versions is None else None
        if peer.in_flight:
            until_ms = sooner(until_ms, next(iter(peer.in_flight.values())).until_ms)
        if peer.waiting:
            until_ms = sooner(until_ms, peer.waiting[0].until_ms)
        return peer.used_ms + self._limits.idle_ms if until_ms is None else until_ms

    # -- links -----------------------------------------------------------------------------------

    def _peer(self, key: _PeerKey, now_ms: int) -> tuple[_Peer, list[ChannelEvent]]:
        """Return a peer, now the last one used, and the failures of a peer dropped for it."""
        events: list[ChannelEvent] = []
        peer = self._peers.pop(key, None) or _Peer(key)
        if len(self._peers) >= self._limits.peers_max:
            forgotten = self._peers.pop(next(iter(self._peers)))
            if forgotten.link_id:
                events = self._close(forgotten)
        self._peers[key] = peer
        peer.used_ms = now_ms
        assert len(self._peers) <= self._limits.peers_max, len(self._peers)
        return peer, events

    def _open(self, peer: _Peer, now_ms: int) -> None:
        assert not peer.requests_count, peer.key
        peer.link_id = next(self._link_ids)
        assert peer.link_id > 0, peer.link_id
        peer.setup_until_ms = now_ms + self._limits.setup_timeout_ms
        self._by_link[peer.link_id] = peer
        _, address = peer.key
        self.outputs.append(Connect(peer.link_id, address.host, address.port, self._listener))

    def _close(self, peer: _Peer) -> list[ChannelEvent]:
        """Close a link; return the failures of its requests."""
        assert peer.link_id > 0, peer.key
        self.outputs.append(Disconnect(peer.link_id))
        return self._detached(peer)

    def _detached(self, peer: _Peer) -> list[ChannelEvent]:
        """Drop a closed link; return the failures of its requests."""
        del self._by_link[peer.link_id]
        asked = [*peer.in_flight.values(), *peer.waiting]
        peer.in_flight, peer.waiting = {}, deque()
        peer.link_id, peer.is_up, peer.versions = 0, False, None
        return [RequestFailed(each.request_id) for each in asked if each.request_id >= 0]

    def _lost(self, peer: _Peer, now_ms: int) -> list[ChannelEvent]:
        """Start the backoff of a peer without a link; it grows with successive failures."""
        limits = self._limits
        if peer.versions is not None:
            peer.failures = 0
        elif peer.failures == 0:
            self._tell(peer, "peer_unreachable")
        rest_ms = min(limits.backoff_ms << min(peer.failures, 16), limits.backoff_max_ms)
        if peer.versions is None:
            peer.failures += 1
        if peer.versions is None or peer.requests_count:
            peer.rests_until_ms = now_ms + rest_ms
        return self._detached(peer)

    def _broken(
        self, peer: _Peer, now_ms: int, reason: str, **fields: object
    ) -> list[ChannelEvent]:
        """Close a link because of a peer's mistake or timeout."""
        self._warn(peer, now_ms, "peer_link_closed", reason=reason, **fields)
        self.outputs.append(Disconnect(peer.link_id))
        return self._lost(peer, now_ms)

    def _warn(self, peer: _Peer, now_ms: int, event: str, **fields: object) -> None:
        """Report something that may happen at each request, but not each time."""
        if now_ms >= peer.next_line_ms:
            peer.next_line_ms = now_ms + _LINE_EVERY_MS
            self._tell(peer, event, **fields)

    def _tell(self, peer: _Peer, event: str, **fields: object) -> None:
        node_id, address = peer.key
        known = node_id if node_id >= 0 else "-"  # an address to start from has no id yet
        self._report(event, peer=known, address=f"{address.host}:{address.port}", **fields)

    # -- bytes -----------------------------------------------------------------------------------

    def _ask_versions(self, peer: _Peer, version: int) -> None:
        request = ApiVersionsRequest()
        if version >= _FIRST_SOFTWARE_VERSION:
            request.client_software_name = _SOFTWARE_NAME
            request.client_software_version = RELEASE
        body = request.encode(version)
        self._write(peer, _Asked(_HANDSHAKE_ID, request, peer.setup_until_ms, version), body)

    def _negotiated(
        self, peer: _Peer, version: int, frame: memoryview, now_ms: int
    ) -> list[ChannelEvent]:
        """Store the peer's versions, and send the waiting requests."""
        offer = read_node_api_versions(frame, version, self._decode_limits)
        if offer.next_version >= 0:
            self._ask_versions(peer, offer.next_version)
            return []
        if offer.error_code != ErrorCode.NONE:
            return self._broken(peer, now_ms, "versions_refused", error=offer.error_code)
        peer.versions = offer.versions
        if peer.failures:
            self._tell(peer, "peer_reached", failures=peer.failures)
            peer.failures = 0
        events: list[ChannelEvent] = []
        waiting, peer.waiting = peer.waiting, deque()
        for asked in waiting:
            events += self._transmit(peer, asked)
        return events

    def _transmit(self, peer: _Peer, asked: _Asked) -> list[ChannelEvent]:
        """Send a request in the newest version that has its fields; answer it without one."""
        assert peer.versions is not None, peer.key
        version = common_version(asked.request, peer.versions)
        if version is not None:
            try:
                body = asked.request.encode(version)
            except UnencodableMessage:
                version = None
        if version is None:
            answer = unsupported(asked.request)
            if answer is None:
                return [RequestFailed(asked.request_id)]
            return [ResponseReceived(asked.request_id, answer)]
        self._write(peer, asked._replace(api_version=version), body)
        return []

    def _write(self, peer: _Peer, asked: _Asked, body: bytes) -> None:
        correlation_id = peer.next_correlation_id
        peer.next_correlation_id = (correlation_id + 1) % _CORRELATION_IDS
        assert correlation_id not in peer.in_flight, correlation_id
        peer.in_flight[correlation_id] = asked
        head = encode_request_header(
            RequestHeader(asked.request.API_KEY, asked.api_version, correlation_id, self._client_id)
        )
        size_bytes = len(head) + len(body)
        frame = frame_prefix(size_bytes) + head
        self.outputs.append(SendBytes(peer.link_id, [frame, body], FRAME_PREFIX_BYTES + size_bytes))

    def _decoded(self, asked: _Asked, frame: memoryview) -> Message:
        api_key, version = asked.request.API_KEY, asked.api_version
        _, body_at = parse_response_header(frame, api_key, version)
        response, _ = response_class(api_key).decode(frame, version, body_at, self._decode_limits)
        return response
