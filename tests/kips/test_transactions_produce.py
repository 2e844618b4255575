"""Produce of transactional batches (KIP-98, KIP-890); ids are those of docs/KIPS.md."""

import pytest

from kraft_wire.broker.context import NO_REPLY
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.replication.leading import TOPIC, batch
from tests.broker.small_broker import broker_image, partition_image
from tests.broker.transactional import (
    PRODUCER,
    TRANSACTIONAL_ID,
    Transactional,
    errors_of,
    produced,
)

NEWER = {"producer_id": PRODUCER, "producer_epoch": 0, "is_transactional": True}


@pytest.fixture
def broker() -> Transactional:
    return Transactional()


def transactional(sequence: int = 0, *, producer_id: int = PRODUCER, epoch: int = 0) -> bytearray:
    return batch(
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )


def test_batches_without_transactional_id_refuse_every_partition(broker: Transactional) -> None:
    """TXN-PROD-01: also those with plain batches, and unknown partitions."""
    refused = E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    sent = broker.send_batches({0: transactional(), 1: batch(), 9: batch()}, transactional_id=None)
    assert errors_of(sent) == [refused] * 3
    assert [each.base_offset for each in produced(sent)] == [-1] * 3
    assert errors_of(broker.send_batches({0: transactional()}, transactional_id=None)) == [refused]
    assert [broker.partition(number).log_end_offset for number in (0, 1)] == [0, 0]


def test_a_request_of_two_producers_is_refused_for_all(broker: Transactional) -> None:
    """TXN-PROD-02: one producer id with two epochs as well; the message says why."""
    for other in (transactional(producer_id=11), transactional(epoch=1)):
        sent = broker.send_batches({0: transactional(), 1: other})
        assert errors_of(sent) == [E.INVALID_PRODUCER_ID_MAPPING] * 2
        assert {each.error_message for each in produced(sent)} == {
            "Transactional records contained more than one producer ID"
        }
    assert broker.partition().log_end_offset == 0


