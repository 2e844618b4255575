"""ConsumerGroupDescribe, API key 69, versions 0-1.

Behaviour:   epochs, state, assignor, and of each member its subscription, what it has and what it
             is to have
Versions:    v1 kind of each member (KIP-1099)
Left out:    a write that the ISR does not have yet is shown
"""

from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.groups.consumer.describe import described_group
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.group_types import ALL_GROUP_OPERATIONS
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.response_budget import ResponseBudget
from kraft_wire.metadata.features import GROUP_VERSION
from kraft_wire.wire.generated.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from kraft_wire.wire.generated.error_code import ErrorCode

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]

_FLAT_BYTES: Final = 128
"""Of a group and of each member, beside what clients chose the size of."""
_PARTITION_BYTES: Final = 8


def handle(
    broker: "Broker", context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Describe consumer groups; an answer beyond its room ends the connection.

    Errors per group, first match wins: UNSUPPORTED_VERSION (the feature group.version is off),
    INVALID_GROUP_ID, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, GROUP_ID_NOT_FOUND.
    """
    room = ResponseBudget(broker.settings, "groups", context.api_version)
    described = []
    for group_id in sorted(request.group_ids, key=bool):  # empty ids come first
        group = _describe(broker, group_id)
        room.take(_size_bytes(group))
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = ALL_GROUP_OPERATIONS
        described.append(group)
    return ConsumerGroupDescribeResponse(groups=described)


def _describe(broker: "Broker", group_id: str) -> DescribedGroup:
    answer = DescribedGroup(group_id=group_id)
    if not broker.image.finalized_features.get(GROUP_VERSION, 0):
        answer.error_code = ErrorCode.UNSUPPORTED_VERSION
        return answer
    if not group_id:
        answer.error_code = ErrorCode.INVALID_GROUP_ID
        return answer
    shard = broker.groups.shard_of(group_id)
    if not isinstance(shard, GroupShard):
        answer.error_code = shard
        return answer
    group = shard.other_groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return described_group(group, broker.image)
    is_missing = group is None and group_id not in shard.groups
    reason = "not found." if is_missing else "is not a consumer group."
    answer.error_code = ErrorCode.GROUP_ID_NOT_FOUND
    answer.error_message = f"Group {group_id} {reason}"
    return answer


def _size_bytes(group: DescribedGroup) -> int:
    """Return the approximate size of a group in the answer."""
    return _FLAT_BYTES + sum(
        _FLAT_BYTES
        + sum(map(len, member.subscribed_topic_names))
        + sum(
            _FLAT_BYTES + _PARTITION_BYTES * len(topic.partitions)
            for assignment in (member.assignment, member.target_assignment)
            for topic in assignment.topic_partitions
        )
        for member in group.members
    )
