"""DescribeGroups, API key 15, versions 0-6.

Behaviour:   a group that does not exist is described as dead; metadata of members is shown only
             while the group is stable
Versions:    v3 authorized operations (KIP-430) · v4 group instance ids (KIP-345) ·
             v6 GROUP_ID_NOT_FOUND with a message (KIP-1043)
Left out:    groups of KIP-848 and KIP-932, which are not found
"""

from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.groups.admin import describe_group
from kraft_wire.broker.groups.group_types import ALL_GROUP_OPERATIONS
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.response_budget import ResponseBudget
from kraft_wire.wire.generated.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]

_FLAT_BYTES: Final = 64
"""Of a group and of each member, beside what clients chose the size of."""


def handle(
    broker: "Broker", context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    """Describe classic groups; an answer beyond its room ends the connection.

    Errors per group, first match wins: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
    GROUP_ID_NOT_FOUND (v6+).
    """
    room = ResponseBudget(broker.settings, "groups", context.api_version)
    described = []
    for group_id in request.groups:
        group = _describe(broker, group_id, context.api_version)
        room.take(_size_bytes(group))
        described.append(group)
    if request.include_authorized_operations:
        for group in described:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = ALL_GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=described)


def _describe(broker: "Broker", group_id: str, version: int) -> DescribedGroup:
    shard = broker.groups.shard_of(group_id)
    if isinstance(shard, GroupShard):
        return describe_group(shard, group_id, version)
    return DescribedGroup(group_id=group_id, error_code=shard)


def _size_bytes(group: DescribedGroup) -> int:
    """Return the approximate size of a group in the answer."""
    return _FLAT_BYTES + sum(
        _FLAT_BYTES + len(each.client_id) + len(each.member_metadata) + len(each.member_assignment)
        for each in group.members
    )
