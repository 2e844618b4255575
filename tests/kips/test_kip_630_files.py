"""KIP-630 on the disk, on the wire and in the configuration: files, their content, which may go.

Where shipped Kafka differs, the test asserts what is shipped.
"""

import json
import struct
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kraft_wire.broker.broker import Broker
from kraft_wire.cli.dump.command import app
from kraft_wire.metadata.image_records import snapshot_values
from kraft_wire.metadata.loader import MetadataLoader
from kraft_wire.metadata.records import decode_record
from kraft_wire.model import FileSlice, LeaderEpoch, Offset, OffsetAndEpoch, StorageError
from kraft_wire.settings.broker import BROKER_KEYS
from kraft_wire.settings.definition import AtLeast
from kraft_wire.settings.topic import TOPIC_KEYS
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.log_directory import METADATA_PARTITION, LogDirectory
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.snapshots.cleaning import SnapshotRetention, clean
from kraft_wire.storage.snapshots.contents import SnapshotHead, snapshot_batches
from kraft_wire.storage.snapshots.metadata_snapshot import (
    CorruptMetadataSnapshot,
    SnapshotWriter,
    list_snapshots,
    snapshot_name,
)
from kraft_wire.storage.snapshots.store import MetadataSnapshots, open_snapshots
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import EpochEndOffset, FetchResponse, LeaderIdAndEpoch
from kraft_wire.wire.generated.fetch import FetchableTopicResponse as Responses
from kraft_wire.wire.generated.fetch import PartitionData as FetchAnswer
from kraft_wire.wire.generated.fetch import SnapshotId as NamedSnapshot
from kraft_wire.wire.generated.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from kraft_wire.wire.generated.kraft_version_record import KRaftVersionRecord
from kraft_wire.wire.generated.voters_record import Voter, VotersRecord
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import parse_batches
from tests.broker.test_delete_records import broker as broker  # a fixture
from tests.broker.test_delete_records import delete
from tests.metadata.random_records import History
from tests.storage.making import append, batch_bytes, take_snapshot

D = f"disk/{METADATA_PARTITION}"
TAGS = b"\0"
HEAD = SnapshotHead(last_contained_timestamp_ms=1_234, wall_ms=9_999)


def at(offset: int, epoch: int = 1) -> OffsetAndEpoch:
    return OffsetAndEpoch(Offset(offset), LeaderEpoch(epoch))


def opened(fs: SimFileSystem) -> Log:
    config = LogConfig(segment_bytes=1300, retention_ms=-1, retention_bytes=-1)
    return LogDirectory.open(fs, "disk").open_metadata_log(config, 1)


def log_of(fs: SimFileSystem, records: int, *, epoch: int = 1) -> Log:
    """A committed, flushed log, some four batches to a segment."""
    log = opened(fs)
    for _ in range(records):
        append(log, batch_bytes(log.log_end_offset, epoch=epoch, key=None, size=220))
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    return log


def restarted(fs: SimFileSystem) -> tuple[SimFileSystem, Log]:
    after = SimFileSystem.from_image(fs.everything())
    return after, opened(after)


def whole(snapshot_id: OffsetAndEpoch, values: list[bytes], head: SnapshotHead = HEAD) -> bytes:
    return b"".join(bytes(batch) for batch in snapshot_batches(snapshot_id, head, values))


# ---- names -----------------------------------------------------------------------------------


def test_name_is_the_padded_end_offset_and_epoch() -> None:
    """630-NAME-02, 630-NAME-03, 630-NAME-04, 630-NAME-05, 630-NAME-06: 20 and 10 digits."""
    assert snapshot_name(at(5_120_793, 2)) == "00000000000005120793-0000000002.checkpoint"


def test_snapshot_lies_beside_the_segments_under_an_extension_of_its_own() -> None:
    """630-NAME-01, 630-NAME-07: not in a directory `checkpoints`; `.snapshot` is producer state."""
    fs = SimFileSystem()
    log = log_of(fs, 12)
    snapshots = open_snapshots(fs, log)
    take_snapshot(snapshots, at(5), HEAD, [b"v"])
    log.close()
    names = fs.names(D)
    assert "00000000000000000005-0000000001.checkpoint" in names
    assert any(name.endswith(".snapshot") for name in names)
    assert not any(fs.is_directory(f"{D}/{name}") for name in names)


