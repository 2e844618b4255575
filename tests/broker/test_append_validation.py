"""What a leader lets into its log, row by row, over real storage on a simulated disk.

Errors and their order are those that Apache's broker gives to the same batches (the differential
probes ask it); here every rule is broken alone, in milliseconds.
"""

import struct
from random import Random

import pytest

from kraft_wire.broker.partition import AppendResult, Partition
from kraft_wire.broker.producing.append_validation import AppendOrigin
from kraft_wire.model import LeaderEpoch, Offset
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.wire.compression.codecs import Compression, compress
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record, append_record
from kraft_wire.wire.records.record_batch import parse_batches
from tests.storage.making import TOPIC_ID, contents, open_at

WALL_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def partition(**settings: object) -> Partition:
    log = open_at(SimFileSystem(), LogConfig(**settings))  # type: ignore[arg-type]  # of the test
    return Partition("t", TOPIC_ID, 0, log, LeaderEpoch(4))


def batch(
    count: int = 2, *, key: bytes | None = b"k", time_ms: int = WALL_MS, **more: object
) -> bytearray:
    records = [Record(key, b"v" * 20, timestamp=time_ms) for _ in range(count)]
    return build_batch(records, **more)  # type: ignore[arg-type]  # of the test


def produced(target: Partition, data: bytes | bytearray, acks: int = -1) -> AppendResult:
    (parsed,) = parse_batches(bytearray(data))
    return target.append_as_leader(
        parsed, origin=AppendOrigin.CLIENT, acks=acks, now_ms=1, wall_ms=WALL_MS
    )


def with_head(data: bytearray, form: str, at: int, value: int) -> bytearray:
    """Change a field of the head, and make the checksum right again."""
    struct.pack_into(form, data, at, value)
    struct.pack_into(">I", data, 17, crc32c(memoryview(data)[21:]))
    return data


def test_sound_batch_gets_offsets_epoch_and_is_committed() -> None:
    target = partition()
    assert [produced(target, batch()).base_offset for _ in range(3)] == [0, 2, 4]
    assert target.high_watermark == target.log_end_offset == 6
    stored = contents(target.log)  # type: ignore[arg-type]  # it is a log
    assert [struct.unpack_from(">qii", each)[::2] for each in stored] == [(0, 4), (2, 4), (4, 4)]


def spoilt(data: bytearray) -> bytearray:
    data[-1] ^= 1
    return data


REFUSED = [
    ("checksum", spoilt(batch()), E.CORRUPT_MESSAGE),
    ("base offset", with_head(batch(), ">q", 0, 5), E.INVALID_RECORD),
    ("control record", batch(is_control=True), E.INVALID_RECORD),
    ("more offsets than records", with_head(batch(), ">i", 23, 9), E.INVALID_RECORD),
    ("fewer offsets than records", with_head(batch(), ">i", 23, 0), E.INVALID_RECORD),
    ("negative range of offsets", with_head(batch(), ">i", 23, -2), E.INVALID_RECORD),
    ("no records", with_head(batch(), ">i", 57, 0), E.INVALID_RECORD),
    ("producer without sequence", batch(producer_id=7, producer_epoch=0), E.INVALID_RECORD),
    ("far future", batch(time_ms=WALL_MS + 2 * HOUR_MS), E.INVALID_TIMESTAMP),
    ("too large", batch(60), E.MESSAGE_TOO_LARGE),
    ("unknown codec", with_head(batch(), ">h", 21, 6), E.UNKNOWN_SERVER_ERROR),
]


@pytest.mark.parametrize(("name", "data", "error"), REFUSED, ids=[row[0] for row in REFUSED])
def test_unsound_batch_is_refused_and_nothing_is_written(
    name: str, data: bytearray, error: E
) -> None:
    target = partition(max_message_bytes=1_000, message_timestamp_after_max_ms=HOUR_MS)
    result = produced(target, data)
    assert (result.error, result.base_offset) == (error, -1), name
    assert target.log_end_offset == 0


def test_batch_of_just_max_message_bytes_is_taken_and_one_byte_more_is_not() -> None:
    data = batch()
    assert produced(partition(max_message_bytes=len(data)), data).error is E.NONE
    refused = produced(partition(max_message_bytes=len(data) - 1), data)
    assert refused.error is E.MESSAGE_TOO_LARGE


