"""StreamsGroupDescribe, API key 89, version 0.

Behaviour:   epochs, state, topology, and of each member what it is, what it has and is to have
Versions:    v0
Left out:    the state before a write that the ISR does not have yet: the answer waits for the ISR
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.groups.group_types import ALL_GROUP_OPERATIONS
from kraft_wire.broker.groups.group_writes import uncommitted_end
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.streams.checks import find_group
from kraft_wire.broker.groups.streams.describe import described_streams_group
from kraft_wire.broker.groups.streams.switch import serves_streams_groups
from kraft_wire.broker.response_budget import ResponseBudget
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

    It waits until the ISR has what it says.

    Errors per group, first match wins: UNSUPPORTED_VERSION (streams groups are switched off),
    INVALID_GROUP_ID, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, GROUP_ID_NOT_FOUND.
    """
    room = ResponseBudget(broker.settings, "groups", context.api_version)
    described: list[DescribedGroup] = []
    awaited: dict[int, int] = {}
    for group_id in sorted(request.group_ids, key=bool):  # empty ids come first
        group = _describe(broker, group_id, awaited)
        room.take(_size_bytes(group))
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = ALL_GROUP_OPERATIONS
        described.append(group)
    if not awaited:
        return StreamsGroupDescribeResponse(groups=described)

    def answered(errors: Mapping[int, ErrorCode]) -> StreamsGroupDescribeResponse:
        for number, group in enumerate(described):
            error = errors.get(broker.groups.partition_of(group.group_id))
            if error is not None and group.error_code == ErrorCode.NONE:
                described[number] = _failed(group.group_id, error)
        return StreamsGroupDescribeResponse(groups=described)

    return broker.groups.env.commits.answer_when_committed(context, awaited, answered)


def _describe(broker: "Broker", group_id: str, awaited: dict[int, int]) -> DescribedGroup:
    """Describe a group; `awaited` takes the newest record of it that the ISR does not have."""
    if not serves_streams_groups(broker.image, broker.settings):
        return _failed(group_id, ErrorCode.UNSUPPORTED_VERSION)
    if not group_id:
        return _failed(group_id, ErrorCode.INVALID_GROUP_ID)
    shard = broker.groups.shard_of(group_id)
    if not isinstance(shard, GroupShard):
        return _failed(group_id, shard)
    group = find_group(shard, group_id, f"Group {group_id} not found.")
    if isinstance(group, Refusal):
        return _failed(group_id, group.error, group.message)
    end = uncommitted_end(shard, group)
    if end is not None:
        partition = shard.log.partition
        awaited[partition] = max(end, awaited.get(partition, 0))
    return described_streams_group(group)


def _failed(group_id: str, error: ErrorCode, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error, error_message=message, topology=None)


def _size_bytes(group: DescribedGroup) -> int:
    """Return the approximate size of a group in the answer."""
    return _MEMORY_FACTOR * len(StreamsGroupDescribeResponse(groups=[group]).encode(0))
