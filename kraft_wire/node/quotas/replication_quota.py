"""Throttles of replication: rates of a broker, and lists of replicas by topic (KIP-73).

It is Apache Kafka's `ReplicationQuotaManager`. `leader.replication.throttled.rate` bounds what a
broker sends of the listed partitions to followers, `follower.replication.throttled.rate` what it
fetches of them. Both are dynamic settings of the broker, or of all brokers; the lists are settings
of topics, `partition:broker,...` or `*`. Moves between log directories have a rate without lists,
`replica.alter.log.dirs.io.max.bytes.per.second` (KIP-113).
"""

from collections.abc import Mapping

from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from kraft_wire.node.quotas.windows import Rate, Windows
from kraft_wire.settings.definition import CONTROLS_AND_BLANK

__all__ = ["ReplicationQuota", "SimpleRate"]

_DIGITS_MAX = 10
_NO_INT = -1
_UNBOUNDED = (1 << 63) - 1


class SimpleRate(Rate):
    """A rate over the time that has passed, at least a window: a young one is not padded."""

    __slots__ = ()

    def elapsed_ms(self, now_ms: int) -> int:
        """Return the time that the rate is measured over."""
        return max(now_ms - self.oldest_ms(now_ms), self._windows.size_ms)


class ReplicationQuota:
    """One of the two throttles of a broker (`broker.replication.throttle`)."""

    def __init__(self, role: str, broker_id: int, windows: Windows, *, rate_key: str = "") -> None:
        """`role`: leader, follower, or move, which has no lists and a rate of another name."""
        self._rate_key = rate_key or f"{role}.replication.throttled.rate"
        self._list_key = f"{role}.replication.throttled.replicas"
        self._broker_id = broker_id
        self._bound = _UNBOUNDED
        self._partitions: dict[str, frozenset[int] | None] = {}
        """Throttled partitions by topic; None: all."""
        self._rate = SimpleRate(windows)

    @property
    def has_replicas(self) -> bool:
        """Whether any replica is throttled; without one nothing is measured."""
        return bool(self._partitions)

    def follow(self, delta: MetadataDelta) -> None:
        """Use the rate and the lists of another image from now on; what was measured stays."""
        image = delta.after
        if delta.changes_settings_of(self._broker_id):
            own = image.config(BROKER_RESOURCE, str(self._broker_id))
            values = {**image.config(BROKER_RESOURCE, ""), **own}
            self.set_bound(_number(values, self._rate_key))
        for topic in (*delta.deleted.values(), *delta.configured_topics):
            self._read_list(image, topic)

    def set_bound(self, bytes_per_second: int | None) -> None:
        """Set the rate; None: unbounded."""
        self._bound = _UNBOUNDED if bytes_per_second is None else bytes_per_second

    def throttle(self, topic: str, text: str) -> None:
        """Set the list of a topic, as the setting has it; an empty one ends its throttling.

        Members may be empty, as in "1:2,,3:4", and have what Java trims around them. A number may
        have any length; no partition or broker has one beyond an int.
        """
        members = [each.strip(CONTROLS_AND_BLANK) for each in text.split(",")]
        pairs = [each.split(":") for each in members if ":" in each]
        if "*" in members:
            self._partitions[topic] = None
        elif not pairs:
            self._partitions.pop(topic, None)
        else:
            own = [number for number, broker in pairs if _as_int(broker) == self._broker_id]
            self._partitions[topic] = frozenset(map(_as_int, own)) - {_NO_INT}

    def _read_list(self, image: MetadataImage, topic: str) -> None:
        self.throttle(topic, image.config(TOPIC_RESOURCE, topic).get(self._list_key, ""))

    def is_throttled(self, topic: str, partition: int) -> bool:
        """Return whether a partition is one of the throttled ones."""
        if topic not in self._partitions:
            return False
        partitions = self._partitions[topic]
        return partitions is None or partition in partitions

    def is_exceeded(self, now_ms: int) -> bool:
        """Return whether the rate is above its bound."""
        return self._rate.measure(now_ms) > self._bound

    def record(self, size_bytes: int, now_ms: int) -> None:
        """Count bytes of throttled replicas."""
        self._rate.record(size_bytes, now_ms)

    def bytes_per_second(self, now_ms: int) -> float:
        """Return the rate now."""
        return self._rate.measure(now_ms)


def _number(values: Mapping[str, str], key: str) -> int | None:
    return int(values[key]) if key in values else None


def _as_int(digits: str) -> int:
    """Return a number of digits, `_NO_INT` for one that is too long to be an int."""
    significant = digits.lstrip("0") or "0"
    return int(significant) if len(significant) <= _DIGITS_MAX else _NO_INT
