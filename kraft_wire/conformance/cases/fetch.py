"""Fetch, API key 1: reading records, sessions (KIP-227), fencing (KIP-320), topic ids (KIP-516)."""

import time
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.requests import (
    batch,
    deleted_below,
    fetch,
    fetch_partition,
    fetched,
    written,
)
from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.model import Uuid
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchRequest,
    FetchResponse,
    ForgottenTopic,
    PartitionData,
)
from kraft_wire.wire.records.record_batch import RecordBatch, parse_batches

_CODE: Final = fetch_partition("error_code")
_RECORDS: Final = fetch_partition("records")
_BY_ID: Final = 13
_SESSIONS_SINCE: Final = 7
_FENCING_SINCE: Final = 9
_DIVERGING_SINCE: Final = 12
_NOWHERE: Final = Topic("conform-no-such-topic", Uuid(b"conform no topic"))
_SESSIONS: Final = "KIP-227, Proposed Changes"
_LONG_WAIT_MS: Final = 1_500
_LOG_START_SINCE: Final = 5


def _answer(broker: Subject, version: int, request: FetchRequest) -> FetchResponse:
    return broker.ask(request, version, FetchResponse)


def _batches(answer: FetchResponse) -> list[RecordBatch]:
    return list(parse_batches(memoryview(_records(fetched(answer)))))


def _records(partition: PartitionData) -> bytes | bytearray | memoryview:
    found = partition.records
    assert isinstance(found, bytes | bytearray | memoryview | None)
    return found or b""


@case("Fetch", "Kafka protocol guide, Fetch API")
def records_come_back(broker: Subject, version: int) -> None:
    """A fetch returns the produced batch with its offset, and the high watermark.

    Produce two records, fetch from offset 0.
    """
    topic = broker.topic()
    written(broker, topic, batch(b"a", b"b"))
    answer = _answer(broker, version, fetch(topic, version))
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, fetch_partition("high_watermark"), 2)
    expect.equal(answer, fetch_partition("last_stable_offset"), 2)
    found = _batches(answer)
    expect.true(len(found) == 1, "one batch", len(found), _RECORDS)
    values = [bytes(each.value or b"") for each in found[0].records()]
    expect.true(values == [b"a", b"b"], "records a and b", values, _RECORDS)
    expect.true(found[0].base_offset == 0, "base offset 0", found[0].base_offset, _RECORDS)


@case("Fetch", "Kafka protocol guide, Fetch API")
def batches_are_whole(broker: Subject, version: int) -> None:
    """A fetch from the middle of a batch returns the whole batch.

    Produce a batch of three records, fetch from offset 2: the batch begins at offset 0.
    """
    topic = broker.topic()
    written(broker, topic, batch(b"a", b"b", b"c"))
    found = _batches(_answer(broker, version, fetch(topic, version, 2)))
    seen = [each.base_offset for each in found]
    expect.true(seen == [0], "a batch that begins at 0", seen, _RECORDS)


@case("Fetch", "Kafka protocol guide, Fetch API")
def end_of_the_log(broker: Subject, version: int) -> None:
    """A fetch at the high watermark returns no records and no error.

    Fetch offset 0 of an empty partition with max_wait_ms=0.
    """
    answer = _answer(broker, version, fetch(broker.topic(), version))
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.true(not fetched(answer).records, "no records", fetched(answer).records, _RECORDS)


@case("Fetch", "kafka.server.ReplicaManager, readFromLog")
def offset_beyond_the_end(broker: Subject, version: int) -> None:
    """An offset beyond the log's end gets OFFSET_OUT_OF_RANGE.

    Fetch offset 5 of an empty partition.
    """
    answer = _answer(broker, version, fetch(broker.topic(), version, 5))
    expect.error(answer, _CODE, ErrorCode.OFFSET_OUT_OF_RANGE)


@case("Fetch", "kafka.server.ReplicaManager, readFromLog")
def negative_offset(broker: Subject, version: int) -> None:
    """An offset below the log's start gets OFFSET_OUT_OF_RANGE.

    Fetch offset -1.
    """
    answer = _answer(broker, version, fetch(broker.topic(), version, -1))
    expect.error(answer, _CODE, ErrorCode.OFFSET_OUT_OF_RANGE)


