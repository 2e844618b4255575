"""Produce, API key 0: batches of idempotent and plain producers, and what is refused."""

import struct
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.requests import (
    LATEST,
    MAX_TIMESTAMP,
    TIMESTAMP_MS,
    batch,
    checksummed,
    deleted_below,
    list_offsets,
    produce,
    produce_partition,
    with_byte,
    written,
)
from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.model import Uuid
from kraft_wire.wire.compression.codecs import Compression, compress
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_offsets import ListOffsetsResponse
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
)
from kraft_wire.wire.header import encode_request_header
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import HEADER_BYTES

_CODE: Final = produce_partition("error_code")
_OFFSET: Final = produce_partition("base_offset")
_BY_ID: Final = 13
_ZSTD_SINCE: Final = 7
_NOWHERE: Final = Topic("conform-no-such-topic", Uuid(b"conform no topic"))

_LENGTH_AT: Final = 8
_COUNT_BYTES: Final = 4
_CRC_AT: Final = 17
_ATTRIBUTES_AT: Final = 21
_CONTROL: Final = 1 << 5
_MAGIC_AT: Final = 16


def _answer(broker: Subject, version: int, request: ProduceRequest) -> ProduceResponse:
    return broker.ask(request, version, ProduceResponse)


def _refused(
    broker: Subject,
    version: int,
    records: bytes | None,
    *codes: ErrorCode,
    topic: Topic | None = None,
) -> None:
    request = produce(topic or broker.topic(), version, records)
    expect.one_of(_answer(broker, version, request), _CODE, *map(int, codes))


def _expect_end(broker: Subject, topic: Topic, offset: int) -> None:
    latest = broker.prepare(list_offsets(topic, LATEST), ListOffsetsResponse)
    expect.equal(latest, "topics[0].partitions[0].offset", offset)


@case("Produce", "KIP-98, Produce")
def offsets_follow_each_other(broker: Subject, version: int) -> None:
    """Batches get the next offsets of the log, from 0 on.

    Produce two records, then one, to an empty partition.
    """
    topic = broker.topic()
    answer = _answer(broker, version, produce(topic, version, batch(b"a", b"b")))
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, _OFFSET, 0)
    answer = _answer(broker, version, produce(topic, version, batch(b"c")))
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, _OFFSET, 2)


@case("Produce", "Kafka protocol guide, Produce API")
def leader_alone_acknowledges(broker: Subject, version: int) -> None:
    """The response to acks=1 has the base offset.

    Produce one record with acks=1.
    """
    answer = _answer(broker, version, produce(broker.topic(), version, batch(b"a"), acks=1))
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, _OFFSET, 0)


@case("Produce", "Kafka protocol guide, Produce API")
def no_acknowledgment(broker: Subject, version: int) -> None:
    """acks=0 has no response, and the records are written.

    Produce with acks=0, then with acks=1 on the same connection: the one response is of the second
    request, and its base offset is after the first batch.
    """
    connection, topic = broker.connect(), broker.topic()
    connection.tell(produce(topic, version, batch(b"a"), acks=0), version)
    request = produce(topic, version, batch(b"b"), acks=1)
    answer = connection.ask(request, version, ProduceResponse)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, _OFFSET, 1)


@case("Produce", "kafka.server.ReplicaManager, appendRecords")
def other_acks(broker: Subject, version: int) -> None:
    """acks other than -1, 0 and 1 is refused with INVALID_REQUIRED_ACKS.

    Produce with acks=2.
    """
    answer = _answer(broker, version, produce(broker.topic(), version, batch(b"a"), acks=2))
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUIRED_ACKS)


@case("Produce", "kafka.server.KafkaApis, handleProduceRequest", until=_BY_ID - 1)
def unknown_topic(broker: Subject, version: int) -> None:
    """An unknown topic gets UNKNOWN_TOPIC_OR_PARTITION.

    Produce to a topic that does not exist.
    """
    answer = _answer(broker, version, produce(_NOWHERE, version, batch(b"a")))
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("Produce", "KIP-516, Produce", since=_BY_ID)
def unknown_topic_id(broker: Subject, version: int) -> None:
    """An unknown topic id gets UNKNOWN_TOPIC_ID.

    Produce to a topic id that does not exist.
    """
    answer = _answer(broker, version, produce(_NOWHERE, version, batch(b"a")))
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_ID)


