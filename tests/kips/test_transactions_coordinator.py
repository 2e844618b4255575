"""Transactions, the coordinator's side: requirement by requirement; ids are those of docs/KIPS.md.

Partitions are played by `Markers`; what they do themselves is in `test_transactions_*` beside this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, Final

import pytest

from kraft_wire.broker import dispatch
from kraft_wire.broker.coordination.topic import key_partition
from kraft_wire.broker.transactions.replay import Replay
from kraft_wire.broker.transactions.states import (
    TRANSITIONS,
    EpochRule,
    TransactionEvent,
    TransactionState,
)
from kraft_wire.broker.transactions.transactional_id import LAST_EPOCH
from kraft_wire.java_hash import text_hash
from kraft_wire.metadata.image import TOPIC_RESOURCE
from kraft_wire.model import TopicPartition
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.init_producer_id import InitProducerIdRequest
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.legacy_batch import LegacyBatch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch
from tests.broker.groups.node_door import NodeDoor
from tests.broker.small_broker import context
from tests.broker.transactions.coordinating import (
    STATE_TOPIC,
    TIMEOUT_MS,
    TOPIC,
    Coordinating,
    Markers,
    Producer,
    find_coordinator,
    played_partitions,
)
from tests.wire.odd_batches import old_message

CLEANUP_MS: Final = 10_000
BUSY, FENCED = E.CONCURRENT_TRANSACTIONS, E.PRODUCER_FENCED


@pytest.fixture
def markers() -> Iterator[Markers]:
    with played_partitions() as played:
        yield played


@pytest.fixture
def node(markers: Markers) -> Coordinating:
    return Coordinating()


def begun(node: Coordinating, name: str = "tid", version: int = 5) -> Producer:
    """A producer with a transaction on partition 0."""
    producer = node.producer(name)
    assert producer.init() == E.NONE
    added = producer.implicit(0) if version >= 5 else producer.add(0)
    assert added == [E.NONE]
    return producer


def at_epoch(node: Coordinating, epoch: int) -> Producer:
    """A producer whose id is at an epoch; the log is not asked."""
    producer = node.producer()
    assert producer.init() == E.NONE
    entry = node.entry("tid")
    entry.metadata = replace(entry.metadata, producer_epoch=epoch)
    producer.epoch = epoch
    return producer


def api_versions(node: Coordinating) -> Any:
    """What the node says of itself; the header of this answer is another one."""
    handle = dispatch.handler(ApiVersionsRequest.API_KEY)
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    encoded = handle(node.node.broker, context(4), request)
    assert isinstance(encoded, Message)
    return ApiVersionsResponse.decode(encoded.encode(4), 4)[0]


# -- features and versions -------------------------------------------------------------------------


def test_levels_of_the_feature(markers: Markers) -> None:
    """TXN-FEAT-01, TXN-FEAT-02, TXN-FEAT-03, TXN-FEAT-04: level 0 is not listed as finalized."""
    shown = {}
    for version in range(3):
        node = Coordinating(version=version)
        answer = api_versions(node)
        (supported,) = [each for each in answer.supported_features if each.name.startswith("trans")]
        assert (supported.min_version, supported.max_version) == (0, 2)
        finalized = {each.name: each.max_version_level for each in answer.finalized_features}
        assert finalized.get("transaction.version") == (version or None)
        shown[version] = [(each.api_key, each.max_version) for each in answer.api_keys]
    assert shown[0] == shown[1] == shown[2]
    assert {(22, 5), (24, 5), (25, 4), (26, 5), (65, 0), (66, 2), (10, 6)} <= set(shown[2])


def test_the_version_of_a_request_decides_its_rules(markers: Markers) -> None:
    """TXN-FEAT-05, TXN-FEAT-06: at level 1 EndTxn 5 raises the epoch as at 2."""
    for version in (1, 2):
        node = Coordinating(version=version)
        producer = begun(node, "new")
        assert producer.commit(version=5) == E.NONE
        assert producer.epoch == 1
        producer = begun(node, "old", version=3)
        assert producer.commit(version=4) == E.NONE
        assert node.entry("old").metadata.producer_epoch == 0
    node = Coordinating(version=0)
    producer = node.producer()
    producer.init()
    assert producer.implicit(0) == [E.UNSUPPORTED_VERSION]
    assert producer.init() == E.NONE, "not pending: 4.3.1 answers CONCURRENT_TRANSACTIONS for ever"


def test_the_fenced_error_is_sent_to_versions_that_know_it(node: Coordinating) -> None:
    """TXN-FEAT-07."""
    producer = begun(node)
    producer.commit()
    wrong = (producer.id, producer.epoch + 5)
    for version in (3, 4, 5):
        expected = FENCED if version >= 4 else E.INVALID_PRODUCER_EPOCH
        assert producer.init(wrong, version=version) == expected
    for version in range(6):
        expected = FENCED if version >= 2 else E.INVALID_PRODUCER_EPOCH
        assert producer.end(version=version, identity=wrong) == expected


def test_a_marker_carries_the_version_of_its_rules(node: Coordinating, markers: Markers) -> None:
    """TXN-FEAT-09."""
    begun(node, "new").commit(version=5)
    begun(node, "old", version=3).commit(version=4)
    assert [each.transaction_version for each in markers.markers] == [2, 0]


# -- finding the coordinator -----------------------------------------------------------------------


def test_the_coordinator_leads_the_partition_of_the_hash(node: Coordinating) -> None:
    """TXN-FIND-01."""
    assert text_hash("tid") == 114_831
    assert node.node.broker.transactions.partition_of("tid") == 114_831 % 2
    assert key_partition("polygenelubricants", 50) == 0, "the hash is the lowest int32"
    found = find_coordinator(node, "tid")
    assert (found.node_id, found.error_code) == (node.node.broker.node_id, E.NONE)


def test_the_first_question_creates_the_topic(markers: Markers) -> None:
    """TXN-FIND-02, TXN-LOG-01: with the five settings that 4.3.1 gives it."""
    node = NodeDoor(
        SimFileSystem(),
        transaction_state_log_replication_factor="1",
        transaction_state_log_min_isr="1",
    )
    assert find_coordinator(node, "tid").error_code == E.COORDINATOR_NOT_AVAILABLE
    node.settle()
    image = node.node.broker.image
    topic = image.topic(STATE_TOPIC)
    assert topic is not None
    assert len(topic.partitions) == 50
    assert dict(image.config(TOPIC_RESOURCE, STATE_TOPIC)) == {
        "unclean.leader.election.enable": "false",
        "compression.type": "uncompressed",
        "cleanup.policy": "compact",
        "min.insync.replicas": "1",
        "segment.bytes": "104857600",
    }
    assert find_coordinator(node, "tid").error_code == E.NONE


def test_keys_are_answered_one_by_one(node: Coordinating) -> None:
    """TXN-FIND-04: with an empty message where the older versions say NONE."""
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=["a", "", "b"])
    found = node.send(request, 4).response.coordinators
    assert [(each.key, each.error_code, each.error_message) for each in found] == [
        ("a", E.NONE, ""),
        ("", E.NONE, ""),
        ("b", E.NONE, ""),
    ]
    assert find_coordinator(node, "a", version=3).error_message == "NONE"


# -- InitProducerId --------------------------------------------------------------------------------


def init_error(node: Coordinating, **fields: object) -> E:
    request = InitProducerIdRequest(**{"transaction_timeout_ms": TIMEOUT_MS, **fields})  # type: ignore[arg-type]  # by name
    response = node.send(request, 5).response
    return E(response.error_code)


def test_what_is_refused_before_the_coordinator_is_asked(node: Coordinating) -> None:
    """TXN-INIT-01, TXN-INIT-02, TXN-INIT-03, TXN-INIT-04."""
    both = {"producer_id": 7, "producer_epoch": 7}
    assert init_error(node, transactional_id=None, transaction_timeout_ms=0, **both) == E.NONE
    for half in ({"producer_id": 7}, {"producer_epoch": 7}):
        for name in (None, "", "tid"):
            assert init_error(node, transactional_id=name, **half) == E.INVALID_REQUEST
    assert init_error(node, transactional_id="", transaction_timeout_ms=0) == E.INVALID_REQUEST
    for timeout_ms, error in [
        (0, E.INVALID_TRANSACTION_TIMEOUT),
        (-1, E.INVALID_TRANSACTION_TIMEOUT),
        (900_001, E.INVALID_TRANSACTION_TIMEOUT),
        (900_000, E.NONE),
        (1, E.NONE),
    ]:
        assert init_error(node, transactional_id="x", transaction_timeout_ms=timeout_ms) == error


def test_an_unknown_id_gets_a_producer_id(node: Coordinating) -> None:
    """TXN-INIT-05: also where the request names a producer of somebody else's."""
    first, second = node.producer("a"), node.producer("b")
    assert first.init() == second.init((first.id, 9)) == E.NONE
    assert (first.epoch, second.epoch) == (0, 0)
    assert first.id != second.id
    assert node.states("a") == node.states("b") == ["Empty"]