@pytest.mark.parametrize("infix", ["", "-7", "-8123456789123456789"])
def test_unfinished_file_has_a_name_of_its_own_and_goes_at_the_next_start(infix: str) -> None:
    """630-NAME-08: with and without the infix that 4.3.1 puts in."""
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, log_of(fs, 3))
    snapshots.append_chunk(at(9, 2), 0, b"begun")
    (part,) = [name for name in fs.names(D) if name.endswith(".checkpoint.part")]
    assert part.startswith("00000000000000000009-0000000002-")
    fs.rename(f"{D}/{part}", f"{D}/00000000000000000009-0000000002{infix}.checkpoint.part")
    assert list_snapshots(fs, D) == []
    after, log = restarted(fs)
    open_snapshots(after, log)
    assert not [name for name in after.names(D) if name.endswith(".part")]


def test_id_is_the_end_offset_and_not_the_last_one() -> None:
    """630-GEN-05: a snapshot of records 0 to 19 is the one of 20; the log goes on there."""
    fs = SimFileSystem()
    log = log_of(fs, 3)
    snapshots = open_snapshots(fs, log)
    snapshots.append_chunk(at(20, 1), 0, whole(at(20, 1), []))
    snapshots.install(log, at(20, 1))
    assert (log.log_start_offset, log.log_end_offset) == (20, 20)


# ---- format ----------------------------------------------------------------------------------


def test_header_of_a_batch_stands_as_the_kip_gives_it() -> None:
    """630-FMT-01, 630-FMT-02: base offset to base sequence, at their places."""
    (data,) = list(snapshot_batches(at(8, 3), HEAD, [b"value"]))[1:2]
    fields = struct.unpack_from(">qiibIhiqqqhii", data)
    assert fields == (
        *(1, len(data) - 12, 3, 2, crc32c(bytes(data[21:])), 0),
        *(0, 9_999, 9_999, -1, -1, -1, 1),
    )
    assert len(parse_batches(whole(at(8, 3), [b"value"]))) == 3


def test_record_stands_as_the_kip_gives_it() -> None:
    """630-FMT-03: length, attributes, deltas, key, value, headers; no key, no headers."""
    data = list(snapshot_batches(at(8, 3), HEAD, [b"value"]))[1]
    length = bytes([2 * (1 + 1 + 1 + 1 + 1 + 5 + 1)])
    assert bytes(data[61:]) == length + b"\0\0\0" + b"\x01" + bytes([2 * 5]) + b"value" + b"\0"


def test_checksum_finds_a_damaged_record() -> None:
    """630-FMT-04, 630-CATCH-05, 630-FSR-04: before the file counts; nothing of it stays."""
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, log_of(fs, 3))
    data = bytearray(whole(at(9, 2), [b"value" * 9]))
    data[len(data) // 2] ^= 4
    snapshots.append_chunk(at(9, 2), 0, data)
    with pytest.raises(CorruptMetadataSnapshot, match="CRC"):
        snapshots.freeze(at(9, 2))
    assert snapshots.latest_id is None
    assert not [name for name in fs.names(D) if "checkpoint" in name and "epoch" not in name]


@pytest.mark.parametrize("codec", list(Compression))
def test_compressed_snapshot_is_read_and_a_plain_one_written(codec: Compression) -> None:
    """630-FMT-05."""
    header, data, footer = (bytes(one) for one in snapshot_batches(at(9, 2), HEAD, [b"v" * 99]))
    assert not parse_batches(data)[0].attributes & 7
    packed = build_batch(
        [Record(None, b"v" * 99, timestamp=1)],
        base_offset=1,
        partition_leader_epoch=2,
        compression=codec,
    )
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, log_of(fs, 3))
    snapshots.append_chunk(at(9, 2), 0, header + bytes(packed) + footer)
    snapshots.freeze(at(9, 2))
    values = [r.value for b in snapshots.batches(at(9, 2)) if not b.is_control for r in b.records()]
    assert values == [b"v" * 99]


def test_offsets_within_a_snapshot_are_its_own() -> None:
    """630-FMT-06, 630-FMT-07: from 0 on without a gap, whatever the log's were."""
    values = [bytes([n % 250 + 1]) for n in range(2_000)]
    batches = parse_batches(whole(at(900_000, 7), values))
    offsets = [record.offset for batch in batches for record in batch.records()]
    assert offsets == list(range(2_002))


