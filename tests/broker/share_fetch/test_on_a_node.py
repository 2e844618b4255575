"""Share groups on a whole node: its share coordinator, frames, quotas and closed connections."""

from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.records.record_batch import parse_batches
from tests.broker.share_fetch.sharing_node import SharingDoor, ranges
from tests.node.quotas.throttled_node import CONSUMER

OTHER = 9
"""A connection."""


def test_records_leave_as_parts_of_the_log_and_their_state_is_kept() -> None:
    """932-FETCH-07, 932-ACK-06, 932-REC-14: also for the next share partition of this leader."""
    node = SharingDoor()
    for _ in range(3):
        node.produce(100)
    first = node.share_fetch("m", 0, connection=CONSUMER)
    node.advance(100)
    assert ranges(first) == [(0, 2, 1)]
    records = first.response.responses[0].partitions[0].records
    assert [each.base_offset for each in parse_batches(bytes(records))] == [0, 1, 2]
    done = node.acknowledge("m", 1, [(0, 1, 1)], connection=CONSUMER)
    node.advance(100)
    assert done.response.responses[0].partitions[0].error_code == ErrorCode.NONE
    node.close(CONSUMER)
    node.settle()
    again = node.share_fetch("other", 0, connection=OTHER)
    node.advance(100)
    assert ranges(again) == [(2, 2, 2)]


def test_closed_connection_without_a_request_releases_its_records() -> None:
    """932-FETCH-11: the fetch of another member that waits gets them at once."""
    node = SharingDoor()
    node.produce(100)
    held = node.share_fetch("m", 0, connection=CONSUMER)
    node.advance(100)
    assert ranges(held) == [(0, 0, 1)]
    waiting = node.share_fetch("other", 0, connection=OTHER, max_wait_ms=20_000)
    node.advance(100)
    assert waiting.response is None
    node.close(CONSUMER)
    node.advance(100)
    assert ranges(waiting) == [(0, 0, 2)]


def test_share_fetch_counts_against_the_quota_of_fetches() -> None:
    """932-FETCH-13: its answer is empty, and the connection is muted."""
    node = SharingDoor(consumer_byte_rate=100)
    node.produce(9_000)
    reply = node.share_fetch("m", 0, connection=CONSUMER, max_wait_ms=500)
    node.advance(100)
    assert reply.response.throttle_time_ms > 0
    assert reply.response.responses == []
    assert CONSUMER in node.muted
    assert node.node.broker.bytes_out == 0


def test_records_count_as_bytes_out_when_they_are_sent() -> None:
    """`KafkaApis.processShareFetchResponse` of 4.3.1: "only when the response is being sent"."""
    node = SharingDoor()
    for _ in range(3):
        node.produce(100)
    reply = node.share_fetch("m", 0, connection=CONSUMER)
    node.advance(100)
    (data,) = reply.response.responses[0].partitions
    assert node.node.broker.bytes_out == len(data.records) > 300
