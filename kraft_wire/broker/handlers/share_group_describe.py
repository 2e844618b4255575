"""ShareGroupDescribe, API key 77, version 1.

Behaviour:   epochs, state, assignor, and of each member its subscription and what it has
Versions:    v0 was an early access
Left out:    the state before a write that the ISR does not have yet: the answer waits for the ISR
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.groups.group_types import ALL_GROUP_OPERATIONS
from kraft_wire.broker.groups.group_writes import uncommitted_end
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.checks import find_group
from kraft_wire.broker.groups.share.describe import described_share_group
from kraft_wire.broker.response_budget import ResponseBudget
from kraft_wire.broker.share_switch import serves_share_groups
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]

_FLAT_BYTES: Final = 128
"""Of a group and of each member, beside what clients chose the size of."""
_PARTITION_BYTES: Final = 8


def handle(
    broker: "Broker", context: RequestContext, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse | Parked:
    """Describe share groups; an answer beyond its room ends the connection.

    It waits until the ISR has what it says.

    Errors per group, first match wins: UNSUPPORTED_VERSION (share groups are switched off),
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
        return ShareGroupDescribeResponse(groups=described)

    def answered(errors: Mapping[int, ErrorCode]) -> ShareGroupDescribeResponse:
        for number, group in enumerate(described):
            error = errors.get(broker.groups.partition_of(group.group_id))
            if error is not None and group.error_code == ErrorCode.NONE:
                described[number] = DescribedGroup(group_id=group.group_id, error_code=error)
        return ShareGroupDescribeResponse(groups=described)

    return broker.groups.env.commits.answer_when_committed(context, awaited, answered)


def _describe(broker: "Broker", group_id: str, awaited: dict[int, int]) -> DescribedGroup:
    """Describe a group; `awaited` takes the newest record of it that the ISR does not have."""
    if not serves_share_groups(broker.image):
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    shard = broker.groups.shard_of(group_id)
    if not isinstance(shard, GroupShard):
        return DescribedGroup(group_id=group_id, error_code=shard)
    group = find_group(shard, group_id, f"Group {group_id} not found.")
    if isinstance(group, Refusal):
        return DescribedGroup(
            group_id=group_id, error_code=group.error, error_message=group.message
        )
    end = uncommitted_end(shard, group)
    if end is not None:
        partition = shard.log.partition
        awaited[partition] = max(end, awaited.get(partition, 0))
    return described_share_group(group, broker.image)


def _size_bytes(group: DescribedGroup) -> int:
    """Return the approximate size of a group in the answer."""
    return _FLAT_BYTES + sum(
        _FLAT_BYTES
        + sum(map(len, member.subscribed_topic_names))
        + sum(
            _FLAT_BYTES + _PARTITION_BYTES * len(topic.partitions)
            for topic in member.assignment.topic_partitions
        )
        for member in group.members
    )