def test_the_producer_of_a_partition_that_does_not_exist_does_not_count(
    broker: Transactional,
) -> None:
    """`ReplicaManager.handleProduceAppend` of 4.3.1 gets existing partitions only."""
    sent = broker.send_batches({0: transactional(), 9: transactional(producer_id=11)})
    (question,) = broker.questions()
    broker.respond([question])
    assert errors_of(sent) == [E.NONE, E.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize(
    ("version", "is_verify_only"), [(3, True), (11, True), (12, False), (13, False)]
)
def test_the_first_batch_waits_for_the_coordinator(
    broker: Transactional, version: int, is_verify_only: bool
) -> None:
    """TXN-PROD-03 (to version 11), TXN-PROD-04 (from version 12 on)."""
    sent = broker.send(0, 1, version=version)
    assert sent.is_parked
    assert broker.partition().log_end_offset == 0
    (question,) = broker.questions()
    assert question.verify_only is is_verify_only
    assert (question.transactional_id, question.producer_id, question.producer_epoch) == (
        TRANSACTIONAL_ID,
        PRODUCER,
        0,
    )
    assert [(each.name, each.partitions) for each in question.topics] == [("t", [0, 1])]
    broker.respond([question])
    assert errors_of(sent) == [E.NONE, E.NONE]
    assert [each.base_offset for each in produced(sent)] == [0, 0]


def test_an_open_transaction_asks_no_more(broker: Transactional) -> None:
    """TXN-PROD-05: nothing is asked, whatever the transactional id says; a new epoch asks again."""
    broker.begin()
    assert errors_of(broker.send(sequence=1, transactional_id="another")) == [E.NONE]
    assert errors_of(broker.send(sequence=2, version=11)) == [E.NONE]
    assert broker.questions() == []
    broker.mark(epoch=1, transaction_version=2)
    assert broker.send(epoch=1).is_parked
    assert len(broker.questions()) == 1


@pytest.mark.parametrize(
    ("version", "error", "message"),
    [
        (10, E.INVALID_TXN_STATE, "Partition was not added to the transaction"),
        (11, E.TRANSACTION_ABORTABLE, None),
        (12, E.TRANSACTION_ABORTABLE, None),
    ],
)
def test_what_is_not_confirmed_is_not_appended(
    broker: Transactional, version: int, error: E, message: str | None
) -> None:
    """TXN-PROD-06, TXN-FEAT-08, TXN-PROD-16: the other partition is served."""
    sent = broker.send(0, 1, version=version)
    broker.answer(by_partition={0: E.TRANSACTION_ABORTABLE})
    assert errors_of(sent) == [error, E.NONE]
    assert produced(sent)[0].error_message == message
    assert [broker.partition(number).log_end_offset for number in (0, 1)] == [0, 1]


@pytest.mark.parametrize(
    "error",
    [E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR],
)
def test_an_absent_coordinator_is_what_old_clients_retry(broker: Transactional, error: E) -> None:
    """TXN-PROD-07."""
    sent = broker.send()
    broker.answer(error)
    assert errors_of(sent) == [E.NOT_ENOUGH_REPLICAS]
    assert error.name in (produced(sent)[0].error_message or "")


def test_a_response_that_lacks_a_partition_is_retried(broker: Transactional) -> None:
    """TXN-PROD-07: nothing is known of it; 4.3.1 takes it as verified."""
    sent = broker.send()
    assert len(broker.questions()) == 1
    broker.respond([])
    assert errors_of(sent) == [E.NOT_ENOUGH_REPLICAS]
    assert broker.partition().log_end_offset == 0


def test_a_coordinator_that_cannot_be_reached_is_retried(broker: Transactional) -> None:
    """TXN-PROD-07: no connection, no leader, a dead leader, no state topic."""
    sent = broker.send()
    assert len(broker.questions()) == 1
    broker.requests.failed(broker.now_ms, 0)
    assert errors_of(sent) == [E.NOT_ENOUGH_REPLICAS]
    broker.brokers[2] = broker_image(2, fenced=True)
    broker.publish()
    assert errors_of(broker.send()) == [E.NOT_ENOUGH_REPLICAS]
    del broker.brokers[2]
    broker.publish()
    assert errors_of(broker.send(sequence=0)) == [E.NOT_ENOUGH_REPLICAS]
    assert broker.partition().log_end_offset == 0


def test_a_completing_transaction_is_asked_again_for_newer_clients(broker: Transactional) -> None:
    """TXN-PROD-08: every 20 ms, for 100 ms in all; then the client is told."""
    sent = broker.send()
    for _ in range(5):
        broker.answer(E.CONCURRENT_TRANSACTIONS)
        assert sent.is_parked
        assert broker.broker.transaction_verifier.deadline_ms() == broker.now_ms + 20
        broker.pass_time(19)
        assert broker.questions() == []
        broker.pass_time(1)
    broker.answer(E.CONCURRENT_TRANSACTIONS)
    assert errors_of(sent) == [E.CONCURRENT_TRANSACTIONS]
    assert broker.broker.transaction_verifier.deadline_ms() is None
    again = broker.send()
    broker.answer(E.CONCURRENT_TRANSACTIONS)
    broker.pass_time(20)
    broker.answer()
    assert errors_of(again) == [E.NONE]


def test_a_completing_transaction_is_not_enough_replicas_for_older_clients(
    broker: Transactional,
) -> None:
    """TXN-PROD-08: at once."""
    sent = broker.send(version=11)
    broker.answer(E.CONCURRENT_TRANSACTIONS)
    assert errors_of(sent) == [E.NOT_ENOUGH_REPLICAS]


def test_a_fenced_producer_is_told_its_epoch_is_invalid(broker: Transactional) -> None:
    """TXN-PROD-09, TXN-FENCE-07: also on a partition that it never wrote to."""
    sent = broker.send()
    broker.answer(E.PRODUCER_FENCED)
    assert errors_of(sent) == [E.INVALID_PRODUCER_EPOCH]


@pytest.mark.parametrize(
    "error",
    [E.INVALID_PRODUCER_ID_MAPPING, E.UNKNOWN_TOPIC_OR_PARTITION, E.OPERATION_NOT_ATTEMPTED],
)
def test_other_errors_of_the_coordinator_are_sent_on(broker: Transactional, error: E) -> None:
    sent = broker.send()
    broker.answer(error)
    assert errors_of(sent) == [error]


def test_an_error_of_a_later_release_is_an_unexpected_error(broker: Transactional) -> None:
    """As `Errors.forCode`: nothing is appended."""
    sent = [broker.send()]
    broker.answer(4_711)
    sent.append(broker.send())
    broker.answer(top_level=4_711)
    assert [errors_of(each) for each in sent] == [[E.UNKNOWN_SERVER_ERROR]] * 2
    assert broker.partition().log_end_offset == 0


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (E.CLUSTER_AUTHORIZATION_FAILED, E.INVALID_TXN_STATE),
        (E.UNSUPPORTED_VERSION, E.NOT_ENOUGH_REPLICAS),
        (E.NOT_COORDINATOR, E.NOT_ENOUGH_REPLICAS),
    ],
)
def test_a_refused_request_refuses_each_question(
    broker: Transactional, error: E, expected: E
) -> None:
    """TXN-PROD-07: a coordinator without version 4 verifies nothing; 4.3.1 appends unverified."""
    sent = broker.send()
    broker.answer(top_level=error)
    assert errors_of(sent) == [expected]
    assert broker.partition().log_end_offset == 0