def test_batch_of_just_segment_bytes_is_taken_and_one_byte_more_is_not() -> None:
    """RecordBatchTooLargeException, code 18; as for MESSAGE_TOO_LARGE, without a log start."""
    data = batch()
    target = partition(segment_bytes=len(data))
    assert produced(target, batch()).error is E.NONE
    target = partition(segment_bytes=len(data) - 1)
    refused = produced(target, batch())
    assert (refused.error, refused.base_offset) == (E.RECORD_LIST_TOO_LARGE, -1)
    assert (refused.log_start_offset, target.log_end_offset) == (-1, 0)


@pytest.mark.parametrize("bits", [0, 8])
def test_batch_in_bytes_that_cannot_be_written_is_copied(bits: int) -> None:
    """A caller's bytes stay as they are; the log has the offset, epoch and times."""
    target = partition()
    produced(target, batch())
    sent = bytes(with_head(batch(time_ms=WALL_MS), ">h", 21, bits))
    (parsed,) = parse_batches(sent)
    before = bytes(sent)
    result = target.append_as_leader(
        parsed, origin=AppendOrigin.CLIENT, acks=-1, now_ms=1, wall_ms=WALL_MS
    )
    assert (result.error, result.base_offset, result.last_offset) == (E.NONE, 2, 3)
    assert sent == before
    (_, stored) = contents(target.log)  # type: ignore[arg-type]  # it is a log
    assert struct.unpack_from(">q", stored) == (2,)
    assert struct.unpack_from(">i", stored, 12) == (4,)
    assert struct.unpack_from(">h", stored, 21) == (0,)
    assert struct.unpack_from(">I", stored, 17) == (crc32c(stored[21:]),)


@pytest.mark.parametrize("header", [-1, -5, 7])
def test_largest_time_of_records_before_1970_is_none(header: int) -> None:
    """LogValidator counts from -1, which stands for no time, upwards."""
    target = partition()
    sent = with_head(batch(time_ms=-5), ">q", 35, header)
    assert produced(target, sent).error is E.NONE
    (stored,) = contents(target.log)  # type: ignore[arg-type]  # it is a log
    assert struct.unpack_from(">q", stored, 35) == (-1,)
    assert struct.unpack_from(">I", stored, 17) == (crc32c(stored[21:]),)


@pytest.mark.parametrize("header", [WALL_MS - 5, WALL_MS, WALL_MS - 9])
def test_largest_time_is_that_of_a_record_also_below_the_base_time(header: int) -> None:
    """LogValidator looks at each record; the base time of a batch need not be that of one."""
    target = partition()
    sent = batch(1)
    assert sent[63] == 0, "the first record's difference to the base time"
    sent[63] = 9  # zigzag of -5
    sent = with_head(sent, ">q", 35, header)
    assert produced(target, sent).error is E.NONE
    (stored,) = contents(target.log)  # type: ignore[arg-type]  # it is a log
    assert struct.unpack_from(">qq", stored, 27) == (WALL_MS, WALL_MS - 5)
    assert struct.unpack_from(">I", stored, 17) == (crc32c(stored[21:]),)


def test_largest_time_of_records_that_go_back_in_time_is_that_of_the_first() -> None:
    target = partition()
    records = [Record(b"k", b"v" * size, timestamp=WALL_MS - size) for size in (0, 9, 200)]
    assert produced(target, build_batch(records)).error is E.NONE
    (stored,) = contents(target.log)  # type: ignore[arg-type]  # it is a log
    assert struct.unpack_from(">qq", stored, 27) == (WALL_MS, WALL_MS)


@pytest.mark.parametrize(("count", "error"), [(2, E.NONE), (3, E.UNKNOWN_SERVER_ERROR)])
def test_the_end_of_a_log_is_an_offset(count: int, error: E) -> None:
    """A leader of before may have sent a batch with nearly the largest offset of 64 bits."""
    target = partition()
    end = (1 << 63) - 3
    target.log.truncate_fully_and_start_at(Offset(end))
    records = [Record(b"k", b"v", timestamp=WALL_MS)] * count
    assert produced(target, build_batch(records)).error == error
    assert target.log.log_end_offset == (end + count if error is E.NONE else end)


