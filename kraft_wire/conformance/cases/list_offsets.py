"""ListOffsets, API key 2: offsets by time, and the special times."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.requests import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    MAX_TIMESTAMP,
    TIMESTAMP_MS,
    batch,
    list_offsets,
    written,
)
from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_offsets import ListOffsetsRequest, ListOffsetsResponse

_CODE: Final = "topics[0].partitions[0].error_code"
_OFFSET: Final = "topics[0].partitions[0].offset"
_TIMESTAMP: Final = "topics[0].partitions[0].timestamp"


def _answer(broker: Subject, version: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
    return broker.ask(request, version, ListOffsetsResponse)


def _three_records(broker: Subject) -> Topic:
    topic = broker.topic()
    written(broker, topic, batch(b"a", b"b", b"c"))
    return topic


@case("ListOffsets", "Kafka protocol guide, ListOffsets API")
def earliest(broker: Subject, version: int) -> None:
    """Timestamp -2 returns the log start offset.

    Ask for the earliest offset of a log of three records.
    """
    answer = _answer(broker, version, list_offsets(_three_records(broker), EARLIEST))
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, _OFFSET, 0)


@case("ListOffsets", "Kafka protocol guide, ListOffsets API")
def latest(broker: Subject, version: int) -> None:
    """Timestamp -1 returns the high watermark.

    Ask for the latest offset of a log of three records.
    """
    answer = _answer(broker, version, list_offsets(_three_records(broker), LATEST))
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, _OFFSET, 3)


@case("ListOffsets", "KIP-98, ListOffsets", since=2)
def latest_committed(broker: Subject, version: int) -> None:
    """Timestamp -1 with READ_COMMITTED returns the last stable offset.

    Ask with isolation level 1, without transactions: 3.
    """
    request = list_offsets(_three_records(broker), LATEST, isolation_level=1)
    expect.equal(_answer(broker, version, request), _OFFSET, 3)


@case("ListOffsets", "KIP-734", since=7)
def maximum_timestamp(broker: Subject, version: int) -> None:
    """Timestamp -3 returns the offset and time of the latest record by time.

    Ask for the maximum timestamp of a log of three records.
    """
    answer = _answer(broker, version, list_offsets(_three_records(broker), MAX_TIMESTAMP))
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, _OFFSET, 2)
    expect.equal(answer, _TIMESTAMP, TIMESTAMP_MS + 2000)


@case("ListOffsets", "KIP-405", since=8)
def earliest_local(broker: Subject, version: int) -> None:
    """Timestamp -4 returns the first offset on the broker's own disk.

    Ask for the earliest local offset of a log of three records: 0.
    """
    answer = _answer(broker, version, list_offsets(_three_records(broker), EARLIEST_LOCAL))
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, _OFFSET, 0)


@case("ListOffsets", "KIP-79")
def by_time(broker: Subject, version: int) -> None:
    """A time returns the first record that is not older, and the record's time.

    Ask for half a second after the first record: the second.
    """
    request = list_offsets(_three_records(broker), TIMESTAMP_MS + 500)
    answer = _answer(broker, version, request)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, _OFFSET, 1)
    expect.equal(answer, _TIMESTAMP, TIMESTAMP_MS + 1000)


@case("ListOffsets", "KIP-79")
def by_exact_time(broker: Subject, version: int) -> None:
    """A record's own time finds it.

    Ask for the time of the third record.
    """
    request = list_offsets(_three_records(broker), TIMESTAMP_MS + 2000)
    expect.equal(_answer(broker, version, request), _OFFSET, 2)


@case("ListOffsets", "KIP-79")
def time_behind_the_last_record(broker: Subject, version: int) -> None:
    """A time after the last record returns offset -1 and no error.

    Ask for a time that no record has reached.
    """
    request = list_offsets(_three_records(broker), TIMESTAMP_MS + 999_999)
    answer = _answer(broker, version, request)
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, _OFFSET, -1)
    expect.equal(answer, _TIMESTAMP, -1)


@case("ListOffsets", "kafka.server.KafkaApis, handleListOffsetRequest")
def unknown_partition(broker: Subject, version: int) -> None:
    """A partition that the topic does not have gets UNKNOWN_TOPIC_OR_PARTITION.

    Ask for partition 7 of a topic with one partition.
    """
    request = list_offsets(broker.topic(), LATEST, partition=7)
    expect.error(_answer(broker, version, request), _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("ListOffsets", "KIP-320, Fencing", since=4)
def newer_leader_epoch(broker: Subject, version: int) -> None:
    """A leader epoch above the leader's gets UNKNOWN_LEADER_EPOCH.

    Ask with current_leader_epoch=1000.
    """
    request = list_offsets(broker.topic(), LATEST, current_leader_epoch=1000)
    expect.error(_answer(broker, version, request), _CODE, ErrorCode.UNKNOWN_LEADER_EPOCH)


@case("ListOffsets", "KIP-320, ListOffsets", since=4)
def leader_epoch_of_the_offset(broker: Subject, version: int) -> None:
    """The response has the leader epoch of the offset that it names.

    Ask for the earliest offset of a log whose records are of epoch 0.
    """
    answer = _answer(broker, version, list_offsets(_three_records(broker), EARLIEST))
    expect.equal(answer, "topics[0].partitions[0].leader_epoch", 0)


@case("ListOffsets", "kafka.server.KafkaApis, handleListOffsetRequest")
def same_partition_twice(broker: Subject, version: int) -> None:
    """A partition that is named twice gets INVALID_REQUEST.

    Ask for the latest offset of partition 0 twice.
    """
    request = list_offsets(_three_records(broker), LATEST)
    request.topics[0].partitions *= 2
    answer = _answer(broker, version, request)
    expect.error(answer, _CODE, ErrorCode.INVALID_REQUEST)