def test_epochs_of_a_known_id(node: Coordinating) -> None:
    """TXN-INIT-06, TXN-INIT-07, TXN-INIT-08, TXN-INIT-09, TXN-INIT-10."""
    producer = node.producer()
    for epoch in range(3):
        assert producer.init() == E.NONE
        assert producer.epoch == epoch
    assert producer.init((producer.id, 1)) == FENCED, "a plain start forgets the epoch before it"
    assert producer.init((producer.id, 2)) == E.NONE
    assert producer.epoch == 3
    assert producer.init((producer.id, 2)) == E.NONE
    assert producer.epoch == 3, "a retry raises nothing"
    for other in (0, 1, 4, 32_766):
        assert producer.init((producer.id, other)) == FENCED
    assert producer.init((producer.id + 1, 3)) == FENCED
    again = node.restarted().producer()
    assert again.init((producer.id, 2)) == FENCED, "the epoch before the last is not logged"


@pytest.mark.parametrize("expects", [True, False])
def test_exhausted_epochs_bring_a_new_producer_id(node: Coordinating, expects: bool) -> None:
    """TXN-INIT-10, TXN-INIT-11, TXN-INIT-12."""
    producer = at_epoch(node, LAST_EPOCH)
    before = producer.id
    for other in (0, LAST_EPOCH - 1, LAST_EPOCH + 1):
        assert producer.init((before, other)) == E.UNKNOWN_SERVER_ERROR
    expected = (before, LAST_EPOCH) if expects else (-1, -1)
    assert producer.init(expected) == E.NONE
    assert producer.id != before
    assert producer.epoch == 0
    after = (producer.id, 0)
    metadata = node.records("tid")[-1]
    assert metadata is not None
    assert metadata.previous_producer_id == before
    if expects:
        assert producer.init(expected) == E.NONE
        assert (producer.id, producer.epoch) == after
    assert producer.init((before, LAST_EPOCH - 1)) == FENCED


