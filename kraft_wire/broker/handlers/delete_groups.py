"""DeleteGroups, API key 42, versions 0-2.

Behaviour:   a group without members is deleted with all its offsets; each group is answered once
Versions:    v2 flexible
Left out:    nothing
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.coordination.log import Appended
from kraft_wire.broker.groups.admin import delete_group
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]


def handle(
    broker: "Broker", context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse | Parked:
    """Delete groups; parked until the ISR knows it.

    Errors per group, first match wins: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
    GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
    """
    deleted = {
        group_id: _delete(broker, group_id, context)
        for group_id in dict.fromkeys(request.groups_names)
    }
    safe_at = {
        broker.groups.partition_of(group_id): each.safe_at
        for group_id, each in deleted.items()
        if each.safe_at is not None  # later ones in a partition are safe later
    }

    def answered(errors: Mapping[int, ErrorCode]) -> DeleteGroupsResponse:
        results = []
        for group_id, each in deleted.items():
            error = each.error
            if each.safe_at is not None:
                error = errors.get(broker.groups.partition_of(group_id), error)
            results.append(DeletableGroupResult(group_id=group_id, error_code=error))
        return DeleteGroupsResponse(results=results)

    if not safe_at:
        return answered({})
    return broker.groups.env.commits.answer_when_committed(context, safe_at, answered)


def _delete(broker: "Broker", group_id: str, context: RequestContext) -> Appended:
    shard = broker.groups.shard_of(group_id)
    if isinstance(shard, GroupShard):
        return delete_group(shard, group_id, arrival_of(context))
    return Appended(shard)
