"""A small request cannot ask for the same large thing until the memory is full."""

import pytest

from kraft_wire.node.outputs import Close, Output, Peer, Reply
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest
from kraft_wire.wire.generated.describe_producers import DescribeProducersRequest, TopicRequest
from kraft_wire.wire.generated.describe_transactions import DescribeTransactionsRequest
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.init_producer_id import InitProducerIdRequest
from kraft_wire.wire.generated.offset_commit import OffsetCommitRequest
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kraft_wire.wire.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kraft_wire.wire.generated.request_header import RequestHeader
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.broker.groups.node_door import NodeDoor
from tests.broker.groups.requests import Member, commit_topic
from tests.broker.groups.stories import joined

ROOM_BYTES = 65_536
METADATA = "x" * 4_000
ENOUGH = ROOM_BYTES // len(METADATA) + 1
"""So often a single offset, or a member of that size, does not fit any more."""


@pytest.fixture(scope="module")
def door() -> NodeDoor:
    """A node with a group of one member, an offset with metadata, and ten producers."""
    door = NodeDoor(SimFileSystem(), connection_write_buffer_max_bytes=str(ROOM_BYTES))
    door.prepare("topic")
    joined(Member(door, metadata={"range": METADATA.encode()}))
    topic = commit_topic("topic", 5, 0, METADATA)
    door.send(OffsetCommitRequest(group_id="offsets", topics=[topic]), 9)
    for producer_id in range(10):
        batch = build_batch(
            [Record(b"k", b"v")], producer_id=producer_id, producer_epoch=0, base_sequence=0
        )
        data = PartitionProduceData(index=0, records=bytes(batch))
        parts = [TopicProduceData(name="topic", partition_data=[data])]
        door.send(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=parts), 9)
    begin_transaction(door)
    return door


def begin_transaction(door: NodeDoor) -> None:
    """Put a partition into a transaction."""
    until_found = FindCoordinatorRequest(key="t", key_type=1)
    while door.send(until_found, 3).response.error_code:
        door.advance(100)
    begun = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
    while (given := door.send(begun, 3).response).error_code:
        door.advance(100)
    topics = [AddPartitionsToTxnTopic(name="topic", partitions=[0])]
    added = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="t",
        v3_and_below_producer_id=given.producer_id,
        v3_and_below_producer_epoch=given.producer_epoch,
        v3_and_below_topics=topics,
    )
    (result,) = door.send(added, 3).response.results_by_topic_v3_and_below
    assert [each.partition_error_code for each in result.results_by_partition] == [0]


def whole_groups(count: int) -> Message:
    group = OffsetFetchRequestGroup(group_id="offsets", topics=None)
    return OffsetFetchRequest(groups=[group] * count)


def one_partition(count: int) -> Message:
    topics = [OffsetFetchRequestTopics(name="topic", partition_indexes=[0] * count)]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="offsets", topics=topics)])


def one_partition_as_of_old(count: int) -> Message:
    topics = [OffsetFetchRequestTopic(name="topic", partition_indexes=[0] * count)]
    return OffsetFetchRequest(group_id="offsets", topics=topics)


def groups(count: int) -> Message:
    return DescribeGroupsRequest(groups=["group"] * count)


def transactions(count: int) -> Message:
    return DescribeTransactionsRequest(transactional_ids=["t"] * 80 * count)


def producers(count: int) -> Message:
    topics = [TopicRequest(name="topic", partition_indexes=[0] * 8 * count)]
    return DescribeProducersRequest(topics=topics)


def answered(door: NodeDoor, request: Message, version: int) -> Output:
    """What comes of a request on a connection of its own."""
    header = RequestHeader(request_api_key=request.API_KEY, request_api_version=version)
    flexible = version >= type(request).FLEXIBLE_FROM
    frame = bytearray(header.encode(2 if flexible else 1)) + request.encode(version)
    assert len(frame) < 3_000
    door.node.receive(Peer(99, "127.0.0.1", 1, "PLAINTEXT"), frame, door.now_ms, door.wall_ms)
    (output,) = door.node.outputs
    door.node.outputs = []
    return output


@pytest.mark.parametrize(
    ("make", "version"),
    [
        (whole_groups, 9),
        (one_partition, 9),
        (one_partition_as_of_old, 7),
        (groups, 5),
        (producers, 0),
        (transactions, 0),
    ],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_an_answer_that_could_not_be_sent_is_not_made(
    door: NodeDoor, make: type[Message], version: int
) -> None:
    few = answered(door, make(2), version)  # type: ignore[call-arg,arg-type]  # makes a request
    assert isinstance(few, Reply)
    assert few.size_bytes > 2 * (400 if make in (producers, transactions) else len(METADATA))
    many = answered(door, make(ENOUGH), version)  # type: ignore[call-arg,arg-type]  # as above
    assert isinstance(many, Close)
    assert many.rejection is not None
    assert many.rejection.reason == "unencodable"
    assert "connection.write.buffer.max.bytes" in str(many.rejection.details)