@pytest.mark.parametrize("version", range(3))
def test_an_open_transaction_is_aborted_first(markers: Markers, version: int) -> None:
    """TXN-INIT-13, TXN-INIT-14, TXN-INIT-15, TXN-INIT-16, TXN-FENCE-02, TXN-FENCE-06."""
    node = Coordinating(version=version)
    old = begun(node, version=3)
    markers.keeps_back = True
    new = node.producer()
    assert new.init() == BUSY
    assert node.states("tid")[-1] == "PrepareAbort"
    assert new.init() == BUSY, "the markers are not written"
    markers.answer()
    node.node.tick(node.now_ms, node.wall_ms)
    (marker,) = markers.markers
    aborted = (marker.producer_epoch, marker.transaction_result, marker.transaction_version)
    assert aborted == (1, False, 2 if version == 2 else 0)
    assert old.commit(version=4) == FENCED
    retry = node.producer()
    if version == 2:
        assert retry.init((old.id, old.epoch)) == E.NONE
        assert retry.epoch == 1
    else:
        assert retry.init((old.id, old.epoch)) == FENCED
    assert new.init() == E.NONE
    assert new.epoch == 2


def test_two_phase_commits_are_not_served(node: Coordinating) -> None:
    """TXN-INIT-17, TXN-INIT-18: version 6 is unstable; a logged one never times out."""
    answer = api_versions(node)
    (init,) = [each for each in answer.api_keys if each.api_key == 22]
    assert init.max_version == 5
    begun(node)
    entry = node.entry("tid")
    entry.metadata = replace(entry.metadata, timeout_ms=(1 << 31) - 1)
    node.advance(100)
    entry.metadata = replace(entry.metadata, start_ms=0)
    node.advance(2 * CLEANUP_MS)
    assert node.entry("tid").metadata.state is TransactionState.ONGOING


# -- adding ----------------------------------------------------------------------------------------


def test_partitions_join_a_transaction(node: Coordinating) -> None:
    """TXN-ADD-01, TXN-ADD-02, TXN-ADD-11."""
    producer = node.producer()
    producer.init()
    start_ms = node.wall_ms
    assert producer.add(0) == [E.NONE]
    node.advance(10)
    assert producer.add(0, 1) == [E.NONE] * 2
    assert producer.add(0, 1) == [E.NONE] * 2
    assert node.states("tid") == ["Empty", "Ongoing", "Ongoing"]
    assert node.entry("tid").metadata.start_ms == start_ms
    other = node.producer("none")
    other.init()
    assert other.add() == []
    assert node.states("none") == ["Empty", "Ongoing"]


def test_one_bad_partition_fails_all(node: Coordinating) -> None:
    """TXN-ADD-03, TXN-ADD-04, TXN-ADD-10."""
    producer = node.producer()
    producer.init()
    unknown = [E.OPERATION_NOT_ATTEMPTED, E.UNKNOWN_TOPIC_OR_PARTITION]
    assert producer.add(0, 9) == unknown
    assert producer.implicit(0, 9, verify_only=True) == unknown
    refused = [E.TOPIC_AUTHORIZATION_FAILED]
    assert producer.add(0, topic="__consumer_offsets") == refused
    assert node.states("tid") == ["Empty"]


def test_errors_of_adding_in_order(node: Coordinating, markers: Markers) -> None:
    """TXN-ADD-05: the transactional id, a change under way, the producer id, the epoch."""
    producer = begun(node)
    assert node.producer("").add(0) == [E.INVALID_REQUEST]
    assert node.producer("absent").add(0) == [E.INVALID_PRODUCER_ID_MAPPING]
    wrong = node.producer()
    wrong.id, wrong.epoch = producer.id + 1, producer.epoch + 1
    assert wrong.add(1) == [E.INVALID_PRODUCER_ID_MAPPING]
    wrong.id = producer.id
    assert wrong.add(1) == [FENCED]
    markers.keeps_back = True
    producer.commit()
    wrong.id += 1
    assert wrong.add(1) == [BUSY]


