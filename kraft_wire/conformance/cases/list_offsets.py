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
from kraft_wire.conformance.transactions import new_producer, written_in
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_offsets import ListOffsetsRequest, ListOffsetsResponse

_CODE: Final = "topics[0].partitions[0].error_code"
_OFFSET: Final = "topics[0].partitions[0].offset"
_TIMESTAMP: Final = "topics[0].partitions[0].timestamp"
_EPOCH: Final = "topics[0].partitions[0].leader_epoch"
_EPOCHS_SINCE: Final = 4
_SPECIAL_SINCE: Final = {-3: 7, -4: 8, -5: 9, -6: 11}
"""Special times and the first version of each."""


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


@case("ListOffsets", "org.apache.kafka.common.requests.ListOffsetsRequest")
def special_times_of_later_versions(broker: Subject, version: int) -> None:
    """A special time is refused with UNSUPPORTED_VERSION below its first version.

    Ask for times -3 to -6 as far as they are of later versions, and for -7.
    """
    topic = _three_records(broker)
    later = [each for each, since in _SPECIAL_SINCE.items() if version < since]
    for timestamp in (*later, -7):
        answer = _answer(broker, version, list_offsets(topic, timestamp))
        expect.error(answer, _CODE, ErrorCode.UNSUPPORTED_VERSION)
        expect.equal(answer, _OFFSET, -1)


@case("ListOffsets", "kafka.server.ReplicaManager, fetchOffset")
def empty_log(broker: Subject, version: int) -> None:
    """An empty log has offset 0 at both ends, and nothing at any time.

    Ask an empty partition for the earliest and the latest offset, and for time 0.
    """
    topic = broker.topic()
    for timestamp, offset in ((EARLIEST, 0), (LATEST, 0), (0, -1)):
        answer = _answer(broker, version, list_offsets(topic, timestamp))
        expect.error(answer, _CODE, ErrorCode.NONE)
        expect.equal(answer, _OFFSET, offset)
        expect.equal(answer, _TIMESTAMP, -1)


@case("ListOffsets", "KIP-320, ListOffsets", since=_EPOCHS_SINCE)
def leader_epochs_at_both_ends(broker: Subject, version: int) -> None:
    """The ends of a log have the leader epoch of the offset.

    Ask a new topic with records for the earliest and the latest offset: epoch 0.
    """
    topic = _three_records(broker)
    for timestamp in (EARLIEST, LATEST):
        answer = _answer(broker, version, list_offsets(topic, timestamp))
        expect.equal(answer, _EPOCH, 0)


@case("ListOffsets", "kafka.server.KafkaApis, handleListOffsetRequest", since=2)
def unknown_isolation_level(broker: Subject, version: int) -> None:
    """An unknown isolation level fails the request; 4.3.1 answers UNKNOWN_SERVER_ERROR.

    Ask with isolation level 2.
    """
    request = list_offsets(_three_records(broker), LATEST, isolation_level=2)
    answer = _answer(broker, version, request)
    expect.internal_error(answer, _CODE)


@case("ListOffsets", "KIP-98, read_committed", since=2)
def time_of_an_open_transaction(broker: Subject, version: int) -> None:
    """Records of an open transaction are not found by their time with READ_COMMITTED.

    Write a record in a transaction, ask for its time with both isolation levels.
    """
    _found_while_open(broker, version, TIMESTAMP_MS)


@case("ListOffsets", "KIP-734", since=7)
def maximum_timestamp_of_an_open_transaction(broker: Subject, version: int) -> None:
    """The latest record by time is not returned with READ_COMMITTED while its transaction is open.

    Write a record in a transaction, ask for the maximum timestamp with both isolation levels.
    """
    _found_while_open(broker, version, MAX_TIMESTAMP)


def _found_while_open(broker: Subject, version: int, timestamp: int) -> None:
    """Expect the record of an open transaction with READ_UNCOMMITTED alone."""
    topic, producer = broker.topic(), new_producer(broker)
    written_in(broker, producer, topic)
    for isolation, offset in ((0, 0), (1, -1)):
        request = list_offsets(topic, timestamp, isolation_level=isolation)
        answer = _answer(broker, version, request)
        expect.error(answer, _CODE, ErrorCode.NONE)
        expect.equal(answer, _OFFSET, offset)


@case("ListOffsets", "KIP-1005, KIP-1023", since=9)
def no_tiered_storage(broker: Subject, version: int) -> None:
    """A topic without tiered storage has no tiered offset, and none that waits for an upload.

    Write three records, ask for time -5, from version 11 on also for -6.
    """
    topic = _three_records(broker)
    for timestamp in (-5, -6):
        if version >= _SPECIAL_SINCE[timestamp]:
            answer = _answer(broker, version, list_offsets(topic, timestamp))
            expect.error(answer, _CODE, ErrorCode.NONE)
            expect.equal(answer, _OFFSET, -1)
            expect.equal(answer, _TIMESTAMP, -1)
