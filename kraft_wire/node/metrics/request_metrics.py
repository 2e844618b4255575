"""Requests of one server by API: latency as a histogram, bytes in and out, and flushes."""

from collections.abc import Iterator

from kraft_wire.node.events.host_events import HostEvents
from kraft_wire.node.metrics.families import Buckets, Family, Histogram
from kraft_wire.node.metrics.request_figures import BUCKETS_SECONDS, ApiFigures

__all__ = ["request_metrics"]


def request_metrics(events: HostEvents) -> Iterator[Family | Histogram]:
    """Yield the host's measurements."""
    apis = list(events.requests)
    yield Histogram(
        "kraft_wire_request_duration_seconds",
        "Time from a whole request to its response, waiting included.",
        "api",
        BUCKETS_SECONDS,
        {each.name: _buckets(each) for each in apis},
    )
    received = {each.name: each.request_bytes for each in apis}
    yield Family("kraft_wire_request_bytes", True, "Bytes of requests.", "api", received)
    sent = {each.name: each.response_bytes for each in apis}
    yield Family("kraft_wire_response_bytes", True, "Bytes of responses.", "api", sent)
    yield Histogram(
        "kraft_wire_flush_duration_seconds",
        "Time from the order of a flush to its end.",
        "",
        BUCKETS_SECONDS,
        {"": _buckets(events.flushes)},
    )


def _buckets(figures: ApiFigures) -> Buckets:
    return Buckets(figures.buckets, figures.seconds)
