"""What a node counts, under Kafka's names as its JMX exporter spells them.

The hot path only adds to integers; they are read when somebody asks.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kraft_wire.node.decoding import api_name

if TYPE_CHECKING:
    from kraft_wire.node.node import Node

__all__ = ["Family", "node_metrics"]


class Family(NamedTuple):
    """One metric with a value per label value, or a single one under the empty label."""

    name: str
    is_counter: bool
    documentation: str
    label: str
    values: Mapping[str, int]


def node_metrics(node: "Node") -> Iterator[Family]:
    """Yield everything that a node counts."""
    broker, sessions = node.broker, node.broker.fetch_sessions
    requests = {api_name(key): count for key, count in sorted(node.requests_by_api.items())}
    yield Family("kafka_network_requestmetrics_requests", True, "Requests.", "request", requests)
    parked = {"Fetch": len(broker.fetch_purgatory), "Produce": len(broker.produce_purgatory)}
    yield Family(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        False,
        "Requests that wait for data or for a flush.",
        "delayed_operation",
        parked,
    )
    for name, is_counter, documentation, value in (
        ("replicamanager_partitioncount", False, "Partitions.", len(broker.partitions)),
        (
            "replicamanager_offlinereplicacount",
            False,
            "Partitions whose log directory failed.",
            sum(partition.offline for partition in broker.partitions.values()),
        ),
        (
            "fetchsessioncache_numincrementalfetchsessions",
            False,
            "Fetch sessions.",
            sessions.sessions_count,
        ),
        (
            "fetchsessioncache_numincrementalfetchpartitionscached",
            False,
            "Partitions of all fetch sessions.",
            sessions.partitions_count,
        ),
        (
            "fetchsessioncache_incrementalfetchsessionevictions",
            True,
            "Evicted fetch sessions.",
            sessions.evictions_count,
        ),
    ):
        yield Family(f"kafka_server_{name}", is_counter, documentation, "", {"": value})