def test_brokers_add_and_verify(node: Coordinating) -> None:
    """TXN-ADD-06, TXN-ADD-07, TXN-ADD-08."""
    producer = node.producer()
    producer.init()
    for version in (4, 5):
        absent = producer.implicit(1, verify_only=True, version=version)
        assert absent == [E.TRANSACTION_ABORTABLE]
    assert node.states("tid") == ["Empty"]
    assert producer.implicit(0, topic="__consumer_offsets") == [E.NONE]
    assert producer.implicit(0, topic=STATE_TOPIC) == [E.INVALID_TOPIC_EXCEPTION]
    assert node.entry("tid").metadata.client_version == 2
    assert producer.add(1) == [E.NONE]
    assert node.entry("tid").metadata.client_version == 0


def test_a_verification_asks_for_what_is_committed(markers: Markers) -> None:
    """TXN-ADD-07: "Pending state is not checked since there is a final validation"."""
    node = Coordinating(log_flush_interval_messages="1")
    producer = begun(node, version=3)
    node.keeps_flushes_back = True
    node.send(producer.add_request(1), 3)
    assert producer.implicit(0, 1, verify_only=True) == [E.NONE, E.TRANSACTION_ABORTABLE]


def test_offsets_of_a_group_join(node: Coordinating) -> None:
    """TXN-ADD-09."""
    producer = node.producer()
    producer.init()
    assert producer.add_offsets("") == E.NONE
    added = TopicPartition("__consumer_offsets", node.node.broker.groups.partition_of(""))
    assert list(node.entry("tid").metadata.partitions) == [added]
    assert node.entry("tid").metadata.client_version == 0


# -- EndTxn ----------------------------------------------------------------------------------------


def test_the_decision_is_answered_before_the_markers(node: Coordinating, markers: Markers) -> None:
    """TXN-END-01, TXN-END-02, TXN-STATE-02, TXN-MARK-02."""
    producer = begun(node)
    markers.keeps_back = True
    assert producer.commit() == E.NONE
    assert producer.epoch == 1
    assert node.states("tid") == ["Empty", "Ongoing", "PrepareCommit"]
    assert [each.producer_epoch for each in markers.markers] == [1]
    assert producer.implicit(1) == [BUSY]
    markers.answer()
    node.node.tick(node.now_ms, node.wall_ms)
    assert node.states("tid")[-1] == "CompleteCommit"
    assert producer.implicit(1) == [E.NONE]


@pytest.mark.parametrize("commit", [True, False])
def test_the_last_epoch_is_followed_by_another_producer_id(
    node: Coordinating, markers: Markers, commit: bool
) -> None:
    """TXN-END-03, TXN-END-07, TXN-STATE-05, TXN-STATE-10, TXN-LOG-03."""
    producer = at_epoch(node, LAST_EPOCH)
    before = producer.id
    producer.implicit(0)
    assert producer.end(commit=commit) == E.NONE
    assert producer.id != before
    assert producer.epoch == 0
    (marker,) = markers.markers
    assert (marker.producer_id, marker.producer_epoch) == (before, LAST_EPOCH + 1)
    prepared, complete = node.records("tid")[-2:]
    assert prepared is not None
    assert complete is not None
    assert (prepared.producer_id, prepared.next_producer_id) == (before, producer.id)
    assert (complete.producer_id, complete.producer_epoch) == (producer.id, 0)
    assert (complete.previous_producer_id, complete.next_producer_id) == (before, -1)
    after = (producer.id, 0)
    assert producer.end(commit=commit, identity=(before, LAST_EPOCH)) == E.NONE
    assert (producer.id, producer.epoch) == after
    restarted = node.restarted().producer()
    assert restarted.end(commit=commit, identity=(before, LAST_EPOCH)) == E.NONE
    assert (restarted.id, restarted.epoch) == after


def test_ends_of_older_versions(node: Coordinating) -> None:
    """TXN-END-04, TXN-END-05, TXN-END-06."""
    producer = begun(node, version=3)
    for version in range(5):
        assert producer.commit(version=version) == E.NONE, "the first ends it, others repeat it"
        assert producer.abort(version=version) == E.INVALID_TXN_STATE
    assert producer.epoch == node.entry("tid").metadata.producer_epoch == 0
    fresh = node.producer("fresh")
    fresh.init()
    assert fresh.commit(version=4) == fresh.abort(version=4) == E.INVALID_TXN_STATE


def test_ends_of_version_5_without_a_transaction(node: Coordinating, markers: Markers) -> None:
    """TXN-END-07, TXN-END-08, TXN-END-09."""
    producer = begun(node)
    old = (producer.id, producer.epoch)
    assert producer.commit() == E.NONE
    assert producer.end(commit=True, identity=old) == E.NONE
    assert producer.epoch == 1
    assert producer.commit() == E.INVALID_TXN_STATE
    node.advance(3)
    assert producer.abort() == E.NONE
    assert producer.epoch == 2
    prepared, complete = node.records("tid")[-2:]
    assert prepared is not None
    assert complete is not None
    assert (prepared.state.value, prepared.start_ms) == ("PrepareAbort", node.wall_ms)
    assert complete.state.value == "CompleteAbort"
    assert len(markers.requests) == 1, "an abort of nothing needs no marker"


