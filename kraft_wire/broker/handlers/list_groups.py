"""ListGroups, API key 16, versions 0-5.

Behaviour:   lists every group that this broker coordinates; filters ignore case, and an unknown
             state or type matches nothing
Versions:    v4 states (KIP-518) · v5 types (KIP-848)
Left out:    the last committed state of a group while a newer one waits for the ISR
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.groups.admin import list_groups
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]


def handle(
    broker: "Broker", context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse | Parked:
    """List groups, once the ISR has what their states say.

    Error: COORDINATOR_LOAD_IN_PROGRESS. The groups of a partition whose coordinator ends meanwhile
    are left out, as if they had never been here.
    """
    shards = broker.groups.shards()
    if isinstance(shards, ErrorCode):
        return ListGroupsResponse(error_code=shards)
    states = [state.strip().lower() for state in request.states_filter]
    types = [kind.lower() for kind in request.types_filter]
    listed = {shard.log.partition: list_groups(shard, states, types) for shard in shards}
    awaited = {shard.log.partition: _safe_at(shard) for shard in shards if not _is_committed(shard)}
    if not awaited:
        return _answer(listed)

    def answered(errors: Mapping[int, ErrorCode]) -> ListGroupsResponse:
        return _answer({each: groups for each, groups in listed.items() if each not in errors})

    return broker.groups.env.commits.answer_when_committed(context, awaited, answered)


def _answer(listed: Mapping[int, list[ListedGroup]]) -> ListGroupsResponse:
    return ListGroupsResponse(groups=[group for groups in listed.values() for group in groups])


def _is_committed(shard: GroupShard) -> bool:
    return _safe_at(shard) <= shard.log.high_watermark()


def _safe_at(shard: GroupShard) -> int:
    """Return the high watermark that commits the newest record of a group that is not classic.

    The state of a classic group is not what its log says: members join and leave without a record.
    """
    return max((group.safe_at for group in shard.other_groups.values()), default=0)
