"""`kraft-wire wire`: the line protocol, its process, and the views for people."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from codegen.spec import COMMENT
from kraft_wire.cli.wire import lines as wire_lines
from kraft_wire.cli.wire.command import app
from kraft_wire.cli.wire.lines import answer_decode, answer_encode
from kraft_wire.cli.wire.pipe import LINE_BYTES_MAX, LineBuffer, pipe_lines
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.frames_json import record_type_name
from kraft_wire.wire.generated.messages import MESSAGES
from tests.golden.vectors import CORPUS, read_vectors
from tests.tidiness import CHECKOUT

TOPIC_HEX = "01020004666f6f" + "00" * 17
KEY_HEX = "00010001670001740000000100"
runner = CliRunner()


def asked(**question: object) -> bytes:
    return json.dumps(question).encode()


def decoded(*, strict: bool = False, **question: object) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(answer_decode(asked(**question), strict=strict))
    return answer


def encoded(**question: object) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(answer_encode(asked(**question)))
    return answer


def test_every_kind_of_the_corpus_is_answered_both_ways() -> None:
    kinds = sorted(path.name for path in CORPUS.iterdir())
    assert len(kinds) == 16
    for kind in kinds:
        file = sorted((CORPUS / kind).glob("*.jsonl"))[0]
        vector = next(each for each in read_vectors(file) if not each.malformed)
        assert "json" in json.loads(answer_decode(vector.question(encode=False).encode()))
        canonical = [each for each in read_vectors(file) if each.canonical][:1]
        for each in canonical:
            assert json.loads(answer_encode(each.question(encode=True).encode())) == {
                "hex": each.hex
            }


def test_bytes_after_a_message_are_counted_in_the_answer() -> None:
    answer = decoded(kind="request", name="ApiVersionsRequest", version=0, hex="ffff")
    assert answer == {"json": {}, "remaining": 2}


def test_malformed_bytes_are_answered_with_field_and_byte() -> None:
    answer = decoded(kind="request", name="HeartbeatRequest", version=0, hex="0005")
    assert (answer["field"], answer["offset"]) == ("group_id", 2)
    answer = decoded(kind="records", name="MemoryRecords", version=2, hex="00" * 17)
    assert answer["offset"] == 0


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"{",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"kind":"request","name":"FetchRequest","version":NaN}',
        asked(),
        asked(kind=5, hex=""),
        asked(kind="request", hex="zz"),
        asked(kind="request", hex="", name="FetchRequest"),
        asked(kind="request", hex="", name="FetchRequest", version="4"),
        asked(kind="request", hex="", name="FetchRequest", version=True),
        asked(kind="request", hex="", name="FetchResponse", version=4),
        asked(kind="request", hex="", name="Nothing", version=4),
        asked(kind="nothing", hex="", name="FetchRequest", version=4),
        asked(kind="request", hex="", name="FetchRequest", version=99),
    ],
)
def test_line_that_is_no_question_is_answered_with_an_error(line: bytes) -> None:
    for answer in (answer_decode(line), answer_decode(line, strict=True), answer_encode(line)):
        assert "error" in json.loads(answer)


@pytest.mark.parametrize(
    ("kind", "name"), [("request", "ApiVersionsResponse"), ("response", "ApiVersionsRequest")]
)
def test_a_message_of_another_kind_is_refused_however_sound_its_bytes(kind: str, name: str) -> None:
    answer = decoded(kind=kind, name=name, version=0, hex="000000000000")
    assert answer == {"error": f"unknown {kind} '{name}'"}


def test_running_out_of_memory_is_an_error_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(data: bytes) -> None:
        raise MemoryError

    monkeypatch.setattr(wire_lines, "records_to_json", exhausted)
    assert "memory" in decoded(kind="records", name="MemoryRecords", version=2, hex="")["error"]


def test_json_nested_beyond_the_stack_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_deep(data: bytes) -> None:
        raise RecursionError

    monkeypatch.setattr(wire_lines, "records_to_json", too_deep)
    assert "deep" in decoded(kind="records", name="MemoryRecords", version=2, hex="")["error"]


def test_strict_mode_lists_what_apache_lets_pass() -> None:
    heartbeat: dict[str, Any] = {"kind": "request", "name": "HeartbeatRequest", "version": 0}
    answer = decoded(strict=True, **heartbeat, hex="0000" + "00000000" + "0000" + "ff")
    assert answer["lenient"] == [
        {"field": "HeartbeatRequest", "offset": 8, "what": "1 bytes after the message"}
    ]
    frame: dict[str, Any] = {"kind": "metadata_frame", "name": "TopicRecord", "version": 0}
    assert decoded(strict=True, **frame, hex=TOPIC_HEX)["lenient"] == []
    key: dict[str, Any] = {"kind": "coordinator_key", "name": "OffsetCommitKey", "version": 0}
    assert len(decoded(strict=True, **key, hex=KEY_HEX)["lenient"]) == 1
    value: dict[str, Any] = {"kind": "coordinator_value", "name": "GroupMetadataValue"}
    empty = "0003" + "0000" + "00000000" + "ffff" * 2 + "00" * 8 + "00" * 4
    assert decoded(strict=True, **value, version=3, hex=empty)["lenient"] == []
    records: dict[str, Any] = {"kind": "records", "name": "MemoryRecords", "version": 2}
    assert len(decoded(strict=True, **records, hex="00")["lenient"]) == 1


def test_encoding_says_why_not() -> None:
    question: dict[str, Any] = {"kind": "request", "name": "HeartbeatRequest", "version": 0}
    assert "mandatory" in encoded(**question, json={})["error"]
    assert "expected an object" in encoded(**question)["error"]
    assert "hex" in encoded(kind="records", name="MemoryRecords", version=2, json={"batches": []})


@given(st.binary(max_size=200), st.lists(st.integers(1, 20), max_size=20))
def test_lines_come_out_the_same_however_they_are_cut(data: bytes, cuts: list[int]) -> None:
    whole = LineBuffer(10)
    expected = [*whole.feed(data), *whole.finish()]
    pieces = LineBuffer(10)
    found: list[bytes | None] = []
    for cut in cuts:
        found += pieces.feed(data[:cut])
        data = data[cut:]
    assert [*found, *pieces.feed(data), *pieces.finish()] == expected


def test_line_above_the_limit_comes_out_as_none_once() -> None:
    lines = LineBuffer(4)
    assert [*lines.feed(b"12345678"), *lines.feed(b"9\nab\n123")] == [None, b"ab"]
    assert list(lines.feed(b"45")) == []
    assert list(lines.finish()) == [None]


def test_pipe_answers_a_question_while_the_input_stays_open() -> None:
    """A judge that waits for each answer before it asks on must not wait for ever."""
    question_end, our_input = os.pipe()
    our_output, answer_end = os.pipe()
    thread = threading.Thread(target=pipe_lines, args=(question_end, answer_end, bytes.upper))
    thread.start()
    for line in (b"one", b"two"):
        os.write(our_input, line + b"\n")
        assert os.read(our_output, 100) == line.upper() + b"\n"
    os.write(our_input, b"last")
    os.close(our_input)
    assert os.read(our_output, 100) == b"LAST\n"
    thread.join()
    for descriptor in (question_end, our_output, answer_end):
        os.close(descriptor)


def test_process_answers_every_line_and_stays_below_its_memory(tmp_path: Path) -> None:
    bomb = "28b52ffd" + "a0" + "00000040" + "00" * 20
    lines = [
        asked(kind="request", name="ApiVersionsRequest", version=0, hex=""),
        asked(kind="records", name="MemoryRecords", version=2, hex=bomb),
        b"x" * (LINE_BYTES_MAX + 1),
        b'{"json":[' + b"[]," * 5_000_000 + b"[]]}",
        asked(kind="request", name="ApiVersionsRequest", version=0, hex=""),
    ]
    command = [sys.executable, "-m", "kraft_wire.cli.wire.command", "decode"]
    done = subprocess.run(command, input=b"\n".join(lines), capture_output=True, timeout=120)
    answers = done.stdout.splitlines()
    assert (done.returncode, len(answers)) == (0, 5)
    assert answers[0] == answers[4] == b'{"json":{}}'
    assert b"longer than" in answers[2]


def test_encode_runs_as_a_process() -> None:
    question = asked(kind="request", name="ApiVersionsRequest", version=0, json={})
    command = [sys.executable, "-m", "kraft_wire.cli.wire.command", "encode"]
    done = subprocess.run(command, input=question, capture_output=True, timeout=60)
    assert done.stdout == b'{"hex":""}\n'


def test_hexdump_shows_bytes_beside_fields(tmp_path: Path) -> None:
    shown = runner.invoke(app, ["hexdump", "--record", "topic", "04666f6f" + "00" * 17])
    assert shown.exit_code == 0
    assert "66 6f 6f" in shown.output
    assert '"foo"' in shown.output
    file = tmp_path / "frame"
    file.write_bytes(bytes.fromhex("0003666f6f"))
    shown = runner.invoke(app, ["hexdump", "--request", "heartbeat", "--version", "0", str(file)])
    assert shown.exit_code == 1
    assert "generation_id" in shown.output
    assert "int32 needs 4 bytes, 0 remain" in shown.output


def test_hexdump_as_json_has_every_piece_and_the_break() -> None:
    arguments = ["hexdump", "--response", "Heartbeat", "--version", "1", "--json"]
    whole = json.loads(runner.invoke(app, [*arguments, "00000005" + "0019" + "ff"]).output)
    assert [piece["field"] for piece in whole["pieces"]] == ["throttle_time_ms", "error_code", ""]
    assert "error" not in whole
    broken = json.loads(runner.invoke(app, [*arguments, "0000000500"]).output)
    assert broken["error"]["field"] == "error_code"


def test_hexdump_cuts_long_values_and_shows_long_text_with_its_length() -> None:
    shown = runner.invoke(app, ["hexdump", "--request", "SaslHandshake", "0200" + "62" * 512])
    assert "… 448 more bytes" in shown.output
    assert "(512 bytes)" in shown.output
    produce = "ffff" + "0001" + "00000005" + "00000001" + "000174" + "00000001" + "00000000"
    shown = runner.invoke(
        app, ["hexdump", "--request", "Produce", "--version", "3", produce + "00000002" + "abcd"]
    )
    assert "2 bytes" in shown.output


def test_hexdump_says_whether_bytes_are_behind_the_message_or_not_decoded() -> None:
    heartbeat = ["hexdump", "--response", "Heartbeat", "--version", "0"]
    behind = runner.invoke(app, [*heartbeat, "0000" + "aabb"]).output
    assert "after the message" in behind
    assert "not decoded" not in behind
    members = ["hexdump", "--request", "Heartbeat", "--version", "0"]
    broken = runner.invoke(app, [*members, "000161" + "00000001" + "0009" + "6161"]).output
    assert "not decoded" in broken
    assert "after the message" not in broken


def test_hexdump_of_a_frame_shows_its_header() -> None:
    frame = "0000000a" + "0012" + "0000" + "00000007" + "ffff"
    shown = runner.invoke(
        app, ["hexdump", "--request", "ApiVersions", "--version", "0", "--frame", frame]
    )
    assert shown.exit_code == 0
    assert "header.correlation_id" in shown.output
    assert runner.invoke(app, ["hexdump", "--record", "Topic", "--frame", "00"]).exit_code == 2


def test_hexdump_asks_for_exactly_one_known_message() -> None:
    for arguments in (
        ["hexdump", "00"],
        ["hexdump", "--request", "Fetch", "--response", "Fetch", "00"],
        ["hexdump", "--request", "Nothing", "00"],
        ["hexdump", "--request", "Fetch", "no such file"],
    ):
        assert runner.invoke(app, arguments).exit_code == 2


def test_schema_shows_request_and_response_as_tables() -> None:
    shown = runner.invoke(app, ["schema", "Vote"])
    assert shown.exit_code == 0
    assert "VoteRequest  versions 0-2  key 52" in shown.output
    assert "VoteResponse" in shown.output
    assert "0 (1+)" in shown.output
    assert "map key" in shown.output
    heads = ["field", "type", "versions", "nullable", "tag", "default", "notes"]
    assert heads in [line.split() for line in shown.output.splitlines()]


def test_schema_of_one_version_has_what_follows_a_later_field() -> None:
    shown = runner.invoke(app, ["schema", "FetchRequest", "--version", "4", "--json"]).output
    names = [field["name"] for field in json.loads(shown)["fields"]]
    assert names == [
        *("replicaId", "maxWaitMs", "minBytes", "maxBytes", "isolationLevel", "topics"),
    ]


def test_schema_of_one_version_leaves_out_later_fields() -> None:
    names = [
        {field["name"] for field in json.loads(shown)["fields"]}
        for version in ("0", "2")
        for shown in [
            runner.invoke(app, ["schema", "VoteRequest", "--version", version, "--json"]).output
        ]
    ]
    assert names[0] < names[1]
    assert "kRaftVersion" not in names[0]


RELEASE_SCHEMAS = [
    path
    for path in sorted((CHECKOUT / "schemas" / "messages").glob("*.json"))
    if path.stem in MESSAGES
]


def read_schema(path: Path) -> dict[str, Any]:
    """Read one of the release's own files, which have comments."""
    found: dict[str, Any] = json.loads(COMMENT.sub("", path.read_text(encoding="utf-8")))
    return found


