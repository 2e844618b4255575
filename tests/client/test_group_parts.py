"""Parts of a consumer without sockets: partitioner, range assignor, aborted transactions."""

import pytest

from kraft_wire.client.partitioner import murmur2, partition_of_key
from kraft_wire.client.range_assignment import (
    assigned_by_range,
    assignment_bytes,
    assignment_of_bytes,
    subscription_bytes,
    topics_of_subscription,
)
from kraft_wire.client.reading import _Aborted
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.consumer_protocol_assignment import ConsumerProtocolAssignment
from kraft_wire.wire.generated.consumer_protocol_assignment import (
    TopicPartition as AssignedPartition,
)
from kraft_wire.wire.generated.consumer_protocol_subscription import ConsumerProtocolSubscription
from kraft_wire.wire.records.batch_builder import BatchBuilder
from kraft_wire.wire.records.control_records import ControlRecordType, control_key
from kraft_wire.wire.records.record_batch import RecordBatch, parse_batches


@pytest.mark.parametrize(
    ("key", "number"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_javas(key: bytes, number: int) -> None:
    """The values of UtilsTest.testMurmur2 in Apache Kafka."""
    assert murmur2(key) == number % (1 << 32)
    assert partition_of_key(key, 7) == (number & 0x7FFFFFFF) % 7


def test_range_gives_the_first_members_one_more() -> None:
    """The example in the documentation of Kafka's RangeAssignor."""
    assigned = assigned_by_range({"C1": ["t0", "t1"], "C0": ["t0", "t1"]}, {"t0": 3, "t1": 3})
    assert {member: list(map(str, keys)) for member, keys in assigned.items()} == {
        "C0": ["t0-0", "t0-1", "t1-0", "t1-1"],
        "C1": ["t0-2", "t1-2"],
    }
    assert assigned_by_range({"a": ["t"], "b": ["u"]}, {"t": 1, "u": 1, "v": 9})["b"] == [("u", 0)]


def test_protocol_messages_are_kafkas_bytes() -> None:
    """Written by hand from ConsumerProtocol version 0: version, array of names, null user data."""
    assert subscription_bytes(["t"]) == bytes.fromhex("0000 00000001 0001 74 ffffffff")
    assert topics_of_subscription(subscription_bytes(["b", "a"])) == ["b", "a"]
    keys = [TopicPartition("t", 1), TopicPartition("t", 0)]
    assert assignment_bytes(keys) == bytes.fromhex(
        "0000 00000001 0001 74 00000002 00000001 00000000 ffffffff"
    )
    assert assignment_of_bytes(assignment_bytes(keys)) == sorted(keys)
    assert assignment_of_bytes(b"") == []


@pytest.mark.parametrize("version", [1, 2, 3, 4, 99, 32_767])
def test_messages_of_later_versions_are_read_as_the_last_one_that_is_known(version: int) -> None:
    """`ConsumerProtocol.checkSubscriptionVersion`; later versions only append fields."""
    known = min(version, ConsumerProtocolSubscription.MAX_VERSION)
    said = ConsumerProtocolSubscription(topics=["t", "u"], generation_id=5).encode(known)
    more = b"more" if version > known else b""
    head = version.to_bytes(2, "big")
    assert topics_of_subscription(head + bytes(said) + more) == ["t", "u"]
    known = min(version, ConsumerProtocolAssignment.MAX_VERSION)
    given = AssignedPartition(topic="t", partitions=[3, 1])
    sent = ConsumerProtocolAssignment(assigned_partitions=[given]).encode(known)
    assert assignment_of_bytes(head + bytes(sent) + more) == [("t", 1), ("t", 3)]


def batch(offset: int, producer: int, marker: ControlRecordType | None = None) -> RecordBatch:
    """A batch of one transactional record, or a marker."""
    builder = BatchBuilder(
        base_offset=offset,
        producer_id=producer,
        producer_epoch=0,
        is_transactional=True,
        is_control=marker is not None,
    )
    builder.append(0, None if marker is None else control_key(marker), b"")
    return parse_batches(builder.build())[0]


def test_aborted_records_are_hidden_from_their_first_offset_to_their_marker() -> None:
    """Producer 1 aborts, then commits; producer 2 commits in between; markers are never shown."""
    aborted = _Aborted([(2, 1)])
    shown = [
        each.base_offset
        for each in (
            batch(1, 1),  # of an earlier transaction of producer 1
            batch(2, 1),
            batch(3, 2),
            batch(4, 1),
            batch(5, 2, ControlRecordType.COMMIT),
            batch(6, 1, ControlRecordType.ABORT),
            batch(7, 1),
            batch(8, 1, ControlRecordType.COMMIT),
        )
        if not aborted.hides(each)
    ]
    assert shown == [1, 3, 7]