def test_ends_of_others(node: Coordinating) -> None:
    """TXN-END-10."""
    producer = begun(node)
    for version in (4, 5):
        for epoch in (producer.epoch - 1, producer.epoch + 1):
            assert producer.end(version=version, identity=(producer.id, epoch)) == FENCED
        stranger = (producer.id + 1, producer.epoch)
        mapping = E.INVALID_PRODUCER_ID_MAPPING
        assert producer.end(version=version, identity=stranger) == mapping
        assert node.producer("absent").end(version=version, identity=stranger) == mapping
        assert node.producer("").end(version=version, identity=stranger) == E.INVALID_REQUEST


def test_a_change_under_way_and_the_identity(node: Coordinating, markers: Markers) -> None:
    """TXN-END-11."""
    producer = begun(node)
    markers.keeps_back = True
    producer.commit()
    wrong = (producer.id + 1, 0)
    assert producer.end(version=5, identity=wrong) == BUSY
    assert producer.end(version=4, identity=wrong) == E.INVALID_PRODUCER_ID_MAPPING
    fenced = (producer.id, producer.epoch - 1)
    assert producer.end(version=5, identity=fenced) == BUSY
    assert producer.end(version=4, identity=fenced) == FENCED, "as endTransactionWithTV1 has it"


def test_ends_after_the_timeout(node: Coordinating) -> None:
    """TXN-END-13, TXN-STATE-06."""
    new, old = begun(node, "new"), begun(node, "old", version=3)
    node.advance(TIMEOUT_MS + CLEANUP_MS + 1)
    assert node.states("new")[-2:] == node.states("old")[-2:] == ["PrepareAbort", "CompleteAbort"]
    assert new.commit() == E.INVALID_TXN_STATE
    assert new.abort() == E.NONE
    assert new.epoch == 1
    assert old.commit(version=4) == old.abort(version=4) == FENCED


def test_a_transaction_that_a_new_coordinator_loads_ends_after_its_timeout(
    node: Coordinating,
) -> None:
    """TXN-END-13: its producer may have died with the coordinator before."""
    begun(node)
    again = node.restarted()
    assert again.states("tid")[-1] == "Ongoing"
    again.advance(TIMEOUT_MS + CLEANUP_MS + 1)
    assert again.states("tid")[-2:] == ["PrepareAbort", "CompleteAbort"]


def test_a_transaction_ends_by_the_rules_of_its_client(
    node: Coordinating, markers: Markers
) -> None:
    """TXN-END-03: 4.3.1 asks clientTransactionVersion for the reserved id, not the cluster."""
    producer = at_epoch(node, LAST_EPOCH)
    before = producer.id
    producer.implicit(0)
    markers.keeps_back = True
    assert producer.commit() == E.NONE
    node.finalize(1)
    markers.answer()
    node.node.tick(node.now_ms, node.wall_ms)
    complete = node.records("tid")[-1]
    assert complete is not None
    assert (complete.state.value, complete.previous_producer_id) == ("CompleteCommit", before)
    assert (complete.producer_id, complete.producer_epoch) == (producer.id, 0)


# -- the state machine -----------------------------------------------------------------------------

# Successions, without the tombstone.
MAY_FOLLOW: Final = {
    "Empty": {"Empty", "CompleteCommit", "CompleteAbort"},
    "Ongoing": {"Ongoing", "Empty", "CompleteCommit", "CompleteAbort"},
    "PrepareCommit": {"Ongoing"},
    "PrepareAbort": {"Ongoing", "Empty", "CompleteCommit", "CompleteAbort"},
    "CompleteCommit": {"PrepareCommit"},
    "CompleteAbort": {"PrepareAbort"},
    "Dead": set(),
    "PrepareEpochFence": set(),
}


def test_states_and_their_successions() -> None:
    """TXN-STATE-01: with the numbers of the log."""
    assert [state.value for state in TransactionState] == list(MAY_FOLLOW)
    found: dict[str, set[str]] = {name: set() for name in MAY_FOLLOW}
    for state, events in TRANSITIONS.items():
        for row in events.values():
            found[row.to.value].add(state.value)
    assert found == MAY_FOLLOW
    assert [state.log_id for state in TransactionState] == list(range(8))


def test_only_an_end_or_a_fence_raises_the_epoch_within_a_transaction() -> None:
    """TXN-FENCE-03, TXN-STATE-01: with level 2 every way out of Ongoing raises it."""
    for event in TransactionEvent:
        row = TRANSITIONS[TransactionState.ONGOING].get(event)
        if row is not None:
            is_open = row.to is TransactionState.ONGOING
            assert row.epoch is (EpochRule.SAME if is_open else EpochRule.RAISE)


def test_memory_follows_the_committed_record(markers: Markers) -> None:
    """TXN-STATE-03: a record that only this broker has changes nothing yet."""
    node = Coordinating(log_flush_interval_messages="1")
    producer = begun(node)
    before = node.entry("tid").metadata
    node.keeps_flushes_back = True
    request = producer.add_request(1)
    reply = node.send(request, 3)
    assert reply.response is None
    assert node.entry("tid").metadata == before
    assert begin_again(node) == BUSY
    node.flush()
    node.settle()
    assert reply.response is not None
    assert len(node.entry("tid").metadata.partitions) == 2


