"""Produce: acks, several partitions, and each error before those that come after it."""

from __future__ import annotations

import struct

import pytest

from kraft_wire.broker.context import CLOSE, NO_REPLY, Withheld
from kraft_wire.broker.handlers import produce
from kraft_wire.broker.handlers.produce import handle
from kraft_wire.model import Uuid
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.broker.replication.leading import TOPIC, Leading, batch
from tests.broker.small_broker import id_of, partition_image

UNKNOWN_ID = Uuid(b"nobody knows it.")
TRANSACTIONAL = batch(is_transactional=True, producer_id=5, producer_epoch=0, base_sequence=0)


@pytest.fixture
def leading() -> Leading:
    """Partitions 0 and 1 are led here, 2 by broker 2, of 3 there is no replica here."""
    return Leading(
        partition_image(0),
        partition_image(1),
        partition_image(2, leader=2, replicas=(2, 1), leader_epoch=4),
        partition_image(3, leader=2, replicas=(2,), leader_epoch=5),
    )


def data(index: int, records: bytes | bytearray | None = None) -> PartitionProduceData:
    content = batch() if records is None else records
    return PartitionProduceData(index=index, records=memoryview(content) if content else None)


def send(
    leading: Leading,
    *partitions: PartitionProduceData,
    version: int = 12,
    acks: int = 1,
    topic_id: Uuid | None = None,
) -> ProduceResponse | Withheld:
    topic = TopicProduceData(name=TOPIC, partition_data=list(partitions))
    if version >= 13:
        topic = TopicProduceData(topic_id=topic_id or id_of(TOPIC), partition_data=list(partitions))
    request = ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=[topic])
    return handle(leading.broker, leading.context(version), request)


def answered(response: ProduceResponse | Withheld) -> list[tuple[int, int, int]]:
    assert isinstance(response, ProduceResponse), response
    (topic,) = response.responses
    return [(each.index, each.error_code, each.base_offset) for each in topic.partition_responses]


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_appends_and_names_the_offset(leading: Leading, version: int) -> None:
    first = answered(send(leading, data(0), data(1), version=version))
    second = answered(send(leading, data(0), version=version))
    assert first == [(0, E.NONE, 0), (1, E.NONE, 0)]
    assert second == [(0, E.NONE, 1)]


def test_partition_that_is_named_twice_takes_what_came_last(leading: Leading) -> None:
    assert answered(send(leading, data(0, batch(2)), data(1), data(0, batch(3)))) == [
        (0, E.NONE, 0),
        (1, E.NONE, 0),
    ]
    assert leading.partition().log_end_offset == 3


def test_no_acks_are_silence_and_a_failure_closes_the_connection(leading: Leading) -> None:
    assert send(leading, data(0), acks=0) is NO_REPLY
    assert leading.partition().log_end_offset == 1
    assert send(leading, data(0), data(2), acks=0) is CLOSE
    assert leading.partition().log_end_offset == 2, "what could be appended was"


def test_client_at_the_wrong_broker_is_pointed_to_the_leader(leading: Leading) -> None:
    response = send(leading, data(2), data(3), version=10)
    assert isinstance(response, ProduceResponse)
    leaders = [each.current_leader for each in response.responses[0].partition_responses]
    assert [(each.leader_id, each.leader_epoch) for each in leaders if each] == [(2, 4), (2, 5)]
    assert [(each.node_id, each.host) for each in response.node_endpoints] == [(2, "host2")]
    before = send(leading, data(2), version=9)
    assert isinstance(before, ProduceResponse)
    assert before.node_endpoints == []


