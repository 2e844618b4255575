"""Metrics of a broker's transactions, under the names of Kafka's JMX exporter and our own.

Metrics create no coordinator: a broker that never coordinated has none.
"""

from collections.abc import Iterator, Mapping

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.partition import Partition
from kraft_wire.node.metrics.families import Family

__all__ = ["transaction_metrics"]

_LATE_AFTER_MS = 300_000
"""Kafka's allowance beyond the longest timeout before an open transaction counts as late."""


def transaction_metrics(broker: Broker, wall_ms: int) -> Iterator[Family]:
    """Yield producers, open and late transactions, and the pending work of the coordinator."""
    led = [each for each in broker.partitions.values() if each.is_leader and not each.offline]
    oldest = broker.settings.transaction_max_timeout_ms + _LATE_AFTER_MS
    late = sum(_oldest_open_ms(each, wall_ms) > oldest for each in led)
    producers = sum(1 for each in led for _ in each.log.producer_states.active_producers())
    behind = {
        str(each.topic_partition): float(each.high_watermark - each.last_stable_offset)
        for each in led
        if each.last_stable_offset < each.high_watermark
    }
    coordinator = broker.transactions_in_use
    markers = None if coordinator is None else coordinator.env.markers
    states: Mapping[str, float] = {} if coordinator is None else coordinator.ids_by_state()
    yield Family(
        "kafka_cluster_partition_laststableoffsetlag",
        False,
        "Committed offsets above the last stable offset, if any.",
        "partition",
        behind,
    )
    yield Family(
        "kraft_wire_transactional_ids",
        False,
        "Transactional ids coordinated here.",
        "state",
        states,
    )
    for name, documentation, value in (
        (
            "server_replicamanager_produceridcount",
            "Producers in the state of partitions.",
            producers,
        ),
        (
            "server_replicamanager_partitionswithlatetransactionscount",
            "Partitions with a transaction that is open for longer than the maximum timeout.",
            late,
        ),
        (
            "coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize",
            "Markers that wait for a leader or for the end of a pause.",
            0 if markers is None else markers.resting_count,
        ),
    ):
        yield Family(f"kafka_{name}", False, documentation, "", {"": value})


def _oldest_open_ms(partition: Partition, wall_ms: int) -> int:
    """Return the longest time since the last batch of an open transaction's producer."""
    silent = (
        wall_ms - each.last_timestamp
        for each in partition.log.producer_states.active_producers()
        if each.transaction_first_offset is not None
    )
    return max(silent, default=0)