def begin_again(node: Coordinating) -> E:
    """Initialize the id on another connection."""
    return Producer(node, "tid", connection=5).init()


def test_the_timeout_in_force_is_that_of_the_last_initialization(node: Coordinating) -> None:
    """TXN-STATE-09."""
    producer = node.producer()
    producer.init(timeout_ms=1_000)
    producer.init(timeout_ms=100_000)
    producer.implicit(0)
    node.advance(100_000 - CLEANUP_MS)
    assert node.entry("tid").metadata.state is TransactionState.ONGOING
    node.advance(2 * CLEANUP_MS + 1)
    assert node.entry("tid").metadata.state is TransactionState.COMPLETE_ABORT


def test_idle_ids_are_forgotten(markers: Markers) -> None:
    """TXN-STATE-07, TXN-STATE-08, TXN-LOG-05: tombstones may share a batch."""
    node = Coordinating(
        transactional_id_expiration_ms="50000",
        transaction_remove_expired_transaction_cleanup_interval_ms="1000",
        transaction_state_log_num_partitions="1",
    )
    done, fresh, open_ = begun(node, "done"), node.producer("fresh"), node.producer("open")
    done.commit()
    fresh.init()
    open_.init(timeout_ms=900_000)
    open_.implicit(0)
    former = fresh.id
    batches = len(list(node.batches()))
    node.advance(49_000)
    assert node.states("fresh") == ["Empty"]
    node.advance(3_000)
    assert node.states("done")[-1] == node.states("fresh")[-1] == "-"
    assert len(list(node.batches())) == batches + 1
    assert node.states("open")[-1] == "Ongoing"
    assert done.commit() == fresh.abort() == E.INVALID_PRODUCER_ID_MAPPING
    assert fresh.add(0) == [E.INVALID_PRODUCER_ID_MAPPING]
    assert fresh.init() == E.NONE
    assert fresh.epoch == 0
    assert fresh.id != former


def test_an_id_that_changes_is_not_forgotten_meanwhile(markers: Markers) -> None:
    """TXN-STATE-07: the record of the change is not on the disk yet."""
    node = Coordinating(
        transactional_id_expiration_ms="50000",
        transaction_remove_expired_transaction_cleanup_interval_ms="1000",
        log_flush_interval_messages="1",
    )
    producer = node.producer("tid")
    producer.init()
    node.advance(49_000)
    node.keeps_flushes_back = True
    request = InitProducerIdRequest(transactional_id="tid", transaction_timeout_ms=TIMEOUT_MS)
    reply = node.send(request, 5)
    node.advance(3_000)
    node.keeps_flushes_back = False
    node.flush()
    node.settle()
    assert reply.error == E.NONE
    assert node.states("tid") == ["Empty", "Empty"]


# -- fencing ---------------------------------------------------------------------------------------


def test_a_new_instance_fences_the_older_one(node: Coordinating) -> None:
    """TXN-FENCE-01: at the coordinator."""
    old, new = begun(node), node.producer()
    assert new.init() == BUSY
    assert new.init() == E.NONE
    assert new.epoch > old.epoch
    assert old.implicit(1) == old.add(1) == [FENCED]
    assert old.add_offsets("g") == old.commit() == FENCED


def test_a_fence_at_the_last_epoch_changes_the_producer_id(node: Coordinating) -> None:
    """TXN-FENCE-05."""
    old = at_epoch(node, LAST_EPOCH)
    old.implicit(0)
    new = node.producer()
    assert new.init() == BUSY
    prepared, complete = node.records("tid")[-2:]
    assert prepared is not None
    assert complete is not None
    assert (prepared.producer_id, prepared.producer_epoch) == (old.id, LAST_EPOCH + 1)
    assert complete.producer_id == prepared.next_producer_id != old.id
    assert complete.producer_epoch == 0
    assert new.init((old.id, LAST_EPOCH)) == E.NONE
    assert (new.id, new.epoch) == (complete.producer_id, 0)


# -- markers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.NOT_LEADER_OR_FOLLOWER,
        E.REQUEST_TIMED_OUT,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        E.KAFKA_STORAGE_ERROR,
        E.CORRUPT_MESSAGE,
        E.UNKNOWN_SERVER_ERROR,
    ],
)
def test_a_refused_marker_is_sent_again_after_a_pause(
    node: Coordinating, markers: Markers, error: E
) -> None:
    """TXN-MARK-10: the others of the request are done; 4.3.1 stops at the last two."""
    producer = begun(node)
    producer.implicit(1)
    refused = TopicPartition(TOPIC, 1)
    markers.errors = [{refused: error}] * 3
    producer.commit()
    assert markers.partitions() == [[TopicPartition(TOPIC, 0), refused]]
    node.advance(19)
    assert len(markers.requests) == 1
    node.advance(1)
    assert len(markers.requests) == 2
    node.advance(40 + 80)
    assert markers.partitions()[1:] == [[refused]] * 3
    assert node.states("tid")[-1] == "CompleteCommit"


