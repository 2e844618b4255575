"""Transactional ids for administrative tools: list and describe (KIP-664, KIP-994, KIP-1152)."""

from collections.abc import Callable, Iterable
from typing import Final

from kraft_wire.broker.transactions.shard import TransactionShard
from kraft_wire.broker.transactions.states import PREPARED, TransactionState
from kraft_wire.frozen import frozen
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated import describe_transactions, list_transactions
from kraft_wire.wire.generated.describe_transactions import TopicData
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["STATE_NAMES", "TransactionFilter", "describe_transaction", "list_transactional_ids"]

STATE_NAMES: Final = frozenset(state.value for state in TransactionState)


@frozen(kw_only=True)
class TransactionFilter:
    """The filter of a list; each given condition must hold."""

    states: frozenset[str]
    """Names; empty: any."""
    producer_ids: frozenset[int]
    """Empty: any."""
    started_before_ms: int | None
    """Wall time; None: any start."""
    matches: Callable[[str], bool]
    """Whether the transactional id is asked for."""


def list_transactional_ids(
    shard: TransactionShard, wanted: TransactionFilter
) -> Iterable[list_transactions.TransactionState]:
    """Return the ids that match a filter; an id in removal is never listed."""
    for name, entry in shard.ids.items():
        now = entry.metadata
        is_wanted = (
            (not wanted.states or now.state.value in wanted.states)
            and (not wanted.producer_ids or now.producer_id in wanted.producer_ids)
            and (wanted.started_before_ms is None or now.start_ms < wanted.started_before_ms)
            and entry.pending is not TransactionState.DEAD
        )
        if is_wanted and wanted.matches(name):
            yield list_transactions.TransactionState(
                transactional_id=name,
                producer_id=now.producer_id,
                transaction_state=now.state.value,
            )


def describe_transaction(
    shard: TransactionShard, name: str
) -> describe_transactions.TransactionState:
    """Describe an id; of a transaction that ends, the partitions that have no marker yet.

    Error: TRANSACTIONAL_ID_NOT_FOUND.
    """
    entry = shard.ids.get(name)
    if entry is None or entry.pending is TransactionState.DEAD:
        return describe_transactions.TransactionState(
            transactional_id=name, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        )
    now = entry.metadata
    partitions = entry.unmarked if now.state in PREPARED else now.partitions
    return describe_transactions.TransactionState(
        transactional_id=name,
        transaction_state=now.state.value,
        transaction_timeout_ms=now.timeout_ms,
        transaction_start_time_ms=now.start_ms,
        producer_id=now.producer_id,
        producer_epoch=now.producer_epoch,
        topics=_topics(partitions),
    )


def _topics(partitions: Iterable[TopicPartition]) -> list[TopicData]:
    topics: dict[str, TopicData] = {}
    for name, partition in partitions:
        topics.setdefault(name, TopicData(topic=name)).partitions.append(partition)
    return list(topics.values())