@case("Fetch", "kafka.server.KafkaApis, handleFetchRequest", until=_BY_ID - 1)
def unknown_topic(broker: Subject, version: int) -> None:
    """An unknown topic gets UNKNOWN_TOPIC_OR_PARTITION.

    Fetch from a topic that does not exist.
    """
    answer = _answer(broker, version, fetch(_NOWHERE, version))
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("Fetch", "KIP-516, Fetch", since=_BY_ID)
def unknown_topic_id(broker: Subject, version: int) -> None:
    """An unknown topic id gets UNKNOWN_TOPIC_ID.

    Fetch from a topic id that does not exist.
    """
    answer = _answer(broker, version, fetch(_NOWHERE, version))
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_ID)


@case("Fetch", "kafka.server.KafkaApis, handleFetchRequest")
def unknown_partition(broker: Subject, version: int) -> None:
    """A partition that the topic does not have gets UNKNOWN_TOPIC_OR_PARTITION.

    Fetch partition 7 of a topic with one partition.
    """
    answer = _answer(broker, version, fetch(broker.topic(), version, partitions=[7]))
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("Fetch", "Kafka protocol guide, Fetch API")
def waits_for_records(broker: Subject, version: int) -> None:
    """A fetch that waits for bytes gets records as soon as they are produced.

    Fetch the end of the log with a long max_wait_ms; produce on another connection; the response
    has the record.
    """
    topic = broker.topic()
    waiting = broker.connect()
    request = fetch(topic, version, max_wait_ms=int(broker.target.timeout_s * 900))
    payload, header = waiting.encoded(request, version)
    waiting.send_frame(payload)
    expect.true(waiting.is_silent(0.1), "no response yet", "a response")
    written(broker, topic, batch(b"a"))
    answer = waiting.response(payload, header, FetchResponse)
    found = [each.base_offset for each in _batches(answer)]
    expect.true(found == [0], "the batch at offset 0", found, _RECORDS)


@case("Fetch", "Kafka protocol guide, Fetch API")
def waits_no_longer_than_asked(broker: Subject, version: int) -> None:
    """A fetch that waits for bytes gets a response after max_wait_ms.

    Fetch the end of the log with max_wait_ms=1500: no response in the first second.
    """
    topic = broker.topic()
    connection = broker.connect()
    request = fetch(topic, version, max_wait_ms=_LONG_WAIT_MS)
    payload, header = connection.encoded(request, version)
    started = time.monotonic()
    connection.send_frame(payload)
    answer = connection.response(payload, header, FetchResponse)
    expect.error(answer, _CODE, ErrorCode.NONE)
    waited_s = time.monotonic() - started
    expect.true(waited_s >= 1.0, "a wait of 1.5 s", f"a response after {waited_s:.2f} s")


@case("Fetch", "KIP-74")
def first_batch_above_the_limit(broker: Subject, version: int) -> None:
    """The first batch is returned whole, even if it is larger than both limits.

    Produce 1,000 bytes, fetch with max_bytes=1 and partition_max_bytes=1.
    """
    topic = broker.topic()
    written(broker, topic, batch(b"x" * 1000))
    request = fetch(topic, version, max_bytes=1, partition_max_bytes=1)
    found = _batches(_answer(broker, version, request))
    expect.true(len(found) == 1, "one batch", len(found), _RECORDS)


@case("Fetch", "KIP-74")
def later_batches_within_the_limit(broker: Subject, version: int) -> None:
    """After the first batch, no batch begins above partition_max_bytes.

    Produce five batches of 1,000 bytes, fetch with partition_max_bytes=1: one batch is parseable.
    """
    topic = broker.topic()
    written(broker, topic, *[batch(b"x" * 1000)] * 5)
    request = fetch(topic, version, partition_max_bytes=1)
    found = _batches(_answer(broker, version, request))
    expect.true(len(found) == 1, "one whole batch", len(found), _RECORDS)


