"""The groups that a broker coordinates by kind and state, their committed offsets and their lag.

Kinds and states have the names of Kafka's JMX exporter, offsets and lag those of kafka_exporter.
The lag is known if this broker also leads the partition. Metrics create no coordinator: a broker
that never coordinated has none.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.groups.group_types import GroupType
from kraft_wire.node.metrics.families import Family, LabelledFamily
from kraft_wire.wire.generated.error_code import ErrorCode

if TYPE_CHECKING:
    from kraft_wire.broker.groups.shard import GroupShard

__all__ = ["group_metrics"]

_LABELS = ("group", "topic", "partition")
_COORDINATOR = "kafka_server_group_coordinator_metrics"
_CLASSIC = "classic"
_NEWER = tuple(each.value for each in GroupType)


def group_metrics(broker: Broker) -> Iterator[Family | LabelledFamily]:
    """Yield groups by kind and state, committed offsets and lags."""
    coordinator = broker.groups_in_use
    found = [] if coordinator is None else coordinator.shards()
    shards: Sequence[GroupShard] = [] if isinstance(found, ErrorCode) else found
    yield from _group_counts(shards)
    committed: dict[tuple[str, ...], float] = {}
    lags: dict[tuple[str, ...], float] = {}
    for shard in shards:
        for labels, offset in _committed(shard):
            committed[labels] = offset
            partition = broker.partition(labels[1], int(labels[2]))
            if partition is not None and partition.is_leader and not partition.offline:
                lags[labels] = max(0, partition.high_watermark - offset)
    for name, text, values in (
        ("current_offset", "Committed offset.", committed),
        ("lag", "Committed records that the group has not consumed.", lags),
    ):
        yield LabelledFamily(f"kafka_consumergroup_{name}", False, text, _LABELS, values)


def _group_counts(shards: "Iterable[GroupShard]") -> Iterator[Family]:
    """Count groups by kind, those of newer kinds also by state."""
    kinds = Counter({each: 0 for each in (_CLASSIC, *_NEWER)})
    states: dict[str, Counter[str]] = {each: Counter() for each in _NEWER}
    for shard in shards:
        kinds[_CLASSIC] += len(shard.groups)
        for group in shard.other_groups.values():
            kinds[group.kind.value] += 1
            states[group.kind.value][group.state_name.lower()] += 1
    name = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    yield Family(name, False, "Classic groups coordinated here.", "", {"": kinds[_CLASSIC]})
    yield Family(f"{_COORDINATOR}_group_count", False, "Groups by kind.", "protocol", kinds)
    for kind, found in states.items():
        text = f"{kind.capitalize()} groups by state."
        yield Family(f"{_COORDINATOR}_{kind}_group_count", False, text, "state", found)


def _committed(shard: "GroupShard") -> Iterator[tuple[tuple[str, str, str], int]]:
    """Yield the offsets of groups of every kind, without those of open transactions."""
    for key, committed, open_producer in shard.offsets:
        if open_producer is None:
            yield (key.group_id, key.topic, str(key.partition)), committed.offset