@pytest.mark.parametrize("error", [E.INVALID_PRODUCER_EPOCH, E.TRANSACTION_COORDINATOR_FENCED])
def test_a_fenced_marker_ends_the_sending(node: Coordinating, markers: Markers, error: E) -> None:
    """TXN-MARK-11: the transaction is completed; 4.3.1 leaves it in Prepare."""
    producer = begun(node)
    markers.errors = [{TopicPartition(TOPIC, 0): error}]
    producer.commit()
    node.advance(5_000)
    assert len(markers.requests) == 1
    assert node.states("tid")[-1] == "CompleteCommit"
    assert ("transaction_marker_given_up", "tid") in [
        (name, fields.get("transactional_id")) for name, fields in node.lines
    ]


def test_a_missing_result_counts_as_a_refusal(node: Coordinating, markers: Markers) -> None:
    """TXN-MARK-10."""
    producer = begun(node)
    markers.left_out = [TopicPartition(TOPIC, 0)]
    producer.abort()
    node.advance(100)
    assert len(markers.requests) == 2
    assert node.states("tid")[-1] == "CompleteAbort"


def test_a_deleted_topic_needs_no_marker(node: Coordinating, markers: Markers) -> None:
    """TXN-MARK-12, TXN-STATE-04."""
    producer = begun(node)
    markers.errors = [{TopicPartition(TOPIC, 0): E.NOT_LEADER_OR_FOLLOWER}]
    markers.keeps_back = True
    producer.commit()
    wanted = DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)], timeout_ms=1)
    assert node.send(wanted, 6, connection=3).response.responses[0].error_code == 0
    markers.answer()
    node.node.tick(node.now_ms, node.wall_ms)
    node.advance(100)
    assert len(markers.requests) == 1
    assert node.states("tid")[-1] == "CompleteCommit"


def test_one_request_has_the_markers_of_all_transactions(
    node: Coordinating, markers: Markers
) -> None:
    """TXN-MARK-13: while one request is under way, the others wait together."""
    producers = [begun(node, name) for name in ("a", "b", "c")]
    markers.keeps_back = True
    for producer in producers:
        assert producer.commit() == E.NONE
    assert [len(request) for request in markers.requests] == [1]
    markers.answer()
    node.node.tick(node.now_ms, node.wall_ms)
    assert [len(request) for request in markers.requests] == [1, 2]
    assert markers.requests[1][0].coordinator_epoch == 0


# -- the log ---------------------------------------------------------------------------------------


def test_bytes_of_records(markers: Markers) -> None:
    """TXN-LOG-02, TXN-LOG-03, TXN-LOG-04: as 4.3.1 was seen to write them."""
    node = Coordinating(version=1)
    producer = node.producer("a")
    producer.init()
    ((key, value),) = node.raw_records("a")
    pid, now = producer.id.to_bytes(8, "big").hex(), node.wall_ms.to_bytes(8, "big").hex()
    assert key.hex() == "0000000161"
    assert value is not None
    assert value.hex() == f"0001{pid}00000000ea600000{now}ffffffffffffffff010008{pid}"
    node = Coordinating(version=0)
    producer = node.producer("a")
    producer.init()
    ((_, value),) = node.raw_records("a")
    assert value is not None
    pid = producer.id.to_bytes(8, "big").hex()
    assert value.hex() == f"0000{pid}00000000ea6000ffffffff{now}ffffffffffffffff"


def test_partitions_are_null_in_empty_and_empty_when_complete(node: Coordinating) -> None:
    """TXN-LOG-04."""
    begun(node).commit()
    value = [value for _, value in node.raw_records("tid")]
    assert value[0] is not None
    assert value[-1] is not None
    at = 2 + 8 + 2 + 4 + 1
    assert value[0][at] == 0
    assert value[-1][at] == 1


def test_a_batch_holds_one_record_of_no_producer(node: Coordinating) -> None:
    """TXN-LOG-05."""
    begun(node).commit()
    for batch in node.batches():
        assert batch.records_count == 1
        assert batch.producer_id == -1
        assert not batch.is_transactional


def test_the_coordinator_s_epoch_is_that_of_the_election(
    node: Coordinating, markers: Markers
) -> None:
    """TXN-LOG-06: a restart begins a new one."""
    begun(node, "a").commit()
    again = node.restarted()
    begun(again, "b").commit()
    first, second = (each.coordinator_epoch for each in markers.markers)
    assert first < second


def test_loaded_decisions_are_carried_out(node: Coordinating, markers: Markers) -> None:
    """TXN-LOG-07, TXN-LOG-08: markers again, to all partitions."""
    producer = begun(node)
    producer.implicit(1)
    markers.left_out = [TopicPartition(TOPIC, 1)]
    markers.errors = [{}]
    producer.commit()
    assert node.states("tid")[-1] == "PrepareCommit"
    again = node.restarted()
    both = [TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)]
    assert markers.partitions() == [both, both]
    assert again.states("tid")[-1] == "CompleteCommit"
    assert markers.markers[0].producer_epoch == markers.markers[1].producer_epoch == 1


