"""DescribeTransactions, API key 65, version 0.

Behaviour:   returns one result for each transactional id, in the order of the request, and two for
             a repeated one; for a transaction that is ending, the partitions without a marker
Versions:    v0 (KIP-664)
Left out:    nothing
"""

from typing import TYPE_CHECKING

from kraft_wire.broker.context import RequestContext
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


def handle(
    broker: "Broker", context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Describe transactional ids.

    Errors per id, first match wins: INVALID_REQUEST (empty), NOT_COORDINATOR,
    COORDINATOR_LOAD_IN_PROGRESS, TRANSACTIONAL_ID_NOT_FOUND.
    """
    return DescribeTransactionsResponse(
        transaction_states=[_describe(broker, name) for name in request.transactional_ids]
    )


def _describe(broker: "Broker", name: str) -> TransactionState:
    shard = broker.transactions.shard_of(name) if name else ErrorCode.INVALID_REQUEST
    if isinstance(shard, ErrorCode):
        return TransactionState(transactional_id=name, error_code=shard)
    return describe_transaction(shard, name)
