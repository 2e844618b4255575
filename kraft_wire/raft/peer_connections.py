"""Peers that this replica may send to: one outstanding request per peer, a backoff after errors.

KIP-595 guarantees neither order nor answers: a request that is not answered in time frees its
connection, a failed one starts a backoff of `controller.quorum.retry.backoff.ms`. An answer counts
only while its request is the outstanding one of its peer; a change of role drops all of them.
"""

from enum import Enum
from typing import Final

from kraft_wire.frozen import slotted
from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.voters import Address
from kraft_wire.wire.message import Message

__all__ = ["ConnectionState", "PeerConnection", "PeerConnections"]


class ConnectionState(Enum):
    """READY to send, AWAITING an answer, or in BACKOFF after an error."""

    READY = "ready"
    AWAITING = "awaiting"
    BACKOFF = "backoff"


_READY: Final = ConnectionState.READY
_AWAITING: Final = ConnectionState.AWAITING
_BACKOFF: Final = ConnectionState.BACKOFF
"""Read for every peer in every step; up to Python 3.11 access to an enum's member is slow."""


@slotted
class PeerConnection:
    """One peer, by node id; `until_ms` ends the current state unless it is READY."""

    state: ConnectionState = ConnectionState.READY
    until_ms: int = 0
    sent: SendRequest | None = None
    """The outstanding request, while AWAITING."""
    has_timed_out: bool = False
    """Whether the last request was never answered."""


class PeerConnections:
    """The connections of one replica."""

    def __init__(self, request_timeout_ms: int, retry_backoff_ms: int) -> None:
        self._request_timeout_ms = max(1, request_timeout_ms)
        self._retry_backoff_ms = max(1, retry_backoff_ms)
        self._connections: dict[int, PeerConnection] = {}
        self._next_request_id = 1

    def is_ready(self, node_id: int) -> bool:
        """Tell whether a request may be sent to a peer."""
        connection = self._connections.get(node_id)
        if connection is None or connection.state is _READY:
            return True
        assert connection.until_ms > 0, connection
        return False

    def is_trusted(self, node_id: int) -> bool:
        """Return whether to wait for a peer: not in backoff, and it answered the last request."""
        connection = self._connections.get(node_id)
        if connection is None:
            return True
        assert connection.sent is None or connection.state is _AWAITING, node_id
        return connection.state is not _BACKOFF and not connection.has_timed_out

    @property
    def has_any_outstanding(self) -> bool:
        """Whether any request is outstanding."""
        return any(connection.state is _AWAITING for connection in self._connections.values())

    def outstanding(self) -> list[SendRequest]:
        """Return the outstanding requests."""
        found = [connection.sent for connection in self._connections.values()]
        assert len(found) == len(self._connections)
        return [sent for sent in found if sent is not None]

    def send(self, node_id: int, address: Address, request: Message, now_ms: int) -> SendRequest:
        """Note a request as outstanding and return the effect that sends it."""
        assert self.is_ready(node_id), node_id
        sent = SendRequest(self._next_request_id, node_id, address, request)
        self._next_request_id += 1
        self._connections[node_id] = PeerConnection(
            _AWAITING, now_ms + self._request_timeout_ms, sent
        )
        return sent

    def take_answered(self, request_id: int) -> SendRequest | None:
        """Free the connection of an answered request; None if it is not outstanding."""
        for node_id, connection in self._connections.items():
            if connection.sent is not None and connection.sent.request_id == request_id:
                assert connection.state is _AWAITING, connection
                self._connections[node_id] = PeerConnection()
                return connection.sent
        return None

    def rest(self, node_id: int, now_ms: int) -> None:
        """Start a peer's backoff, because its answer was an error or did not arrive."""
        known = self._connections.get(node_id)
        if known is not None and known.state is _AWAITING:
            return  # a newer request is outstanding, and only its answer counts
        until_ms = now_ms + self._retry_backoff_ms
        assert until_ms > now_ms, until_ms
        self._connections[node_id] = PeerConnection(_BACKOFF, until_ms)

    def trust(self, node_id: int) -> None:
        """Wait for a peer again that did not answer: it is at another address now."""
        known = self._connections.get(node_id)
        assert known is None or known.state is not _AWAITING, "its request may still be answered"
        self._connections.pop(node_id, None)

    def expire(self, now_ms: int) -> None:
        """Free the connections whose timeout or backoff is over."""
        for connection in self._connections.values():
            state = connection.state
            if state is not _READY and connection.until_ms <= now_ms:
                connection.has_timed_out = state is _AWAITING
                connection.state = _READY
                connection.sent = None
            is_free = connection.state is _READY
            assert is_free or connection.until_ms > now_ms, connection

    def forget_all(self) -> None:
        """Drop all outstanding requests, at every change of role: their answers are late then."""
        self._connections = {}
        assert not self.has_any_outstanding

    def deadline_ms(self) -> int | None:
        """Return when `expire` has something to do."""
        soonest_ms: int | None = None
        for connection in self._connections.values():
            if connection.state is not _READY and (
                soonest_ms is None or connection.until_ms < soonest_ms
            ):
                soonest_ms = connection.until_ms
        return soonest_ms