@case("Fetch", "KIP-110", until=9)
def zstd_in_an_older_version(broker: Subject, version: int) -> None:
    """Records compressed with zstd are not sent below version 10: UNSUPPORTED_COMPRESSION_TYPE.

    Produce to a topic with compression.type=zstd, fetch.
    """
    topic = broker.topic(configs={"compression.type": "zstd"})
    written(broker, topic, batch(b"a", compression=Compression.ZSTD))
    answer = _answer(broker, version, fetch(topic, version))
    expect.error(answer, _CODE, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


@case("Fetch", "KIP-110", since=10)
def zstd(broker: Subject, version: int) -> None:
    """Records compressed with zstd are sent as they were produced.

    Produce a batch compressed with zstd, fetch.
    """
    topic = broker.topic()
    written(broker, topic, batch(b"a" * 50, compression=Compression.ZSTD))
    found = _batches(_answer(broker, version, fetch(topic, version)))
    seen = [each.compression for each in found]
    expect.true(seen == [Compression.ZSTD], "a batch in zstd", seen, _RECORDS)


# -- fencing ---------------------------------------------------------------------------------


@case("Fetch", "KIP-320, Fencing", since=_FENCING_SINCE)
def newer_leader_epoch(broker: Subject, version: int) -> None:
    """A leader epoch above the leader's gets UNKNOWN_LEADER_EPOCH.

    Fetch with current_leader_epoch=1000.
    """
    request = fetch(broker.topic(), version, current_leader_epoch=1000)
    expect.error(_answer(broker, version, request), _CODE, ErrorCode.UNKNOWN_LEADER_EPOCH)


@case("Fetch", "KIP-320, Fencing", since=_FENCING_SINCE)
def same_leader_epoch(broker: Subject, version: int) -> None:
    """The leader's own epoch is accepted.

    Fetch with current_leader_epoch=0 from a new topic.
    """
    request = fetch(broker.topic(), version, current_leader_epoch=0)
    expect.error(_answer(broker, version, request), _CODE, ErrorCode.NONE)


@case("Fetch", "KIP-595, Fetch", since=_DIVERGING_SINCE)
def position_in_the_log(broker: Subject, version: int) -> None:
    """A position in the leader's log gets no diverging epoch.

    Produce one record in epoch 0, fetch offsets 0 and 1 with last_fetched_epoch=0.
    """
    topic = broker.topic()
    written(broker, topic, batch(b"a"))
    for offset in (0, 1):
        request = fetch(topic, version, offset, last_fetched_epoch=0)
        answer = _answer(broker, version, request)
        expect.error(answer, _CODE, ErrorCode.NONE)
        found = fetched(answer).diverging_epoch
        none = found is None or found.epoch == -1
        expect.true(none, "no diverging epoch", found, fetch_partition("diverging_epoch"))


@case("Fetch", "KIP-595, Fetch", since=_DIVERGING_SINCE)
def diverging_epoch(broker: Subject, version: int) -> None:
    """A position beyond the end of its epoch gets the epoch and its end offset.

    Produce one record in epoch 0, fetch offset 5 with last_fetched_epoch=0: the epoch ends at 1.
    """
    topic = broker.topic()
    written(broker, topic, batch(b"a"))
    answer = _answer(broker, version, fetch(topic, version, 5, last_fetched_epoch=0))
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, fetch_partition("diverging_epoch.epoch"), 0)
    expect.equal(answer, fetch_partition("diverging_epoch.end_offset"), 1)
    expect.true(not fetched(answer).records, "no records", fetched(answer).records, _RECORDS)


# -- sessions --------------------------------------------------------------------------------


def _session(broker: Subject, version: int, topic: Topic, partitions: int = 1) -> int:
    """Begin a session; return its id."""
    request = fetch(topic, version, partitions=range(partitions), session=(0, 0))
    answer = _answer(broker, version, request)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.true(answer.session_id > 0, "a session id", answer.session_id, "session_id")
    counts, seen = [len(each.partitions) for each in answer.responses], answer.responses
    expect.true(counts == [partitions], f"all {partitions} partitions", seen, "responses")
    return answer.session_id


@case("Fetch", _SESSIONS, since=_SESSIONS_SINCE)
def session_begins(broker: Subject, version: int) -> None:
    """A full fetch with session epoch 0 begins a session and returns every partition.

    Fetch two empty partitions with session id 0 and epoch 0.
    """
    _session(broker, version, broker.topic(2), 2)


@case("Fetch", _SESSIONS, since=_SESSIONS_SINCE)
def incremental_fetch_without_news(broker: Subject, version: int) -> None:
    """An incremental fetch omits partitions without changes.

    Begin a session, fetch with epoch 1 and no partitions.
    """
    topic = broker.topic(2)
    session_id = _session(broker, version, topic, 2)
    request = fetch(topic, version, partitions=[], session=(session_id, 1))
    answer = _answer(broker, version, request)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.equal(answer, "session_id", session_id)
    expect.equal(answer, "responses", [])


