"""Fetch: several partitions in every version, and each error before those that come after it."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.handlers.fetch import handle
from kraft_wire.model import FileSlice, Uuid
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from tests.broker.replication.leading import TOPIC, Leading
from tests.broker.small_broker import id_of, partition_image

FIRST_BY_ID = 13
UNKNOWN_ID = Uuid(b"nobody knows it.")


@pytest.fixture
def leading() -> Leading:
    """Partitions 0 and 1 are led here, 2 by broker 2, of 3 there is no replica here."""
    broker = Leading(
        partition_image(0, leader_epoch=3),
        partition_image(1, leader_epoch=3),
        partition_image(2, leader=2, replicas=(2, 1), leader_epoch=3),
        partition_image(3, leader=2, replicas=(2,), leader_epoch=3),
    )
    for number in (0, 0, 1):
        broker.produce(number=number)
    return broker


def asked(index: int, offset: int = 0, epoch: int = -1) -> FetchPartition:
    return FetchPartition(
        partition=index,
        fetch_offset=offset,
        current_leader_epoch=epoch,
        partition_max_bytes=1 << 20,
    )


def ask(
    leading: Leading,
    *partitions: FetchPartition,
    version: int = 12,
    topic_id: Uuid | None = None,
    **fields: Any,
) -> FetchResponse:
    topic = FetchTopic(topic=TOPIC, partitions=list(partitions))
    if version >= FIRST_BY_ID:
        topic = FetchTopic(topic_id=topic_id or id_of(TOPIC), partitions=list(partitions))
    request = FetchRequest(max_wait_ms=0, topics=[topic], session_epoch=-1, **fields)
    response = handle(leading.broker, leading.context(version), request)
    assert isinstance(response, FetchResponse), response
    return response


def partitions(response: FetchResponse) -> list[PartitionData]:
    return response.responses[0].partitions


def size(data: PartitionData) -> int:
    records = data.records
    return records.size_bytes if isinstance(records, FileSlice) else len(records or b"")


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_returns_each_partition_s_records(leading: Leading, version: int) -> None:
    both = partitions(ask(leading, asked(0), asked(1), version=version))
    assert [each.error_code for each in both] == [E.NONE, E.NONE]
    assert [each.high_watermark for each in both] == [2, 1]
    assert size(both[0]) == 2 * size(both[1]) > 0


def test_partition_that_fails_leaves_the_others_theirs(leading: Leading) -> None:
    answers = partitions(ask(leading, asked(9), asked(0, 1), asked(1, 2)))
    shown = {each.partition_index: (each.error_code, size(each) > 0) for each in answers}
    assert shown == {
        9: (E.UNKNOWN_TOPIC_OR_PARTITION, False),
        0: (E.NONE, True),
        1: (E.OFFSET_OUT_OF_RANGE, False),
    }


def test_end_of_the_log_is_no_error_and_beyond_it_is(leading: Leading) -> None:
    codes = [partitions(ask(leading, asked(0, offset)))[0].error_code for offset in (2, 3, -1)]
    assert codes == [E.NONE, E.OFFSET_OUT_OF_RANGE, E.OFFSET_OUT_OF_RANGE]


@pytest.mark.parametrize(
    ("index", "offset", "epoch", "error"),
    [
        (9, 9, 9, E.UNKNOWN_TOPIC_OR_PARTITION),
        (3, 9, 9, E.NOT_LEADER_OR_FOLLOWER),
        (2, 9, 2, E.FENCED_LEADER_EPOCH),
        (2, 9, 4, E.UNKNOWN_LEADER_EPOCH),
        (0, 9, 2, E.FENCED_LEADER_EPOCH),
        (0, 9, 4, E.UNKNOWN_LEADER_EPOCH),
        (0, 9, 3, E.OFFSET_OUT_OF_RANGE),
        (0, 2, 3, E.NONE),
    ],
)
def test_first_error_in_kafka_s_order_is_answered(
    leading: Leading, index: int, offset: int, epoch: int, error: E
) -> None:
    (answer,) = partitions(ask(leading, asked(index, offset, epoch)))
    assert answer.error_code == error


@pytest.mark.parametrize("version", [4, 10, 11, 12])
def test_follower_s_broker_refuses_clients_that_do_not_know_of_reading_there(
    leading: Leading, version: int
) -> None:
    (answer,) = partitions(ask(leading, asked(2), version=version))
    expected = E.NOT_LEADER_OR_FOLLOWER if version < 11 else E.NONE
    assert answer.error_code == expected


def test_unknown_topic_id_is_refused_per_partition(leading: Leading) -> None:
    answers = partitions(ask(leading, asked(0), asked(9), version=13, topic_id=UNKNOWN_ID))
    assert [each.error_code for each in answers] == [E.UNKNOWN_TOPIC_ID] * 2


@pytest.mark.parametrize(("version", "topics"), [(6, 1), (12, 1), (13, 0)])
def test_isolation_level_that_does_not_exist_refuses_the_request(
    leading: Leading, version: int, topics: int
) -> None:
    response = ask(leading, asked(0), version=version, isolation_level=2, session_id=7)
    assert response.error_code == (E.NONE if version < 7 else E.UNKNOWN_SERVER_ERROR)
    assert response.session_id == 7  # FetchRequest.getErrorResponse
    assert len(response.responses) == topics
    codes = [each.error_code for topic in response.responses for each in topic.partitions]
    assert codes == [E.UNKNOWN_SERVER_ERROR] * topics


@pytest.mark.parametrize("version", [6, 12, 13])
def test_isolation_level_that_does_not_exist_fails_what_exists(
    leading: Leading, version: int
) -> None:
    """4.3.1 reads the level behind the partitions that it does not know."""
    missing = ask(leading, asked(9), version=version, isolation_level=2)
    assert missing.error_code == E.NONE
    assert [each.error_code for each in partitions(missing)] == [E.UNKNOWN_TOPIC_OR_PARTITION]
    refused = ask(leading, asked(9), asked(2), version=version, isolation_level=2)
    assert refused.error_code == (E.NONE if version < 7 else E.UNKNOWN_SERVER_ERROR)
    if version < FIRST_BY_ID:
        assert [each.error_code for each in partitions(refused)] == [E.UNKNOWN_SERVER_ERROR] * 2


@pytest.mark.parametrize("version", [15, 16])
@pytest.mark.parametrize("replica_id", [-1, 4])
def test_only_clients_are_told_the_addresses_of_leaders(
    leading: Leading, version: int, replica_id: int
) -> None:
    """KIP-951: `KafkaApis` gives followers none; they know the leaders from the metadata."""
    replica = ReplicaState(replica_id=replica_id, replica_epoch=14 if replica_id >= 0 else -1)
    answer = ask(leading, asked(0, epoch=2), version=version, replica_state=replica)
    assert partitions(answer)[0].error_code == E.FENCED_LEADER_EPOCH
    is_told = version >= 16 and replica_id < 0
    assert [each.node_id for each in answer.node_endpoints] == [1] * is_told


@pytest.mark.parametrize("offset", range(7))
@pytest.mark.parametrize("last_epoch", range(1, 5))
def test_where_a_log_begins_counts_before_where_logs_diverge(offset: int, last_epoch: int) -> None:
    """KIP-595; below the log's start there is no diverging epoch (`Partition.readRecords`).

    Epochs 1 and 3 begin at 0 and 4, and the log at 2.
    """
    leading = Leading(partition_image(0, leader_epoch=1))
    for _ in range(4):
        leading.produce()
    leading.change(0, leader_epoch=3)
    leading.produce()
    leading.delete_records(2)
    wanted = asked(0, offset)
    wanted.last_fetched_epoch = last_epoch
    (answer,) = partitions(ask(leading, wanted))
    ends = {1: (1, 4), 2: (1, 4), 3: (3, 5)}
    if offset < 2 or last_epoch > 3:
        expected: tuple[E, tuple[int, int] | None] = E.OFFSET_OUT_OF_RANGE, None
    elif ends[last_epoch][0] < last_epoch or ends[last_epoch][1] < offset:
        expected = E.NONE, ends[last_epoch]
    else:
        expected = E.NONE, None
    point = answer.diverging_epoch
    told = None if point is None or point.epoch < 0 else (point.epoch, point.end_offset)
    assert (answer.error_code, told) == expected


@pytest.mark.parametrize("bytes_max", [-1, -(1 << 31)])
def test_negative_size_of_a_partition_is_an_unexpected_error(
    leading: Leading, bytes_max: int
) -> None:
    """`LogSegment.read` throws IllegalArgumentException; nothing is read at the log's end."""
    negative = asked(0)
    negative.partition_max_bytes = bytes_max
    at_end = asked(0, offset=2)
    at_end.partition_max_bytes = bytes_max
    found = partitions(ask(leading, negative, asked(1)))
    assert [each.error_code for each in found] == [E.UNKNOWN_SERVER_ERROR, E.NONE]
    assert [size(each) > 0 for each in found] == [False, True]
    (found_at_end,) = partitions(ask(leading, at_end))
    assert (found_at_end.error_code, size(found_at_end)) == (E.NONE, 0)


