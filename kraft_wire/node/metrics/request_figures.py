"""Measurements of requests by API: number, latency, bytes in and out.

Latency is the time from the whole request to its response, including waits, in a histogram of fixed
buckets. A request costs two reads of a clock, one bisection and some additions.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from kraft_wire.apis.registry import APIS

__all__ = ["BUCKETS_SECONDS", "UNKNOWN_API", "ApiFigures", "RequestFigures"]

BUCKETS_SECONDS: Final = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0),
)
"""Upper bounds, inclusive; a last bucket has longer times."""
UNKNOWN_API: Final = "-"


class ApiFigures:
    """The figures of one API."""

    __slots__ = ("buckets", "name", "request_bytes", "response_bytes", "seconds")

    def __init__(self, name: str) -> None:
        self.name = name
        self.buckets = [0] * (len(BUCKETS_SECONDS) + 1)
        self.seconds = 0.0
        self.request_bytes = self.response_bytes = 0

    def note(self, seconds: float, response_bytes: int) -> None:
        """Count a completed request."""
        self.buckets[bisect_left(BUCKETS_SECONDS, seconds)] += 1
        self.seconds += seconds
        self.response_bytes += response_bytes


class RequestFigures:
    """The figures of all APIs; unknown keys share one entry."""

    def __init__(self) -> None:
        self._by_key: dict[int, ApiFigures] = {}
        self._unknown = ApiFigures(UNKNOWN_API)

    def of_frame(self, frame: bytearray) -> ApiFigures:
        """Return the figures of a request's API, and count its bytes."""
        key = frame[0] << 8 | frame[1] if len(frame) > 1 else -1
        figures = self._by_key.get(key)
        if figures is None:
            figures = self._new(key)
        figures.request_bytes += len(frame)
        return figures

    def _new(self, key: int) -> ApiFigures:
        api = APIS.get(key)
        if api is None:
            return self._unknown
        self._by_key[key] = figures = ApiFigures(api.name)
        return figures

    def __iter__(self) -> Iterator[ApiFigures]:
        """Iterate over the APIs with requests, in key order."""
        yield from (figures for _, figures in sorted(self._by_key.items()))
        if self._unknown.request_bytes:
            yield self._unknown
