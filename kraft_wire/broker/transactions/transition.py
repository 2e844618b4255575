"""A transition computed: from the metadata of an id and an event to the metadata that follow."""

from collections.abc import Mapping
from dataclasses import replace

from kraft_wire.broker.transactions.states import (
    TRANSITIONS,
    EpochRule,
    Partitions,
    TransactionEvent,
)
from kraft_wire.broker.transactions.transactional_id import (
    LAST_EPOCH,
    NO_EPOCH,
    NO_PARTITIONS,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TransactionMetadata,
)
from kraft_wire.model import TopicPartition

__all__ = ["V2", "needs_producer_id", "next_metadata"]

V2 = 2
"""First `transaction.version` in which each transaction has its own epoch."""


def needs_producer_id(now: TransactionMetadata, event: TransactionEvent, version: int) -> bool:
    """Whether a transition needs a new producer id, because the epochs are exhausted."""
    rule = _rule(now, event, version)
    return now.is_exhausted and rule in (EpochRule.RAISE, EpochRule.RENEW)


def next_metadata(
    now: TransactionMetadata,
    event: TransactionEvent,
    version: int,
    wall_ms: int,
    *,
    new_producer_id: int = NO_PRODUCER_ID,
    partitions: Mapping[TopicPartition, None] = NO_PARTITIONS,
    timeout_ms: int | None = None,
) -> TransactionMetadata:
    """Return the metadata that follow an event under the rules of a `transaction.version`.

    `new_producer_id` is needed if `needs_producer_id` is true. `init_producer_id` checks the epoch
    that a producer sends when it initializes itself.
    """
    row = TRANSITIONS[now.state][event]
    is_begun = event is TransactionEvent.PARTITIONS_ADDED and now.state is not row.to
    is_abort_of_nothing = event is TransactionEvent.ABORTED and row.partitions is Partitions.NONE
    start_ms = wall_ms if is_begun or is_abort_of_nothing else now.start_ms
    client_version = V2 if version >= V2 else 0
    if event in (TransactionEvent.INITIALIZED, TransactionEvent.MARKERS_WRITTEN):
        client_version = now.client_version
    if event is TransactionEvent.INITIALIZED:
        assert timeout_ms is not None, event
        start_ms = NO_TIMESTAMP
    return replace(
        _with_epoch(now, _rule(now, event, version), new_producer_id),
        state=row.to,
        partitions=_partitions(now, row.partitions, partitions),
        start_ms=start_ms,
        last_update_ms=wall_ms,
        timeout_ms=now.timeout_ms if timeout_ms is None else timeout_ms,
        client_version=client_version,
    )


def _partitions(
    now: TransactionMetadata, change: Partitions, added: Mapping[TopicPartition, None]
) -> Mapping[TopicPartition, None]:
    if change is Partitions.ADD:
        return {**now.partitions, **added}
    return now.partitions if change is Partitions.KEEP else NO_PARTITIONS


def _rule(now: TransactionMetadata, event: TransactionEvent, version: int) -> EpochRule:
    row = TRANSITIONS[now.state][event]
    rule = row.epoch if version >= V2 else row.legacy_epoch
    assert rule is not None, (now.state, event, version)
    return rule


def _with_epoch(
    now: TransactionMetadata, rule: EpochRule, new_producer_id: int
) -> TransactionMetadata:
    """Return the metadata with producer ids and epochs as a rule leaves them."""
    epoch = now.producer_epoch
    kept = replace(now, previous_producer_id=now.producer_id)
    if rule is EpochRule.RENEW and now.is_exhausted:
        assert new_producer_id >= 0, "asked for by needs_producer_id"
        return replace(
            kept,
            producer_id=new_producer_id,
            producer_epoch=0,
            next_producer_id=NO_PRODUCER_ID,
            last_producer_epoch=epoch,
        )
    if rule is EpochRule.TAKE_NEXT and now.next_producer_id != NO_PRODUCER_ID:
        return replace(
            kept,
            producer_id=now.next_producer_id,
            producer_epoch=0,
            next_producer_id=NO_PRODUCER_ID,
        )
    if rule in (EpochRule.SAME, EpochRule.TAKE_NEXT):
        return kept
    if rule is EpochRule.RAISE and now.is_exhausted:
        assert new_producer_id >= 0, "asked for by needs_producer_id"
        kept = replace(kept, next_producer_id=new_producer_id)
    last = NO_EPOCH if rule is EpochRule.RAISE_LEGACY else epoch
    return replace(kept, producer_epoch=min(epoch, LAST_EPOCH) + 1, last_producer_epoch=last)