@pytest.mark.parametrize("limit", [-1, -100])
@pytest.mark.parametrize("offset", [2, 9, 0])
def test_negative_size_of_the_answer_concerns_its_first_partition_only(
    leading: Leading, limit: int, offset: int
) -> None:
    """`ReplicaManager.readFromLog` of 4.3.1: behind a partition 0 bytes are left at least."""
    first, second = partitions(ask(leading, asked(0, offset), asked(1), max_bytes=limit))
    expected = {2: E.NONE, 9: E.OFFSET_OUT_OF_RANGE, 0: E.UNKNOWN_SERVER_ERROR}[offset]
    assert (first.error_code, second.error_code) == (expected, E.NONE)
    assert size(second) > 0  # the first batch of the answer whatever its size


@pytest.mark.parametrize("version", [4, 5, 6, 12, 13])
def test_clients_that_do_not_know_failed_disks_ask_for_the_leader(
    leading: Leading, version: int
) -> None:
    """`KafkaApis.handleFetchRequest` of 4.3.1, `maybeDownConvertStorageError`."""
    leading.partition().offline = True
    failed, sound = partitions(ask(leading, asked(0), asked(1), version=version))
    known = E.NOT_LEADER_OR_FOLLOWER if version < 6 else E.KAFKA_STORAGE_ERROR
    assert (failed.error_code, sound.error_code) == (known, E.NONE)


