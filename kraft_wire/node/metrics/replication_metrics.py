"""Metrics of the partitions that a broker leads, under the names of Kafka's JMX exporter."""

from collections.abc import Iterator

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.partition import Partition
from kraft_wire.node.metrics.families import Family

__all__ = ["replication_metrics"]


def replication_metrics(broker: Broker) -> Iterator[Family]:
    """Yield the number of partitions with an incomplete ISR, and of changes of ISRs."""
    led = [each for each in broker.partitions.values() if each.is_leader and not each.offline]
    leading = broker.replicas.leading
    for name, is_counter, documentation, value in (
        ("leadercount", False, "Partitions led here.", len(led)),
        (
            "underreplicatedpartitions",
            False,
            "Partitions led here with replicas outside the ISR.",
            sum(_is_under_replicated(each) for each in led),
        ),
        (
            "underminisrpartitioncount",
            False,
            "Partitions led here with an ISR below min.insync.replicas.",
            sum(_spare_members(each) < 0 for each in led),
        ),
        (
            "atminisrpartitioncount",
            False,
            "Partitions led here with an ISR of exactly min.insync.replicas.",
            sum(_spare_members(each) == 0 for each in led),
        ),
        ("isrshrinks", True, "ISRs made smaller.", 0 if leading is None else leading.shrinks_count),
        ("isrexpands", True, "ISRs made larger.", 0 if leading is None else leading.expands_count),
    ):
        yield Family(
            f"kafka_server_replicamanager_{name}", is_counter, documentation, "", {"": value}
        )


def _is_under_replicated(partition: Partition) -> bool:
    leadership = partition.leadership
    return leadership is not None and len(leadership.isr) < leadership.replication_factor


def _spare_members(partition: Partition) -> int:
    """Return the number of ISR members beyond those that acks=all needs."""
    leadership, configured = partition.leadership, partition.log.config.min_insync_replicas
    if leadership is None:
        return 0  # one replica, and of one replica one is needed
    return len(leadership.isr) - leadership.min_isr(configured)
