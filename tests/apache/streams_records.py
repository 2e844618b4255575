"""The records of streams groups in `__consumer_offsets`, as facts that two nodes can share.

Metadata hashes cover topic ids, which differ: they are numbered by group. Times are reduced to
their sign. Records of one append that follow each other and are of one kind have no order between
them, as they come from hash tables: they are sorted by key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from kraft_wire.wire.generated.streams_group_current_member_assignment_key import (
    StreamsGroupCurrentMemberAssignmentKey,
)
from kraft_wire.wire.generated.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue,
)
from kraft_wire.wire.generated.streams_group_member_metadata_key import (
    StreamsGroupMemberMetadataKey,
)
from kraft_wire.wire.generated.streams_group_member_metadata_value import (
    StreamsGroupMemberMetadataValue,
)
from kraft_wire.wire.generated.streams_group_metadata_key import StreamsGroupMetadataKey
from kraft_wire.wire.generated.streams_group_metadata_value import StreamsGroupMetadataValue
from kraft_wire.wire.generated.streams_group_target_assignment_member_key import (
    StreamsGroupTargetAssignmentMemberKey,
)
from kraft_wire.wire.generated.streams_group_target_assignment_member_value import (
    StreamsGroupTargetAssignmentMemberValue,
)
from kraft_wire.wire.generated.streams_group_target_assignment_metadata_key import (
    StreamsGroupTargetAssignmentMetadataKey,
)
from kraft_wire.wire.generated.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue,
)
from kraft_wire.wire.generated.streams_group_topology_key import StreamsGroupTopologyKey
from kraft_wire.wire.generated.streams_group_topology_value import StreamsGroupTopologyValue
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.record_batch import parse_batches
from tests.apache.streams_cluster import PROBE
from tests.apache.streams_members import shown

__all__ = ["KINDS", "Row", "streams_records"]

KINDS: Final[dict[int, tuple[type[Message], type[Message]]]] = {
    17: (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
    19: (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
    20: (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue),
    21: (StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
    22: (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
    23: (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
}
"""Key and value of each record type; none has the number 18."""
HASH, TIME = "metadataHash", "assignmentTimestamp"

Row = tuple[int, str, str | None]
"""Record type, key and value as JSON; None is a tombstone."""


def streams_records(data: Path) -> dict[str, list[Row]]:
    """Return the records of all streams groups in a node's directory, in log order."""
    found: dict[str, list[Row]] = {}
    for folder in sorted(data.glob("__consumer_offsets-*")):
        for file in sorted(folder.glob("*.log")):
            for group, row in _in_batches(file.read_bytes()):
                found.setdefault(group, []).append(row)
    return found


def _in_batches(data: bytes) -> Iterator[tuple[str, Row]]:
    hashes: dict[tuple[str, int], int] = {}
    for batch in parse_batches(data):
        rows = [_row(bytes(each.key or b""), each.value, hashes) for each in batch.records()]
        mine = [each for each in rows if each is not None]
        for _, same in groupby(mine, key=lambda each: (each[1][0], each[1][2] is None)):
            yield from sorted(same)


def _row(
    key: bytes, value: memoryview | bytes | None, hashes: dict[tuple[str, int], int]
) -> tuple[str, Row] | None:
    kind = int.from_bytes(key[:2], "big")
    if kind not in KINDS:
        return None
    key_class, value_class = KINDS[kind]
    named, end = key_class.decode(key, 0, 2)
    assert end == len(key)
    group = str(getattr(named, "group_id"))  # noqa: B009  # every key has one
    if group.startswith(PROBE):
        return None
    told = json.dumps(shown(named))
    if value is None:
        return group, (kind, told, None)
    version = int.from_bytes(value[:2], "big")
    found, end = value_class.decode(bytes(value), version, 2)
    assert end == len(value)
    return group, (kind, told, json.dumps(_comparable(shown(found), group, hashes)))


def _comparable(fields: Any, group: str, hashes: dict[tuple[str, int], int]) -> Any:
    if fields.get(HASH):
        of_group = [each for each in hashes if each[0] == group]
        fields[HASH] = f"hash {hashes.setdefault((group, fields[HASH]), len(of_group))}"
    if TIME in fields:
        fields[TIME] = fields[TIME] > 0
    return fields
