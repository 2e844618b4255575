"""What two brokers may not have in common, and what is compared in its place.

The list of accepted differences is `REPLACED`, `UNORDERED` and the ids that are drawn: each is
there because two runs of Apache Kafka would differ in it as well.
"""

import re
from base64 import b64decode
from collections.abc import Callable
from typing import Any

from kraft_wire.wire.records.record_batch import RecordBatch, parse_batches

__all__ = ["Drawn", "differences", "in_order"]

_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CLUSTER_ID = re.compile(r'(?<=the cluster id ")[\w-]{22}(?=")')
_TIME_RANGE = re.compile(r"within \[-?\d+, \d+\]")
_LOG_OVERHEAD_BYTES = 12

REPLACED: dict[str, Callable[[Any], Any]] = {
    "port": lambda value: "a port" if value > 0 else value,
    "clusterId": lambda _: "the cluster",
    "logDir": lambda _: "a directory",
    "totalBytes": lambda value: "a size" if value > 0 else value,
    "usableBytes": lambda value: "a size" if value > 0 else value,
    "logAppendTimeMs": lambda value: "now" if value > 0 else value,
}
"""Addresses, directories and clocks, by the field's name."""

NUMBERED = {"sessionId", "producerId"}
"""Ids that are drawn: compared by the order of their first appearance in one probe."""

UNORDERED = {
    "configs": "name",
    "members": "memberId",
    "groups": "groupId",
    "partitionResponses": "index",
}
"""Lists that Apache's broker takes out of a hash table, and the field that orders them here."""


class Drawn:
    """The names that one broker drew; gives answers a form in which they can be compared."""

    def __init__(self, run: str) -> None:
        self.words: dict[str, str] = {}
        self._run = run
        self._numbers: dict[str, str] = {}

    def begin(self) -> None:
        """Number the drawn ids from 0 again, so that one probe's failure is not the next's too."""
        self._numbers.clear()

    def comparable(self, value: Any, key: str = "") -> Any:
        """An answer's JSON without what the broker drew, chose or was given as its address."""
        if isinstance(value, dict):
            return {name: self.comparable(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            rows = [self.comparable(inner, key) for inner in value]
            by = UNORDERED.get(key, "")
            by_name = bool(rows) and isinstance(rows[0], dict) and by in rows[0]
            return sorted(rows, key=lambda row: str(row[by])) if by_name else rows
        if key == "records" and isinstance(value, str):
            return stored(b64decode(value))
        if key in REPLACED:
            return REPLACED[key](value)
        if key in NUMBERED:
            return value if value <= 0 else self._number(f"{key} {value}", key)
        if isinstance(value, str):
            text = _TIME_RANGE.sub("within a range around now", self._word(value))
            text = _CLUSTER_ID.sub("of its own", text)
            return _UUID.sub(lambda found: self._number(found[0], "id"), text)
        return value

    def _word(self, text: str) -> str:
        return self.words.get(text, text)

    def _number(self, drawn: str, kind: str) -> str:
        return self._numbers.setdefault(drawn, f"{kind} #{len(self._numbers)}")


def in_order(value: Any) -> Any:
    """A comparable answer with all its lists in an order of our own."""
    if isinstance(value, dict):
        return {name: in_order(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return sorted((in_order(inner) for inner in value), key=repr)
    return value


def stored(data: bytes) -> list[Any]:
    """What a fetch returned: every whole batch, then how many bytes were cut off."""
    seen: list[Any] = []
    at = 0
    while len(data) - at >= _LOG_OVERHEAD_BYTES:
        size = _LOG_OVERHEAD_BYTES + int.from_bytes(data[at + 8 : at + 12], "big")
        if size > len(data) - at:
            break
        (one,) = parse_batches(data[at : at + size])
        seen.append(_batch(one, data[at : at + size]))
        at += size
    return [*seen, f"{len(data) - at} bytes"] if at < len(data) else seen


def _batch(batch: RecordBatch, data: bytes) -> Any:
    """The very bytes, unless codec libraries or the broker's clock have a part in them."""
    clock = bool(batch.attributes & 8)
    if not clock and not batch.attributes & 7:
        return data.hex()
    records = [
        (record.offset, record.key, record.value, record.headers, clock or record.timestamp)
        for record in batch.records()
    ]
    return (batch.base_offset, batch.last_offset, batch.attributes, data[53:61].hex(), records)


def differences(theirs: Any, ours: Any, path: str = "") -> list[str]:
    """Every place where two comparable answers differ, one line each."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return [
            line
            for key in dict.fromkeys([*theirs, *ours])
            for line in differences(
                theirs.get(key, "(absent)"), ours.get(key, "(absent)"), f"{path}.{key}"
            )
        ]
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        return [
            line
            for number, (their, our) in enumerate(zip(theirs, ours, strict=True))
            for line in differences(their, our, f"{path}[{number}]")
        ]
    same = theirs == ours and type(theirs) is type(ours)
    return [] if same else [f"{path}: Apache {theirs!r}, we {ours!r}"]
