"""`/metrics` in the Prometheus text form, on a port of its own; imported only where one is set.

How much of its time the node's thread is idle (KIP-595) is measured here, beside the loop: below it
nobody knows a clock.
"""

import socket
import time
from collections import deque
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kraft_wire.cli.loop import EventLoop
from kraft_wire.cli.loop_stream import Stream
from kraft_wire.node.families import Family
from kraft_wire.node.metrics import node_metrics
from kraft_wire.server.host import Host

__all__ = ["IdleShare", "serve_metrics"]

_BACKLOG = 16
_ACCEPT_PAUSE_SECONDS = 0.1
_HEAD_END = b"\r\n\r\n"
_REQUEST_BYTES_MAX = 8_192
_ANSWER_BYTES_MAX = 16 * 1024 * 1024
_REQUEST_SECONDS_MAX = 5.0


_WINDOW_SECONDS = 60.0
_LOOKS_MAX = 120


class IdleShare:
    """The share of time in which a thread had nothing to do, over the last minute's looks."""

    def __init__(self, now: float, busy: float) -> None:
        self._looks = deque([(now, busy)], _LOOKS_MAX)

    def read(self, now: float, busy: float) -> float:
        """Return the share; `now` and `busy` are seconds passed and seconds worked so far."""
        while len(self._looks) > 1 and self._looks[0][0] < now - _WINDOW_SECONDS:
            self._looks.popleft()
        since, busy_then = self._looks[0]
        self._looks.append((now, busy))
        spent = now - since
        return 1.0 if spent <= 0 else min(1.0, max(0.0, 1 - (busy - busy_then) / spent))


class _HostCollector(Collector):
    def __init__(self, host: Host) -> None:
        self._host = host
        self._idle = IdleShare(time.monotonic(), time.thread_time())

    def collect(self) -> Iterator[Metric]:
        """Read the counters now."""
        host = self._host
        yield from map(_metric, node_metrics(host.node))
        reasons = host.log.rejections
        yield _metric(Family("kraft_wire_rejections", True, "Refused.", "reason", reasons))
        connections = {"": len(host.connections)}
        name = "kafka_server_socketservermetrics_connection_count"
        yield _metric(Family(name, False, "Open connections.", "", connections))
        queued = {"": host.memory.used_bytes}
        yield _metric(Family("kraft_wire_queued_request_bytes", False, "Bytes.", "", queued))
        idle = {"": self._idle.read(time.monotonic(), time.thread_time())}
        name = "kafka_server_raft_metrics_poll_idle_ratio_avg"
        yield _metric(
            Family(name, False, "How much of its time the node's thread idles.", "", idle)
        )


def _metric(family: Family) -> Metric:
    kind = CounterMetricFamily if family.is_counter else GaugeMetricFamily
    labels = [family.label] if family.label else []
    metric = kind(family.name, family.documentation, labels=labels)
    for label, value in family.values.items():
        metric.add_metric([label] if labels else [], value)
    return metric


class _Asker:
    """One connection: whatever is asked, the metrics are the answer, and then it ends."""

    def __init__(self, loop: EventLoop, registry: CollectorRegistry, sock: socket.socket) -> None:
        self._registry = registry
        self._asked = b""
        self._stream = Stream(loop, self, _ANSWER_BYTES_MAX)
        self._late = loop.call_later(_REQUEST_SECONDS_MAX, self._stream.abort)
        self._stream.adopt(sock)

    def stream_opened(self) -> None:
        """Wait for the question."""

    def bytes_received(self, data: bytes) -> None:
        """Answer once the head of the request is whole; what comes after it is not looked at."""
        is_answered = _HEAD_END in self._asked
        self._asked += data if not is_answered else b""
        if len(self._asked) > _REQUEST_BYTES_MAX:
            self._late.cancel()
            self._stream.abort()
        elif _HEAD_END in self._asked and not is_answered:
            body = generate_latest(self._registry)
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
            kind = "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n\r\n"
            answer = (head + kind).encode() + body
            self._stream.write([answer], len(answer))
            self._stream.end()

    def stream_lost(self) -> None:
        """Whoever asks and goes away gets none."""
        self._late.cancel()


def serve_metrics(host: Host, loop: EventLoop, address: str, port: int) -> int:
    """Answer every HTTP request with the metrics, one per connection; return the port."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_HostCollector(host))
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, port), family=family, backlog=_BACKLOG)
    listener.setblocking(False)

    def accept() -> None:
        try:
            sock, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionError):
            return  # it went away again
        except OSError:  # no descriptor left: it waits until one is free
            loop.remove_reader(listener.fileno())
            loop.call_later(_ACCEPT_PAUSE_SECONDS, loop.add_reader, listener.fileno(), accept)
            return
        sock.setblocking(False)
        _Asker(loop, registry, sock)

    loop.add_reader(listener.fileno(), accept)
    bound: int = listener.getsockname()[1]
    return bound
