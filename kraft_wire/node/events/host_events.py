"""Events of the host: connections, and the durations of requests, flushes and calls of the node.

The host passes times in seconds; metrics and log lines are made from them. Lines are limited per
address. Not here: refusals (`event_log`).
"""

from collections.abc import Callable
from typing import Final

from kraft_wire.node.event_log import EventLog
from kraft_wire.node.limits import RequestMemory
from kraft_wire.node.metrics.request_figures import ApiFigures, RequestFigures
from kraft_wire.node.outputs import Peer

__all__ = ["HostEvents"]

_MAY_WAIT: Final = frozenset({"Fetch", "JoinGroup", "ShareFetch", "SyncGroup"})
"""Requests whose response waits for records or other clients, for a time that the client sets."""
_NOBODY: Final = "-"


class HostEvents:
    """Counts and logs for one host."""

    def __init__(self, log: EventLog, slow_ms: int, now_ms: Callable[[], int]) -> None:
        """Log operations that take `slow_ms` or longer."""
        self.requests = RequestFigures()
        self.flushes = ApiFigures("flush")
        """Durations from order to completion."""
        self._log, self._now_ms = log, now_ms
        self._slow_seconds = slow_ms / 1_000
        self._flushes_began: dict[int, float] = {}

    # -- connections -----------------------------------------------------------------------------

    def connection(self, name: str, peer: Peer) -> None:
        """Log that a connection opened or closed, at level DEBUG."""
        if self._log.may_write(name):
            self._log.event(
                name,
                client=f"{peer.client_host}:{peer.client_port}",
                listener=peer.listener,
                client_id=peer.client_id or "-",
                requests=peer.requests_count,
            )

    def starving(self, peer: Peer, memory: RequestMemory) -> None:
        """Log that a connection waits for memory."""
        self._log.limited(
            "request_memory_exhausted",
            peer.client_host,
            self._now_ms(),
            used_bytes=memory.used_bytes,
            allowed_bytes=memory.bytes_max,
        )

    # -- requests --------------------------------------------------------------------------------

    def received(self, peer: Peer, frame: bytearray, at: float) -> None:
        """Note a whole request."""
        peer.figures, peer.asked_at = self.requests.of_frame(frame), at

    def answered(self, peer: Peer, response_bytes: int, at: float) -> None:
        """Count a completed request; log a slow one, unless its API may wait."""
        figures, peer.figures = peer.figures, None
        if figures is None:
            return
        took = at - peer.asked_at
        figures.note(took, response_bytes)
        if took >= self._slow_seconds and figures.name not in _MAY_WAIT:
            client_id, ms = peer.client_id or "-", int(took * 1_000)
            self._log.limited(
                "slow_request",
                peer.client_host,
                self._now_ms(),
                api=figures.name,
                client_id=client_id,
                ms=ms,
            )

    def served(self, peer: Peer, began: float, ended: float) -> None:
        """Log a request that blocked the node's thread for too long, and count its time."""
        self.worked("request", began, ended)
        if peer.charge is not None:
            peer.charge.spend(ended - began, self._now_ms())

    # -- time ------------------------------------------------------------------------------------

    def worked(self, what: str, began: float, ended: float) -> None:
        """Log a call that blocked the node's thread for too long."""
        if ended - began >= self._slow_seconds:
            ms = int((ended - began) * 1_000)
            self._log.limited("slow_operation", _NOBODY, self._now_ms(), operation=what, ms=ms)

    def flush_began(self, flush_id: int, at: float) -> None:
        """Note an ordered flush."""
        self._flushes_began[flush_id] = at

    def flush_ended(self, flush_id: int, at: float) -> None:
        """Count a flush; log one that took too long."""
        took = at - self._flushes_began.pop(flush_id, at)
        self.flushes.note(took, 0)
        if took >= self._slow_seconds:
            self._log.limited("slow_flush", _NOBODY, self._now_ms(), ms=int(took * 1_000))