def test_failed_disk_counts_before_another_topic_of_the_name(leading: Leading) -> None:
    """`ReplicaManager.getPartitionOrError` of 4.3.1 does not look into an offline partition."""
    partition = leading.partition()
    partition.topic_id = UNKNOWN_ID  # that of the topic which had the name before
    codes = []
    for partition.offline in (False, True):
        (answer,) = partitions(ask(leading, asked(0, 9, 2), version=13))
        codes.append(answer.error_code)
    assert codes == [E.INCONSISTENT_TOPIC_ID, E.KAFKA_STORAGE_ERROR]


@pytest.mark.parametrize("version", [4, 12, 18])
def test_isolation_counts_for_consumers_only(leading: Leading, version: int) -> None:
    """`FetchIsolation.of` of 4.3.1: replica -3 is the copy of a replica that moves."""
    transactional: list[object] = []
    for replica_id in (-1, -2, -3, -4):
        by_id = version >= FIRST_BY_ID
        fields: dict[str, Any] = {"replica_id": replica_id}
        if by_id:
            fields = {"replica_state": ReplicaState(replica_id=replica_id)}
        (answer,) = partitions(ask(leading, asked(0), version=version, isolation_level=1, **fields))
        assert answer.high_watermark == 2
        transactional.append(answer.aborted_transactions)
    assert transactional == [[], [], None, []]


def test_followers_get_refused_partitions_in_the_order_of_their_request() -> None:
    """`KafkaApis.handleFetchRequest` of 4.3.1: unknown ids come first for consumers only."""
    leading = Leading(partition_image(0, replicas=(1, 2)))
    topics = [
        FetchTopic(topic_id=id_of(TOPIC), partitions=[asked(9)]),
        FetchTopic(topic_id=UNKNOWN_ID, partitions=[asked(0)]),
    ]
    orders = []
    for state in (ReplicaState(replica_id=2, replica_epoch=12), ReplicaState(replica_id=-1)):
        request = FetchRequest(topics=topics, session_epoch=-1, replica_state=state)
        response = handle(leading.broker, leading.context(18), request)
        assert isinstance(response, FetchResponse), response
        orders.append([topic.topic_id for topic in response.responses])
    assert orders == [[id_of(TOPIC), UNKNOWN_ID], [UNKNOWN_ID, id_of(TOPIC)]]