def test_content_is_the_state_machines_and_framed_by_its_versions() -> None:
    """630-FMT-08, 630-GEN-02: storage takes and gives values as they are."""
    history = History(1)
    history.grow(30)
    values = list(snapshot_values(history.image))
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, log_of(fs, 3))
    take_snapshot(snapshots, at(3), HEAD, values)
    read = [r.value for b in snapshots.batches(at(3)) if not b.is_control for r in b.records()]
    assert read == values
    assert all(value[0] == 1 for value in values), "the frame's version"


def test_header_comes_first_and_footer_last() -> None:
    """630-CTRL-01, 630-CTRL-02, 630-CTRL-03, 630-CTRL-07: voters beside the header."""
    voters = (KRaftVersionRecord(kraft_version=1), VotersRecord(voters=[Voter(voter_id=1)]))
    head = SnapshotHead(1, 1, voters)
    batches = parse_batches(whole(at(9, 2), [b"v"], head))
    kinds = [[record.key for record in batch.records()] for batch in batches]
    assert kinds == [[b"\0\0\0\3", b"\0\0\0\5", b"\0\0\0\6"], [None], [b"\0\0\0\4"]]
    assert [batch.is_control for batch in batches] == [True, False, True]


def test_header_and_footer_have_the_kips_fields() -> None:
    """630-CTRL-04, 630-CTRL-05, 630-CTRL-06: versions, and the newest record's time."""
    header, footer = (
        parse_batches(one)[0].records()[0] for one in snapshot_batches(at(9), HEAD, [])
    )
    assert header.value == struct.pack(">hq", 0, 1_234) + TAGS
    assert footer.value == struct.pack(">h", 0) + TAGS
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, log_of(fs, 3))
    take_snapshot(snapshots, at(3), HEAD, [])
    assert snapshots.header_timestamp_ms(at(3)) == 1_234


@pytest.mark.parametrize("cut", [1, 2])
def test_snapshot_without_its_footer_is_not_whole(cut: int) -> None:
    """630-CTRL-03, 630-FSR-04."""
    batches = [bytes(one) for one in snapshot_batches(at(9, 2), HEAD, [b"v"])]
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, log_of(fs, 3))
    snapshots.append_chunk(at(9, 2), 0, b"".join(batches[:-cut]))
    with pytest.raises(CorruptMetadataSnapshot, match="no footer"):
        snapshots.freeze(at(9, 2))


# ---- state -----------------------------------------------------------------------------------


def test_controller_holds_the_logs_records_in_memory() -> None:
    """630-GEN-01: batch by batch, as they are committed."""
    history = History(4)
    history.grow(60)
    loader = MetadataLoader()
    for offset, record in enumerate(history.records):
        loader.replay_batch([record.record], offset, 1)
    assert loader.image == history.image


@pytest.mark.parametrize("seed", range(5))
def test_snapshot_and_the_rest_of_the_log_give_the_state_of_the_whole_log(seed: int) -> None:
    """630-GEN-03: through files, and wherever the log is cut."""
    history = History(seed)
    history.grow(80)
    cut = 20 + 10 * seed
    before = MetadataLoader()
    for offset, record in enumerate(history.records[:cut]):
        before.replay_batch([record.record], offset, 1)
    fs = SimFileSystem()
    fs.make_directory(D)
    snapshots = MetadataSnapshots(fs, D)
    take_snapshot(snapshots, at(cut), HEAD, snapshot_values(before.image))
    records = [
        decode_record(record.value or b"").record
        for batch in snapshots.batches(at(cut))
        if not batch.is_control
        for record in batch.records()
    ]
    after = MetadataLoader()
    after.replay_snapshot(records, cut - 1, 1)
    for offset, versioned in enumerate(history.records[cut:], cut):
        after.replay_batch([versioned.record], offset, 1)
    assert after.image.topics_by_name == history.image.topics_by_name
    assert after.image.configs == history.image.configs
    assert after.image.brokers == history.image.brokers


# ---- where the log starts --------------------------------------------------------------------


def snapshots_at(log: Log, fs: SimFileSystem, *offsets: int) -> MetadataSnapshots:
    """Snapshots whose newest record is of time 1,000 for each offset."""
    snapshots = open_snapshots(fs, log)
    for offset in offsets:
        take_snapshot(snapshots, at(offset), SnapshotHead(1_000 * offset, 1), [b"v" * 300])
    return snapshots


