"""DeleteGroups, API key 42, versions 0-2.

Behaviour:   a group without members is deleted with all its offsets; of a share group the state of
             its share partitions is removed first; each group is answered once
Versions:    v2 flexible
Left out:    nothing
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import ClockReading, arrival_of
from kraft_wire.broker.coordination.log import Appended
from kraft_wire.broker.deferred_response import DeferredResponse
from kraft_wire.broker.groups.admin import delete_group
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.delete_offsets import delete_state_of_group
from kraft_wire.broker.groups.share.group import ShareGroup
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
    GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP; of a share group those of its share coordinators.
    """
    group_ids = [*dict.fromkeys(request.groups_names)]
    shared = [each for each in group_ids if _empty_share_group(broker, each) is not None]
    if not shared:
        return _delete(broker, context, group_ids, {})
    deferred = DeferredResponse[DeleteGroupsResponse](broker.groups.env.complete, context.reply_to)
    errors: dict[str, ErrorCode] = {}

    def removed(group_id: str, error: ErrorCode, at: ClockReading) -> None:
        errors[group_id] = error
        if len(errors) == len(shared):
            deleted = _delete(broker, context.at(*at), group_ids, errors)
            if isinstance(deleted, DeleteGroupsResponse):
                deferred.send(deleted)

    for group_id in shared:
        _remove_state(broker, group_id, arrival_of(context), removed)
    return deferred.result()


def _empty_share_group(broker: "Broker", group_id: str) -> tuple[GroupShard, ShareGroup] | None:
    """Return a share group that may be deleted, with its shard."""
    shard = broker.groups.shard_of(group_id)
    if not isinstance(shard, GroupShard):
        return None
    group = shard.other_groups.get(group_id)
    return (shard, group) if isinstance(group, ShareGroup) and group.is_empty else None


def _remove_state(
    broker: "Broker",
    group_id: str,
    at: ClockReading,
    removed: Callable[[str, ErrorCode, ClockReading], None],
) -> None:
    """Have the state of a group's share partitions removed."""
    found = _empty_share_group(broker, group_id)
    if found is None:
        removed(group_id, ErrorCode.NONE, at)  # the deletion says what became of it
        return
    delete_state_of_group(*found, at, lambda error, at: removed(group_id, error, at))


def _delete(
    broker: "Broker",
    context: RequestContext,
    group_ids: Sequence[str],
    errors: Mapping[str, ErrorCode],
) -> DeleteGroupsResponse | Parked:
    """Delete the groups without an error."""
    deleted = {
        group_id: _delete_one(broker, group_id, context, errors.get(group_id, ErrorCode.NONE))
        for group_id in group_ids
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


def _delete_one(
    broker: "Broker", group_id: str, context: RequestContext, error: ErrorCode
) -> Appended:
    if error is not ErrorCode.NONE:
        return Appended(error)
    shard = broker.groups.shard_of(group_id)
    if isinstance(shard, GroupShard):
        return delete_group(shard, group_id, arrival_of(context))
    return Appended(shard)
