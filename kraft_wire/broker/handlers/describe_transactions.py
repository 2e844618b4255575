"""DescribeTransactions, API key 65, version 0.

Behaviour:   returns one result for each transactional id, in the order of the request, and two for
             a repeated one; for a transaction that is ending, the partitions without a marker
Versions:    v0 (KIP-664)
Left out:    nothing
"""

from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.response_budget import ResponseBudget
from kraft_wire.broker.transactions.listing import describe_transaction
from kraft_wire.wire.generated.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from kraft_wire.wire.generated.error_code import ErrorCode

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]

_STATE_BYTES: Final = 50
"""Of an id without its name and topics."""


def handle(
    broker: "Broker", context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Describe transactional ids; an answer beyond its room ends the connection.

    Errors per id, first match wins: INVALID_REQUEST (empty), NOT_COORDINATOR,
    COORDINATOR_LOAD_IN_PROGRESS, TRANSACTIONAL_ID_NOT_FOUND.
    """
    room = ResponseBudget(broker.settings, "transaction_states", context.api_version)
    response = DescribeTransactionsResponse()
    for name in request.transactional_ids:
        state = _describe(broker, name)
        room.take(_size_bytes(state))
        response.transaction_states.append(state)
    return response


def _size_bytes(state: TransactionState) -> int:
    """Return about how long an id is in the answer."""
    topics = sum(len(each.topic) + 4 * len(each.partitions) for each in state.topics)
    return _STATE_BYTES + len(state.transactional_id) + topics


def _describe(broker: "Broker", name: str) -> TransactionState:
    shard = broker.transactions.shard_of(name) if name else ErrorCode.INVALID_REQUEST
    if isinstance(shard, ErrorCode):
        return TransactionState(transactional_id=name, error_code=shard)
    return describe_transaction(shard, name)