def test_an_epoch_below_the_partition_s_is_refused_before_any_question(
    broker: Transactional,
) -> None:
    """TXN-PROD-10, TXN-FENCE-01, TXN-MARK-06: a marker of an unknown producer sets the epoch."""
    broker.mark(epoch=3, is_commit=False)
    refused = broker.send(epoch=2)
    assert errors_of(refused) == [E.INVALID_PRODUCER_EPOCH]
    assert broker.questions() == []
    assert [each.log_start_offset for each in produced(refused)] == [-1], "as 4.3.1: no append"


def test_a_marker_voids_the_answer_to_an_earlier_question(broker: Transactional) -> None:
    """TXN-PROD-11: the transaction is over when the answer arrives (ABA)."""
    first = broker.send(version=11)
    question = broker.questions()
    broker.mark(is_commit=False)
    assert broker.send(version=11).is_parked, "the next transaction asks under a new guard"
    broker.respond(question)
    assert errors_of(first) == [E.INVALID_TXN_STATE]
    assert broker.partition().log_end_offset == 1, "the marker"


def test_a_marker_of_version_2_leaves_the_next_transaction_its_question(
    broker: Transactional,
) -> None:
    """TXN-PROD-11: the marker's epoch is that of the next transaction."""
    broker.begin()
    sent = broker.send(epoch=1)
    question = broker.questions()
    broker.mark(epoch=1, transaction_version=2)
    broker.respond(question)
    assert errors_of(sent) == [E.NONE]
    broker.mark(epoch=2, transaction_version=2)
    late = broker.send(epoch=2)
    question = broker.questions()
    broker.mark(epoch=3, transaction_version=2)
    broker.respond(question)
    assert errors_of(late) == [E.INVALID_PRODUCER_EPOCH]


def test_a_batch_overtakes_none_whose_verification_failed(broker: Transactional) -> None:
    """TXN-PROD-12: not above the lowest sequence that was refused."""
    first = broker.send(version=11, sequence=5)
    broker.answer(E.NOT_COORDINATOR)
    assert errors_of(first) == [E.NOT_ENOUGH_REPLICAS]
    second = broker.send(version=11, sequence=6)
    broker.answer()
    assert errors_of(second) == [E.OUT_OF_ORDER_SEQUENCE_NUMBER]
    again = broker.send(version=11, sequence=5)
    broker.answer()
    assert errors_of(again) == [E.NONE]
    assert errors_of(broker.send(version=11, sequence=6)) == [E.NONE]


def test_a_plain_batch_overtakes_none_either(broker: Transactional) -> None:
    """TXN-PROD-12: as 4.3.1 was seen to answer; other producers are not concerned."""
    broker.send(version=11, sequence=5)
    broker.answer(E.NOT_COORDINATOR)
    plain = {"is_transactional": False, "transactional_id": None}
    assert errors_of(broker.send(sequence=6, **plain)) == [E.OUT_OF_ORDER_SEQUENCE_NUMBER]
    assert errors_of(broker.send(sequence=6, producer_id=11, **plain)) == [E.NONE]
    assert errors_of(broker.send(sequence=5, **plain)) == [E.NONE]


