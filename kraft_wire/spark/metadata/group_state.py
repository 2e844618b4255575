"""Replays one partition of `__consumer_offsets` as a coordinator loads it, up to a time.

Memory is that of the groups and offsets at the end, and one window of the log.
"""

from typing import NamedTuple

from kraft_wire.broker.coordination.record_codec import record_type
from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.group_types import OtherGroup
from kraft_wire.broker.groups.records import GROUP_METADATA
from kraft_wire.broker.groups.replay import CoordinatorReplay, group_id_of
from kraft_wire.broker.groups.replayed_shard import ReplayedGroups
from kraft_wire.columnar import PartitionFiles
from kraft_wire.columnar.coordinator_log import LoggedMarker, LoggedRecord, coordinator_log
from kraft_wire.storage.files import FileSystem
from kraft_wire.wire.records.record import Record

__all__ = ["CONSUMER_OFFSETS_TOPIC", "Change", "LoadedPartition", "load_partition"]

CONSUMER_OFFSETS_TOPIC = "__consumer_offsets"


class Change(NamedTuple):
    """Where the newest record of a group or its members is, and its time."""

    offset: int
    timestamp_ms: int


class LoadedPartition(NamedTuple):
    """The state of one partition."""

    partition: int
    state: ReplayedGroups
    changes: dict[str, Change]
    """By group id; a group that only has offsets has none."""


def load_partition(fs: FileSystem, files: PartitionFiles, until_ms: int | None) -> LoadedPartition:
    """Take records and markers up to the time `until_ms`; unreadable ones are left out."""
    state = ReplayedGroups()
    replay = CoordinatorReplay(state)
    changes: dict[str, Change] = {}
    for each in coordinator_log(fs, files):
        if until_ms is not None and each.timestamp > until_ms:
            continue
        if isinstance(each, LoggedMarker):
            replay.marker(each.producer_id, each.kind)
        else:
            _take(replay, each, changes)
    return LoadedPartition(files.partition, state, changes)


def _take(replay: CoordinatorReplay, each: LoggedRecord, changes: dict[str, Change]) -> None:
    record = Record(each.key, each.value, each.offset, each.timestamp)
    if each.key is None or record_type(each.key) < GROUP_METADATA:
        replay.record(record, each.producer_id)
        return
    group_id = group_id_of(each.key) or ""
    before = _group(replay, group_id)
    if not replay.record(record, each.producer_id):
        return
    now = _group(replay, group_id)
    if now is not None and isinstance(now, ClassicGroup) == (
        record_type(each.key) == GROUP_METADATA
    ):
        changes[group_id] = Change(each.offset, each.timestamp)
    elif now is not before:
        changes.pop(group_id, None)


def _group(replay: CoordinatorReplay, group_id: str) -> ClassicGroup | OtherGroup | None:
    return replay.shard.groups.get(group_id) or replay.shard.other_groups.get(group_id)