@case("Fetch", _SESSIONS, since=_SESSIONS_SINCE)
def incremental_fetch_with_news(broker: Subject, version: int) -> None:
    """An incremental fetch returns only the partitions with new records.

    Begin a session over two partitions, produce to partition 1, fetch with epoch 1.
    """
    topic = broker.topic(2)
    session_id = _session(broker, version, topic, 2)
    written(broker, topic, batch(b"a"), partition=1)
    request = fetch(topic, version, partitions=[], session=(session_id, 1))
    answer = _answer(broker, version, request)
    expect.equal(answer, fetch_partition("partition_index"), 1)
    count = len(answer.responses[0].partitions)
    expect.true(count == 1, "one partition", count, "responses[0].partitions")


@case("Fetch", _SESSIONS, since=_SESSIONS_SINCE)
def partition_leaves_the_session(broker: Subject, version: int) -> None:
    """A removed partition is no longer fetched.

    Begin a session over two partitions, remove partition 1, produce to it, fetch.
    """
    topic = broker.topic(2)
    session_id = _session(broker, version, topic, 2)
    forgotten = ForgottenTopic(partitions=[1])
    if version >= _BY_ID:
        forgotten.topic_id = topic.topic_id
    else:
        forgotten.topic = topic.name
    request = fetch(topic, version, partitions=[], session=(session_id, 1))
    request.forgotten_topics_data = [forgotten]
    _answer(broker, version, request)
    written(broker, topic, batch(b"a"), partition=1)
    request = fetch(topic, version, partitions=[], session=(session_id, 2))
    expect.equal(_answer(broker, version, request), "responses", [])


@case("Fetch", _SESSIONS, since=_SESSIONS_SINCE)
def unknown_session(broker: Subject, version: int) -> None:
    """An unknown session id gets FETCH_SESSION_ID_NOT_FOUND.

    Fetch with session id 1234567 and epoch 1.
    """
    request = fetch(broker.topic(), version, partitions=[], session=(1_234_567, 1))
    answer = _answer(broker, version, request)
    expect.error(answer, "error_code", ErrorCode.FETCH_SESSION_ID_NOT_FOUND)


@case("Fetch", _SESSIONS, since=_SESSIONS_SINCE)
def wrong_session_epoch(broker: Subject, version: int) -> None:
    """A session epoch that is not the next one gets INVALID_FETCH_SESSION_EPOCH.

    Begin a session, fetch with epoch 5.
    """
    topic = broker.topic()
    session_id = _session(broker, version, topic)
    request = fetch(topic, version, partitions=[], session=(session_id, 5))
    answer = _answer(broker, version, request)
    expect.error(answer, "error_code", ErrorCode.INVALID_FETCH_SESSION_EPOCH)


@case("Fetch", _SESSIONS, since=_SESSIONS_SINCE)
def session_ends(broker: Subject, version: int) -> None:
    """A fetch with session epoch -1 ends its session.

    Begin a session, end it, fetch incrementally: FETCH_SESSION_ID_NOT_FOUND.
    """
    topic = broker.topic()
    session_id = _session(broker, version, topic)
    ended = _answer(broker, version, fetch(topic, version, session=(session_id, -1)))
    expect.equal(ended, "session_id", 0)
    request = fetch(topic, version, partitions=[], session=(session_id, 1))
    answer = _answer(broker, version, request)
    expect.error(answer, "error_code", ErrorCode.FETCH_SESSION_ID_NOT_FOUND)


@case("Fetch", "KIP-595, Log divergence", since=12)
def epoch_below_the_log_start(broker: Subject, version: int) -> None:
    """An offset below the log start is OFFSET_OUT_OF_RANGE, also with a last fetched epoch.

    Delete two of three records, fetch offset 0 with last fetched epoch 0.
    """
    topic = broker.topic()
    written(broker, topic, batch(b"a"), batch(b"b"), batch(b"c"))
    deleted_below(broker, topic, 2)
    request = fetch(topic, version, last_fetched_epoch=0)
    answer = _answer(broker, version, request)
    expect.error(answer, fetch_partition("error_code"), ErrorCode.OFFSET_OUT_OF_RANGE)


@case("Fetch", "KIP-392", since=11)
def reader_in_a_rack(broker: Subject, version: int) -> None:
    """A consumer in a rack reads from the leader if no follower is in that rack.

    Fetch two records with a rack id.
    """
    topic = broker.topic()
    written(broker, topic, batch(b"a"), batch(b"b"))
    request = fetch(topic, version, offset=1)
    request.rack_id = "conform"
    answer = _answer(broker, version, request)
    expect.error(answer, fetch_partition("error_code"), ErrorCode.NONE)
    offsets = [each.base_offset for each in _batches(answer)]
    expect.true(offsets == [1], "the record at offset 1", offsets, fetch_partition("records"))


