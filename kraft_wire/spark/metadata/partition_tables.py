"""The tables about partitions: `partitions`, `partition_changes` and `elections`. No Spark here.

All three are made of the rows of `partition_states`, column by column; values that many rows have
in common are made once.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import chain
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kraft_wire.columnar.records import TIME_MS_MAX
from kraft_wire.model import Uuid, uuid_to_text
from kraft_wire.spark.metadata.partition_states import UNKNOWN, OffsetAndTimestamp, PartitionStates

__all__ = ["NODES", "TEXTS", "TIME", "partition_tables"]

Columns = Mapping[str, pa.Array]
Rows = NDArray[np.int64]
OffsetsAndTimestamps = NDArray[np.int64]
"""Offset and time in milliseconds, a row each."""
T = TypeVar("T", bound=Hashable)

TIME: Final = pa.timestamp("us", tz="UTC")
NODES: Final = pa.list_(pa.field("element", pa.int32()))
TEXTS: Final = pa.list_(pa.field("element", pa.string()))

_RECOVERING: Final = 1
"""The leader recovery state that an unclean election leaves (KIP-704)."""


def partition_tables(states_read: PartitionStates) -> dict[str, Columns]:
    """Return the columns of the three tables, all but the cluster's.

    States are sorted by topic, partition and place in the log; elections are in log order.
    """
    order = states_read.in_order()
    changed_at = _flat([*states_read.changed_at, UNKNOWN])  # the last is that of row -1
    is_state = np.ones(len(states_read.states), bool)
    is_state[states_read.ends] = False
    rows = order.by_partition[is_state[order.by_partition]]
    after = order.after[rows]
    columns = _states(states_read, rows)
    last = {name: column.filter(pa.array(after < 0)) for name, column in columns.items()}
    return {
        "partitions": last | {"directories": _directories(states_read, rows[after < 0])},
        "partition_changes": columns | _intervals(changed_at[rows], changed_at[after]),
        "elections": _elections(states_read, order.before, changed_at),
    }


def _states(states_read: PartitionStates, rows: Rows) -> dict[str, pa.Array]:
    """Return the columns of partitions' states."""
    states = [states_read.states[row] for row in rows.tolist()]
    return _topics(states_read, rows) | {
        "partition": _numbers([each.partition for each in states]),
        "leader": _numbers([each.leader for each in states]),
        "leaderEpoch": _numbers([each.leader_epoch for each in states]),
        "partitionEpoch": _numbers([each.partition_epoch for each in states]),
        "replicas": _nodes([each.replicas for each in states]),
        "isr": _nodes([each.isr for each in states]),
        "elr": _nodes([each.eligible_leader_replicas for each in states]),
        "lastKnownElr": _nodes([each.last_known_elr for each in states]),
        "addingReplicas": _nodes([each.adding_replicas for each in states]),
        "removingReplicas": _nodes([each.removing_replicas for each in states]),
        "leaderRecoveryState": _numbers([each.leader_recovery_state for each in states]),
    }


def _topics(states_read: PartitionStates, rows: Rows) -> dict[str, pa.Array]:
    places = pa.array(np.array(states_read.topic_places, np.int64)[rows])
    names = pa.array([each.name for each in states_read.topics], pa.string())
    ids = pa.array([uuid_to_text(each.topic_id) for each in states_read.topics], pa.string())
    return {"topic": names.take(places), "topicId": ids.take(places)}


def _directories(states_read: PartitionStates, rows: Rows) -> pa.Array:
    return _shared([states_read.states[row].directories for row in rows.tolist()], _directory_texts)


def _directory_texts(distinct: Sequence[tuple[Uuid, ...]]) -> pa.Array:
    return pa.array([[uuid_to_text(each) for each in ids] for ids in distinct], TEXTS)


def _intervals(since: OffsetsAndTimestamps, until: OffsetsAndTimestamps) -> dict[str, pa.Array]:
    """Return the begin and the end of each state; null for no end, and for unknown times."""
    from_offset, from_timestamp = _offset_and_timestamp_columns(since)
    until_offset, until_timestamp = _offset_and_timestamp_columns(until)
    return {
        "fromOffset": from_offset,
        "fromTimestamp": from_timestamp,
        "untilOffset": until_offset,
        "untilTimestamp": until_timestamp,
    }


def _elections(
    states_read: PartitionStates, before: Rows, changed_at: OffsetsAndTimestamps
) -> Columns:
    """Return the rows whose leader epoch is not that of the one before."""
    leaders = np.array([each.leader for each in states_read.states], np.int32)
    epochs = np.array([each.leader_epoch for each in states_read.states], np.int32)
    rows = np.flatnonzero((before >= 0) & (epochs != epochs[before]))
    offsets, timestamps = _offset_and_timestamp_columns(changed_at[rows])
    return _topics(states_read, rows) | {
        "partition": _numbers([states_read.states[row].partition for row in rows.tolist()]),
        "leaderEpoch": pa.array(epochs[rows]),
        "fromLeader": pa.array(leaders[before[rows]]),
        "toLeader": pa.array(leaders[rows]),
        "isUnclean": pa.array(_unclean(states_read, rows, before[rows]), pa.bool_()),
        "offset": offsets,
        "timestamp": timestamps,
    }


def _unclean(states_read: PartitionStates, rows: Rows, before: Rows) -> list[bool]:
    """Return for each election whether it elected a replica that was not in sync."""
    states = ([states_read.states[row] for row in each.tolist()] for each in (rows, before))
    return [
        now.leader_recovery_state == _RECOVERING and now.leader >= 0 and now.leader not in last.isr
        for now, last in zip(*states, strict=True)
    ]


def _shared(values: Sequence[T], made: Callable[[Sequence[T]], pa.Array]) -> pa.Array:
    """Return an array of values that many rows have in common: each is made once, and taken."""
    places = {each: place for place, each in enumerate(dict.fromkeys(values))}
    taken = np.fromiter(map(places.__getitem__, values), np.int32, len(values))
    return made(list(places)).take(pa.array(taken))


def _numbers(values: Sequence[int]) -> pa.Array:
    return pa.array(np.array(values, np.int32))


def _nodes(values: Sequence[tuple[int, ...]]) -> pa.Array:
    return _shared(values, lambda distinct: pa.array(distinct, NODES))


def _flat(changed_at: Sequence[OffsetAndTimestamp]) -> OffsetsAndTimestamps:
    """Return offsets and times, a row for each moment."""
    values = np.fromiter(chain.from_iterable(changed_at), np.int64, 2 * len(changed_at))
    return values.reshape(-1, 2)


def _offset_and_timestamp_columns(changed_at: OffsetsAndTimestamps) -> tuple[pa.Array, pa.Array]:
    """Return columns of offsets and times; null if unknown."""
    offsets, stamps = np.ascontiguousarray(changed_at.T)
    unknown = (stamps < 0) | (stamps > TIME_MS_MAX)
    times = pa.array(np.where(unknown, 0, stamps) * 1000, mask=unknown).cast(TIME)
    return pa.array(offsets, mask=offsets < 0), times
