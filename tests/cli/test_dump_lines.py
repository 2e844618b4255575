"""The lines of `kraft-wire dump` for people: their words, and the parts that are colored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kraft_wire.cli.dump import command
from kraft_wire.cli.dump.command import _line, _printer, _time_text

BEGINNING = "1970-01-01T00:00:00.000Z"
TIME_MS, TIME = 1_700_000_000_123, "2023-11-14T22:13:20.123Z"
BATCH: dict[str, Any] = {
    "kind": "batch",
    "position": 61,
    "baseOffset": 5,
    "lastOffset": 7,
    "count": 3,
    "sizeInBytes": 90,
    "compression": "zstd",
    "maxTimestamp": TIME_MS,
    "magic": 2,
    "crcIsValid": True,
    "partitionLeaderEpoch": 4,
    "producerId": -1,
    "producerEpoch": -1,
    "baseSequence": -1,
    "lastSequence": -1,
    "isTransactional": False,
    "isControlBatch": False,
    "deleteHorizonMs": None,
}
START = f"@61         5..7  3 records  90 bytes  zstd  {TIME}"
ENTRY = {"kind": "entry", "offset": 5, "text": "[x]", "é": {"é": True}}
UNCOUNTED = {name: value for name, value in BATCH.items() if name not in ("baseOffset", "count")}
PRODUCED = {"producerId": 0, "producerEpoch": 2, "baseSequence": 8, "lastSequence": 10}


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (BATCH, f"{START}  epoch 4"),
        (BATCH | PRODUCED, f"{START}  epoch 4  producer 0/2 sequence 8..10"),
        (BATCH | {"isTransactional": True}, f"{START}  epoch 4  transactional"),
        (BATCH | {"isControlBatch": True}, f"{START}  epoch 4  control"),
        (
            BATCH | PRODUCED | {"isTransactional": True, "isControlBatch": True},
            f"{START}  epoch 4  producer 0/2 sequence 8..10  transactional  control",
        ),
        (BATCH | {"deleteHorizonMs": 0}, f"{START}  epoch 4  delete horizon {BEGINNING}"),
        (BATCH | {"magic": 1}, f"{START}  format 1"),
        (BATCH | {"crcIsValid": False}, f"{START}  epoch 4  WRONG CHECKSUM"),
        (BATCH | {"magic": 0, "crcIsValid": False}, f"{START}  format 0  WRONG CHECKSUM"),
        (UNCOUNTED, f"@61         None..7  90 bytes  zstd  {TIME}  epoch 4"),
        (
            {"kind": "file", "path": "/[a]", "format": "segment", "sizeInBytes": 9},
            "/[a]  segment, 9 bytes",
        ),
        (
            {"kind": "record", "offset": 5, "timestamp": -1, "key": None, "value": "é", "n": [1]},
            "    5          -1  key=null value=é n=[1]",
        ),
        (
            {"kind": "record", "offset": 12, "timestamp": TIME_MS, "error": "odd"},
            f"    12         {TIME}  error=odd",
        ),
        (ENTRY, '    offset=5 text=[x] é={"é": true}'),
        ({"kind": "fault", "position": 3, "reason": "cut off"}, "    fault at byte 3: cut off"),
    ],
)  # fmt: skip
def test_entry_is_a_line(entry: dict[str, Any], text: str) -> None:
    assert _line(entry).plain == text


def test_parts_have_the_colors_of_their_kind() -> None:
    def styled(entry: dict[str, Any]) -> dict[str, str]:
        line = _line(entry)
        return {line.plain[each.start : each.end].strip(): str(each.style) for each in line.spans}

    all_of_it = BATCH | PRODUCED | {"isTransactional": True, "deleteHorizonMs": 0}
    assert styled(all_of_it | {"crcIsValid": False}) == {
        "@61": "dim",
        "5..7": "bold green",
        "90 bytes  zstd": "cyan",
        "producer 0/2": "magenta",
        "sequence 8..10": "magenta",
        "transactional": "yellow",
        "delete horizon 1970-01-01T00:00:00.000Z": "yellow",
        "WRONG CHECKSUM": "bold red",
    }
    record = {"kind": "record", "offset": 5, "timestamp": -1, "key": None, "error": "odd"}
    assert styled(record) == {"5": "green", "-1": "dim", "key=": "blue", "error=": "bold red"}
    assert str(_line({"kind": "fault", "position": 3, "reason": "x"}).style) == "bold red"


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1, "1970-01-01T00:00:00.001Z"),
        (TIME_MS, TIME),
        (-1, "-1"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "253402300800000"),
        (None, "None"),
    ],
)
def test_time_is_that_of_a_calendar_or_a_number(timestamp: int | None, text: str) -> None:
    assert _time_text(timestamp) == text


def test_printer_prints_lines_or_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry: dict[str, Any] = {"kind": "entry", "text": "x" * 300 + "[bold]é"}
    with _printer(as_json=True) as show:
        show(entry)
        show(entry)
    compact = json.dumps(entry, separators=(",", ":"))
    assert capsys.readouterr().out == f"{compact}\n{compact}\n"
    monkeypatch.setattr(command.shutil, "which", lambda _: "/usr/bin/less")  # type: ignore[attr-defined]  # a module that it imports
    with _printer(as_json=False) as show:
        show(entry)
    assert capsys.readouterr().out == f"    text={entry['text']}\n"
