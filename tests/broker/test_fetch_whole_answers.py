"""Every field of a Fetch response, what is counted of it, and how a quota changes it (KIP-13)."""

from dataclasses import replace
from typing import Any

import pytest

from kraft_wire.broker.handlers import fetch
from kraft_wire.model import FileSlice
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ReplicaState,
)
from tests.broker.replication.leading import Leading, batch
from tests.broker.replication.test_read_replicas import cluster
from tests.broker.small_broker import id_of, partition_image

BATCH_BYTES = len(batch())
EMPTY: dict[str, Any] = {"aborted_transactions": None, "records": b""}


class Quota:
    """A quota that keeps what it was told."""

    def __init__(self, bytes_max: int = 1 << 30, throttle_ms: int = 0) -> None:
        self.bytes_max = bytes_max
        self.throttle_ms = throttle_ms
        self.measured: list[tuple[int, int]] = []
        self.asked: list[int] = []

    def fetch_bytes_max(self, context: object, bytes_max: int) -> int:
        self.asked.append(bytes_max)
        return min(bytes_max, self.bytes_max)

    def fetched(self, context: object, size_bytes: int, now_ms: int) -> int:
        self.measured.append((size_bytes, now_ms))
        return self.throttle_ms


def three_records(**more: Any) -> Leading:
    """Partition 0 has offsets 0 to 2, of which consumers may read 1 and 2; 2 is led by broker 2."""
    leading = Leading(
        partition_image(0, leader_epoch=3),
        partition_image(2, leader=2, replicas=(2, 1), leader_epoch=4),
        **more,
    )
    for _ in range(3):
        leading.produce()
    leading.delete_records(1)
    leading.brokers[2] = replace(leading.brokers[2], rack="r")
    leading.publish()
    return leading


def sent(
    leading: Leading,
    *wanted: FetchPartition,
    version: int = 17,
    replica: int = -1,
    **fields: Any,
) -> FetchResponse:
    topic = FetchTopic(topic="t", partitions=list(wanted))
    if version >= 13:
        topic = FetchTopic(topic_id=id_of("t"), partitions=list(wanted))
    if version >= 15:
        fields["replica_state"] = ReplicaState(
            replica_id=replica, replica_epoch=-1 if replica < 0 else 10 + replica
        )
    fields = {"session_epoch": -1, "max_wait_ms": 0, **fields}
    request = FetchRequest(topics=[topic], **fields)
    response = fetch.handle(leading.broker, leading.context(version), request)
    assert isinstance(response, FetchResponse), response
    return response


def asked(number: int = 0, offset: int = 1, **fields: Any) -> FetchPartition:
    fields = {"current_leader_epoch": -1, "partition_max_bytes": 1 << 20, **fields}
    return FetchPartition(partition=number, fetch_offset=offset, **fields)


def encoded(response: FetchResponse, version: int) -> bytes:
    parts = response.encode_parts(version)
    return b"".join(each.read() if isinstance(each, FileSlice) else each for each in parts)


def only(response: FetchResponse) -> PartitionData:
    ((data,),) = [topic.partitions for topic in response.responses]
    return data


def without_records(response: FetchResponse) -> PartitionData:
    data = only(response)
    data.records = b""
    return data


def test_answer_with_records_has_the_bounds_of_the_log() -> None:
    response = sent(three_records(), asked())
    assert isinstance(only(response).records, FileSlice)
    assert without_records(response) == PartitionData(
        partition_index=0, high_watermark=3, last_stable_offset=3, log_start_offset=1, **EMPTY
    )
    assert (response.throttle_time_ms, response.error_code, response.session_id) == (0, 0, 0)
    assert (response.responses[0].topic_id, response.node_endpoints) == (id_of("t"), [])


@pytest.mark.parametrize("replica", [-1, 2])
def test_error_has_no_bounds_and_the_leader_for_who_is_wrong_here(replica: int) -> None:
    leading = three_records()
    response = sent(leading, asked(2, current_leader_epoch=3), asked(9), replica=replica)
    refused, unknown = response.responses[0].partitions
    bounds = {"high_watermark": -1, "last_stable_offset": -1, "log_start_offset": -1}
    assert refused == PartitionData(
        partition_index=2,
        error_code=E.FENCED_LEADER_EPOCH,
        current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=4),
        **bounds,
        **EMPTY,
    )
    assert unknown == PartitionData(
        partition_index=9,
        error_code=E.UNKNOWN_TOPIC_OR_PARTITION,
        **bounds,
        **{**EMPTY, "aborted_transactions": []},
    )
    leader = NodeEndpoint(node_id=2, host="host2", port=9002, rack="r")
    assert response.node_endpoints == ([leader] if replica < 0 else [])


