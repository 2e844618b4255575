"""`kraft-wire dump`: every kind of file of a log directory, whole and damaged."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from kraft_wire.cli.dump.command import app
from kraft_wire.cli.dump.files import format_of_file
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.control_records import ControlRecordType, control_key, end_txn_marker
from kraft_wire.wire.records.record import Record
from tests.wire.odd_batches import old_message
from tests.wire.plain_batches import plain_batches

runner = CliRunner()
TOPIC_RECORD = bytes.fromhex("01020004666f6f") + bytes(17)
OFFSET_KEY = bytes.fromhex("0001000167000174") + b"\0\0\0\1"
OFFSET_VALUE = bytes.fromhex("0003") + bytes(8) + b"\xff\xff\xff\xff" + bytes(2) + bytes(8)


def dumped(path: Path, *options: str, exit_code: int = 0) -> list[dict[str, Any]]:
    """The entries of a file, without the first, which names it."""
    result = runner.invoke(app, ["--json", *options, str(path)])
    assert result.exit_code == exit_code, result.output
    entries = [json.loads(line) for line in result.output.splitlines()]
    assert entries[0]["kind"] == "file"
    assert entries[0]["sizeInBytes"] == path.stat().st_size
    return entries[1:]


def write(directory: Path, name: str, content: bytes) -> Path:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def segment(directory: Path, topic: str, *batches: bytes | bytearray) -> Path:
    return write(directory, f"{topic}-0/00000000000000000000.log", b"".join(map(bytes, batches)))


def test_log_shows_batches_and_on_demand_records(tmp_path: Path) -> None:
    records = [Record(b"key", "wörter".encode(), timestamp=5, headers=[("h", b"x"), ("n", None)])]
    data = build_batch(records, producer_id=4, producer_epoch=0, base_sequence=9, base_offset=3)
    path = segment(tmp_path, "topic", data, build_batch([Record(b"\xff", None)], base_offset=4))
    first, second = dumped(path)
    assert (first["position"], first["baseOffset"], first["crcIsValid"]) == (0, 3, True)
    assert (second["position"], second["baseOffset"]) == (len(data), 4)
    shown = [entry for entry in dumped(path, "--records") if entry["kind"] == "record"]
    assert shown[0]["headers"] == [{"key": "h", "value": "eA=="}, {"key": "n", "value": None}]
    assert (shown[0]["key"], shown[0]["value"], shown[0]["sequence"]) == ("key", "wörter", 9)
    assert (shown[1]["key"], shown[1]["value"]) == ({"base64": "/w=="}, None)


def test_batches_that_apache_wrote_are_shown_for_people(tmp_path: Path) -> None:
    path = segment(tmp_path, "topic", *(bytes(batch.view) for batch in plain_batches()))
    result = runner.invoke(app, ["--records", str(path)])
    assert result.exit_code == 0
    assert "control=LEADER_CHANGE" in result.output
    assert "control=COMMIT" in result.output or "control=ABORT" in result.output
    assert "delete horizon" in result.output
    assert "sequence" in result.output


def test_old_formats_and_odd_timestamps_are_shown_for_people(tmp_path: Path) -> None:
    path = segment(tmp_path, "topic", old_message(0, 1, 0, b"k", b"v", timestamp=-1))
    assert "format 1" in runner.invoke(app, ["--records", str(path)]).output
    for stamp, shown in (
        (0, "1970-01-01T00:00:00.000Z"),
        (1_795_630_001_007, "2026-11-25T18:06:41.007Z"),
        (1 << 62, f" {1 << 62}"),
    ):
        path = segment(tmp_path, "topic", old_message(0, 1, 0, b"k", b"v", timestamp=stamp))
        assert shown in runner.invoke(app, ["--records", str(path)]).output


def test_metadata_log_is_decoded(tmp_path: Path) -> None:
    path = segment(tmp_path, "__cluster_metadata", build_batch([Record(None, TOPIC_RECORD)]))
    entry = dumped(path, "--records")[1]
    assert (entry["type"], entry["data"]["name"]) == ("TOPIC_RECORD", "foo")
    snapshot = write(tmp_path, "00000000000000000009-0000000001.checkpoint", path.read_bytes())
    assert dumped(snapshot, "--records")[1]["type"] == "TOPIC_RECORD"
    assert runner.invoke(app, [str(snapshot)]).output.count("metadata snapshot") == 1


def test_group_offsets_are_decoded_and_tombstones_shown(tmp_path: Path) -> None:
    records = [Record(OFFSET_KEY, OFFSET_VALUE), Record(OFFSET_KEY, None)]
    path = segment(tmp_path, "__consumer_offsets", build_batch(records))
    value, tombstone = dumped(path, "--records")[1:]
    assert (value["type"], value["key"]["group"]) == ("OffsetCommit", "g")
    assert value["value"]["data"]["offset"] == 0
    assert tombstone["value"] is None


def test_transactions_and_share_groups_have_types_of_their_own(tmp_path: Path) -> None:
    key = b"\0\0\0\1t"
    path = segment(tmp_path, "__transaction_state", build_batch([Record(key, None)]))
    entry = dumped(path, "--records")[1]
    assert (entry["type"], entry["key"]) == ("TransactionLog", {"transactionalId": "t"})
    as_data = dumped(path, "--records", "--as", "data")[1]
    assert "type" not in as_data
    assert "error" in dumped(path, "--records", "--as", "shares")[1]


def test_record_that_does_not_decode_is_shown_with_the_reason(tmp_path: Path) -> None:
    odd = [Record(b"\x7f\xff", None), Record(None, b"x"), Record(OFFSET_KEY, b"\0")]
    path = segment(tmp_path, "__consumer_offsets", build_batch(odd))
    assert all("error" in entry for entry in dumped(path, "--records")[1:])
    path = segment(tmp_path, "__cluster_metadata", build_batch([Record(None, None)]))
    assert "error" in dumped(path, "--records")[1]
    assert "error=" in runner.invoke(app, ["--records", str(path)]).output


def test_control_records_are_decoded(tmp_path: Path) -> None:
    marker = Record(control_key(ControlRecordType.COMMIT), end_txn_marker(7))
    unknown = Record(b"\0\0\0\x63", b"x")
    broken = Record(b"\0", None)
    batch = build_batch([marker, unknown, broken], is_control=True, is_transactional=True)
    commit, other, error = dumped(segment(tmp_path, "topic", batch), "--records")[1:]
    assert (commit["control"], commit["coordinatorEpoch"]) == ("COMMIT", 7)
    assert other["control"] == "UNKNOWN"
    assert "error" in error


def test_damage_is_a_fault_with_its_position(tmp_path: Path) -> None:
    good = bytes(build_batch([Record(b"k", b"v" * 50)], compression=Compression.GZIP))
    spoiled = good[:70] + b"\0" + good[71:]
    faults = {
        "the checksum is wrong": good + spoiled,
        "20 bytes of a truncated batch": good + good[:20],
        "magic is 9": good + good[:16] + b"\x09" + good[17:],
    }
    for reason, content in faults.items():
        entries = dumped(segment(tmp_path, "topic", content), exit_code=1)
        fault = entries[-1]
        assert (fault["position"], reason in fault["reason"]) == (len(good), True)
    path = segment(tmp_path, "topic", spoiled)
    assert len(dumped(path, "--records", exit_code=1)) >= 2
    result = runner.invoke(app, [str(path)])
    assert "WRONG CHECKSUM" in result.output
    assert "fault at byte 0" in result.output


def test_preallocated_end_of_a_segment_is_no_fault(tmp_path: Path) -> None:
    good = bytes(build_batch([Record(b"k")]))
    for zeros in (5, 100, 3 << 20):
        last = dumped(segment(tmp_path, "topic", good + bytes(zeros)))[-1]
        assert (last["position"], last["preallocatedBytes"]) == (len(good), zeros)


def test_indexes_are_shown_up_to_their_zeros(tmp_path: Path) -> None:
    slots = struct.pack(">iiii", 5, 100, 9, 200)
    path = write(tmp_path, "00000000000000000100.index", slots + bytes(80))
    assert [(each["offset"], each["position"]) for each in dumped(path)] == [(105, 100), (109, 200)]
    path = write(tmp_path, "00000000000000000100.timeindex", struct.pack(">qi", 77, 3) + bytes(24))
    assert [(each["timestamp"], each["offset"]) for each in dumped(path)] == [(77, 103)]
    path = write(tmp_path, "00000000000000000100.txnindex", struct.pack(">hqqqq", 0, 1, 2, 3, 4))
    assert [each["lastStableOffset"] for each in dumped(path)] == [4]
    assert dumped(write(tmp_path, "00000000000000000100.index.deleted", b"")) == []


def test_damaged_indexes_have_faults(tmp_path: Path) -> None:
    path = write(tmp_path, "1.index", struct.pack(">iiii", 5, 100, 9, 90) + b"xyz")
    assert [each["kind"] for each in dumped(path, exit_code=1)] == ["entry", "entry"] + [
        "fault"
    ] * 2
    path = write(tmp_path, "x.timeindex", struct.pack(">qiqi", 5, 1, 4, 2) + b"xyz")
    assert [each["kind"] for each in dumped(path, exit_code=1)] == ["entry", "entry"] + [
        "fault"
    ] * 2


def producer_snapshot(body: bytes) -> bytes:
    return struct.pack(">hI", 1, crc32c(body)) + body


def test_producer_snapshot_is_checked_and_shown(tmp_path: Path) -> None:
    producer = struct.pack(">qhiqiqiq", 4000, 1, 7, 99, 2, 1234, -1, -1)
    content = producer_snapshot(struct.pack(">i", 1) + producer)
    name = "00000000000000000100.snapshot"
    head, entry = dumped(write(tmp_path, name, content))
    assert head["version"] == 1
    assert (entry["producerId"], entry["lastSequence"], entry["timestamp"]) == (4000, 7, 1234)
    for bad in (b"", b"\0\1", content[:-1], b"\0\x09" + content[2:], content[:-1] + b"?"):
        assert dumped(write(tmp_path, name, bad), exit_code=1)[-1]["kind"] == "fault"
    assert dumped(write(tmp_path, name, content + b"x"), exit_code=1)[-1]["position"] == len(
        content
    )


def test_small_text_files_are_shown(tmp_path: Path) -> None:
    meta = write(tmp_path, "meta.properties", b"#\n#date\nnode.id=1\ncluster.id = abc\n")
    assert [(each["key"], each["value"]) for each in dumped(meta)] == [
        ("node.id", "1"),
        ("cluster.id", "abc"),
    ]
    partition = write(tmp_path, "partition.metadata", b"version: 0\ntopic_id: AAA")
    assert [each["key"] for each in dumped(partition)] == ["version", "topic_id"]
    quorum = write(tmp_path, "quorum-state", b'{"leaderId":1,"data_version":1}')
    assert dumped(quorum) == [{"kind": "entry", "leaderId": 1, "data_version": 1}]
    assert dumped(write(tmp_path, ".kafka_cleanshutdown", b"5")) == [{"kind": "entry", "value": 5}]
    epochs = write(tmp_path, "leader-epoch-checkpoint", b"0\n1\n3 40\n")
    assert dumped(epochs) == [{"kind": "entry", "leaderEpoch": 3, "startOffset": 40}]
    offsets = write(tmp_path, "recovery-point-offset-checkpoint", b"0\n1\ntopic 0 -1\n")
    assert dumped(offsets) == [{"kind": "entry", "topic": "topic", "partition": 0, "offset": -1}]
    assert "leaderEpoch=3" in runner.invoke(app, [str(epochs)]).output


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("quorum-state", b"{"),
        ("leader-epoch-checkpoint", b""),
        ("leader-epoch-checkpoint", b"x\n1\n"),
        ("leader-epoch-checkpoint", b"0\n2\n1 0\n"),
        ("leader-epoch-checkpoint", b"0\n1\n1 0 0\n"),
        ("leader-epoch-checkpoint", b"0\n" + b"9" * 5000 + b"\n1 0\n"),
        ("leader-epoch-checkpoint", b"0\n2\n--1 " + b"9" * 5000 + b"\n"),
        ("quorum-state", b"[" * 100_000),
        ("quorum-state", b"9" * 5000),
        ("meta.properties", b"node.id=1\nno line of a properties file\n"),
        ("meta.properties", b"\x8c\xff=\x00"),
        ("1.txnindex", b"\0\1" + bytes(32)),
    ],
)
def test_damaged_text_files_have_faults(tmp_path: Path, name: str, content: bytes) -> None:
    assert dumped(write(tmp_path, name, content), exit_code=1)[-1]["kind"] == "fault"


def test_files_that_kafka_does_not_write_and_unknown_readers_are_refused(tmp_path: Path) -> None:
    assert runner.invoke(app, [str(write(tmp_path, "notes.txt", b""))]).exit_code == 2
    assert runner.invoke(app, [str(tmp_path / "missing.log")]).exit_code == 2
    directory = runner.invoke(app, [str(tmp_path)])
    assert directory.exit_code == 2
    assert f"{tmp_path} is a directory: name files in it" in " ".join(directory.output.split())
    assert runner.invoke(app, ["/dev/null"]).exit_code == 2
    log = segment(tmp_path, "topic", b"")
    assert runner.invoke(app, ["--as", "nothing", str(log)]).exit_code == 2
    assert dumped(log) == []


NAMES = [
    *("t-0/1.log", "1-1.checkpoint", "1.index", "1.timeindex", "1.txnindex", "1.snapshot"),
    *("meta.properties", "quorum-state", "leader-epoch-checkpoint", "x-offset-checkpoint"),
    *("__consumer_offsets-0/1.log", "__transaction_state-0/1.log"),
]


@given(st.binary(max_size=150), st.sampled_from(NAMES))
def test_any_bytes_under_any_name_are_shown_without_an_exception(data: bytes, name: str) -> None:
    found = format_of_file(Path("/data") / name, with_records=True)
    assert found is not None
    for entry in found.read(memoryview(data)):
        json.dumps(entry)