ALL = SnapshotRetention(bytes_max=0, age_max_ms=-1)


def test_log_starts_at_a_snapshots_end_once_its_beginning_is_dropped() -> None:
    """630-GEN-06, 630-START-01, 630-DEL-02: a snapshot with that end exists, and is committed."""
    fs = SimFileSystem()
    log = log_of(fs, 20)
    snapshots = snapshots_at(log, fs, 5, 10, 15)
    clean(log, snapshots, ALL, 1)
    assert log.log_start_offset == 15
    assert snapshots.size_bytes(at(15)) is not None
    assert log.segments[0].base_offset > 5, "segments that lie wholly below are gone"


def test_log_is_not_cut_beyond_the_high_watermark() -> None:
    """630-START-01: nor at the newest snapshot's end without another one before it."""
    fs = SimFileSystem()
    log = log_of(fs, 20)
    snapshots = snapshots_at(log, fs, 5, 10)
    log.high_watermark = Offset(7)
    assert clean(log, snapshots, ALL, 1) == []
    assert log.log_start_offset == 0


def test_each_node_cuts_its_log_by_its_own_limits() -> None:
    """630-START-02, 630-START-04: size, or the age of the oldest; nobody else is asked."""
    fs = SimFileSystem()
    log = log_of(fs, 20)
    snapshots = snapshots_at(log, fs, 5, 10, 15)
    by_age = SnapshotRetention(bytes_max=-1, age_max_ms=10_000)
    assert clean(log, snapshots, by_age, 15_000) == []
    assert len(clean(log, snapshots, by_age, 15_001)) == 1
    assert log.log_start_offset == 10


def test_snapshots_below_the_logs_start_are_deleted_and_the_last_stays() -> None:
    """630-DEL-01, 630-DEL-02: renamed first, oldest first."""
    fs = SimFileSystem()
    log = log_of(fs, 20)
    snapshots = snapshots_at(log, fs, 5, 10, 15)
    retired = clean(log, snapshots, ALL, 1)
    assert [path.rpartition("/")[2] for path in retired] == [
        "00000000000000000005-0000000001.checkpoint.deleted",
        "00000000000000000010-0000000001.checkpoint.deleted",
    ]
    assert snapshots.ids == [at(15)]
    assert clean(log, snapshots, ALL, 10**12) == []
    after, log = restarted(fs)
    assert open_snapshots(after, log).ids == [at(15)]
    assert not [name for name in after.names(D) if name.endswith(".deleted")]


def test_metadata_topic_cannot_be_cut_by_delete_records(broker: Broker) -> None:
    """630-START-07: brokers do not serve it."""
    unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete(broker, "__cluster_metadata", 0, 1) == unknown


# ---- log and snapshots together --------------------------------------------------------------


def test_log_from_0_on_needs_no_snapshot_and_may_have_some() -> None:
    """630-VAL-01."""
    fs = SimFileSystem()
    log = log_of(fs, 8)
    assert open_snapshots(fs, log).ids == []
    snapshots_at(log, fs, 2, 5, 8)
    after, log = restarted(fs)
    assert open_snapshots(after, log).ids == [at(2), at(5), at(8)]
    assert log.log_start_offset == 0


def test_log_from_later_on_needs_a_snapshot_that_reaches_its_start() -> None:
    """630-VAL-02: the start is refused, before anything is removed."""
    fs = SimFileSystem()
    log = log_of(fs, 12)
    snapshots_at(log, fs, 2)
    log.remove_first_segments(1)
    after, log = restarted(fs)
    names = after.names(D)
    with pytest.raises(StorageError, match="no snapshot reaches"):
        open_snapshots(after, log)
    assert after.names(D) == names


def fetched_and_frozen(fs: SimFileSystem) -> None:
    """As power is lost between the two halves of an installation."""
    snapshots = open_snapshots(fs, log_of(fs, 6))
    take_snapshot(snapshots, at(4), HEAD, [])
    snapshots.append_chunk(at(30, 3), 0, whole(at(30, 3), [b"v"]))
    snapshots.freeze(at(30, 3))


