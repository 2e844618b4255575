"""Produce 3 to 13: every reason to refuse a batch, and what is stored of those that are taken.

Not here: transactions, which docs/DEVIATIONS.md leaves out; batches that lie about their insides,
which `tests/server/test_beside_apache.py` asks about.
"""

import gzip
from typing import Any

from kraft_wire.model import Uuid
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.wire.generated.metadata import MetadataRequest
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.apache.differential.probes import probe
from tests.apache.differential.side import NOW_MS, STRANGER, Side, batch
from tests.attack import frames

DAY_MS = 86_400_000
FIRST_ID_VERSION = 13


def addressed(
    side: Side, version: int, name: str, *data: PartitionProduceData, topic_id: Uuid | None = None
) -> TopicProduceData:
    """A topic's data, by name or, from version 13 on, by id."""
    if version < FIRST_ID_VERSION:
        return TopicProduceData(name=name, partition_data=list(data))
    known = topic_id or side.topic_id(name)
    return TopicProduceData(topic_id=known, partition_data=list(data))


def produce(
    side: Side,
    version: int,
    name: str,
    records: bytes | None,
    question: str,
    *,
    partition: int = 0,
    acks: int = -1,
    transactional_id: str | None = None,
    timeout_ms: int = 10_000,
) -> Any:
    """Ask for one partition to be appended to."""
    data = PartitionProduceData(index=partition, records=records)
    request = ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        transactional_id=transactional_id,
        topic_data=[addressed(side, version, name, data)],
    )
    return side.ask(request, version, question)