@case("Fetch", _SESSIONS, since=_SESSIONS_SINCE)
def partition_that_a_limit_cut_off(broker: Subject, version: int) -> None:
    """A partition whose records did not fit is in the next incremental fetch.

    Produce to two partitions, begin a session with max_bytes=1: it returns records of partition 0
    alone. Fetch the records after them: the response has the records of partition 1 alone.
    """
    topic = broker.topic(2)
    for partition in (0, 1):
        written(broker, topic, batch(b"x" * 1000), partition=partition)
    request = fetch(topic, version, partitions=(0, 1), max_bytes=1, session=(0, 0))
    first = _answer(broker, version, request)
    sizes = [len(_records(each)) > 0 for each in first.responses[0].partitions]
    expect.true(sizes == [True, False], "records of partition 0", sizes, _RECORDS)
    request = fetch(topic, version, 1, max_bytes=1, session=(first.session_id, 1))
    answer = _answer(broker, version, request)
    expect.equal(answer, fetch_partition("partition_index"), 1)
    expect.true(len(_batches(answer)) == 1, "its batch", fetched(answer).records, _RECORDS)


@case("Fetch", "KIP-74")
def limit_of_several_partitions(broker: Subject, version: int) -> None:
    """Only the first partition with records may exceed the limit of the whole request.

    Produce 1,000 bytes to each of two partitions, fetch both with max_bytes=1, then with 1,500.
    """
    topic = broker.topic(2)
    for partition in (0, 1):
        written(broker, topic, batch(b"x" * 1000), partition=partition)
    for limit in (1, 1500):
        request = fetch(topic, version, partitions=(0, 1), max_bytes=limit)
        found = _answer(broker, version, request).responses[0].partitions
        heads = [len(list(parse_batches(memoryview(_records(each))))) for each in found]
        expect.true(heads == [1, 0], "one batch, of partition 0", heads, _RECORDS)


@case("Fetch", "KIP-74")
def limit_of_the_request(broker: Subject, version: int) -> None:
    """A response has no more bytes than max_bytes, whatever the partition may have.

    Produce five batches of 1,000 bytes, fetch with max_bytes=2500.
    """
    topic = broker.topic()
    written(broker, topic, *[batch(b"x" * 1000)] * 5)
    answer = _answer(broker, version, fetch(topic, version, max_bytes=2500))
    size = len(_records(fetched(answer)))
    expect.true(1000 < size <= 2500, "at most 2500 bytes", size, _RECORDS)


@case("Fetch", "Kafka protocol guide, Fetch API")
def order_of_partitions(broker: Subject, version: int) -> None:
    """Partitions are answered in the order of the request.

    Fetch partitions 2, 0 and 1 of a topic of three.
    """
    topic = broker.topic(3)
    answer = _answer(broker, version, fetch(topic, version, partitions=(2, 0, 1)))
    found = [each.partition_index for each in answer.responses[0].partitions]
    expect.true(found == [2, 0, 1], "2, 0, 1", found, "responses")


@case("Fetch", "kafka.server.ReplicaManager, fetchMessages")
def error_is_answered_at_once(broker: Subject, version: int) -> None:
    """A fetch with an error does not wait for bytes.

    Fetch an offset beyond the end, and an empty partition, with a long max_wait_ms.
    """
    topic = broker.topic(2)
    wait_ms = int(broker.target.timeout_s * 800)
    request = fetch(topic, version, partitions=(0, 1), max_wait_ms=wait_ms)
    request.topics[0].partitions[1].fetch_offset = 5
    started = time.monotonic()
    answer = _answer(broker, version, request)
    waited_s = time.monotonic() - started
    expect.true(waited_s < wait_ms / 2000, "a response at once", f"{waited_s:.2f} s later")
    codes = {each.partition_index: each.error_code for each in answer.responses[0].partitions}
    wanted = {0: 0, 1: int(ErrorCode.OFFSET_OUT_OF_RANGE)}
    expect.true(codes == wanted, str(wanted), codes, "responses")