@case("Produce", "kafka.server.KafkaApis, handleProduceRequest")
def unknown_partition(broker: Subject, version: int) -> None:
    """A partition that the topic does not have gets UNKNOWN_TOPIC_OR_PARTITION.

    Produce to partition 7 of a topic with one partition.
    """
    answer = _answer(broker, version, produce(broker.topic(), version, batch(b"a"), partition=7))
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("Produce", "org.apache.kafka.storage.internals.log.UnifiedLog, analyzeAndValidateRecords")
def wrong_checksum(broker: Subject, version: int) -> None:
    """A batch whose CRC does not match is refused with CORRUPT_MESSAGE.

    Produce a batch with one bit of its CRC flipped.
    """
    records = bytearray(batch(b"a"))
    records[_CRC_AT] ^= 1
    _refused(broker, version, bytes(records), ErrorCode.CORRUPT_MESSAGE)


@case("Produce", "org.apache.kafka.storage.internals.log.LogValidator")
def changed_record(broker: Subject, version: int) -> None:
    """A batch whose records were changed is refused with CORRUPT_MESSAGE.

    Produce a batch with its last byte changed.
    """
    records = bytearray(batch(b"abc"))
    records[-2] ^= 0xFF
    _refused(broker, version, bytes(records), ErrorCode.CORRUPT_MESSAGE)


@case("Produce", "org.apache.kafka.common.requests.ProduceRequest, validateRecords")
def two_batches(broker: Subject, version: int) -> None:
    """A partition's records must be exactly one batch: two are refused with INVALID_RECORD.

    Produce two batches in one partition's records.
    """
    _refused(broker, version, batch(b"a") + batch(b"b"), ErrorCode.INVALID_RECORD)


@case("Produce", "org.apache.kafka.common.requests.ProduceRequest, validateRecords")
def no_batch(broker: Subject, version: int) -> None:
    """A partition's records must be exactly one batch: none is refused with INVALID_RECORD.

    Produce records of zero bytes.
    """
    _refused(broker, version, b"", ErrorCode.INVALID_RECORD)


@case("Produce", "org.apache.kafka.common.requests.ProduceRequest, validateRecords")
def older_format(broker: Subject, version: int) -> None:
    """Only record batches of format 2 may be produced: format 1 is refused with INVALID_RECORD.

    Produce a batch whose magic byte is 1.
    """
    records = bytearray(batch(b"a"))
    records[_MAGIC_AT] = 1
    _refused(broker, version, bytes(records), ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE)


@case("Produce", "topic configuration max.message.bytes")
def batch_above_the_limit(broker: Subject, version: int) -> None:
    """A batch above max.message.bytes is refused with MESSAGE_TOO_LARGE.

    Produce 1,000 bytes to a topic with max.message.bytes=500. The response of Apache Kafka has no
    error message, which there only batches have whose records are refused.
    """
    topic = broker.topic(configs={"max.message.bytes": "500"})
    answer = _answer(broker, version, produce(topic, version, batch(b"x" * 1000)))
    expect.error(answer, _CODE, ErrorCode.MESSAGE_TOO_LARGE)
    seen = answer.responses[0].partition_responses[0].error_message
    expect.as_release(seen is None, "no message", seen, produce_partition("error_message"))


@case("Produce", "topic configuration cleanup.policy")
def record_without_key_in_a_compacted_topic(broker: Subject, version: int) -> None:
    """A record without a key is refused with INVALID_RECORD if the topic is compacted.

    Produce a record without a key to a topic with cleanup.policy=compact.
    """
    topic = broker.topic(configs={"cleanup.policy": "compact"})
    _refused(broker, version, batch(b"a"), ErrorCode.INVALID_RECORD, topic=topic)


@case("Produce", "KIP-467, Per-record Error Messages", since=8)
def refused_record_is_named(broker: Subject, version: int) -> None:
    """The response names the refused record.

    Produce a record without a key to a compacted topic; `record_errors` names index 0.
    """
    topic = broker.topic(configs={"cleanup.policy": "compact"})
    answer = _answer(broker, version, produce(topic, version, batch(b"a")))
    expect.equal(answer, produce_partition("record_errors[0].batch_index"), 0)