def test_snapshot_that_is_newer_than_the_log_replaces_it_at_the_start() -> None:
    """630-VAL-03, 630-ELECT-02, 630-ELECT-03: before anybody hears where this log ends."""
    fs = SimFileSystem()
    fetched_and_frozen(fs)
    assert list_snapshots(fs, D) == [at(4), at(30, 3)]
    after, log = restarted(fs)
    assert log.log_end_offset == 6
    snapshots = open_snapshots(after, log)
    assert (log.log_start_offset, log.log_end_offset) == (30, 30)
    assert snapshots.ids == [at(30, 3)]


def test_file_gets_its_name_in_one_step_and_only_when_it_is_on_the_disk() -> None:
    """630-CATCH-06, 630-FSR-05: read-only by then."""
    fs = SimFileSystem()
    fs.make_directory(D)
    writer = SnapshotWriter(fs, D, at(9, 2), 1)
    writer.append(whole(at(9, 2), [b"v"]))
    steps: list[tuple[int, list[str]]] = []
    fs.before_change = lambda: steps.append((fs.syncs_count, fs.names(D)))
    writer.freeze()
    fs.before_change = None
    name = snapshot_name(at(9, 2))
    unnamed = [syncs for syncs, names in steps if name not in names]
    assert unnamed[-1] > unnamed[0], "synced before it was renamed"
    with pytest.raises(StorageError):
        fs.open(f"{D}/{name}")


def test_installed_snapshot_is_where_the_log_begins_and_ends() -> None:
    """630-CATCH-07, 630-CATCH-08, 630-FETCH-07: what was there before is gone."""
    fs = SimFileSystem()
    log = log_of(fs, 6)
    snapshots = open_snapshots(fs, log)
    snapshots.append_chunk(at(30, 3), 0, whole(at(30, 3), [b"v"]))
    snapshots.install(log, at(30, 3))
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (30, 30, 30)
    append(log, batch_bytes(30, epoch=4, key=None))
    assert log.log_end_offset == 31


def test_slice_of_a_snapshot_need_not_end_with_a_batch() -> None:
    """630-FS-07, 630-FS-10: bytes of the file, from a position on."""
    fs = SimFileSystem()
    snapshots = open_snapshots(fs, log_of(fs, 3))
    take_snapshot(snapshots, at(3), HEAD, [b"v" * 200])
    data = whole(at(3), [b"v" * 200])
    parts = [snapshots.slice(at(3), position, 7) for position in range(0, len(data), 7)]
    assert all(isinstance(part, FileSlice) for part in parts)
    assert b"".join(part.read() for part in parts) == data


# ---- schemas ---------------------------------------------------------------------------------


def test_fetch_answers_tell_divergence_leader_and_snapshot_by_tags_0_1_and_2() -> None:
    """630-FETCH-02, 630-FETCH-03: defaults are left out."""
    plain = FetchAnswer(partition_index=0, records=b"")
    told = FetchAnswer(
        partition_index=0,
        records=b"",
        diverging_epoch=EpochEndOffset(epoch=2, end_offset=40),
        current_leader=LeaderIdAndEpoch(leader_id=3, leader_epoch=9),
        snapshot_id=NamedSnapshot(end_offset=77, epoch=5),
    )

    def data(answer: FetchAnswer) -> bytes:
        topic = Responses(topic_id=bytes(16), partitions=[answer])  # type: ignore[arg-type]  # bytes will do
        return FetchResponse(responses=[topic]).encode(13)

    tagged = b"\x03"
    tagged += b"\x00\x0d" + struct.pack(">iq", 2, 40) + TAGS
    tagged += b"\x01\x09" + struct.pack(">ii", 3, 9) + TAGS
    tagged += b"\x02\x0d" + struct.pack(">qi", 77, 5) + TAGS
    assert data(plain).endswith(b"\0\0\0")
    assert data(told) == data(plain)[:-3] + tagged + b"\0\0"
    assert (NamedSnapshot().end_offset, NamedSnapshot().epoch) == (-1, -1)


