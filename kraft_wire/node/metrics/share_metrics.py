"""Metrics of share sessions and share partitions (KIP-1103), as Kafka's JMX exporter names them.

Metrics create nothing: a broker without share groups has none of these.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.broker import Broker
from kraft_wire.node.metrics.families import Family, LabelledFamily

if TYPE_CHECKING:
    from kraft_wire.broker.share_fetch.share_partitions import SharePartitions

__all__ = ["share_metrics"]

_LABELS: Final = ("group", "topic", "partition")
_TYPES: Final = {1: "Accept", 2: "Release", 3: "Reject", 4: "Renew"}
"""Types of acknowledgement by Kafka's names; what the log lacks (0) is not counted."""


def share_metrics(broker: Broker) -> Iterator[Family | LabelledFamily]:
    """Yield sessions, acknowledged records, and what is in flight in each share partition."""
    shares = broker.share_partitions
    if shares is None:
        return
    for name, text, value in (
        ("sharesessionscount", "Share sessions.", len(shares.sessions)),
        (
            "sharepartitionscount",
            "Partitions of all share sessions.",
            shares.sessions.partitions_count,
        ),
    ):
        yield Family(f"kafka_server_sharesessioncache_{name}", False, text, "", {"": value})
    yield Family(
        "kafka_server_sharegroupmetrics_recordacknowledgements",
        True,
        "Acknowledged records.",
        "ack_type",
        {name: shares.acknowledged[number] for number, name in _TYPES.items()},
    )
    yield from _of_partitions(broker, shares)


def _of_partitions(broker: Broker, shares: "SharePartitions") -> Iterator[LabelledFamily]:
    batches: dict[tuple[str, ...], float] = {}
    messages: dict[tuple[str, ...], float] = {}
    timeouts: dict[tuple[str, ...], float] = {}
    for each in shares:
        topic = broker.topic_name(each.key.topic_id)
        if topic is None:
            continue
        labels = each.key.group_id, topic, str(each.key.partition)
        batches[labels] = len(each.in_flight)
        messages[labels] = each.in_flight_count
        timeouts[labels] = each.lock_timeouts_count
    for name, is_counter, text, values in (
        ("inflightbatchcount", False, "Batches that are acquired or behind such.", batches),
        ("inflightmessagecount", False, "Offsets that are acquired or behind such.", messages),
        ("acquisitionlocktimeout", True, "Records whose lock ended by time.", timeouts),
    ):
        full = f"kafka_server_sharepartitionmetrics_{name}"
        yield LabelledFamily(full, is_counter, text, _LABELS, values)