def _compressed(broker: Subject, version: int, compression: Compression) -> None:
    records = batch(b"a" * 100, b"a" * 100, compression=compression)
    answer = _answer(broker, version, produce(broker.topic(), version, records))
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, _OFFSET, 0)


@case("Produce", "Kafka protocol guide, Record Batch")
def gzip(broker: Subject, version: int) -> None:
    """A batch compressed with gzip is accepted.

    Produce two records compressed with gzip.
    """
    _compressed(broker, version, Compression.GZIP)


@case("Produce", "Kafka protocol guide, Record Batch")
def snappy(broker: Subject, version: int) -> None:
    """A batch compressed with snappy is accepted.

    Produce two records compressed with snappy.
    """
    _compressed(broker, version, Compression.SNAPPY)


@case("Produce", "org.xerial.snappy.SnappyInputStream", since=9)
def snappy_in_two_streams(broker: Subject, version: int) -> None:
    """Records compressed with snappy may be in several streams, one behind the other.

    Produce two records, each half of whose bytes is a stream of its own.
    """
    plain = batch(b"a" * 100, b"b" * 100)
    body, middle = plain[HEADER_BYTES:], len(plain) // 2
    halves = [compress(Compression.SNAPPY, each) for each in (body[:middle], body[middle:])]
    records = bytearray(plain[:HEADER_BYTES] + b"".join(map(bytes, halves)))
    struct.pack_into(">i", records, _LENGTH_AT, len(records) - _LENGTH_AT - _COUNT_BYTES)
    records[_ATTRIBUTES_AT + 1] |= Compression.SNAPPY
    topic = broker.topic()
    answer = _answer(broker, version, produce(topic, version, checksummed(records)))
    expect.error(answer, _CODE, ErrorCode.NONE)
    _expect_end(broker, topic, 2)


@case("Produce", "KIP-57")
def lz4(broker: Subject, version: int) -> None:
    """A batch compressed with lz4 is accepted.

    Produce two records compressed with lz4.
    """
    _compressed(broker, version, Compression.LZ4)


@case("Produce", "KIP-110", since=_ZSTD_SINCE)
def zstd(broker: Subject, version: int) -> None:
    """A batch compressed with zstd is accepted from version 7 on.

    Produce two records compressed with zstd.
    """
    _compressed(broker, version, Compression.ZSTD)


