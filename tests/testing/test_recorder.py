"""The memory of exchanges against docs/TESTING.md: the newest 10,000, up to 8 MiB."""

from __future__ import annotations

import json
from pathlib import Path

from kraft_wire.testing.exchanges import Client, Exchange, Recorder
from kraft_wire.wire.header import RequestHeader, encode_request_header

COUNT, SIZE_BYTES = 10_000, 8 * 1024 * 1024
HEADER_BYTES = len(encode_request_header(RequestHeader(3, 9, 0, "shop")))


def begun(recorder: Recorder, number: int, size_bytes: int = HEADER_BYTES) -> Exchange:
    head = encode_request_header(RequestHeader(3, 9, number, "shop"))
    exchange = recorder.begin(1, Client("127.0.0.1:1"), head + bytes(size_bytes - len(head)))
    assert exchange is not None
    return exchange


def numbers(recorder: Recorder) -> list[int]:
    return [each.header.correlation_id for each in recorder.exchanges(None, None)]


def test_newest_exchanges_are_kept_by_number_however_many_came_before() -> None:
    recorder = Recorder(lambda: 0)
    for number in range(3 * COUNT):
        recorder.end(begun(recorder, number, 200), bytes(200))
    assert numbers(recorder) == list(range(2 * COUNT, 3 * COUNT))
    for number in range(8):
        recorder.end(begun(recorder, number, SIZE_BYTES // 16), bytes(SIZE_BYTES // 16))
    assert numbers(recorder) == list(range(8))


def test_newest_exchanges_are_kept_by_size() -> None:
    recorder = Recorder(lambda: 0)
    for number in range(6):
        recorder.end(begun(recorder, number, SIZE_BYTES // 4), bytes(SIZE_BYTES // 4))
    assert numbers(recorder) == [4, 5]


def test_line_of_a_trace_has_the_time_of_the_request_and_how_long_it_took(tmp_path: Path) -> None:
    times = iter([1_700_000_000_123, 1_700_000_000_130])
    recorder = Recorder(lambda: next(times), keeps=False)
    recorder.trace_to(tmp_path / "trace.jsonl")
    head = encode_request_header(RequestHeader(3, 9, 5, "shop"))
    exchange = recorder.begin(2, Client("127.0.0.1:7"), head)
    assert exchange is not None
    recorder.end(exchange, None)
    recorder.trace_to(None)
    (line,) = (tmp_path / "trace.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "at_ms": 1_700_000_000_123,
        "took_ms": 7,
        "node": 2,
        "client": "127.0.0.1:7",
        "client_software": "",
        "header": {
            "api": "Metadata",
            "api_key": 3,
            "api_version": 9,
            "correlation_id": 5,
            "client_id": "shop",
        },
        "request": None,
        "response": None,
        "faults": [],
    }
    assert recorder.exchanges(None, None) == []


def test_late_response_takes_no_room_if_its_request_is_dropped() -> None:
    recorder = Recorder(lambda: 0)
    late = begun(recorder, 0)
    for number in range(1, 6):
        recorder.end(begun(recorder, number, SIZE_BYTES // 4), b"")
    recorder.end(late, bytes(SIZE_BYTES))
    assert numbers(recorder) == [2, 3, 4, 5]
    recorder.clear()
    recorder.end(begun(recorder, 6, SIZE_BYTES // 2), bytes(SIZE_BYTES // 2))
    assert numbers(recorder) == [6]


def test_response_after_a_reset_takes_no_room() -> None:
    recorder = Recorder(lambda: 0)
    late = begun(recorder, 0)
    recorder.clear()
    recorder.end(late, bytes(SIZE_BYTES))
    for number in range(1, 3):
        recorder.end(begun(recorder, number, SIZE_BYTES // 4), bytes(SIZE_BYTES // 4))
    assert numbers(recorder) == [1, 2]
