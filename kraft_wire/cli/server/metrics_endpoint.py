"""`/metrics` in the Prometheus text form, `/health` and `/ready`, on a port of their own.

Imported only where `metrics.port` is set. `/health` returns 200 while the process works, `/ready`
returns 200 while the node serves clients and 503 before and after. Other paths return the metrics.

How much of its time the node's thread is idle (KIP-595) is measured here, in the loop: no module
below it has a clock.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from kraft_wire.node.metrics.families import Family, Histogram, LabelledFamily
from kraft_wire.node.metrics.node_metrics import node_metrics
from kraft_wire.node.metrics.quota_metrics import quota_metrics
from kraft_wire.node.metrics.request_metrics import request_metrics
from kraft_wire.server.clock import wall_ms
from kraft_wire.server.host import Host

__all__ = ["IdleShare", "serve_metrics"]

_REQUEST_BYTES_MAX = 8_192
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
        yield from map(_metric, node_metrics(host.node, wall_ms()))
        yield from map(_metric, request_metrics(host.events))
        yield from map(_metric, quota_metrics(host.node, host.now_ms()))
        rates = host.connection_quotas.accept_rates(host.now_ms())
        name = "kafka_server_socketservermetrics_connection_accept_rate"
        text = "New connections in a second."
        yield _metric(Family(name, False, text, "listener", rates))
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


def _metric(family: Family | LabelledFamily | Histogram) -> Metric:
    if isinstance(family, Histogram):
        return _histogram(family)
    if isinstance(family, LabelledFamily):
        several = CounterMetricFamily if family.is_counter else GaugeMetricFamily
        labelled = several(family.name, family.documentation, labels=family.labels)
        for values, value in family.values.items():
            labelled.add_metric(values, value)
        return labelled
    kind = CounterMetricFamily if family.is_counter else GaugeMetricFamily
    labels = [family.label] if family.label else []
    metric = kind(family.name, family.documentation, labels=labels)
    for label, value in family.values.items():
        metric.add_metric([label] if labels else [], value)
    return metric


def _histogram(family: Histogram) -> Metric:
    labels = [family.label] if family.label else []
    metric = HistogramMetricFamily(family.name, family.documentation, labels=labels)
    bounds = [*map(str, family.bounds), "+Inf"]
    for label, found in family.values.items():
        buckets = list(zip(bounds, accumulate(found.counts), strict=True))
        metric.add_metric([label] if labels else [], buckets, found.total)
    return metric


async def serve_metrics(
    host: Host, address: str, port: int, is_ready: Callable[[], bool]
) -> asyncio.Server:
    """Answer HTTP requests, one per connection."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_HostCollector(host))
    ProcessCollector(registry=registry)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _REQUEST_SECONDS_MAX)
            path = request.split(b" ", 2)[1:2]
            status, body = "200 OK", b"ok\n"
            if path == [b"/ready"] and not is_ready():
                status, body = "503 Service Unavailable", b"not ready\n"
            elif path not in ([b"/ready"], [b"/health"]):
                body = generate_latest(registry)
            head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
            kind = "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n\r\n"
            writer.write((head + kind).encode() + body)
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a client that disconnects gets no metrics
        finally:
            writer.close()

    return await asyncio.start_server(answer, address, port, limit=_REQUEST_BYTES_MAX)