@case("Produce", "KIP-110", until=_ZSTD_SINCE - 1)
def zstd_in_an_older_version(broker: Subject, version: int) -> None:
    """A batch compressed with zstd is refused below version 7: UNSUPPORTED_COMPRESSION_TYPE.

    Produce two records compressed with zstd.
    """
    records = batch(b"a", b"b", compression=Compression.ZSTD)
    _refused(broker, version, records, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


@case("Produce", "KIP-98, Idempotent Producer Guarantees")
def repeated_batch(broker: Subject, version: int) -> None:
    """A repeated batch gets the offset of the first one, and is not written again.

    Produce a batch of an idempotent producer twice, then the next one: it gets offset 2.
    """
    topic, producer = broker.topic(), broker.producer()
    records = batch(b"a", b"b", producer=producer, base_sequence=0)
    for _ in range(2):
        answer = _answer(broker, version, produce(topic, version, records))
        expect.error(answer, _CODE, ErrorCode.NONE)
        expect.equal(answer, _OFFSET, 0)
    following = batch(b"c", producer=producer, base_sequence=2)
    expect.equal(_answer(broker, version, produce(topic, version, following)), _OFFSET, 2)


@case("Produce", "KIP-98, Idempotent Producer Guarantees")
def sequence_with_a_gap(broker: Subject, version: int) -> None:
    """A sequence number that skips one is refused with OUT_OF_ORDER_SEQUENCE_NUMBER.

    Produce sequence 0, then sequence 2.
    """
    topic, producer = broker.topic(), broker.producer()
    first = batch(b"a", producer=producer, base_sequence=0)
    _answer(broker, version, produce(topic, version, first))
    skipping = batch(b"c", producer=producer, base_sequence=2)
    _refused(broker, version, skipping, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, topic=topic)


@case("Produce", "KIP-98, Idempotent Producer Guarantees")
def older_producer_epoch(broker: Subject, version: int) -> None:
    """A batch of an older producer epoch is refused with INVALID_PRODUCER_EPOCH.

    Produce under epoch 5, then under epoch 4.
    """
    topic, (producer_id, _) = broker.topic(), broker.producer()
    newer = batch(b"a", producer=(producer_id, 5), base_sequence=0)
    answer = _answer(broker, version, produce(topic, version, newer))
    expect.error(answer, _CODE, ErrorCode.NONE)
    older = batch(b"b", producer=(producer_id, 4), base_sequence=0)
    _refused(broker, version, older, ErrorCode.INVALID_PRODUCER_EPOCH, topic=topic)


@case("Produce", "org.apache.kafka.storage.internals.log.ProducerAppendInfo, checkSequence")
def new_epoch_begins_with_sequence_zero(broker: Subject, version: int) -> None:
    """The first batch of a new producer epoch has sequence 0, or OUT_OF_ORDER_SEQUENCE_NUMBER.

    Produce under epoch 0, then sequence 3 under epoch 1.
    """
    topic, (producer_id, _) = broker.topic(), broker.producer()
    first = batch(b"a", producer=(producer_id, 0), base_sequence=0)
    _answer(broker, version, produce(topic, version, first))
    wrong = batch(b"b", producer=(producer_id, 1), base_sequence=3)
    _refused(broker, version, wrong, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, topic=topic)


@case("Produce", "topic configuration message.timestamp.type")
def log_append_time(broker: Subject, version: int) -> None:
    """The response has the log append time if the topic uses it.

    Produce to a topic with message.timestamp.type=LogAppendTime.
    """
    topic = broker.topic(configs={"message.timestamp.type": "LogAppendTime"})
    answer = _answer(broker, version, produce(topic, version, batch(b"a")))
    expect.error(answer, _CODE, ErrorCode.NONE)
    stamp = answer.responses[0].partition_responses[0].log_append_time_ms
    expect.true(stamp > 0, "a time", stamp, produce_partition("log_append_time_ms"))


@case("Produce", "topic configuration message.timestamp.type")
def create_time(broker: Subject, version: int) -> None:
    """The log append time is -1 if the topic keeps the producer's times.

    Produce to a topic with message.timestamp.type=CreateTime.
    """
    topic = broker.topic(configs={"message.timestamp.type": "CreateTime"})
    answer = _answer(broker, version, produce(topic, version, batch(b"a")))
    expect.equal(answer, produce_partition("log_append_time_ms"), -1)


@case("Produce", "KIP-207", since=5)
def log_start_offset(broker: Subject, version: int) -> None:
    """The response has the log start offset.

    Produce to a new topic: 0.
    """
    answer = _answer(broker, version, produce(broker.topic(), version, batch(b"a")))
    expect.equal(answer, produce_partition("log_start_offset"), 0)


@case("Produce", "KIP-32, Choice between CreateTime and LogAppendTime")
def timestamp_too_old(broker: Subject, version: int) -> None:
    """A record older than message.timestamp.before.max.ms is refused with INVALID_TIMESTAMP.

    Produce a record of 2023 to a topic that allows one day.
    """
    topic = broker.topic(configs={"message.timestamp.before.max.ms": "86400000"})
    _refused(broker, version, batch(b"a"), ErrorCode.INVALID_TIMESTAMP, topic=topic)


@case("Produce", "Kafka protocol guide, Produce API")
def nothing_to_produce(broker: Subject, version: int) -> None:
    """A request without topics has a response without topics.

    Produce no topic with acks=-1.
    """
    answer = _answer(broker, version, ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[]))
    expect.equal(answer, "responses", [])


@case("Produce", "org.apache.kafka.storage.internals.log.LogValidator, validateBatch")
def producer_without_a_sequence(broker: Subject, version: int) -> None:
    """A batch of a producer without a sequence number is refused with INVALID_RECORD.

    Produce as producer 0 with sequence -1.
    """
    _refused(broker, version, batch(b"a", producer=(0, 0)), ErrorCode.INVALID_RECORD)


