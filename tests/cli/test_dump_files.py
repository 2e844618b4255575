"""What the files of a log directory hold, entry by entry, and each damage with its place."""

import struct
from pathlib import PurePath

import pytest

from kraft_wire.cli.dump.files import format_of_file
from kraft_wire.storage.producers.producer_state import ProducerStates
from kraft_wire.wire.crc32c import crc32c
from tests.storage.making import batch_bytes, marker_bytes, parsed

AT = PurePath("/data/t-0")


def entries(name: str, data: bytes) -> list[dict[str, object]]:
    found = format_of_file(AT / name)
    assert found is not None, name
    return list(found.read(data))


@pytest.mark.parametrize(
    ("name", "title"),
    [
        (f"{0:020d}.log", "log segment"),
        (f"{0:020d}.log.deleted", "log segment"),
        (f"{0:020d}.log.cleaned.swap", "log segment"),
        (f"{9:020d}-{2:010d}.checkpoint", "metadata snapshot"),
        (f"{9:020d}-{2:010d}.checkpoint.part", "metadata snapshot"),
        (f"{0:020d}.index", "index"),
        (f"{0:020d}.timeindex", "timeindex"),
        (f"{0:020d}.txnindex", "transaction index"),
        (f"{0:020d}.snapshot", "producer snapshot"),
        ("meta.properties", "properties"),
        ("partition.metadata", "partition metadata"),
        ("quorum-state", "quorum state"),
        (".kafka_cleanshutdown", "clean shutdown marker"),
        ("leader-epoch-checkpoint", "checkpoint"),
        ("replication-offset-checkpoint", "checkpoint"),
        ("notes.txt", None),
        ("log", None),
    ],
)
def test_name_says_what_a_file_is(name: str, title: str | None) -> None:
    found = format_of_file(AT / name)
    assert (found.name if found else None) == title


def fault(position: int, reason: str) -> dict[str, object]:
    return {"kind": "fault", "position": position, "reason": reason}


def test_offset_index_is_read_from_the_base_of_its_name_to_its_zeros() -> None:
    slots = [(0, 7), (3, 9), (3, 9), (8, 8)]
    data = b"".join(struct.pack(">ii", *each) for each in slots)
    expected = [
        {"kind": "entry", "offset": 100, "position": 7},
        {"kind": "entry", "offset": 103, "position": 9},
        {"kind": "entry", "offset": 103, "position": 9},
        fault(16, "the position does not increase"),
        {"kind": "entry", "offset": 108, "position": 8},
        fault(24, "the position does not increase"),
    ]
    assert entries(f"{100:020d}.index", data) == expected
    assert entries(f"{100:020d}.index", data + bytes(3)) == [
        *expected,
        fault(32, "3 bytes are not a complete slot"),
    ]
    tail = struct.pack(">ii", 9, 90)
    assert entries(f"{100:020d}.index", data + bytes(8) + tail) == expected
    assert entries("strange.index", tail) == [{"kind": "entry", "offset": 9, "position": 90}]


def test_time_index_is_read_from_the_base_of_its_name_to_its_zeros() -> None:
    slots = [(50, 0), (60, 2), (60, 3), (55, 4)]
    data = b"".join(struct.pack(">qi", *each) for each in slots)
    assert entries(f"{100:020d}.timeindex", data + bytes(12) + data) == [
        {"kind": "entry", "timestamp": 50, "offset": 100},
        {"kind": "entry", "timestamp": 60, "offset": 102},
        {"kind": "entry", "timestamp": 60, "offset": 103},
        fault(24, "the timestamp does not increase"),
        {"kind": "entry", "timestamp": 55, "offset": 104},
        fault(36, "the timestamp does not increase"),
    ]
    (first,) = entries(f"{100:020d}.timeindex", struct.pack(">qi", 0, 5))
    assert first == {"kind": "entry", "timestamp": 0, "offset": 105}


def test_aborted_transactions_have_the_five_columns_of_kafka() -> None:
    good, strange = struct.pack(">hqqqq", 0, 7, 10, 20, 5), struct.pack(">hqqqq", 1, 8, 30, 40, 25)
    assert entries("0.txnindex", good + strange + b"xy") == [
        {
            "kind": "entry",
            "version": 0,
            "producerId": 7,
            "firstOffset": 10,
            "lastOffset": 20,
            "lastStableOffset": 5,
        },
        {
            "kind": "entry",
            "version": 1,
            "producerId": 8,
            "firstOffset": 30,
            "lastOffset": 40,
            "lastStableOffset": 25,
        },
        fault(34, "version 1 is unknown"),
        fault(68, "2 bytes are not a complete slot"),
    ]


