"""ListTransactions, API key 66, versions 0-2.

Behaviour:   lists the transactional ids that this broker coordinates and that match all filters;
             unknown states are returned and match nothing
Versions:    v1 duration (KIP-994) · v2 pattern of transactional ids (KIP-1152)
Left out:    flags, Unicode classes and word boundaries in patterns (RE2): such a pattern is invalid
"""

from typing import TYPE_CHECKING

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.transactions.id_pattern import PatternTooCostly, id_matcher
from kraft_wire.broker.transactions.listing import (
    STATE_NAMES,
    TransactionFilter,
    list_transactional_ids,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]


def handle(
    broker: "Broker", context: RequestContext, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    """List transactional ids.

    Errors, first match wins: COORDINATOR_LOAD_IN_PROGRESS, INVALID_REGULAR_EXPRESSION (also of a
    pattern that would hold the node for too long).
    """
    shards = broker.transactions.runtime.shards()
    if isinstance(shards, ErrorCode):
        return ListTransactionsResponse(error_code=shards)
    matches = id_matcher(request.transactional_id_pattern)
    if matches is None:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    duration_ms = request.duration_filter
    wanted = TransactionFilter(
        states=frozenset(request.state_filters),
        producer_ids=frozenset(request.producer_id_filters),
        started_before_ms=None if duration_ms < 0 else context.wall_ms - duration_ms,
        matches=matches,
    )
    try:
        states = [each for shard in shards for each in list_transactional_ids(shard, wanted)]
    except PatternTooCostly:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    return ListTransactionsResponse(
        unknown_state_filters=[
            name for name in dict.fromkeys(request.state_filters) if name not in STATE_NAMES
        ],
        transaction_states=states,
    )