@case("Produce", "kafka.server.KafkaApis, handleProduceRequest")
def error_without_acknowledgment(broker: Subject, version: int) -> None:
    """acks=0 has no response for an error either: the broker closes the connection.

    Produce to a partition that the topic does not have, with acks=0.
    """
    connection, topic = broker.connect(), broker.topic()
    connection.tell(produce(topic, version, batch(b"a"), acks=0, partition=7), version)
    expect.true(connection.next_frame() is None, "a closed connection", "a response")


@case("Produce", "kafka.server.KafkaApis, handleProduceRequest")
def same_partition_twice(broker: Subject, version: int) -> None:
    """A partition that is named twice is written; Apache Kafka writes its last records alone.

    Produce one record and two records to one partition in one request.
    """
    topic = broker.topic()
    request = produce(topic, version, batch(b"a"))
    other = PartitionProduceData(index=0, records=batch(b"b", b"c"))
    request.topic_data[0].partition_data.append(other)
    answer = _answer(broker, version, request)
    count = sum(len(each.partition_responses) for each in answer.responses)
    expect.error(answer, _CODE, ErrorCode.NONE)
    latest = broker.prepare(list_offsets(topic, LATEST), ListOffsetsResponse)
    expect.one_of(latest, "topics[0].partitions[0].offset", 2, 3)
    expect.as_release(count == 1, "one partition", count, "responses")
    offsets = expect.at(answer, _OFFSET), expect.at(latest, "topics[0].partitions[0].offset")
    expect.as_release(offsets == (0, 2), "the last records alone", offsets, _OFFSET)


@case("Produce", "org.apache.kafka.server.common.RequestUtils, hasTransactionalRecords", since=9)
def impossible_batch_beside_another(broker: Subject, version: int) -> None:
    """A batch too short for its header fails all partitions of the request.

    Produce a record to partition 0, and a batch of declared size 3 to partition 1.
    """
    topic = broker.topic(2)
    request = produce(topic, version, batch(b"a"))
    short = bytearray(batch(b"b"))
    struct.pack_into(">i", short, _LENGTH_AT, 3)
    other = PartitionProduceData(index=1, records=bytes(short))
    request.topic_data[0].partition_data.append(other)
    answer = _answer(broker, version, request)
    codes = [one.error_code for each in answer.responses for one in each.partition_responses]
    expect.true(codes == [ErrorCode.CORRUPT_MESSAGE] * 2, "2 × CORRUPT_MESSAGE", codes)


@case("Produce", "kafka.server.KafkaApis, handleProduceRequest")
def partitions_on_their_own(broker: Subject, version: int) -> None:
    """Partitions of one request succeed and fail on their own.

    Produce to partitions 0, 7 and 1 of a topic of two.
    """
    topic = broker.topic(2)
    request = produce(topic, version, batch(b"a"))
    request.topic_data[0].partition_data += [
        PartitionProduceData(index=each, records=batch(b"b")) for each in (7, 1)
    ]
    answer = _answer(broker, version, request)
    codes = {
        one.index: one.error_code for each in answer.responses for one in each.partition_responses
    }
    wanted = {0: 0, 1: 0, 7: int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
    expect.true(codes == wanted, str(wanted), codes, "responses")


@case("Produce", "KIP-207", since=5)
def log_start_offset_after_a_deletion(broker: Subject, version: int) -> None:
    """The response has the log start offset that a deletion moved.

    Produce three records, delete those below 2, produce another one.
    """
    topic = broker.topic()
    written(broker, topic, batch(b"a", b"b", b"c"))
    deleted_below(broker, topic, 2)
    answer = _answer(broker, version, produce(topic, version, batch(b"d")))
    expect.equal(answer, _OFFSET, 3)
    expect.equal(answer, produce_partition("log_start_offset"), 2)


@case("Produce", "kafka.server.ReplicaManager, appendRecordsToLeader")
def internal_topic(broker: Subject, version: int) -> None:
    """Clients cannot write to an internal topic: INVALID_TOPIC_EXCEPTION.

    Find a group's coordinator, produce a record without a key to __consumer_offsets.
    """
    topic = broker.offsets_topic()
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name=topic.name)])
    found = broker.prepare(wanted, MetadataResponse).topics[0]
    led = [one for one in found.partitions if broker.target.node_id in (one.leader_id, -1)]
    request = produce(topic, version, batch(b"a"), partition=led[0].partition_index)
    expect.error(_answer(broker, version, request), _CODE, ErrorCode.INVALID_TOPIC_EXCEPTION)


