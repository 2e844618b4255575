"""The fuzz targets: each takes any bytes and must end with a value or the declared error.

A target asserts what must hold for a value: encoding what was decoded gives bytes that decode to
the same; feeding whole and feeding byte by byte agree. Whatever else it raises is a finding.
Also run without a fuzzer, over the corpus and over random bytes, by the fast tests. Those of logins
are in `login_targets`.
"""

from collections.abc import Callable

from kraft_wire.model import (
    ZERO_UUID,
    LeaderEpoch,
    Offset,
    OffsetAndEpoch,
    StorageError,
    TopicPartition,
)
from kraft_wire.node.limits import ServerLimits
from kraft_wire.node.outputs import Rejection
from kraft_wire.server.framing import Framing
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.checkpoints import read_offsets
from kraft_wire.storage.directory.meta_properties import read_meta_properties
from kraft_wire.storage.directory.quorum_state import read_quorum_state
from kraft_wire.storage.leader_epochs import LeaderEpochs
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.recovery.opening import open_log
from kraft_wire.storage.snapshots.metadata_snapshot import SnapshotReader, snapshot_name
from kraft_wire.wire.compression.codecs import Compression, DecompressionLimits, decompress
from kraft_wire.wire.frame import FrameReader, MalformedFrame
from kraft_wire.wire.generated import registry
from kraft_wire.wire.header import parse_request_header
from kraft_wire.wire.message import DecodeLimits, MalformedMessage, Message
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.memory_records import iter_batches
from kraft_wire.wire.records.record_batch import parse_batches
from kraft_wire.wire.schema import RegistryEntry
from tests.fuzz.login_targets import LOGIN_TARGETS

__all__ = ["TARGETS"]

SMALL = DecompressionLimits(bytes_max=1 << 20)
LIMITS = DecodeLimits()


def frame(data: bytes) -> None:
    """Frames come out the same whole and in single bytes."""
    whole = _frames([data])
    single = _frames([data[position : position + 1] for position in range(len(data))])
    assert whole == single, (whole, single)


def _frames(chunks: list[bytes]) -> tuple[list[bytes], str]:
    reader = FrameReader(1 << 16)
    found: list[bytes] = []
    try:
        for chunk in [*chunks, b""]:
            found += reader.feed(chunk)
    except MalformedFrame as error:
        return found, error.reason
    return found, ""


def framing(data: bytes) -> None:
    """The server cuts the same frames out of any chunking, and refuses for the same reason."""
    whole = _server_frames([data])
    single = _server_frames([data[position : position + 1] for position in range(len(data))])
    assert whole == single, (whole, single)


def _server_frames(chunks: list[bytes]) -> tuple[list[bytes], str]:
    framing = Framing(ServerLimits(frame_bytes_max=1 << 16, metadata_frame_bytes_max=1 << 12))
    found: list[bytes] = []
    for chunk in chunks:
        room = framing.room()
        if room is None:
            framing.feed(memoryview(chunk))
        else:
            room[: len(chunk)] = chunk
            room.release()
            framing.filled(len(chunk))
        while (frame := framing.next_frame()) is not None:
            if isinstance(frame, Rejection):
                return found, frame.reason
            found.append(bytes(frame))
        framing.hold()
    return found, ""


def header(data: bytes) -> None:
    """A request header."""
    try:
        parse_request_header(data)
    except MalformedMessage:
        return


def _message(
    data: bytes, entries: list[RegistryEntry], load: Callable[[int], type[Message]]
) -> None:
    if len(data) < 2:
        return
    entry = entries[data[0] % len(entries)]
    version = entry.min_version + data[1] % (entry.max_version - entry.min_version + 1)
    try:
        message, _ = load(entry.api_key).decode(data[2:], version, limits=LIMITS)
    except MalformedMessage:
        return
    encoded = message.encode(version)
    again, end = type(message).decode(encoded, version)
    assert end == len(encoded), (end, len(encoded))
    assert again.encode(version) == encoded, (again, message)


def request(data: bytes) -> None:
    """A request body of any key and version: byte 0 picks the key, byte 1 the version."""
    _message(data, list(registry.REQUESTS.values()), registry.request_class)


def response(data: bytes) -> None:
    """A response body of any key and version."""
    _message(data, list(registry.RESPONSES.values()), registry.response_class)


def metadata_record(data: bytes) -> None:
    """The body of a metadata record."""
    _message(data, list(registry.METADATA_RECORDS.values()), registry.metadata_record_class)


def record_batch(data: bytes) -> None:
    """Record batches with their records."""
    try:
        for batch in parse_batches(memoryview(data)):
            batch.records(SMALL)
    except CorruptRecordBatch:
        return


def memory_records(data: bytes) -> None:
    """Batches and message sets of every format, as a log holds them."""
    try:
        for batch in iter_batches(data):
            batch.records(SMALL)
    except CorruptRecordBatch:
        return


def _directory_with(name: str, content: bytes) -> SimFileSystem:
    fs = SimFileSystem()
    fs.make_directory("/d")
    file = fs.open(f"/d/{name}", create=True)
    file.pwrite(content, 0)
    return fs


def segment(data: bytes) -> None:
    """A log opens over any segment, or refuses by name; what it opens it opens the same again."""
    fs = _directory_with("00000000000000000000.log", data)
    ends = []
    for _ in range(2):
        try:
            log = open_log(fs, "/d", TopicPartition("t", 0), ZERO_UUID, LogConfig(), wall_ms=0)
        except StorageError:
            assert not ends, "the second start refuses what the first accepted"
            return
        ends.append(log.log_end_offset)
    assert ends[0] == ends[1], ends


def snapshot(data: bytes) -> None:
    """A metadata snapshot."""
    snapshot_id = OffsetAndEpoch(Offset(7), LeaderEpoch(1))
    fs = _directory_with(snapshot_name(snapshot_id), data)
    try:
        for batch in SnapshotReader(fs, "/d", snapshot_id).batches():
            batch.records(SMALL)
    except (StorageError, CorruptRecordBatch):
        return


def small_files(data: bytes) -> None:
    """The text files beside the logs."""
    if not data:
        return
    names = (
        "quorum-state",
        "meta.properties",
        "leader-epoch-checkpoint",
        "recovery-point-offset-checkpoint",
    )
    name = names[data[0] % len(names)]
    fs = _directory_with(name, data[1:])
    try:
        read_quorum_state(fs, "/d")
        read_meta_properties(fs, "/d")
        LeaderEpochs(fs, "/d").load()
        read_offsets(fs, "/d/recovery-point-offset-checkpoint")
    except StorageError:
        return


def _decompressor(codec: Compression) -> Callable[[bytes], None]:
    def target(data: bytes) -> None:
        try:
            output = decompress(codec, data, SMALL)
        except CorruptRecordBatch:
            return
        assert len(output) <= SMALL.cap_bytes(len(data)), len(output)

    target.__doc__ = f"The {codec.name.lower()} decompressor keeps its cap."
    return target


TARGETS: dict[str, Callable[[bytes], None]] = {
    "frame": frame,
    "framing": framing,
    "header": header,
    "request": request,
    "response": response,
    "metadata_record": metadata_record,
    "record_batch": record_batch,
    "memory_records": memory_records,
    "gzip": _decompressor(Compression.GZIP),
    "snappy": _decompressor(Compression.SNAPPY),
    "lz4": _decompressor(Compression.LZ4),
    "zstd": _decompressor(Compression.ZSTD),
    "segment": segment,
    "snapshot": snapshot,
    "small_files": small_files,
    **LOGIN_TARGETS,
}