def test_everything_is_found_again(node: Coordinating) -> None:
    """TXN-LOG-07."""
    open_, done = begun(node, "open"), begun(node, "done")
    done.commit()
    before = {name: node.entry(name).metadata for name in ("open", "done")}
    again = node.restarted()
    for name, metadata in before.items():
        found = again.entry(name).metadata
        assert (found.state, found.partitions) == (metadata.state, metadata.partitions)
        assert (found.producer_id, found.producer_epoch) == (
            metadata.producer_id,
            metadata.producer_epoch,
        )
    open_.door = again
    assert open_.commit() == E.NONE


# What a load finds between the records of "a" and "c".
ODD_RECORDS: Final = {
    "key of version 1": (b"\x00\x01\x00\x01x", b"\x00\x00"),
    "value of version 9": (b"\x00\x00\x00\x01x", b"\x00\x09junk"),
    "malformed": (b"\x00\x00\x00\x01x", b"\x00\x01junk"),
    "malformed key": (b"\x00\x00\x00\x09x", b"\x00\x01junk"),
    "record without key": (None, b"junk"),
}


@pytest.mark.parametrize("reason", ODD_RECORDS)
def test_what_cannot_be_read_hides_nothing_behind_it(reason: str) -> None:
    """TXN-LOG-09, TXN-LOG-10: 4.3.1 serves what it has read before a broken record."""
    found = replayed(ODD_RECORDS[reason])
    assert found == ["a", "c"]


def test_an_id_whose_newest_record_is_broken_has_no_older_state() -> None:
    """TXN-LOG-09: a producer id that was replaced could be given out again."""
    assert replayed((b"\x00\x00\x00\x01a", b"\x00\x01junk")) == ["c"]


@pytest.mark.parametrize("status", [6, 7, 8, 0x7F, 0xFF])
def test_an_id_in_a_state_that_no_release_logs_has_no_older_state(status: int) -> None:
    """`TransactionState.fromId` of 4.3.1 knows 0 to 7, and 6 and 7 are not logged."""
    head = "0001" + "00" * 8 + "0000" + "0000ea60"
    value = bytes.fromhex(head + f"{status:02x}" + "00" + "00" * 16 + "00")
    assert replayed((b"\x00\x00\x00\x01a", value)) == ["c"]


def test_a_damaged_batch_in_the_log_hides_no_other() -> None:
    """4.3.1 ends its load there; a message of an old format is read as any other."""
    value = bytes.fromhex("0001" + "00" * 8 + "0000" + "0000ea60" + "00" + "00" + "00" * 16 + "00")
    ids: dict[str, object] = {}
    replay = Replay(ids)  # type: ignore[arg-type]  # filled with entries
    damaged = bytearray(build_batch([Record(b"\x00\x00\x00\x01a", value)]))
    damaged[61] = 0x7F  # the record says that it is longer than the batch
    replay.batch(RecordBatch(memoryview(damaged)))
    assert (ids, replay.ignored) == ({}, {"batch that cannot be read": 1})
    old = old_message(0, 1, 0, b"\x00\x00\x00\x01b", value)
    replay.batch(LegacyBatch(memoryview(old)))
    assert list(ids) == ["b"]


def replayed(odd: tuple[bytes | None, bytes]) -> list[str]:
    value = bytes.fromhex("0001" + "00" * 8 + "0000" + "0000ea60" + "00" + "00" + "00" * 16 + "00")
    ids: dict[str, object] = {}
    replay = Replay(ids)  # type: ignore[arg-type]  # filled with entries
    records = [
        Record(b"\x00\x00\x00\x01a", value),
        Record(*odd),
        Record(b"\x00\x00\x00\x01c", value),
    ]
    for record in records:
        replay.batch(RecordBatch(memoryview(build_batch([record]))))
    assert sum(replay.ignored.values()) == 1, replay.ignored
    return list(ids)


def test_a_control_batch_in_the_log_is_skipped() -> None:
    """TXN-LOG-10: 4.3.1 ends its load there."""
    batch = build_batch([Record(b"\x00\x00\x00\x01", b"")], is_control=True, producer_id=1)
    replay = Replay({})
    replay.batch(RecordBatch(memoryview(batch)))
    assert replay.ignored == {"control batch": 1}


# -- administration --------------------------------------------------------------------------------


def test_listing_and_describing(node: Coordinating) -> None:
    """TXN-ADMIN-01, TXN-ADMIN-02."""
    producer = begun(node)
    node.producer("empty").init()
    listed = node.listed(state_filters=["Ongoing", "None"])
    assert listed.unknown_state_filters == ["None"]
    assert [each.transactional_id for each in listed.transaction_states] == ["tid"]
    assert node.listed(transactional_id_pattern="[").error_code == E.INVALID_REGULAR_EXPRESSION
    described = node.describe("tid")
    assert (described.producer_id, described.producer_epoch) == (producer.id, producer.epoch)
    assert [(each.topic, each.partitions) for each in described.topics] == [(TOPIC, [0])]
    assert described.transaction_timeout_ms == TIMEOUT_MS


def test_every_pair_of_state_and_event_is_decided_by_the_table() -> None:
    """TXN-STATE-01: 15 pairs lead somewhere; any other is an error of ours."""
    pairs = [
        (state, event)
        for state, event in product(TransactionState, TransactionEvent)
        if event in TRANSITIONS[state]
    ]
    assert len(pairs) == 15