def test_answer_tells_a_bounded_number_of_refused_records(
    leading: Leading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of some bytes may have thousands of them, and a request thousands of batches."""
    monkeypatch.setattr(produce, "_RECORD_ERRORS_MAX", 5)
    stamped = batch(3)
    struct.pack_into(">h", stamped, 21, 8)  # append times, which only a broker sets
    struct.pack_into(">q", stamped, 35, -1)
    struct.pack_into(">I", stamped, 17, crc32c(memoryview(stamped)[21:]))
    response = send(leading, *(data(index, bytes(stamped)) for index in (0, 1)))
    assert answered(response) == [(0, E.INVALID_TIMESTAMP, -1), (1, E.INVALID_TIMESTAMP, -1)]
    assert isinstance(response, ProduceResponse)
    first, second = response.responses[0].partition_responses
    assert [each.batch_index for each in first.record_errors] == [0, 1, 2]
    assert second.record_errors == []
    assert first.error_message == second.error_message


@pytest.mark.parametrize(
    ("index", "records", "acks", "error"),
    [
        (9, b"\0" * 9, 2, E.UNKNOWN_TOPIC_OR_PARTITION),
        (3, b"\0" * 9, 2, E.NOT_LEADER_OR_FOLLOWER),
        (2, b"\0" * 9, 2, E.INVALID_RECORD),
        (2, TRANSACTIONAL, 2, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (2, None, 2, E.INVALID_REQUIRED_ACKS),
        (2, None, 1, E.NOT_LEADER_OR_FOLLOWER),
        (0, None, 1, E.NONE),
    ],
)
def test_first_error_in_kafka_s_order_is_answered(
    leading: Leading, index: int, records: bytes | bytearray | None, acks: int, error: E
) -> None:
    ((_, code, offset),) = answered(send(leading, data(index, records), acks=acks))
    assert code == error
    assert (offset >= 0) is (error == E.NONE)
    ends = [leading.partition(number).log_end_offset for number in (0, 1)]
    assert ends == [1 if error == E.NONE else 0, 0]


def test_unknown_topic_id_is_refused_before_anything_else(leading: Leading) -> None:
    response = send(leading, data(9, b"\0" * 9), version=13, acks=2, topic_id=UNKNOWN_ID)
    assert [(index, code) for index, code, _ in answered(response)] == [(9, E.UNKNOWN_TOPIC_ID)]


@pytest.mark.parametrize("index", [0, 9])
@pytest.mark.parametrize("topic_id", [None, UNKNOWN_ID])
def test_batch_without_a_size_fails_all_partitions_of_the_request(
    leading: Leading, index: int, topic_id: Uuid | None
) -> None:
    """As 4.3.1 does, before it looks whether the partitions exist."""
    corrupt = data(index, b"\0" * 61)
    response = send(leading, data(1), corrupt, version=13, topic_id=topic_id)
    assert answered(response) == [(1, E.CORRUPT_MESSAGE, -1), (index, E.CORRUPT_MESSAGE, -1)]
    alone = send(leading, corrupt, version=13, topic_id=topic_id)
    assert answered(alone) == [(index, E.CORRUPT_MESSAGE, -1)]
    assert leading.broker.partitions[TOPIC, 1].log_end_offset == 0


def test_batch_without_a_size_closes_the_connection_where_no_answer_is_wanted(
    leading: Leading,
) -> None:
    """`ProduceRequest.getErrorResponse` has none for acks 0, and so the connection is closed."""
    assert send(leading, data(1), data(0, b"\0" * 61), acks=0) is CLOSE
    assert [leading.partition(number).log_end_offset for number in (0, 1)] == [0, 0]


@pytest.mark.parametrize(
    ("index", "records"),
    [(0, TRANSACTIONAL + TRANSACTIONAL), (3, TRANSACTIONAL), (9, TRANSACTIONAL)],
)
@pytest.mark.parametrize("version", [3, 12, 13])
def test_missing_transactional_id_counts_before_everything_but_a_batch_without_a_size(
    leading: Leading, index: int, records: bytearray, version: int
) -> None:
    """`KafkaApis.handleProduceRequest` of 4.3.1 calls `hasTransactionalRecords` first."""
    refused = [(index, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1)]
    assert answered(send(leading, data(index, records), version=version, acks=2)) == refused
    assert send(leading, data(index, records), version=version, acks=0) is CLOSE
    plain = answered(send(leading, data(index, batch() + batch()), version=version))
    assert plain[0][1] != E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert leading.partition().log_end_offset == 0
