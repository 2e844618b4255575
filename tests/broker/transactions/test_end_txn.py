"""EndTxn: which request ends a transaction, which repeats an answer, and which is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from kraft_wire.broker.transactions.transactional_id import LAST_EPOCH
from kraft_wire.wire.generated.end_txn import EndTxnRequest
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.transactions.coordinating import Coordinating, Markers, Producer

FENCED, STATE, BUSY = E.PRODUCER_FENCED, E.INVALID_TXN_STATE, E.CONCURRENT_TRANSACTIONS


def brought_to(node: Coordinating, state: str, version: int = 5) -> Producer:
    """A producer at epoch 1 or above whose transactional id is in a state."""
    producer = node.producer(f"{state}-{version}")
    assert producer.init() == producer.init() == E.NONE
    if state != "Empty":
        assert producer.add(0) == [E.NONE]
    if state.startswith("Complete"):
        assert producer.end(commit=state == "CompleteCommit", version=version) == E.NONE
    assert node.entry(producer.name).metadata.state.value == state
    return producer


# Answer to abort with the epoch before, abort with the current one, commit with either.
NEW_RULES: Final = {
    "Empty": (FENCED, E.NONE, FENCED, STATE),
    "CompleteAbort": (E.NONE, E.NONE, STATE, STATE),
    "CompleteCommit": (STATE, E.NONE, E.NONE, STATE),
    "Ongoing": (FENCED, E.NONE, FENCED, E.NONE),
}
REQUESTS: Final = [(False, -1), (False, 0), (True, -1), (True, 0)]


@pytest.mark.parametrize("state", NEW_RULES)
@pytest.mark.parametrize("case", range(4))
def test_answers_of_version_5(node: Coordinating, state: str, case: int) -> None:
    producer = brought_to(node, state)
    commit, behind = REQUESTS[case]
    identity = (producer.id, producer.epoch + behind)
    records = len(node.records(producer.name))
    assert producer.end(commit=commit, identity=identity) == NEW_RULES[state][case]
    is_new = NEW_RULES[state][case] == E.NONE and behind == 0
    assert len(node.records(producer.name)) == records + (2 if is_new else 0)
    assert producer.epoch == identity[1] + (1 if NEW_RULES[state][case] == E.NONE else -behind)


@pytest.mark.parametrize("commit", [True, False])
def test_the_end_of_an_older_client_is_no_answer_for_the_producer_before_it(
    node: Coordinating, commit: bool
) -> None:
    """T12: a producer gets only its own identity; in 4.3.1 a fenced one gets that of another."""
    producer = brought_to(node, "CompleteCommit" if commit else "CompleteAbort", version=4)
    fenced = (producer.id, producer.epoch - 1)
    for verdict in (True, False):
        assert producer.end(commit=verdict, identity=fenced) == FENCED
    assert producer.epoch == fenced[1] + 1


@pytest.mark.parametrize("state", NEW_RULES)
@pytest.mark.parametrize("behind", [-3, -2, 1])
@pytest.mark.parametrize("commit", [True, False])
def test_epochs_that_are_neither_the_current_nor_the_one_before_are_fenced(
    node: Coordinating, state: str, behind: int, commit: bool
) -> None:
    """Also the last of all epochs, with which only a producer of the former id may come."""
    producer = node.producer(state)
    for _ in range(5):
        assert producer.init() == E.NONE
    if state != "Empty":
        assert producer.add(0) == [E.NONE]
    if state.startswith("Complete"):
        assert producer.end(commit=state == "CompleteCommit") == E.NONE
    records = len(node.records(producer.name))
    for epoch in (producer.epoch + behind, LAST_EPOCH):
        assert producer.end(commit=commit, identity=(producer.id, epoch)) == FENCED
    assert len(node.records(producer.name)) == records


@pytest.mark.parametrize("commit", [True, False])
def test_end_of_the_last_epoch_answers_with_the_next_producer_id(
    node: Coordinating, commit: bool
) -> None:
    """And its repetition with the same; others of the former id are no longer known (KIP-890)."""
    producer = node.producer()
    assert producer.init() == E.NONE
    entry = node.entry(producer.name)
    entry.metadata = replace(entry.metadata, producer_epoch=LAST_EPOCH)
    producer.epoch = LAST_EPOCH
    assert producer.add(0) == [E.NONE]
    former = (producer.id, LAST_EPOCH)
    assert producer.end(commit=commit, identity=former) == E.NONE
    new = (producer.id, producer.epoch)
    assert (new[0] != former[0], new[1]) == (True, 0)
    assert (entry.metadata.producer_id, entry.metadata.producer_epoch) == new
    assert producer.end(commit=commit, identity=former) == E.NONE
    assert (producer.id, producer.epoch) == new
    assert producer.end(commit=not commit, identity=former) == STATE
    for epoch in (0, LAST_EPOCH - 1):
        identity = (former[0], epoch)
        assert producer.end(commit=commit, identity=identity) == E.INVALID_PRODUCER_ID_MAPPING
    producer.id, producer.epoch = new
    assert producer.add(0) == [E.NONE]
    assert producer.end(commit=commit, identity=former) != E.NONE
    assert producer.end(commit=commit, identity=new) == E.NONE


# Answer to commit and abort with the current epoch.
OLD_RULES: Final = {
    "Empty": (STATE, STATE),
    "Ongoing": (E.NONE, E.NONE),
    "CompleteCommit": (E.NONE, STATE),
    "CompleteAbort": (STATE, E.NONE),
}


@pytest.mark.parametrize("state", OLD_RULES)
@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("commit", [True, False])
def test_answers_up_to_version_4(
    node: Coordinating, state: str, version: int, commit: bool
) -> None:
    producer = brought_to(node, state, version)
    expected = OLD_RULES[state][0 if commit else 1]
    epoch = producer.epoch
    assert producer.end(commit=commit, version=version) == expected
    assert node.entry(producer.name).metadata.producer_epoch == epoch
    behind = (producer.id, producer.epoch - 1)
    fenced = FENCED if version >= 2 else E.INVALID_PRODUCER_EPOCH
    assert producer.end(commit=commit, version=version, identity=behind) == fenced


@pytest.mark.parametrize("version", range(6))
def test_errors_that_do_not_depend_on_the_state(node: Coordinating, version: int) -> None:
    producer = brought_to(node, "Ongoing")
    fenced = FENCED if version >= 2 else E.INVALID_PRODUCER_EPOCH
    mapping = E.INVALID_PRODUCER_ID_MAPPING
    other = (producer.id + 1, producer.epoch)
    assert producer.end(version=version, identity=other) == mapping
    later = (producer.id, producer.epoch + 1)
    assert producer.end(version=version, identity=later) == fenced
    assert node.producer("stranger").end(version=version, identity=(1, 1)) == mapping
    assert node.producer("").end(version=version, identity=(1, 1)) == E.INVALID_REQUEST


@pytest.mark.parametrize("commit", [True, False])
def test_markers_that_are_not_written_yet(
    node: Coordinating, markers: Markers, commit: bool
) -> None:
    """Up to version 4 the identity is looked at first, from 5 on that a change is under way."""
    producer = brought_to(node, "Ongoing")
    markers.keeps_back = True
    assert producer.end(commit=commit) == E.NONE
    pending = node.entry(producer.name).pending
    assert pending is not None
    assert pending.value == ("CompleteCommit" if commit else "CompleteAbort")
    wrong = (producer.id + 1, 0)
    assert producer.end(commit=commit, identity=wrong) == BUSY
    assert producer.end(commit=commit, version=4, identity=wrong) == E.INVALID_PRODUCER_ID_MAPPING
    assert producer.end(commit=commit, version=4) == BUSY
    assert producer.end(commit=not commit) == BUSY
    markers.answer()
    node.node.tick(node.now_ms, node.wall_ms)
    assert node.states(producer.name)[-1] == ("CompleteCommit" if commit else "CompleteAbort")


def test_rules_that_the_log_cannot_hold_change_nothing(markers: Markers) -> None:
    node = Coordinating(version=0)
    producer = node.producer()
    producer.init()
    producer.add(0)
    records = node.raw_records("tid")
    assert producer.commit(version=5) == E.UNSUPPORTED_VERSION
    assert producer.commit(version=4) == E.NONE
    assert len(node.raw_records("tid")) == len(records) + 2


def test_the_answer_waits_for_the_disk_where_that_is_promised(markers: Markers) -> None:
    node = Coordinating(log_flush_interval_messages="1")
    producer = node.producer()
    producer.init()
    producer.add(0)
    node.keeps_flushes_back = True
    request = EndTxnRequest(
        transactional_id="tid",
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        committed=True,
    )
    reply = node.send(request, 5)
    assert reply.response is None
    assert markers.requests == []
    node.flush()
    node.settle()
    assert reply.error == E.NONE
    assert len(markers.requests) == 1
