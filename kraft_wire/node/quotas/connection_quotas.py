"""Who may connect, and when: numbers and rates of connections (KIP-402, KIP-612).

It is Apache Kafka's `ConnectionQuotas`. A new connection first counts for the rate of the node and
of its listener: above one of them, or above `max.connections`, the listener accepts nothing until
there is time or room. An address above its own rate, or with too many connections, is refused.

The listener between brokers, and those of the controllers beside a broker, are protected: others
cannot use up their rate, and they may exceed `max.connections`; then connections of others go.
"""

from collections.abc import Set
from functools import partial
from typing import NamedTuple

from kraft_wire.metadata.authorizer.principal import host_text
from kraft_wire.node.limits import ServerLimits
from kraft_wire.node.quotas.meters import Kept
from kraft_wire.node.quotas.windows import Rate, throttle_ms

__all__ = ["ConnectionQuotas", "Refusal"]


class Refusal(NamedTuple):
    """Why a connection is refused, and how long its socket is held before it is closed."""

    reason: str
    held_ms: int = 0


class ConnectionQuotas:
    """Counts connections, and decides whether a new one must wait, may stay or is refused."""

    def __init__(self, limits: ServerLimits, protected: Set[str] = frozenset()) -> None:
        """`protected`: listeners that others cannot starve."""
        self.limits = limits
        """Replaced as a whole when dynamic settings or quotas change; what was measured stays."""
        self._protected = protected
        self._by_host: dict[str, int] = {}
        self._by_listener: dict[str, int] = {}
        self._total = 0
        self._rate = Rate(limits.windows)
        self._rates_of_listeners: dict[str, Rate] = {}
        self._rates_of_hosts: Kept[str, Rate] = Kept(partial(Rate, limits.windows))

    def delay_ms(self, listener: str, now_ms: int) -> int:
        """Count a new connection for the rates; return how long its listener must wait.

        At most one window. The rate of all connections does not count for a protected listener.
        """
        limits = self.limits
        of_all_ms = 0
        if listener not in self._protected:
            of_all_ms = self._measured(self._rate, limits.connections_per_second_max, now_ms)
        bound = limits.of_listener(listener).connections_per_second_max
        return max(of_all_ms, self._measured(self._rate_of(listener), bound, now_ms))

    def has_room(self, listener: str) -> bool:
        """Return whether a listener may have one more connection."""
        limits = self.limits
        if self._by_listener.get(listener, 0) >= limits.of_listener(listener).connections_max:
            return False
        if listener in self._protected:
            return self._total < limits.connections_possible or self._exposed > 0
        return self._total < limits.connections_max

    def admit(self, listener: str, host: str, now_ms: int) -> Refusal | None:
        """Count a connection that need not wait any more, or return why it is refused."""
        host = _canonical(host)
        held_ms = self._throttled_ms(host, now_ms)
        if held_ms > 0:
            # A refused one does not use up the rate of those that may connect.
            if listener not in self._protected:
                self._rate.record(-1, now_ms)
            self._rate_of(listener).record(-1, now_ms)
            return Refusal("connection_rate_exceeded", held_ms)
        limits = self.limits
        most = limits.connections_of_address.get(host, limits.connections_per_ip_max)
        if self._by_host.get(host, 0) >= most:
            return Refusal("too_many_connections_from_address")
        self._total += 1
        self._by_host[host] = self._by_host.get(host, 0) + 1
        self._by_listener[listener] = self._by_listener.get(listener, 0) + 1
        return None

    @property
    def excess_count(self) -> int:
        """Number of connections above `max.connections`; those of protected listeners stay."""
        return min(max(0, self._total - self.limits.connections_max), self._exposed)

    def released(self, listener: str, host: str) -> None:
        """Uncount a closed connection."""
        self._total -= 1
        assert self._total >= 0, host
        for counts, key in ((self._by_host, _canonical(host)), (self._by_listener, listener)):
            counts[key] -= 1
            assert counts[key] >= 0, key
            if counts[key] == 0:
                del counts[key]

    def accept_rates(self, now_ms: int) -> dict[str, float]:
        """Return the new connections in a second by listener, for metrics."""
        return {name: each.measure(now_ms) for name, each in self._rates_of_listeners.items()}

    @property
    def _exposed(self) -> int:
        """Number of connections of listeners that are not protected."""
        return self._total - sum(self._by_listener.get(each, 0) for each in self._protected)

    def _throttled_ms(self, host: str, now_ms: int) -> int:
        """Count a connection for the quota of its address, unless it exceeds it."""
        rates = self.limits.rate_of_address
        bound = rates.get(host, rates.get(None))
        if bound is None:
            return 0
        meter = self._rates_of_hosts.at(host, now_ms)
        held_ms = self._measured(meter, bound, now_ms)
        if held_ms > 0:
            meter.record(-1, now_ms)
        return held_ms

    def _measured(self, meter: Rate, bound: int, now_ms: int) -> int:
        """Count 1, and return the throttle time after it: at most one window."""
        size_ms = self.limits.windows.size_ms
        meter.record(1, now_ms)
        rate = meter.measure(now_ms)
        if bound == 0:
            return size_ms
        return min(throttle_ms(rate, bound, meter.elapsed_ms(now_ms)), size_ms)

    def _rate_of(self, listener: str) -> Rate:
        if listener not in self._rates_of_listeners:
            self._rates_of_listeners[listener] = Rate(self.limits.windows)
        return self._rates_of_listeners[listener]


def _canonical(host: str) -> str:
    return host_text(host) if ":" in host else host