def test_a_newer_epoch_begins_its_own_order(broker: Transactional) -> None:
    """TXN-PROD-12: the lowest sequence is one epoch's."""
    broker.send(version=11, sequence=0)
    broker.answer(E.NOT_COORDINATOR)
    sent = broker.send(version=11, sequence=7, epoch=1)
    broker.answer()
    assert errors_of(sent) == [E.NONE]


@pytest.mark.parametrize(("version", "error"), [(11, E.NONE), (12, E.OUT_OF_ORDER_SEQUENCE_NUMBER)])
def test_an_unknown_producer_of_version_2_begins_at_sequence_0(
    broker: Transactional, version: int, error: E
) -> None:
    """TXN-PROD-13."""
    sent = broker.send(version=version, sequence=3)
    broker.answer()
    assert errors_of(sent) == [error]


def test_a_duplicate_gets_the_first_copy_s_offset(broker: Transactional) -> None:
    """TXN-PROD-14: in an open transaction, and after its end behind a verification."""
    broker.begin()
    broker.send(sequence=1)
    assert [each.base_offset for each in produced(broker.send(sequence=0))] == [0]
    broker.mark()
    again = broker.send(sequence=1, version=11)
    broker.answer()
    assert [each.base_offset for each in produced(again)] == [1]
    assert broker.partition().log_end_offset == 3
    after = broker.send(sequence=2, version=11)
    broker.answer()
    assert errors_of(after) == [E.OUT_OF_ORDER_SEQUENCE_NUMBER], "as 4.3.1: the guard stays"


@pytest.mark.parametrize("transactional_id", [None, TRANSACTIONAL_ID])
def test_a_plain_batch_inside_a_transaction_is_refused(
    broker: Transactional, transactional_id: str | None
) -> None:
    """TXN-PROD-15: of the same epoch and of a newer one; after the transaction it is served."""
    broker.begin()
    plain = {"is_transactional": False, "transactional_id": transactional_id}
    assert errors_of(broker.send(sequence=1, **plain)) == [E.INVALID_TXN_STATE]
    assert errors_of(broker.send(sequence=0, epoch=1, **plain)) == [E.INVALID_TXN_STATE]
    broker.mark()
    assert errors_of(broker.send(sequence=1, **plain)) == [E.NONE]


def test_plain_batches_beside_transactional_ones_are_served(broker: Transactional) -> None:
    """TXN-PROD-16: they need no verification."""
    sent = broker.send_batches({0: transactional(), 1: batch()})
    (question,) = broker.answer()
    assert [each.partitions for each in question.topics] == [[0]]
    assert errors_of(sent) == [E.NONE, E.NONE]


def test_clients_write_no_markers(broker: Transactional) -> None:
    """TXN-PROD-17."""
    control = batch(base_sequence=0, is_control=True, **NEWER)
    sent = broker.send_batches({0: control})
    broker.answer()
    assert errors_of(sent) == [E.INVALID_RECORD]


def test_internal_topics_are_refused_and_not_added(broker: Transactional) -> None:
    """TXN-PROD-18: 4.3.1 adds the partition first, which nothing can write to."""
    sent = broker.send_batches({0: transactional()}, topic="__consumer_offsets")
    assert errors_of(sent) == [E.INVALID_TOPIC_EXCEPTION]
    assert broker.broker.inter_broker_clients == []


@pytest.mark.parametrize("version", [11, 12])
def test_verification_can_be_switched_off_for_older_clients(version: int) -> None:
    """TXN-PROD-19, TXN-PROD-04: newer ones need the partition added."""
    broker = Transactional(transaction_partition_verification_enable=False)
    sent = broker.send(version=version)
    if version == 12:
        assert sent.is_parked
        broker.mark(is_commit=False)  # would void a guard
        broker.answer()
    assert errors_of(sent) == [E.NONE]


def test_no_acks_are_silence_after_the_coordinator_s_answer(broker: Transactional) -> None:
    sent = broker.send(acks=0)
    assert sent.is_parked
    broker.answer()
    assert [answer for _, answer in broker.broker.completions] == [NO_REPLY]
    assert broker.partition().log_end_offset == 1