@case("Fetch", "kafka.server.ReplicaManager, readFromLog")
def offset_one_beyond_the_end(broker: Subject, version: int) -> None:
    """The offset behind the next one gets OFFSET_OUT_OF_RANGE, the next one does not.

    Produce a record, fetch offsets 1 and 2.
    """
    topic = broker.topic()
    written(broker, topic, batch(b"a"))
    for offset, code in ((1, ErrorCode.NONE), (2, ErrorCode.OFFSET_OUT_OF_RANGE)):
        answer = _answer(broker, version, fetch(topic, version, offset))
        expect.error(answer, _CODE, code)


@case("Fetch", "KIP-107")
def records_that_were_deleted(broker: Subject, version: int) -> None:
    """Offsets below the log start get OFFSET_OUT_OF_RANGE; the response has the log start.

    Produce three records, delete those below 2, fetch offsets 1 and 2.
    """
    topic = broker.topic()
    written(broker, topic, batch(b"a"), batch(b"b"), batch(b"c"))
    deleted_below(broker, topic, 2)
    answer = _answer(broker, version, fetch(topic, version, 1))
    expect.error(answer, _CODE, ErrorCode.OFFSET_OUT_OF_RANGE)
    answer = _answer(broker, version, fetch(topic, version, 2))
    expect.error(answer, _CODE, ErrorCode.NONE)
    expect.equal(answer, fetch_partition("high_watermark"), 3)
    if version >= _LOG_START_SINCE:
        expect.equal(answer, fetch_partition("log_start_offset"), 2)


@case("Fetch", "KIP-98, read_committed")
def unknown_isolation_level(broker: Subject, version: int) -> None:
    """An unknown isolation level fails the request; 4.3.1 answers UNKNOWN_SERVER_ERROR.

    Fetch with isolation level 2.
    """
    answer = _answer(broker, version, fetch(broker.topic(), version, isolation_level=2))
    expect.internal_error(answer, "error_code" if version >= _SESSIONS_SINCE else _CODE)


@case("Fetch", "KIP-595, Log divergence", since=_DIVERGING_SINCE)
def epoch_above_the_log(broker: Subject, version: int) -> None:
    """A last fetched epoch above that of the log gets OFFSET_OUT_OF_RANGE.

    Produce a record in epoch 0, fetch offset 1 with last_fetched_epoch=1000.
    """
    topic = broker.topic()
    written(broker, topic, batch(b"a"))
    answer = _answer(broker, version, fetch(topic, version, 1, last_fetched_epoch=1000))
    expect.error(answer, _CODE, ErrorCode.OFFSET_OUT_OF_RANGE)


@case("Fetch", "kafka.server.DelayedFetch, tryComplete")
def older_segment_is_answered_at_once(broker: Subject, version: int) -> None:
    """A fetch from a segment that is full does not wait for more bytes.

    Produce two batches of 600,000 bytes with segment.bytes=1048576, fetch the first one with a
    long max_wait_ms and min_bytes of 5 MB.
    """
    topic = broker.topic(configs={"segment.bytes": "1048576"})
    written(broker, topic, *[batch(b"x" * 600_000)] * 2)
    wait_ms = int(broker.target.timeout_s * 800)
    request = fetch(topic, version, max_wait_ms=wait_ms, min_bytes=5_000_000)
    request.max_bytes = request.topics[0].partitions[0].partition_max_bytes = 10_000_000
    started = time.monotonic()
    answer = _answer(broker, version, request)
    waited_s = time.monotonic() - started
    expect.true(len(_records(fetched(answer))) > 0, "records", "none", _RECORDS)
    late = f"{waited_s:.2f} s later"
    expect.as_release(waited_s < wait_ms / 2000, "a response at once", late)


@case("Fetch", "KIP-482, Records", since=17)
def more_than_two_mebibytes(broker: Subject, version: int) -> None:
    """A response has as many bytes of a partition as were asked for, whatever their length takes.

    Write 3 records of 900,000 bytes, fetch them together.
    """
    topic = broker.topic()
    written(broker, topic, *(batch(each * 900_000) for each in (b"a", b"b", b"c")))
    request = fetch(topic, version, max_bytes=1 << 22, partition_max_bytes=1 << 22)
    answer = _answer(broker, version, request)
    expect.error(answer, _CODE, ErrorCode.NONE)
    offsets = [each.base_offset for each in _batches(answer)]
    expect.true(offsets == [0, 1, 2], "[0, 1, 2]", offsets, _RECORDS)