def test_reader_that_names_no_epoch_diverges_nowhere() -> None:
    """KIP-595: -1 is the default of LastFetchedEpoch."""
    target = partition()
    produced(target, batch())
    assert target.diverging_point(Offset(9), -1) is None
    assert target.diverging_point(Offset(2), 4) is None
    assert target.diverging_point(Offset(9), 4) == (2, 4)
    assert target.diverging_point(Offset(1), 3) == (0, 3)
    assert target.diverging_point(Offset(1), 5) == (2, 4)


def test_compacted_topic_names_the_records_without_a_key() -> None:
    target = partition(cleanup_policy=("compact",))
    result = produced(target, batch(2, key=None))
    assert result.error is E.INVALID_RECORD
    assert [each.batch_index for each in result.record_errors] == [0, 1]
    assert produced(target, batch(2)).error is E.NONE


def test_log_append_time_is_stamped_and_told() -> None:
    target = partition(message_timestamp_type="LogAppendTime")
    result = produced(target, batch(time_ms=5))
    assert result.log_append_time_ms == WALL_MS
    (stored,) = contents(target.log)  # type: ignore[arg-type]  # it is a log
    assert struct.unpack_from(">q", stored, 35) == (WALL_MS,)
    assert struct.unpack_from(">I", stored, 17) == (crc32c(stored[21:]),)


def test_what_must_be_flushed_is_not_committed_before() -> None:
    target = partition(flush_messages=1)
    result = produced(target, batch())
    assert (result.error, result.last_offset) == (E.NONE, 1)
    assert target.high_watermark == 0
    target.flushed(Offset(2), 1)
    assert target.high_watermark == 0  # of another log, or of this one before it was cut
    target.log.flush()  # type: ignore[attr-defined]  # it is a log
    target.flushed(Offset(1000), 1)
    assert target.high_watermark == 2
    target.flushed(Offset(1), 1)
    assert target.high_watermark == 2


@pytest.mark.parametrize("producer_id", [7, 0])
def test_retry_of_an_idempotent_producer_is_answered_with_the_first_copy(producer_id: int) -> None:
    """The first id of a cluster is 0."""
    target = partition()
    first = batch(producer_id=producer_id, producer_epoch=0, base_sequence=0)
    second = batch(producer_id=producer_id, producer_epoch=0, base_sequence=2)
    assert produced(target, first).base_offset == 0
    assert produced(target, second).base_offset == 2
    again = produced(target, first)
    assert (again.error, again.base_offset, again.last_offset) == (E.NONE, 0, 1)
    assert target.log_end_offset == 4
    gap = batch(producer_id=producer_id, producer_epoch=0, base_sequence=9)
    assert produced(target, gap).error is E.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(-1, E.NONE), (4, E.NONE), (3, E.FENCED_LEADER_EPOCH), (5, E.UNKNOWN_LEADER_EPOCH)],
)
def test_leader_epoch_of_a_client_is_compared(epoch: int, error: E) -> None:
    assert partition().check_leader_epoch(epoch) is error


def test_partition_that_is_offline_or_not_led_takes_nothing() -> None:
    target = partition()
    target.is_leader = False
    assert produced(target, batch()).error is E.NOT_LEADER_OR_FOLLOWER
    target.offline = True
    assert produced(target, batch()).error is E.KAFKA_STORAGE_ERROR


def test_of_several_records_just_those_out_of_range_are_named() -> None:
    target = partition(
        message_timestamp_before_max_ms=HOUR_MS, message_timestamp_after_max_ms=HOUR_MS
    )
    edges = (WALL_MS - HOUR_MS, WALL_MS + HOUR_MS, WALL_MS)
    beyond = (WALL_MS - HOUR_MS - 1, WALL_MS + HOUR_MS + 1)
    records = [Record(b"k", b"v", timestamp=each) for each in (*edges, *beyond)]
    result = produced(target, build_batch(records))
    assert result.error is E.INVALID_TIMESTAMP
    assert [each.batch_index for each in result.record_errors] == [3, 4]
    assert produced(target, build_batch(records[:3])).error is E.NONE