def field_facts(
    fields: list[dict[str, Any]], shared: Mapping[str, list[dict[str, Any]]] = MappingProxyType({})
) -> Iterator[tuple[object, ...]]:
    for each in fields:
        name = each["name"][0].lower() + each["name"][1:]
        nullable, tagged = each.get("nullableVersions"), each.get("taggedVersions")
        yield name, each["type"], each["versions"], nullable, each.get("tag"), tagged
        below = each.get("fields") or shared.get(each["type"].removeprefix("[]"), [])
        yield from field_facts(below, shared)


@pytest.mark.parametrize("path", RELEASE_SCHEMAS, ids=lambda path: path.stem)
def test_schema_as_json_is_what_the_release_says(path: Path) -> None:
    theirs = read_schema(path)
    shared = {each["name"]: each["fields"] for each in theirs.get("commonStructs", ())}
    shown = runner.invoke(app, ["schema", theirs["name"], "--json"])
    ours = json.loads(shown.output)
    for key in ("name", "apiKey", "flexibleVersions"):
        assert ours[key] == theirs.get(key), key
    assert theirs["type"] in (ours["kind"], "header", "data")
    assert list(field_facts(ours["fields"])) == list(field_facts(theirs["fields"], shared))


def test_schema_has_each_key_of_kafka_in_snake_case_too() -> None:
    shown: dict[str, Any] = json.loads(
        runner.invoke(app, ["schema", "FetchRequest", "--json"]).output
    )
    assert shown["api_key"] == shown["apiKey"] == 1
    assert shown["valid_versions"] == shown["validVersions"]
    assert shown["flexible_versions"] == shown["flexibleVersions"] == "12+"
    cluster_id = next(each for each in shown["fields"] if each["name"] == "clusterId")
    assert cluster_id["nullable_versions"] == cluster_id["nullableVersions"] == "12+"
    assert cluster_id["tagged_versions"] == cluster_id["taggedVersions"] == "12+"


def test_schema_of_an_unknown_message_or_version_is_refused() -> None:
    assert runner.invoke(app, ["schema", "Nothing"]).exit_code == 2
    assert runner.invoke(app, ["schema", "Vote", "--version", "9"]).exit_code == 2


def test_names_of_record_types_and_codecs_stay_those_of_kafka() -> None:
    assert record_type_name("FeatureLevelRecord") == "FEATURE_LEVEL_RECORD"
    assert [codec.name.lower() for codec in Compression] == [
        "none",
        "gzip",
        "snappy",
        "lz4",
        "zstd",
    ]
