"""Metrics of quotas and logins, under the names of Kafka's JMX exporter.

Rates are measured when they are read. There may be 10,000 meters of a kind, because client ids are
the clients' choice; the ones that were used last are exported.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from kraft_wire.node.metrics.families import Family, LabelledFamily

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker
    from kraft_wire.node.node import Node

__all__ = ["METERS_SHOWN_MAX", "quota_metrics"]

METERS_SHOWN_MAX: Final = 500
"""Meters of each kind that are exported."""
_LABELS: Final = ("user", "client_id")


def quota_metrics(node: "Node", now_ms: int) -> Iterator[Family | LabelledFamily]:
    """Yield what the quotas of a node measure; `now_ms` is the time of the host's clock."""
    if node.quotas is not None:
        throttled = {"": len(node.quotas.throttled)}
        text = "Connections that are not read until their throttle time is over."
        yield Family("kraft_wire_throttled_connections", False, text, "", throttled)
        for name, text, measured in node.quotas.measured(METERS_SHOWN_MAX, now_ms):
            values: dict[tuple[str, ...], float] = dict(measured.items())
            yield LabelledFamily(f"kafka_server_{name}", False, text, _LABELS, values)
    if node.has_broker:
        yield from _replication(node.broker, now_ms)
    if node.logins is not None:
        for name, counts in node.logins.counts.items():
            yield _logins(name, counts)


def _replication(broker: "Broker", now_ms: int) -> Iterator[Family]:
    throttles = {"leader": broker.leader_throttle, "follower": broker.follower_throttle}
    for role, throttle in throttles.items():
        if throttle is not None:
            rate = {"": throttle.bytes_per_second(now_ms)}
            text = f"Bytes a second of throttled replicas, as {role}."
            yield Family(f"kafka_server_{role}replication_byte_rate", False, text, "", rate)


def _logins(name: str, counts: Mapping[str, int]) -> Family:
    text = f"{name.replace('_', ' ').capitalize()}s, by listener."
    metric = f"kafka_server_socketservermetrics_{name}"
    return Family(metric, True, text, "listener", counts)
