"""DeleteRecords, API key 21: the log start offset moves up (KIP-107)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.requests import EARLIEST, batch, list_offsets, written
from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_offsets import ListOffsetsResponse

_CODE: Final = "topics[0].partitions[0].error_code"
_LOW: Final = "topics[0].partitions[0].low_watermark"
_SOURCE: Final = "kafka.server.ReplicaManager, deleteRecords"


def _delete(
    broker: Subject, version: int, topic: Topic, offset: int, partition: int = 0
) -> DeleteRecordsResponse:
    wanted = DeleteRecordsPartition(partition_index=partition, offset=offset)
    topics = [DeleteRecordsTopic(name=topic.name, partitions=[wanted])]
    request = DeleteRecordsRequest(topics=topics, timeout_ms=5000)
    return broker.ask(request, version, DeleteRecordsResponse)


def _three_records(broker: Subject) -> Topic:
    topic = broker.topic()
    written(broker, topic, batch(b"a"), batch(b"b"), batch(b"c"))
    return topic


@case("DeleteRecords", "KIP-107")
def up_to_an_offset(broker: Subject, version: int) -> None:
    """Records below an offset are deleted: it becomes the log start offset.

    Write three records, delete below 2, ask for the earliest offset.
    """
    topic = _three_records(broker)
    answer = _delete(broker, version, topic, 2)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, _LOW, 2)
    earliest = broker.prepare(list_offsets(topic, EARLIEST), ListOffsetsResponse)
    expect.equal(earliest, "topics[0].partitions[0].offset", 2)


@case("DeleteRecords", "KIP-107")
def up_to_the_high_watermark(broker: Subject, version: int) -> None:
    """Offset -1 deletes up to the high watermark.

    Write three records, delete with offset -1.
    """
    answer = _delete(broker, version, _three_records(broker), -1)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, _LOW, 3)


@case("DeleteRecords", _SOURCE)
def beyond_the_high_watermark(broker: Subject, version: int) -> None:
    """An offset beyond the high watermark is refused with OFFSET_OUT_OF_RANGE.

    Write three records, delete below 4.
    """
    answer = _delete(broker, version, _three_records(broker), 4)
    expect.error(answer, _CODE, ErrorCode.OFFSET_OUT_OF_RANGE)


@case("DeleteRecords", _SOURCE)
def below_the_log_start(broker: Subject, version: int) -> None:
    """A deleted offset changes nothing and is not an error.

    Delete below 2, then below 1: the low watermark stays 2.
    """
    topic = _three_records(broker)
    _delete(broker, version, topic, 2)
    answer = _delete(broker, version, topic, 1)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, _LOW, 2)


@case("DeleteRecords", _SOURCE)
def unknown_partition(broker: Subject, version: int) -> None:
    """A partition that the topic does not have gets UNKNOWN_TOPIC_OR_PARTITION.

    Delete records of partition 7 of a topic with one.
    """
    answer = _delete(broker, version, broker.topic(), 0, partition=7)
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("DeleteRecords", "topic configuration cleanup.policy")
def compacted_topic(broker: Subject, version: int) -> None:
    """Records of a topic that is only compacted cannot be deleted: POLICY_VIOLATION.

    Delete records of a topic with cleanup.policy=compact.
    """
    topic = broker.topic(configs={"cleanup.policy": "compact"})
    answer = _delete(broker, version, topic, 0)
    expect.error(answer, _CODE, ErrorCode.POLICY_VIOLATION)


@case("DeleteRecords", "topic configuration cleanup.policy")
def compacted_and_deleted_topic(broker: Subject, version: int) -> None:
    """Records of a topic that is compacted and deleted can be deleted.

    Delete all records of a topic with cleanup.policy=compact,delete.
    """
    topic = broker.topic(configs={"cleanup.policy": "compact,delete"})
    written(broker, topic, batch(b"a", key=b"k"))
    answer = _delete(broker, version, topic, -1)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, _LOW, 1)


@case("DeleteRecords", _SOURCE)
def negative_offset(broker: Subject, version: int) -> None:
    """A negative offset other than -1 is OFFSET_OUT_OF_RANGE.

    Delete below offset -2.
    """
    answer = _delete(broker, version, _three_records(broker), -2)
    expect.error(answer, _CODE, ErrorCode.OFFSET_OUT_OF_RANGE)
    expect.equal(answer, _LOW, -1)


@case("DeleteRecords", _SOURCE)
def one_beyond_the_high_watermark(broker: Subject, version: int) -> None:
    """The high watermark is the largest offset: the next one is OFFSET_OUT_OF_RANGE.

    Write three records, delete below 4, then below 3.
    """
    topic = _three_records(broker)
    for offset, code in ((4, ErrorCode.OFFSET_OUT_OF_RANGE), (3, ErrorCode.NONE)):
        expect.error(_delete(broker, version, topic, offset), _CODE, code)


@case("DeleteRecords", _SOURCE)
def internal_topic(broker: Subject, version: int) -> None:
    """Records of an internal topic cannot be deleted: INVALID_TOPIC_EXCEPTION.

    Delete below offset 0 of __consumer_offsets, which has nothing there.
    """
    answer = _delete(broker, version, broker.offsets_topic(), 0)
    expect.error(answer, _CODE, ErrorCode.INVALID_TOPIC_EXCEPTION)


@case("DeleteRecords", "kafka.server.KafkaApis, handleDeleteRecordsRequest")
def same_partition_twice(broker: Subject, version: int) -> None:
    """Of a partition that is named twice Apache Kafka takes the last offset, and answers once.

    Write three records, delete below 2 and below 1 in one request.
    """
    wanted = [DeleteRecordsPartition(partition_index=0, offset=each) for each in (2, 1)]
    topics = [DeleteRecordsTopic(name=_three_records(broker).name, partitions=wanted)]
    request = DeleteRecordsRequest(topics=topics, timeout_ms=5000)
    answer = broker.ask(request, version, DeleteRecordsResponse)
    lows = [one.low_watermark for each in answer.topics for one in each.partitions]
    expect.true(lows[-1:] in ([1], [2]), "1 or 2", lows, "topics")
    expect.as_release(lows == [1], "1", lows, "topics")
