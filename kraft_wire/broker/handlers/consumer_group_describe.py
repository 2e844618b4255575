"""ConsumerGroupDescribe, API key 69, versions 0-1.

Behaviour:   epochs, state, assignor, and of each member its subscription, what it has and what it
             is to have
Versions:    v1 kind of each member (KIP-1099)
Left out:    the state before a write that the ISR does not have yet: the answer waits for the ISR
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.groups.consumer.describe import described_group
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.switch import serves_consumer_groups
from kraft_wire.broker.groups.group_types import ALL_GROUP_OPERATIONS
from kraft_wire.broker.groups.group_writes import uncommitted_end
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.response_budget import ResponseBudget
from kraft_wire.settings.server_assignors import assignor_names
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
) -> ConsumerGroupDescribeResponse | Parked:
    """Describe consumer groups; an answer beyond its room ends the connection.

    It waits until the ISR has what it says.

    Errors per group, first match wins: UNSUPPORTED_VERSION (consumer groups are switched off),
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
        return ConsumerGroupDescribeResponse(groups=described)

    def answered(errors: Mapping[int, ErrorCode]) -> ConsumerGroupDescribeResponse:
        for number, group in enumerate(described):
            error = errors.get(broker.groups.partition_of(group.group_id))
            if error is not None and group.error_code == ErrorCode.NONE:
                described[number] = DescribedGroup(group_id=group.group_id, error_code=error)
        return ConsumerGroupDescribeResponse(groups=described)

    return broker.groups.env.commits.answer_when_committed(context, awaited, answered)


def _describe(broker: "Broker", group_id: str, awaited: dict[int, int]) -> DescribedGroup:
    """Describe a group; `awaited` takes the newest record of it that the ISR does not have."""
    answer = DescribedGroup(group_id=group_id)
    if not serves_consumer_groups(broker.image, broker.settings):
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
        end = uncommitted_end(shard, group)
        if end is not None:
            awaited[shard.log.partition] = max(end, awaited.get(shard.log.partition, 0))
        default = assignor_names(broker.settings.group_consumer_assignors)[0]
        return described_group(group, broker.image, default)
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
