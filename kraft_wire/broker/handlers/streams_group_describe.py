"""StreamsGroupDescribe, API key 89, version 0.

Behaviour:   epochs, state, topology, and of each member what it is, what it has and is to have
Versions:    v0
Left out:    the state before a write that the ISR does not have yet: the answer waits for the ISR
"""

from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.groups.describing import Description, describe_groups
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.streams.checks import find_group
from kraft_wire.broker.groups.streams.describe import described_streams_group
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.switch import serves_streams_groups
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]

_MEMORY_FACTOR: Final = 2
"""An answer is copied once on its way out."""


def handle(
    broker: "Broker", context: RequestContext, request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse | Parked:
    """Describe streams groups; an answer beyond its room ends the connection.

    It waits until the ISR has what it shows.

    Errors per group, first match wins: UNSUPPORTED_VERSION (streams groups are switched off),
    INVALID_GROUP_ID, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, GROUP_ID_NOT_FOUND.
    """
    kind = Description(
        is_served=serves_streams_groups(broker.image, broker.settings),
        find=_find,
        show=described_streams_group,
        fail=_failed,
        size_bytes=_size_bytes,
        answer=lambda groups: StreamsGroupDescribeResponse(groups=groups),
    )
    return describe_groups(broker, context, request, kind)


def _find(shard: GroupShard, group_id: str) -> StreamsGroup | Refusal:
    return find_group(shard, group_id, f"Group {group_id} not found.")


def _failed(group_id: str, error: ErrorCode, message: str | None) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error, error_message=message, topology=None)


def _size_bytes(group: DescribedGroup) -> int:
    """Return the approximate size of a group in the answer."""
    return _MEMORY_FACTOR * len(StreamsGroupDescribeResponse(groups=[group]).encode(0))
