"""The metrics of a node, under Kafka's names as its JMX exporter spells them.

The hot path only adds to integers, which are read on request.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kraft_wire.node.metrics.families import Family, LabelledFamily
from kraft_wire.node.metrics.group_metrics import group_metrics
from kraft_wire.node.metrics.metadata_metrics import metadata_metrics
from kraft_wire.node.metrics.partition_metrics import partition_metrics
from kraft_wire.node.metrics.quorum_metrics import quorum_metrics
from kraft_wire.node.metrics.replication_metrics import replication_metrics
from kraft_wire.node.metrics.share_metrics import share_metrics
from kraft_wire.node.metrics.transaction_metrics import transaction_metrics
from kraft_wire.node.requests.decoding import api_name

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker
    from kraft_wire.node.node import Node

__all__ = ["node_metrics"]


def node_metrics(node: "Node", wall_ms: int) -> Iterator[Family | LabelledFamily]:
    """Yield all metrics of a node; `wall_ms` is the current time of day."""
    requests = {api_name(key): count for key, count in sorted(node.requests_by_api.items())}
    yield Family("kafka_network_requestmetrics_requests", True, "Requests.", "request", requests)
    parked = {"": node.parked_count}
    yield Family("kraft_wire_parked_requests", False, "Requests that wait.", "", parked)
    refused = {"": node.appends_refused_count}
    text = "Appends that a full disk refused."
    yield Family("kraft_wire_appends_refused_disk_full", True, text, "", refused)
    yield from quorum_metrics(node.raft.replica)
    yield from metadata_metrics(node.quorum, wall_ms, is_broker=node.has_broker)
    if node.has_broker:
        yield from _broker_metrics(node.broker)
        yield from replication_metrics(node.broker)
        yield from partition_metrics(node.broker)
        yield from group_metrics(node.broker)
        yield from share_metrics(node.broker)
        yield from transaction_metrics(node.broker, wall_ms)


def _broker_metrics(broker: "Broker") -> Iterator[Family]:
    sessions = broker.fetch_sessions
    parked = {
        "Fetch": len(broker.fetch_purgatory),
        "Produce": len(broker.produce_purgatory),
        "DeleteRecords": len(broker.delete_records_purgatory),
    }
    yield Family(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        False,
        "Requests that wait for data, for followers or for a flush.",
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