@case("Produce", "org.apache.kafka.storage.internals.log.LogValidator, validateBatch")
def control_batch(broker: Subject, version: int) -> None:
    """Clients cannot write control records: INVALID_RECORD.

    Produce a batch with the bit of control batches.
    """
    records = with_byte(batch(b"a"), _ATTRIBUTES_AT + 1, _CONTROL)
    _refused(broker, version, records, ErrorCode.INVALID_RECORD)


@case("Produce", "org.apache.kafka.common.record.CompressionType, forId")
def unknown_compression(broker: Subject, version: int) -> None:
    """A batch in a compression that does not exist is refused; Apache Kafka fails over it.

    Produce a batch with each of the compressions 5 to 7, ask for the end of the log.
    """
    topic = broker.topic()
    for unknown in (5, 6, 7):
        records = with_byte(batch(b"a"), _ATTRIBUTES_AT + 1, unknown)
        _refused(broker, version, records, ErrorCode.UNKNOWN_SERVER_ERROR, topic=topic)
    _expect_end(broker, topic, 0)


@case("Produce", "org.apache.kafka.common.record.DefaultRecordBatch")
def compressed_records_that_are_damaged(broker: Subject, version: int) -> None:
    """Compressed records that cannot be read are refused; Apache Kafka fails over them.

    Produce a gzip batch whose compressed bytes are changed, with the right checksum.
    """
    whole = batch(b"a" * 100, compression=Compression.GZIP)
    records = with_byte(whole, len(whole) - 12, whole[-12] ^ 0xFF)
    answer = _answer(broker, version, produce(broker.topic(), version, records))
    code = expect.at(answer, _CODE)
    expect.true(code != ErrorCode.NONE, "an error", code, _CODE)
    is_corrupt = code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_SERVER_ERROR)
    expect.as_release(is_corrupt, "CORRUPT_MESSAGE or UNKNOWN_SERVER_ERROR", code, _CODE)


@case("Produce", "org.apache.kafka.storage.internals.log.LogValidator")
def latest_timestamp_of_a_batch(broker: Subject, version: int) -> None:
    """The offset of the latest timestamp is that of the record which has it.

    Produce three records, the latest one first, then ask for the latest timestamp.
    """
    topic = broker.topic()
    latest = [Record(None, b"a", timestamp=TIMESTAMP_MS + 1000 * seconds) for seconds in (9, 3, 5)]
    records = bytes(build_batch(latest))
    answer = _answer(broker, version, produce(topic, version, records))
    expect.error(answer, _CODE, ErrorCode.NONE)
    found = broker.prepare(list_offsets(topic, MAX_TIMESTAMP), ListOffsetsResponse)
    expect.equal(found, "topics[0].partitions[0].timestamp", TIMESTAMP_MS + 9000)
    expect.equal(found, "topics[0].partitions[0].offset", 0)


@case("Produce", "KAFKA-18659", since=3, until=3)
def versions_of_old_clients(broker: Subject, version: int) -> None:
    """Versions 0 to 2 are offered for old clients, but a batch in one of them is not written.

    Produce a record in each of these versions, ask for the end of the log. Apache Kafka closes the
    connection; an answer has to refuse the partition.
    """
    topic = broker.topic()
    name, records = topic.name.encode(), batch(b"a")
    body = struct.pack(">hiih", 1, 5_000, 1, len(name)) + name
    body += struct.pack(">iii", 1, 0, len(records)) + records
    for old in range(3):
        connection = broker.connect()
        header = connection.header(ProduceRequest.API_KEY, old)
        connection.send_frame(encode_request_header(header) + body)
        frame = connection.next_frame()
        if frame is not None:
            refused = struct.pack(">ih", 0, ErrorCode.UNSUPPORTED_VERSION) in bytes(frame)
            expect.true(refused, "UNSUPPORTED_VERSION, or a closed connection", bytes(frame).hex())
    _expect_end(broker, topic, 0)
