"""Columns of the tables of groups: `groups`, `members` and `group_offsets`."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from kraft_wire.spark.metadata.partition_tables import TEXTS, TIME

__all__ = ["GROUP_TABLES"]

_ASSIGNED: Final = pa.list_(
    pa.field(
        "element",
        pa.struct([("topic", pa.string()), ("topicId", pa.string()), ("partition", pa.int32())]),
    )
)
_TASKS: Final = pa.list_(
    pa.field(
        "element",
        pa.struct([("kind", pa.string()), ("subtopology", pa.string()), ("partition", pa.int32())]),
    )
)

GROUP_TABLES: Final[Mapping[str, pa.Schema]] = {
    "groups": pa.schema(
        [
            ("clusterId", pa.string()),
            ("groupId", pa.string()),
            ("groupType", pa.string()),
            ("coordinatorPartition", pa.int32()),
            ("state", pa.string()),
            ("protocolType", pa.string()),
            ("protocol", pa.string()),
            ("generation", pa.int32()),
            ("leader", pa.string()),
            ("groupEpoch", pa.int32()),
            ("assignmentEpoch", pa.int32()),
            ("topologyEpoch", pa.int32()),
            ("members", pa.int32()),
            ("changedOffset", pa.int64()),
            ("changedTimestamp", TIME),
        ]
    ),
    "members": pa.schema(
        [
            ("clusterId", pa.string()),
            ("groupId", pa.string()),
            ("groupType", pa.string()),
            ("memberId", pa.string()),
            ("instanceId", pa.string()),
            ("rack", pa.string()),
            ("clientId", pa.string()),
            ("clientHost", pa.string()),
            ("isClassic", pa.bool_()),
            ("memberEpoch", pa.int32()),
            ("state", pa.string()),
            ("subscribedTopics", TEXTS),
            ("subscribedRegex", pa.string()),
            ("assignor", pa.string()),
            ("assignment", _ASSIGNED),
            ("pendingRevocation", _ASSIGNED),
            ("targetAssignment", _ASSIGNED),
            ("processId", pa.string()),
            ("topologyEpoch", pa.int32()),
            ("tasks", _TASKS),
            ("tasksPendingRevocation", _TASKS),
            ("targetTasks", _TASKS),
        ]
    ),
    "group_offsets": pa.schema(
        [
            ("clusterId", pa.string()),
            ("groupId", pa.string()),
            ("topic", pa.string()),
            ("topicId", pa.string()),
            ("partition", pa.int32()),
            ("coordinatorPartition", pa.int32()),
            ("state", pa.string()),
            ("committedOffset", pa.int64()),
            ("leaderEpoch", pa.int32()),
            ("metadata", pa.string()),
            ("commitTimestamp", TIME),
            ("expireTimestamp", TIME),
            ("producerId", pa.int64()),
            ("recordOffset", pa.int64()),
        ]
    ),
}
"""Null: the kind of the group does not have it, or the log does not tell."""