def stored(side: Side, name: str) -> None:
    """Write down what the partition holds now."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 24,
        session_epoch=-1,
        topics=[FetchTopic(topic=name, partitions=[partition])],
    )
    side.ask(request, 12, "what is stored")


def spoiled(records: bytes) -> bytes:
    """The same batch with a wrong checksum."""
    data = bytearray(records)
    data[-1] ^= 1
    return bytes(data)


@probe(ProduceRequest)
def taken(side: Side, version: int) -> None:
    name = side.topic(f"taken-{version}", 2)
    produce(side, version, name, batch(b"a", b"b", b"c"), "three records")
    produce(side, version, name, batch(b"a", key=None), "no key")
    produce(side, version, name, batch(None), "no value")
    record = Record(b"", b"", timestamp=NOW_MS, headers=[("h", b"v"), ("h", None), ("", b"")])
    produce(side, version, name, bytes(build_batch([record])), "headers")
    produce(side, version, name, batch(b"x" * 500), "long")
    for acks in (1, -1):
        produce(side, version, name, batch(b"a"), f"acks {acks}", acks=acks)
    produce(side, version, name, batch(b"a"), "no time to wait", timeout_ms=0)
    produce(side, version, name, batch(b"a"), "negative time", timeout_ms=-5)
    stored(side, name)


@probe(ProduceRequest)
def codecs(side: Side, version: int) -> None:
    name = side.topic(f"codecs-{version}")
    for codec in Compression:
        produce(side, version, name, batch(b"x" * 300, b"y", compression=codec), codec.name)
    stored(side, name)


@probe(ProduceRequest)
def unknown_places(side: Side, version: int) -> None:
    name = side.topic("places", 2)
    produce(side, version, name, batch(b"a"), "partition 9", partition=9)
    produce(side, version, name, batch(b"a"), "partition -1", partition=-1)
    data = PartitionProduceData(index=0, records=batch(b"a"))
    for topic_id in (STRANGER, Uuid(bytes(16))):
        topic = addressed(side, version, side.name("nowhere"), data, topic_id=topic_id)
        request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[topic])
        side.ask(request, version, f"unknown topic {topic_id[0]}")
    if version < FIRST_ID_VERSION:
        for wrong in ("", "a b", ".."):
            produce(side, version, wrong, batch(b"a"), f"topic {wrong!r}")
    side.ask(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[]), version, "no topic")
    empty = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[addressed(side, version, name)])
    side.ask(empty, version, "no partition")


@probe(ProduceRequest)
def several_at_once(side: Side, version: int) -> None:
    one, two = side.topic(f"several-{version}", 2), side.topic(f"several-b-{version}")
    good, bad = batch(b"a"), spoiled(batch(b"b"))

    def data(index: int, records: bytes | None) -> PartitionProduceData:
        return PartitionProduceData(index=index, records=records)

    topics = [
        addressed(side, version, one, data(1, good), data(0, bad), data(7, good)),
        addressed(side, version, two, data(0, b"")),
    ]
    side.ask(ProduceRequest(acks=-1, timeout_ms=9_000, topic_data=topics), version, "mixed")
    twice = [addressed(side, version, one, data(0, good), data(0, batch(b"again")))]
    side.ask(ProduceRequest(acks=-1, timeout_ms=9_000, topic_data=twice), version, "twice")
    apart = [
        addressed(side, version, one, data(0, good)),
        addressed(side, version, one, data(1, good)),
    ]
    side.ask(ProduceRequest(acks=-1, timeout_ms=9_000, topic_data=apart), version, "in two parts")


@probe(ProduceRequest)
def malformed(side: Side, version: int) -> None:
    """Null records are not among them: 4.3.1 fails in itself and never answers."""
    name = side.topic(f"malformed-{version}")
    whole = batch(b"one", b"two")
    shifted = bytearray(whole)
    shifted[7] = 9
    record = frames.one_record(b"v")
    for question, records in {
        "empty": b"",
        "cut": whole[:-5],
        "less than a head": whole[:40],
        "17 bytes": whole[:17],
        "spoiled": spoiled(whole),
        "base offset 9": bytes(shifted),
        "two batches": whole + whole,
        "a batch and a half": whole + whole[:50],
        "a batch and crumbs": whole + b"\0\0\0",
        "magic 0": frames.batch(record, 1, magic=0),
        "magic 1": frames.batch(record, 1, magic=1),
        "magic 3": frames.batch(record, 1, magic=3),
        "magic -1": frames.batch(record, 1, magic=-1),
        "count too large": frames.batch(record, 1, count=2),
        "count 0": frames.batch(record, 1, count=0),
        "no records": batch(),
        "control": batch(b"v", is_control=True),
        "codec 5": frames.batch(record, 1, attributes=5),
        "codec 7": frames.batch(record, 1, attributes=7),
        "log append time": frames.batch(record, 1, attributes=8),
        "max timestamp too small": batch(b"v", max_timestamp=5),
        "delete horizon": frames.batch(record, 1, attributes=0x40),
        "unused bits": frames.batch(record, 1, attributes=0x7F00),
        "length too small": frames.batch(record, 1, length_delta=-60),
        "length too large": frames.batch(record, 1, length_delta=60),
    }.items():
        produce(side, version, name, records, question)
    stored(side, name)


@probe(ProduceRequest)
def unreadable_records(side: Side, version: int) -> None:
    """Bodies that do not unfold are not among them, see docs/DEVIATIONS.md."""
    name = side.topic(f"unreadable-{version}")
    record = frames.one_record(b"v")
    for question, records in {
        "crumbs behind": frames.batch(record + b"\x02\x00", 1),
        "less than said": frames.batch(record, 2),
        "more than said": frames.batch(record + record, 1),
        "a record cut": frames.batch(record[:-1], 1),
        "last offset too large": frames.batch(record, 1, last_offset_delta=5),
        "last offset too small": frames.batch(record + record, 2, last_offset_delta=0),
    }.items():
        produce(side, version, name, records, question)
    stored(side, name)


@probe(ProduceRequest)
def limits(side: Side, version: int) -> None:
    small = side.topic("limits-small", max_message_bytes="500")
    produce(side, version, small, batch(b"v" * 500), "too large")
    compressed = batch(b"v" * 5_000, compression=Compression.GZIP)
    produce(side, version, small, compressed, "too large without compression")
    for acks in (2, -2, 32_767):
        produce(side, version, small, batch(b"v"), f"acks {acks}", acks=acks)
    segment = side.topic("limits-segment", segment_bytes="1048576", max_message_bytes="9000000")
    produce(side, version, segment, batch(b"v" * 1_500_000), "larger than a segment")


@probe(ProduceRequest)
def in_sync_replicas(side: Side, version: int) -> None:
    name = side.topic(f"in-sync-{version}", min_insync_replicas="2")
    for acks in (1, -1):
        produce(side, version, name, batch(b"v"), f"two are demanded, acks {acks}", acks=acks)


@probe(ProduceRequest)
def acks_0(side: Side, version: int) -> None:
    name = side.topic(f"acks-0-{version}")

    def silent(topic: TopicProduceData, question: str) -> None:
        side.send(ProduceRequest(acks=0, timeout_ms=100, topic_data=[topic]), version, line="quiet")
        sent = side.send(MetadataRequest(topics=[]), 12, line="quiet")
        side.answer(sent, question, line="quiet")

    good = PartitionProduceData(index=0, records=batch(b"v"))
    silent(addressed(side, version, name, good), "silence")
    bad = PartitionProduceData(index=0, records=spoiled(batch(b"v")))
    silent(addressed(side, version, name, bad), "a failure closes")
    lost = PartitionProduceData(index=9, records=batch(b"v"))
    silent(addressed(side, version, name, lost), "an unknown partition closes")
    stored(side, name)


@probe(ProduceRequest)
def idempotence(side: Side, version: int) -> None:
    name = side.topic(f"idempotence-{version}")

    def send(sequence: int, epoch: int = 0, count: int = 2, **more: Any) -> None:
        fields = {"producer_id": 4_242, "producer_epoch": epoch, "base_sequence": sequence} | more
        records = batch(*[b"v"] * count, **fields)
        produce(side, version, name, records, f"sequence {sequence} epoch {epoch} {more}")

    for sequence in (0, 2, 4, 6, 8, 10):
        send(sequence)
    for sequence in (10, 8, 2, 0, 20, 11, 9):
        send(sequence)
    send(10, count=3)
    send(10, count=1)
    send(5, epoch=1)
    send(0, epoch=1)
    send(0, epoch=1)
    send(2, epoch=0)
    send(0, epoch=3)
    send(-1)
    send(7, producer_id=4_343)
    send(0, producer_id=4_344, epoch=-1)
    send(0x7FFFFFFE, producer_id=4_345)
    send(0, producer_id=4_345)
    stored(side, name)


@probe(ProduceRequest)
def timestamps(side: Side, version: int) -> None:
    forever: dict[str, Any] = {
        "retention_ms": "-1"
    }  # or old records go whenever either broker looks
    plain = side.topic(f"times-{version}", **forever)
    for question, stamp in {"future": NOW_MS + DAY_MS, "old": 1, "none": -1, "minus 2": -2}.items():
        produce(side, version, plain, batch(b"v", timestamp=stamp), question)
    bounded = side.topic(
        f"times-bounded-{version}", message_timestamp_before_max_ms="60000", **forever
    )
    produce(side, version, bounded, batch(b"v", timestamp=NOW_MS - DAY_MS), "too old")
    records = [Record(b"k", b"v", timestamp=t) for t in (NOW_MS, NOW_MS - DAY_MS, NOW_MS)]
    produce(side, version, bounded, bytes(build_batch(records)), "one of three too old")
    stamped = side.topic(
        f"times-stamped-{version}", message_timestamp_type="LogAppendTime", **forever
    )
    for stamp in (1, -1, NOW_MS + DAY_MS):
        produce(side, version, stamped, batch(b"v", timestamp=stamp), f"stamped over {stamp}")
    zipped = batch(b"v", b"w", compression=Compression.GZIP)
    produce(side, version, stamped, zipped, "stamped over compression")
    for name in (plain, bounded, stamped):
        stored(side, name)


@probe(ProduceRequest)
def compacted(side: Side, version: int) -> None:
    name = side.topic(f"compacted-{version}", cleanup_policy="compact")
    records = [Record(key, b"v", timestamp=NOW_MS) for key in (b"k", None, b"k", None, None, None)]
    produce(side, version, name, bytes(build_batch(records)), "some without key")
    produce(side, version, name, batch(b"v", key=None), "one without key")
    produce(side, version, name, batch(b"v", key=None, compression=Compression.LZ4), "compressed")
    produce(side, version, name, batch(b"v", key=b""), "an empty key")
    stored(side, name)


@probe(ProduceRequest, (6, 13))
def codec_of_the_topic(side: Side, version: int) -> None:
    for wanted in ("gzip", "snappy", "lz4", "zstd", "uncompressed"):
        name = side.topic(f"wanted-{wanted}-{version}", compression_type=wanted)
        produce(side, version, name, batch(b"v" * 500, b"w" * 500), f"{wanted} of plain")
        for codec in (Compression.GZIP, Compression.ZSTD, Compression.SNAPPY):
            records = batch(b"v" * 500, b"w" * 500, compression=codec)
            produce(side, version, name, records, f"{wanted} of {codec.name}")
        numbered = batch(b"v", producer_id=9, producer_epoch=0, base_sequence=0)
        produce(side, version, name, numbered, f"{wanted} of an idempotent producer")
        stored(side, name)


@probe(ProduceRequest)
def internal_topics(side: Side, version: int) -> None:
    side.group("internal")
    for name in ("__consumer_offsets",):
        produce(side, version, name, batch(b"v"), name)


@probe(ProduceRequest)
def transactional_id_without_transaction(side: Side, version: int) -> None:
    name = side.topic(f"transactional-{version}")
    produce(side, version, name, batch(b"v"), "an id alone", transactional_id="t")
    fields: dict[str, Any] = {"producer_id": 77, "producer_epoch": 0, "base_sequence": 0}
    produce(
        side, version, name, batch(b"v", **fields), "an id, idempotent batch", transactional_id="t"
    )
    stored(side, name)
    marked = batch(b"v", is_transactional=True, **fields)
    produce(side, version, name, marked, "transactional batch without an id")


@probe(ProduceRequest, (3, 12, 13))
def topics_made_anew(side: Side, version: int) -> None:
    name = side.filled(f"produce-anew-{version}", 1)
    old = side.topic_id(name)
    data = PartitionProduceData(index=0, records=batch(b"v"))
    for question in ("deleted", "made anew"):
        if question == "deleted":
            side.delete_topic(name)
        else:
            side.topic(f"produce-anew-{version}")
        topic = addressed(side, version, name, data, topic_id=old)
        request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[topic])
        side.ask(request, version, question)
    stored(side, name)


@probe(ProduceRequest, (7, 13))
def codec_of_the_topic_and_its_limit(side: Side, version: int) -> None:
    name = side.topic("wanted-larger", compression_type="uncompressed", max_message_bytes="500")
    zipped = batch(b"v" * 5_000, compression=Compression.GZIP)
    produce(side, version, name, zipped, "too large in the codec of the topic")


@probe(ProduceRequest, (7, 13))
def append_times_of_a_producer(side: Side, version: int) -> None:
    record = frames.one_record(b"v")
    for kind in ("LogAppendTime", "CreateTime"):
        name = side.topic(f"append-{kind}-{version}", message_timestamp_type=kind)
        produce(side, version, name, frames.batch(record, 1, attributes=8), kind)
        zipped = gzip.compress(record, mtime=0)
        produce(side, version, name, frames.batch(zipped, 1, attributes=9), f"{kind}, compressed")


@probe(ProduceRequest, (7, 13))
def keys_and_times(side: Side, version: int) -> None:
    name = side.topic(
        f"keys-and-times-{version}",
        cleanup_policy="compact",
        message_timestamp_before_max_ms="60000",
    )
    old = NOW_MS - DAY_MS
    records = [
        Record(key, b"v", timestamp=stamp)
        for key, stamp in ((b"k", NOW_MS), (None, old), (b"k", old), (None, NOW_MS), (b"k", -1))
    ]
    for codec in (Compression.NONE, Compression.GZIP):
        whole = bytes(build_batch(records, compression=codec))
        produce(side, version, name, whole, f"both wrong, {codec.name}")
        keys = bytes(build_batch([records[1], records[3]], compression=codec))
        produce(side, version, name, keys, f"only keys, {codec.name}")


@probe(ProduceRequest)
def transactional_batches_without_an_id(side: Side, version: int) -> None:
    name = side.topic("without-an-id", 2)
    fields: dict[str, Any] = {"producer_id": 77, "producer_epoch": 0, "base_sequence": 0}
    whole = batch(b"v", is_transactional=True, **fields)
    produce(side, version, name, whole, "alone")
    produce(side, version, name, whole, "no such partition", partition=9)
    produce(side, version, name, whole + whole, "two batches")
    produce(side, version, name, whole, "acks 5", acks=5)
