"""The decoded records that a real cluster wrote, as messages (observed/*.jsonl)."""

import json
from pathlib import Path
from typing import NamedTuple

from kraft_wire.wire.frames_json import record_type_name
from kraft_wire.wire.generated.registry import METADATA_RECORDS, message_table
from kraft_wire.wire.json_form import message_from_json
from kraft_wire.wire.message import Message

NAMES = {record_type_name(entry.name): entry.name for entry in METADATA_RECORDS.values()}


class ObservedRecord(NamedTuple):
    """One record of the log, with what the dump said of it."""

    offset: int
    size_bytes: int
    record: Message
    version: int


def observed_records(file_name: str) -> list[ObservedRecord]:
    """Return the records of one file, in log order."""
    lines = (Path(__file__).parent / "observed" / file_name).read_text().splitlines()
    return [_observed(json.loads(line)) for line in lines[1:]]


def _observed(line: dict[str, object]) -> ObservedRecord:
    offset, size_bytes, form = line["offset"], line["size"], line["record"]
    assert isinstance(offset, int)
    assert isinstance(size_bytes, int)
    assert isinstance(form, dict)
    table = message_table(NAMES[form["type"]])
    record = message_from_json(table, form["data"], form["version"])
    return ObservedRecord(offset, size_bytes, record, form["version"])