def test_a_new_leader_epoch_asks_again(broker: Transactional) -> None:
    """TXN-PART-10: another leader may have ended the transaction since the question."""
    sent = broker.send()
    question = broker.questions()
    broker.change(leader=2, leader_epoch=1)
    broker.change(leader=1, leader_epoch=2)
    broker.respond(question)
    assert errors_of(sent) == [E.INVALID_TXN_STATE]


def test_a_verification_expires_with_the_producer_id() -> None:
    """TXN-PROD-12: 4.3.1 forgets the order after producer.id.expiration.ms."""
    broker = Transactional(producer_id_expiration_ms=1_000)
    broker.send(version=11, sequence=5)
    broker.answer(E.NOT_COORDINATOR)
    broker.pass_time(1_000)
    sent = broker.send(version=11, sequence=6)
    broker.answer()
    assert errors_of(sent) == [E.NONE]


def test_one_question_for_each_transactional_id_at_a_time(broker: Transactional) -> None:
    """TXN-ADD-12: of two that wait the newer epoch stays, of equal ones the later."""
    in_flight = broker.send(transactional_id="other", producer_id=7)
    asked = broker.questions()
    oldest, newer = broker.send(epoch=1), broker.send(epoch=2)
    assert errors_of(oldest) == [E.INVALID_PRODUCER_EPOCH]
    older = broker.send(1, epoch=0)
    assert errors_of(older) == [E.INVALID_PRODUCER_EPOCH]
    repeated = broker.send(epoch=2)
    assert errors_of(newer) == [E.NOT_ENOUGH_REPLICAS], "NETWORK_EXCEPTION"
    assert broker.questions() == [], "one request is in flight"
    broker.respond(asked)
    assert errors_of(in_flight) == [E.NONE]
    (question,) = broker.answer()
    assert (question.producer_id, question.producer_epoch) == (PRODUCER, 2)
    assert errors_of(repeated) == [E.NONE]


@pytest.mark.parametrize("order", [(0, 1, 7), (7, 1, 0)])
def test_partitions_of_others_and_unknown_ones_are_not_asked_about(order: tuple[int, ...]) -> None:
    """TXN-PROD-16: they are refused as in any request."""
    broker = Transactional(partition_image(0), partition_image(1, leader=2, replicas=(2, 1)))
    sent = broker.send(*order)
    (question,) = broker.answer()
    assert [each.partitions for each in question.topics] == [[0]]
    wanted = {0: E.NONE, 1: E.NOT_LEADER_OR_FOLLOWER, 7: E.UNKNOWN_TOPIC_OR_PARTITION}
    assert errors_of(sent) == [wanted[number] for number in order]


def test_an_offline_partition_is_not_asked_about(broker: Transactional) -> None:
    """`ReplicaManager.maybeSendPartitionsToTransactionCoordinator` finds the error first."""
    broker.broker.partitions[TOPIC, 1].offline = True
    sent = broker.send(0, 1)
    (asked,) = broker.answer()
    assert [(each.name, each.partitions) for each in asked.topics] == [(TOPIC, [0])]
    assert errors_of(sent) == [E.NONE, E.KAFKA_STORAGE_ERROR]


def test_malformed_records_beside_a_transactional_batch_are_refused_alone(
    broker: Transactional,
) -> None:
    """`ProduceRequest.validateRecords`; the coordinator is asked about the other partition."""
    old_format = bytearray(transactional())
    old_format[16] = 1
    sent = broker.send_batches({0: transactional(), 1: old_format})
    (asked,) = broker.answer()
    assert [(each.name, each.partitions) for each in asked.topics] == [(TOPIC, [0])]
    assert errors_of(sent) == [E.NONE, E.INVALID_RECORD]
    assert broker.broker.partitions[TOPIC, 1].log_end_offset == 0


def test_without_the_topic_of_coordinators_there_is_none_to_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """COORDINATOR_NOT_AVAILABLE of `AddPartitionsToTxnManager`, as old clients retry it."""
    monkeypatch.setattr("tests.broker.transactional.STATE", "another")
    broker = Transactional()
    sent = broker.send(0)
    (answered,) = produced(sent)
    assert answered.error_code == E.NOT_ENOUGH_REPLICAS
    assert answered.error_message is not None
    assert answered.error_message.endswith("Underlying error: COORDINATOR_NOT_AVAILABLE")
    assert broker.broker.partitions[TOPIC, 0].log_end_offset == 0