@pytest.mark.parametrize("bits", [0, 8])
def test_a_batch_of_creation_times_is_stored_as_one(bits: int) -> None:
    """Apache's LogValidator sets type and largest time anew where the client's head is wrong."""
    target = partition()
    sent = batch(time_ms=WALL_MS)
    for form, at, value in ((">h", 21, bits), (">q", 35, WALL_MS + 7 * (bits == 0))):
        sent = with_head(sent, form, at, value)
    assert produced(target, sent).error is E.NONE
    (stored,) = contents(target.log)  # type: ignore[arg-type]  # it is a log
    assert struct.unpack_from(">h", stored, 21) == (0,)
    assert struct.unpack_from(">q", stored, 35) == (WALL_MS,)
    assert struct.unpack_from(">I", stored, 17) == (crc32c(stored[21:]),)


@pytest.mark.parametrize("codec", ["uncompressed", "snappy"])
def test_batch_that_grows_in_the_codec_of_its_topic_must_fit_again(codec: str) -> None:
    """`UnifiedLog.append` of 4.3.1 compares a batch that it has written anew once more."""
    value = bytes(Random(1).choices(b"ab", k=1_500))
    small = bytes(build_batch([Record(b"k", value)], compression=Compression.GZIP))
    assert len(small) < 500
    for limit, error in ((500, E.MESSAGE_TOO_LARGE), (2_000, E.NONE)):
        target = partition(compression_type=codec, max_message_bytes=limit)
        result = produced(target, small)
        assert (result.error, target.log_end_offset) == (error, int(error is E.NONE))
    assert produced(partition(max_message_bytes=500), small).error is E.NONE  # as it came


def stamped(*, codec: Compression = Compression.NONE, largest: int = WALL_MS) -> bytearray:
    """Two records with append times, which only a broker may set."""
    data = build_batch([Record(b"k", b"v"), Record(None, None)], compression=codec)
    struct.pack_into(">q", data, 35, largest)
    return with_head(data, ">h", 21, 0x08 | int(codec))


@pytest.mark.parametrize(
    ("codec", "shown"),
    [
        (Compression.NONE, ["Default{}key=1 bytes, value=1", "Default{}key=0 bytes, value=0"]),
        (
            Compression.GZIP,
            ["PartialDefault{}key=1 bytes, value=1", "PartialDefault{}key=-1 bytes, value=-1"],
        ),
    ],
)
@pytest.mark.parametrize(
    ("kind", "largest"), [("LogAppendTime", WALL_MS), ("LogAppendTime", -1), ("CreateTime", -1)]
)
def test_producers_must_not_set_append_times(
    codec: Compression, shown: list[str], kind: str, largest: int
) -> None:
    """`LogValidator.validateTimestamp` of 4.3.1."""
    target = partition(message_timestamp_type=kind)
    result = produced(target, stamped(codec=codec, largest=largest))
    assert (result.error, target.log_end_offset) == (E.INVALID_TIMESTAMP, 0)
    assert [each.message for each in result.record_errors] == [
        f"Invalid timestamp type in message "
        f"{each.format(f'Record(offset={offset}, timestamp={largest}, ')} bytes). "
        "Producer should not set timestamp type to LogAppendTime."
        for offset, each in enumerate(shown)
    ]


@pytest.mark.parametrize("largest", [WALL_MS, WALL_MS + 9 * HOUR_MS, -2])
def test_append_times_of_a_producer_are_its_records_times(largest: int) -> None:
    """As the range allows: the largest time of the header is that of each record."""
    target = partition(message_timestamp_after_max_ms=HOUR_MS)
    result = produced(target, stamped(largest=largest))
    if largest > WALL_MS + HOUR_MS:
        assert result.error is E.INVALID_TIMESTAMP
        assert [f"Timestamp {largest} of" in each.message for each in result.record_errors]
        return
    assert result.error is E.NONE
    (stored,) = contents(target.log)  # type: ignore[arg-type]  # it is a log
    assert struct.unpack_from(">h", stored, 21) == (0,)
    assert struct.unpack_from(">q", stored, 35) == (max(largest, -1),)