def test_producer_snapshot_has_an_entry_for_each_producer_and_a_checksum() -> None:
    states = ProducerStates()
    for producer_id in (7, 9):
        states.update(parsed(batch_bytes(producer_id, producer_id=producer_id, sequence=0)))
    data = states.snapshot()
    head, *producers = entries("10.snapshot", data)
    assert (head["kind"], head["version"]) == ("entry", 1)
    assert head["crc"] == crc32c(data[6:])
    assert [each["producerId"] for each in producers] == [7, 9]
    assert entries("10.snapshot", data + b"abc")[-1] == fault(len(data), "3 bytes follow")
    assert entries("10.snapshot", data + b"abc")[-2] == fault(2, "the checksum is wrong")
    spoilt = data[:-1] + bytes([data[-1] ^ 1])
    assert entries("10.snapshot", spoilt)[-1] == fault(2, "the checksum is wrong")
    assert entries("10.snapshot", b"\0") == [fault(0, "the file is truncated")]
    (cut,) = entries("10.snapshot", data[:-3])
    assert cut["kind"] == "fault"
    assert isinstance(cut["position"], int)
    assert cut["position"] > 2


def test_segment_has_its_batches_and_what_cannot_be_read_behind_them() -> None:
    first, second = batch_bytes(0, count=2), marker_bytes(2, producer_id=7, abort=True)
    whole = entries("0.log", first + second)
    assert [(each["kind"], each["position"], each["crcIsValid"]) for each in whole] == [
        ("batch", 0, True),
        ("batch", len(first), True),
    ]
    assert entries("0.log", first + second + bytes(2_000_000))[-1] == {
        "kind": "entry",
        "position": len(first + second),
        "preallocatedBytes": 2_000_000,
    }
    zeros = bytes(1_500_000) + b"\1"
    assert entries("0.log", first + zeros)[-1]["kind"] == "fault"
    cut = entries("0.log", first + second[:-4])
    assert cut[-1] == fault(len(first), f"{len(second) - 4} bytes of a truncated batch")
    wrong = bytearray(first)
    wrong[-1] ^= 1
    found = entries("0.log", bytes(wrong) + second)
    assert [each["kind"] for each in found] == ["batch", "fault", "batch"]
    assert found[0]["crcIsValid"] is False
    assert found[1] == fault(0, "the checksum is wrong")
    unknown = bytearray(second)
    unknown[16] = 9
    last = entries("0.log", first + bytes(unknown))[-1]
    assert (last["kind"], last["position"]) == ("fault", len(first))
    assert str(last["reason"]).startswith(f"{len(second)} the following bytes cannot be read: ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "0\n2\nt 0 5\nu 1 -7\n",
            [
                {"kind": "entry", "topic": "t", "partition": 0, "offset": 5},
                {"kind": "entry", "topic": "u", "partition": 1, "offset": -7},
            ],
        ),
        ("0\n0\n", []),
        ("", [fault(0, "no version and count at the start")]),
        ("0\n", [fault(0, "no version and count at the start")]),
        ("0\nmany\n", [fault(0, "no version and count at the start")]),
        ("0\n" + "1" * 20 + "\n", [fault(0, "no version and count at the start")]),
        (
            "0\n3\nt 0\nt 0 5\n",
            [
                fault(0, "line 3 has 2 words, not 3"),
                {"kind": "entry", "topic": "t", "partition": 0, "offset": 5},
                fault(0, "3 entries are declared, 2 exist"),
            ],
        ),
        (
            "0\n1\n\nt x y\n\n",
            [{"kind": "entry", "topic": "t", "partition": "x", "offset": "y"}],
        ),
    ],
)
def test_checkpoint_has_a_version_a_count_and_lines_of_words(
    text: str, expected: list[dict[str, object]]
) -> None:
    assert entries("recovery-point-offset-checkpoint", text.encode()) == expected


def test_leader_epochs_have_columns_of_their_own() -> None:
    assert entries("leader-epoch-checkpoint", b"0\n1\n4 17\n") == [
        {"kind": "entry", "leaderEpoch": 4, "startOffset": 17}
    ]


def test_properties_are_keys_and_values_without_comments() -> None:
    text = "#head\n!too\n\n version = 1\nnode.id=7\ncluster.id: a=b\nurl:x\nnothing\na=\x01\n"
    assert entries("meta.properties", text.encode()) == [
        {"kind": "entry", "key": "version", "value": "1"},
        {"kind": "entry", "key": "node.id", "value": "7"},
        {"kind": "entry", "key": "cluster.id: a", "value": "b"},
        {"kind": "entry", "key": "url", "value": "x"},
        fault(0, "line 8 is not key=value"),
        fault(0, "line 9 is not key=value"),
    ]


def test_json_files_are_objects_or_a_value() -> None:
    assert entries("quorum-state", b'{"leaderId":1}') == [{"kind": "entry", "leaderId": 1}]
    assert entries("quorum-state", b"[1]") == [{"kind": "entry", "value": [1]}]
    (broken,) = entries("quorum-state", b"{")
    assert broken["kind"] == "fault"
    assert str(broken["reason"]).startswith("not JSON: ")