def test_fetch_snapshot_request_has_the_kips_fields_in_its_order() -> None:
    """630-FS-01, 630-FS-02, 630-FS-04: cluster id as tag 0, the key's directory from version 1."""
    assert (FetchSnapshotRequest.API_KEY, FetchSnapshotRequest.MIN_VERSION) == (59, 0)
    assert FetchSnapshotRequest().max_bytes == 0x7FFFFFFF
    snapshot = struct.pack(">qi", 20, 2) + TAGS
    partition = struct.pack(">ii", 0, 7) + snapshot + struct.pack(">q", 99)
    topic = b"\x02\x13__cluster_metadata\x02"
    head = struct.pack(">ii", 5, 4_096) + topic
    cluster = b"\x01\x00\x02\x02c"
    old = head + partition + TAGS + TAGS + cluster
    message, end = FetchSnapshotRequest.decode(old, 0)
    assert end == len(old)
    assert (message.replica_id, message.max_bytes, message.cluster_id) == (5, 4_096, "c")
    asked = message.topics[0].partitions[0]
    assert (asked.current_leader_epoch, asked.position) == (7, 99)
    assert message.encode(0) == old
    directory = b"\x01\x00\x10" + bytes(range(1, 17))
    new = head + partition + directory + TAGS + cluster
    assert FetchSnapshotRequest.decode(new, 1)[0].encode(1) == new


def test_fetch_snapshot_response_has_the_kips_fields_in_its_order() -> None:
    """630-FS-05, 630-FS-06: leader as tag 0, size, position, bytes that may end anywhere."""
    snapshot = struct.pack(">qi", 20, 2) + TAGS
    body = struct.pack(">ih", 0, 0) + snapshot + struct.pack(">qq", 1_000, 99) + b"\x04abc"
    leader = b"\x01\x00\x09" + struct.pack(">ii", 3, 9) + TAGS
    topic = b"\x02\x13__cluster_metadata\x02" + body + leader + TAGS
    data = struct.pack(">ih", 0, 0) + topic + TAGS
    for version in (0, 1):
        message, end = FetchSnapshotResponse.decode(data, version)
        assert end == len(data)
        answer = message.topics[0].partitions[0]
        assert (answer.size, answer.position) == (1_000, 99)
        assert bytes(answer.unaligned_records) == b"abc"
        assert message.encode(version) == data


# ---- configuration and tools -----------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "metadata.snapshot.min.changed_records.ratio",
        "metadata.snapshot.min.new_records.size",
        "metadata.snapshot.min.cleanable.ratio",
        "metadata.snapshot.min.records.size",
        "metadata.start.offset.lag.time.max.ms",
        "controller.snapshot.minimum.records",
    ],
)
def test_keys_that_were_never_shipped_are_not_known(name: str) -> None:
    """630-WHEN-02, 630-WHEN-03, 630-WHEN-04, 630-WHEN-06, 630-WHEN-07, 630-START-03.

    630-CFG-03, 630-CFG-05, 630-CFG-06, 630-CFG-07.
    """
    assert name not in BROKER_KEYS


def test_keys_that_took_their_place_have_kafkas_defaults() -> None:
    """630-CFG-04, 630-CFG-05, 630-START-03."""
    between = BROKER_KEYS["metadata.log.max.record.bytes.between.snapshots"]
    assert between.default == 20_971_520
    assert between.valid == AtLeast(1)
    assert BROKER_KEYS["metadata.log.max.snapshot.interval.ms"].default == 3_600_000
    assert BROKER_KEYS["metadata.max.retention.ms"].default == 604_800_000
    assert BROKER_KEYS["metadata.max.retention.bytes"].default == 104_857_600


def test_no_topic_may_be_cleaned_by_snapshots() -> None:
    """630-CFG-01, 630-CFG-02: the policy is internal; a topic has delete and compact."""
    policy = TOPIC_KEYS["cleanup.policy"]
    assert "snapshot" not in str(policy.valid)
    assert "compact" in str(policy.valid)


def test_snapshot_is_dumped_with_its_records_decoded(tmp_path: Path) -> None:
    """630-TOOL-01: here by the project's own tool; Apache's reads the same file."""
    history = History(2)
    history.grow(10)
    values = list(snapshot_values(history.image))
    path = tmp_path / str(METADATA_PARTITION) / snapshot_name(at(9, 2))
    path.parent.mkdir()
    path.write_bytes(whole(at(9, 2), values))
    result = CliRunner().invoke(app, ["--json", "--records", str(path)])
    assert result.exit_code == 0, result.output
    entries = [json.loads(line) for line in result.output.splitlines()]
    kinds = [entry.get("control") or entry.get("type") for entry in entries]
    found = [kind for kind in kinds if kind]
    assert (found[0], found[-1]) == ("SNAPSHOT_HEADER", "SNAPSHOT_FOOTER")
    assert "FEATURE_LEVEL_RECORD" in found
