"""ConsumerGroupDescribe, API key 69, versions 0-1.

Behaviour:   epochs, state, assignor, and of each member its subscription, what it has and what it
             is to have
Versions:    v1 kind of each member (KIP-1099)
Left out:    the state before a write that the ISR does not have yet: the answer waits for the ISR
"""

from functools import partial
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.groups.consumer.checks import find_group
from kraft_wire.broker.groups.consumer.describe import described_group
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.switch import serves_consumer_groups
from kraft_wire.broker.groups.describing import Description, describe_groups
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
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

    It waits until the ISR has what it shows.

    Errors per group, first match wins: UNSUPPORTED_VERSION (consumer groups are switched off),
    INVALID_GROUP_ID, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, GROUP_ID_NOT_FOUND.
    """
    default = assignor_names(broker.settings.group_consumer_assignors)[0]
    kind = Description(
        is_served=serves_consumer_groups(broker.image, broker.settings),
        find=_find,
        show=partial(described_group, image=broker.image, default_assignor=default),
        fail=_failed,
        size_bytes=_size_bytes,
        answer=lambda groups: ConsumerGroupDescribeResponse(groups=groups),
    )
    return describe_groups(broker, context, request, kind)


def _find(shard: GroupShard, group_id: str) -> ConsumerGroup | Refusal:
    return find_group(shard, group_id, f"Group {group_id} not found.")


def _failed(group_id: str, error: ErrorCode, message: str | None) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error, error_message=message)


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
