"""ListOffsets 1 to 11 and OffsetForLeaderEpoch 2 to 4: offsets by time, by name and by epoch."""

from typing import Any

from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraft_wire.wire.generated.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.apache.differential.probes import probe
from tests.apache.differential.side import NOW_MS, Side

LARGEST = -3
BATCHES_END = 20
TIMES = (-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, NOW_MS, NOW_MS + 1, NOW_MS + 2_500, NOW_MS + 99_000)


def list_offsets(
    side: Side, version: int, question: str, *asked: tuple[str, int, int, int], **more: Any
) -> None:
    """Ask for topic, partition, timestamp, current leader epoch."""
    topics = [
        ListOffsetsTopic(
            name=name,
            partitions=[
                ListOffsetsPartition(
                    partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
                )
            ],
        )
        for name, index, timestamp, epoch in asked
    ]
    fields = {"replica_id": -1} | more
    side.ask(ListOffsetsRequest(topics=topics, **fields), version, question)


@probe(ListOffsetsRequest)
def times(side: Side, version: int) -> None:
    name = side.filled("lookup")
    for timestamp in TIMES:
        list_offsets(side, version, f"time {timestamp}", (name, 0, timestamp, -1))
    for level in (0, 1, 2, -1):
        for timestamp in (-1, -2, -3):
            question = f"isolation {level} at {timestamp}"
            list_offsets(side, version, question, (name, 0, timestamp, -1), isolation_level=level)


@probe(ListOffsetsRequest)
def times_of_an_empty_partition(side: Side, version: int) -> None:
    name = side.topic("lookup-empty")
    for timestamp in TIMES:
        list_offsets(side, version, f"time {timestamp}", (name, 0, timestamp, -1))


@probe(ListOffsetsRequest)
def times_behind_a_moved_start(side: Side, version: int) -> None:
    for text, start in (("lookup-cut", 5), ("lookup-cut-all", BATCHES_END)):
        name = side.filled(text)
        cut = [DeleteRecordsPartition(partition_index=0, offset=start)]
        topics = [DeleteRecordsTopic(name=name, partitions=cut)]
        side.prepare(DeleteRecordsRequest(topics=topics, timeout_ms=5_000), 2)
        for timestamp in TIMES:
            if timestamp == LARGEST and start == BATCHES_END:
                continue  # 4.3.1 names a record that is no longer there
            list_offsets(side, version, f"from {start} {timestamp}", (name, 0, timestamp, -1))


@probe(ListOffsetsRequest)
def times_inside_batches(side: Side, version: int) -> None:
    name = side.name("lookup-inside")
    if not side.has(name):
        side.topic("lookup-inside")
        for codec in (Compression.NONE, Compression.GZIP, Compression.LZ4):
            records = [(NOW_MS + step, b"v") for step in (50, 10, 90, 30)]
            side.produce(name, timed(records, codec))
    for step in (0, 10, 11, 31, 51, 90, 91):
        list_offsets(side, version, f"at {step}", (name, 0, NOW_MS + step, -1))
    list_offsets(side, version, "largest", (name, 0, -3, -1))


def timed(records: list[tuple[int, bytes]], codec: Compression) -> bytes:
    """A batch of records with a time each."""
    made = [Record(b"k", value, timestamp=timestamp) for timestamp, value in records]
    return bytes(build_batch(made, compression=codec))


@probe(ListOffsetsRequest)
def places_and_epochs(side: Side, version: int) -> None:
    name = side.filled("lookup")
    for epoch in (-1, 0, 1, 9, -5):
        list_offsets(side, version, f"epoch {epoch}", (name, 0, -1, epoch))
    list_offsets(side, version, "partition 9", (name, 9, -1, -1))
    list_offsets(side, version, "partition -1", (name, -1, -1, -1))
    list_offsets(side, version, "unknown topic", (side.name("nowhere"), 0, -1, -1))
    list_offsets(side, version, "no name", ("", 0, -1, -1))
    list_offsets(side, version, "unknown, bad time", (side.name("nowhere"), 0, -9, 5))
    list_offsets(side, version, "twice", (name, 0, -1, -1), (name, 0, -2, -1))
    list_offsets(side, version, "nothing")
    empty = ListOffsetsTopic(name=name, partitions=[])
    side.ask(ListOffsetsRequest(replica_id=-1, topics=[empty]), version, "no partitions")
    two = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in (0, 0, 9)]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=two)]
    )
    side.ask(request, version, "twice in a topic", hashed=True)
    for replica_id in (-2, -3, 1, 5):
        question = f"replica {replica_id}"
        list_offsets(side, version, question, (name, 0, -1, -1), replica_id=replica_id)
    list_offsets(side, version, "a timeout", (name, 0, -1, -1), timeout_ms=5)


@probe(OffsetForLeaderEpochRequest)
def ends_of_epochs(side: Side, version: int) -> None:
    name, empty = side.filled("lookup"), side.topic("lookup-empty")
    for topic, index, current, epoch in (
        *((name, 0, -1, epoch) for epoch in (-2, -1, 0, 1, 900)),
        *((name, 0, current, 0) for current in (-5, 0, 1, 900)),
        *((empty, 0, -1, epoch) for epoch in (-1, 0, 1)),
        (name, 9, -1, 0),
        (name, -1, -1, 0),
        (side.name("nowhere"), 0, -1, 0),
        ("", 0, -1, 0),
    ):
        asked = OffsetForLeaderPartition(
            partition=index, current_leader_epoch=current, leader_epoch=epoch
        )
        request = OffsetForLeaderEpochRequest(
            topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])], replica_id=-2
        )
        question = f"{topic} {index} at {current}: {epoch}"
        side.ask(request, version, question)
    twice = [OffsetForLeaderPartition(partition=0, leader_epoch=0)] * 2
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=name, partitions=twice)]
    )
    side.ask(request, version, "twice")
    side.ask(OffsetForLeaderEpochRequest(topics=[]), version, "nothing")
    none = OffsetForLeaderTopic(topic=name, partitions=[])
    side.ask(OffsetForLeaderEpochRequest(topics=[none]), version, "no partitions")
