"""A transactional id that needs a producer id while the broker has none: the client asks again.

4.3.1's TransactionCoordinator answers COORDINATOR_LOAD_IN_PROGRESS then, which clients retry.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_wire.broker.transactions.init_producer_id import ProducerIdentity
from kraft_wire.broker.transactions.transactional_id import LAST_EPOCH
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.transactions.scripted import Scripted

RETRIED = ProducerIdentity(E.COORDINATOR_LOAD_IN_PROGRESS)


def test_new_id_without_a_producer_id_leaves_nothing_behind() -> None:
    node = Scripted()
    node.ids_left = 0
    node.init()
    assert (node.answers, node.log.records, node.shard.ids) == ([RETRIED], [], {})
    node.ids_left = 1
    node.init()
    assert (node.last.error, node.last.producer_epoch) == (E.NONE, 0)


def test_exhausted_id_without_a_new_producer_id_is_answered_once_and_not_changed() -> None:
    node = Scripted()
    node.init()
    entry = node.shard.ids["tid"]
    exhausted = replace(entry.metadata, producer_epoch=LAST_EPOCH)
    entry.metadata = exhausted
    written, node.ids_left = len(node.log.records), 0
    node.init()
    assert node.answers[1:] == [RETRIED]
    assert (len(node.log.records), entry.metadata, entry.pending) == (written, exhausted, None)
    node.ids_left = 1
    node.init()
    assert (node.last.error, node.last.producer_epoch) == (E.NONE, 0)
    assert node.last.producer_id not in (exhausted.producer_id, -1)


@pytest.mark.parametrize("epoch", [LAST_EPOCH, LAST_EPOCH + 1])
def test_a_repeated_request_gets_the_new_producer_id_again(epoch: int) -> None:
    """Also from the epoch of the coordinator's last marker: `isEpochExhausted` has both."""
    node = Scripted()
    node.init()
    entry = node.shard.ids["tid"]
    entry.metadata = replace(entry.metadata, producer_epoch=epoch)
    former = (entry.metadata.producer_id, epoch)
    node.init(former)
    assert (node.last.error, node.last.producer_epoch) == (E.NONE, 0)
    assert node.last.producer_id != former[0]
    first = node.last
    node.init(former)
    assert node.last == first


@pytest.mark.parametrize("commit", [True, False])
def test_end_without_a_producer_id_for_the_next_transaction_leaves_it_open(commit: bool) -> None:
    """`TransactionCoordinator.endTransaction` of version 2 answers with the generator's error."""
    node = Scripted()
    producer_id, _ = node.begin()
    entry = node.shard.ids["tid"]
    open_ = replace(entry.metadata, producer_epoch=LAST_EPOCH)
    entry.metadata = open_
    written, node.ids_left = len(node.log.records), 0
    node.end((producer_id, LAST_EPOCH), commit=commit)
    assert node.last == RETRIED
    assert (len(node.log.records), entry.metadata, entry.pending) == (written, open_, None)
    node.ids_left = 1
    node.end((producer_id, LAST_EPOCH), commit=commit)
    assert (node.last.error, node.last.producer_epoch) == (E.NONE, 0)
    assert node.last.producer_id not in (producer_id, -1)
    assert len(node.log.records) > written
