"""ListGroups, API key 16, versions 0-5.

Behaviour:   lists every group that this broker coordinates; filters ignore case, and an unknown
             state or type matches nothing
Versions:    v4 states (KIP-518) · v5 types (KIP-848)
Left out:    the last committed state of a group
"""

from typing import TYPE_CHECKING

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.groups.admin import list_groups
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_groups import ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]


def handle(
    broker: "Broker", context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse:
    """List groups. Error: COORDINATOR_LOAD_IN_PROGRESS."""
    shards = broker.groups.shards()
    if isinstance(shards, ErrorCode):
        return ListGroupsResponse(error_code=shards)
    states = [state.strip().lower() for state in request.states_filter]
    types = [kind.lower() for kind in request.types_filter]
    groups = [group for shard in shards for group in list_groups(shard, states, types)]
    return ListGroupsResponse(groups=groups)