def test_reader_that_diverges_is_told_where_and_nothing_else() -> None:
    leading = three_records()
    leading.change(leader_epoch=5)
    leading.produce()
    assert only(sent(leading, asked(0, 2, last_fetched_epoch=4))) == PartitionData(
        partition_index=0,
        high_watermark=4,
        last_stable_offset=4,
        log_start_offset=1,
        diverging_epoch=EpochEndOffset(epoch=3, end_offset=3),
        **EMPTY,
    )


def test_consumer_that_is_sent_elsewhere_gets_the_bounds_and_no_records() -> None:
    leading = cluster()
    leading.produce(acks=1)
    assert only(sent(leading, asked(0, 1), rack_id="c")) == PartitionData(
        partition_index=0,
        high_watermark=3,
        last_stable_offset=3,
        log_start_offset=0,
        preferred_read_replica=4,
        **EMPTY,
    )


@pytest.mark.parametrize("version", [4, 11, 12, 13, 17])
def test_quota_measures_the_answer_with_its_length(version: int) -> None:
    """`FetchResponse.sizeOf` of 4.3.1 counts the four bytes before the answer too."""
    leading = three_records()
    leading.broker.fetch_quota = quota = Quota()
    response = sent(leading, asked(), asked(9), version=version)
    assert quota.measured == [(4 + len(encoded(response, version)), leading.now_ms)]
    assert (leading.broker.bytes_out, leading.broker.replica_bytes_out) == (2 * BATCH_BYTES, 0)


def test_throttled_answer_is_empty_and_not_counted() -> None:
    leading = three_records()
    leading.broker.fetch_quota = quota = Quota(throttle_ms=1)
    response = sent(leading, asked(), asked(2, current_leader_epoch=3))
    assert (response.throttle_time_ms, response.error_code, response.responses) == (1, 0, [])
    assert [each.node_id for each in response.node_endpoints] == [2]
    assert (leading.broker.bytes_out, len(quota.measured)) == (0, 1)
    quota.throttle_ms = 0
    assert sent(leading, asked()).throttle_time_ms == 0
    assert leading.broker.bytes_out == 2 * BATCH_BYTES


@pytest.mark.parametrize(
    ("request_bytes", "broker_bytes", "quota_bytes", "expected"),
    [(500, 900, 1_000, 500), (900, 500, 1_000, 500), (900, 1_000, BATCH_BYTES, 900)],
)
def test_answer_is_as_large_as_request_broker_and_quota_allow(
    request_bytes: int, broker_bytes: int, quota_bytes: int, expected: int
) -> None:
    leading = three_records(fetch_max_bytes=broker_bytes)
    leading.broker.fetch_quota = quota = Quota(quota_bytes)
    response = sent(leading, asked(), max_bytes=request_bytes)
    assert quota.asked == [expected]
    records = only(response).records
    assert isinstance(records, FileSlice)
    assert records.size_bytes == min(2 * BATCH_BYTES, quota_bytes)


def test_follower_has_no_quota_and_is_counted_apart() -> None:
    leading = Leading(partition_image(0, replicas=(1, 2)))
    leading.produce(2, acks=1)
    leading.broker.fetch_quota = quota = Quota(throttle_ms=9)
    records = leading.fetch(0).fetched.records
    assert isinstance(records, FileSlice)
    assert (leading.broker.bytes_out, leading.broker.replica_bytes_out) == (0, records.size_bytes)
    assert (quota.asked, quota.measured) == ([], [])


@pytest.mark.parametrize(("min_bytes", "is_parked"), [(0, False), (2, False), (3, True)])
def test_fetch_waits_below_its_least_number_of_bytes(min_bytes: int, is_parked: bool) -> None:
    """Where two batches are there, in units of a batch; one unit is a byte short of the third."""
    leading = three_records()
    wanted = FetchRequest(
        topics=[FetchTopic(topic_id=id_of("t"), partitions=[asked()])],
        max_wait_ms=1,
        min_bytes=min_bytes * BATCH_BYTES - (min_bytes == 3) * (BATCH_BYTES - 1),
        session_epoch=-1,
    )
    response = fetch.handle(leading.broker, leading.context(17), wanted)
    assert isinstance(response, FetchResponse) is not is_parked


def test_neighbours_of_one_topic_are_answered_together() -> None:
    """An unknown id begins a topic of its own, wherever it stands."""
    leading = three_records()
    other = id_of("u")
    topics = [
        FetchTopic(topic_id=id_of("t"), partitions=[asked(), asked(2)]),
        FetchTopic(topic_id=other, partitions=[asked(), asked(1)]),
    ]
    request = FetchRequest(topics=topics, session_epoch=-1, max_wait_ms=0)
    response = fetch.handle(leading.broker, leading.context(17), request)
    assert isinstance(response, FetchResponse)
    found = [
        (topic.topic_id, [each.partition_index for each in topic.partitions])
        for topic in response.responses
    ]
    assert found == [(id_of("t"), [0, 2]), (other, [0, 1])]
