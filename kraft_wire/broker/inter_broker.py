"""Requests that a part of this broker sends to other brokers: fetchers, transaction markers.

Each part is one client of the inter-broker listener, with its own client id and links, as in Kafka.
It decides what to send and when to retry; `node/links/broker_links` delivers a request to another
broker over a link, and a request to this broker without one.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from kraft_wire.frozen import frozen
from kraft_wire.wire.message import Message

__all__ = ["BrokerRequests", "InterBrokerClient"]


class BrokerRequests(Protocol):
    """The requests of one client to one broker, at most one in flight."""

    def request(self, broker_epoch: int, now_ms: int) -> Message | None:
        """Return the next request, None while one is in flight or there is nothing to send.

        `broker_epoch` is the epoch of this broker's registration.
        """
        ...

    def answered(self, response: Message, now_ms: int, wall_ms: int) -> None:
        """Process the response to the request in flight."""
        ...

    def failed(self, now_ms: int, wall_ms: int) -> None:
        """Note that the request in flight gets no response.

        The broker is not registered, not reachable, too slow, or serves no version of the request
        that has an error for this. A retry without a pause would never end.
        """
        ...

    def deadline_ms(self) -> int | None:
        """Return when `request` has something to send, None if that does not depend on time."""
        ...


@frozen
class InterBrokerClient:
    """One client of the inter-broker listener."""

    client_id: str
    request_timeout_ms: int
    destinations: Callable[[], Mapping[int, BrokerRequests]]
    """Returns the requests by broker id; they may differ at each call."""