def test_each_record_has_the_error_of_its_key_or_of_its_time() -> None:
    """`LogValidator.validateRecord` of 4.3.1; one wrong time names the error of the batch."""
    target = partition(cleanup_policy=("compact",), message_timestamp_before_max_ms=HOUR_MS)
    old = WALL_MS - 2 * HOUR_MS
    records = [
        Record(key, b"v", timestamp=time_ms)
        for key, time_ms in ((b"k", WALL_MS), (None, old), (b"k", old), (None, WALL_MS))
    ]
    result = produced(target, build_batch(records))
    assert result.error is E.INVALID_TIMESTAMP
    assert [each.batch_index for each in result.record_errors] == [1, 2, 3]
    assert ["without key" in each.message for each in result.record_errors] == [True, False, True]
    assert result.error_message == "One or more records have been rejected due to invalid timestamp"
    keys_only = produced(target, build_batch([records[0], records[1], records[3]]))
    assert keys_only.error is E.INVALID_RECORD


def with_offsets(*deltas: int, codec: Compression = Compression.NONE) -> bytearray:
    """A batch whose records have the offsets that its client wishes."""
    body = bytearray()
    for delta in deltas:
        append_record(body, delta, 0, b"k%d" % delta, b"v", [])
    data = build_batch([Record(b"k", b"v", timestamp=WALL_MS)] * len(deltas), compression=codec)
    del data[61:]
    data += compress(codec, body) if codec else body
    struct.pack_into(">i", data, 8, len(data) - 12)
    return with_head(data, ">h", 21, int(codec))


ODD_OFFSETS = pytest.mark.parametrize(
    "deltas", [(5,), (-1,), (1, 0), (0, 0), (0, 2), (0, 1, 1 << 20)]
)


@ODD_OFFSETS
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_topic_s_codec_gives_records_offsets_whatever_they_had(
    deltas: tuple[int, ...], codec: Compression
) -> None:
    """`LogValidator.buildRecordsAndAssignOffsets` of 4.3.1; such a batch ended our process."""
    target = partition(compression_type="snappy")
    for _ in range(2):
        assert produced(target, with_offsets(*deltas, codec=codec)).error is E.NONE
    assert target.log_end_offset == 2 * len(deltas)
    stored = [parse_batches(each)[0].records() for each in contents(target.log)]  # type: ignore[arg-type]  # it is a log
    offsets = [record.offset for records in stored for record in records]
    assert offsets == list(range(2 * len(deltas)))
    assert [record.key for record in stored[1]] == [b"k%d" % delta for delta in deltas]


@ODD_OFFSETS
def test_compressed_records_that_keep_their_codec_are_in_order(deltas: tuple[int, ...]) -> None:
    """4.3.1 fails when it writes them anew, and answers UNKNOWN_SERVER_ERROR."""
    for settings in ({}, {"compression_type": "gzip"}):
        target = partition(**settings)
        result = produced(target, with_offsets(*deltas, codec=Compression.GZIP))
        assert (result.error, target.log_end_offset) == (E.INVALID_RECORD, 0)
        assert produced(target, with_offsets(0, 1, 2, codec=Compression.GZIP)).error is E.NONE
        assert produced(partition(), with_offsets(*deltas)).error is E.NONE  # as they are


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("base", [(1 << 63) - 1, -(1 << 63)])
def test_times_at_the_ends_of_64_bits_can_be_written_anew(kind: str, base: int) -> None:
    largest = (1 << 63) - 1
    target = partition(
        compression_type="gzip",
        message_timestamp_type=kind,
        message_timestamp_after_max_ms=largest,
        message_timestamp_before_max_ms=largest,
    )
    data = bytearray(batch(1))
    body = bytearray()
    for offset, delta in enumerate((0, 1, -1)):
        append_record(body, offset, delta, b"k", b"v", [])
    data[61:] = body
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">i", data, 23, 2)
    struct.pack_into(">q", data, 27, base)
    struct.pack_into(">i", data, 57, 3)
    sent = parse_batches(with_head(data, ">h", 21, 0))[0].records()
    result = produced(target, data)
    if result.error is E.NONE:
        (stored,) = contents(target.log)  # type: ignore[arg-type]  # it is a log
        kept = parse_batches(stored)[0].records()
        assert [record.key for record in kept] == [record.key for record in sent]
        if kind == "CreateTime":
            assert [each.timestamp for each in kept] == [each.timestamp for each in sent]
    else:
        assert (kind, result.error) == ("CreateTime", E.INVALID_TIMESTAMP)
