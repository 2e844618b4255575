"""Committed offsets and lag of the groups that a broker coordinates, as kafka_exporter names them.

The lag is known if this broker also leads the partition. Metrics create no coordinator: a broker
that never coordinated has none.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kraft_wire.broker.broker import Broker
from kraft_wire.node.metrics.families import Family, LabelledFamily
from kraft_wire.wire.generated.error_code import ErrorCode

if TYPE_CHECKING:
    from kraft_wire.broker.groups.shard import GroupShard

__all__ = ["group_metrics"]

_LABELS = ("group", "topic", "partition")


def group_metrics(broker: Broker) -> Iterator[Family | LabelledFamily]:
    """Yield groups, committed offsets and lags."""
    coordinator = broker.groups_in_use
    shards = [] if coordinator is None else coordinator.shards()
    committed: dict[tuple[str, ...], float] = {}
    lags: dict[tuple[str, ...], float] = {}
    groups = 0
    for shard in () if isinstance(shards, ErrorCode) else shards:
        groups += len(shard.groups)
        for labels, offset in _committed(shard):
            committed[labels] = offset
            partition = broker.partition(labels[1], int(labels[2]))
            if partition is not None and partition.is_leader and not partition.offline:
                lags[labels] = max(0, partition.high_watermark - offset)
    name = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    yield Family(name, False, "Groups coordinated here.", "", {"": groups})
    for name, text, values in (
        ("current_offset", "Committed offset.", committed),
        ("lag", "Committed records that the group has not consumed.", lags),
    ):
        yield LabelledFamily(f"kafka_consumergroup_{name}", False, text, _LABELS, values)


def _committed(shard: "GroupShard") -> Iterator[tuple[tuple[str, str, str], int]]:
    for group_id in shard.groups:
        for topic, partitions in shard.offsets.of_group(group_id).items():
            for number, committed in partitions.items():
                yield (group_id, topic, str(number)), committed.offset
