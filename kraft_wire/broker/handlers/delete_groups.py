"""DeleteGroups, API key 42, versions 0-2.

Behaviour:   a group without members is deleted with all its offsets; each group is answered once
Versions:    v2 flexible
Left out:    nothing
"""

from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.groups.admin import delete_group
from kraft_wire.broker.groups.moment import moment_of
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["API_KEY", "VERSIONS", "handle"]

API_KEY: Final = 42
VERSIONS: Final = (0, 2)


def handle(
    broker: "Broker", context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse:
    """Delete groups.

    Errors per group, first match wins: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
    GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
    """
    results = [
        DeletableGroupResult(group_id=group_id, error_code=_delete(broker, group_id, context))
        for group_id in dict.fromkeys(request.groups_names)
    ]
    return DeleteGroupsResponse(results=results)


def _delete(broker: "Broker", group_id: str, context: RequestContext) -> ErrorCode:
    shard = broker.groups.shard_of(group_id)
    if isinstance(shard, GroupShard):
        return delete_group(shard, group_id, moment_of(context))
    return shard
