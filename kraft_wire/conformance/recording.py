"""A recording: the verdict and the exchanges of every row of a run, kept in a file.

A recorded broker stands in for a running one. The file is gzip-compressed JSON lines: a header,
then a row each. Requests that only prepare a case are not kept.
"""

import gzip
import json
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self
from zlib import error as zlib_error

from kraft_wire.conformance.verdict import Exchange, Outcome, Verdict
from kraft_wire.foreign_text import json_value

__all__ = ["RecordedRow", "Recording", "UnreadableRecording"]

_FORMAT: Final = "kraft-wire conformance recording 1"
_UNREADABLE: Final = (OSError, EOFError, zlib_error, ValueError, LookupError, TypeError)
"""What reading another file raises: the first three of its compression."""


class UnreadableRecording(Exception):
    """A file is not a recording; the text is one line."""


@dataclass(frozen=True, slots=True)
class RecordedRow:
    """One row, as one broker answered it."""

    case: str
    version: int
    verdict: Verdict
    exchanges: tuple[Exchange, ...]

    @property
    def name(self) -> str:
        """Return `api.case/version`."""
        return f"{self.case}/{self.version}"


@dataclass(frozen=True, slots=True)
class Recording:
    """The rows of one run against one broker."""

    about: str
    """The broker: its address, or the recorder's name for it."""
    profile: str
    rows: tuple[RecordedRow, ...]

    @classmethod
    def of(cls, outcomes: Iterable[Outcome], about: str, profile: str) -> Self:
        """Store the judged rows."""
        rows = (
            RecordedRow(
                each.name,
                each.version,
                each.verdict,
                tuple(one for one in each.exchanges if not one.is_preparation),
            )
            for each in outcomes
        )
        return cls(about, profile, tuple(rows))

    def write(self, path: Path) -> None:
        """Write the file; the same recording gives the same bytes."""
        head = {"format": _FORMAT, "about": self.about, "profile": self.profile}
        lines = [json.dumps(head), *(json.dumps(_to_json(each)) for each in self.rows)]
        path.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file; raises UnreadableRecording."""
        try:
            head, *lines = gzip.decompress(path.read_bytes()).decode().splitlines()
            about = json_value(head)
            if about["format"] != _FORMAT:
                raise ValueError(f"its format is {about['format']!r}")
            rows = tuple(_from_json(json_value(each)) for each in lines)
        except _UNREADABLE as error:
            raise UnreadableRecording(f"{path} is not a recording: {error}") from error
        return cls(about["about"], about["profile"], rows)


def _to_json(row: RecordedRow) -> dict[str, object]:
    exchanges = [
        [each.api_key, each.version, _text(each.request), _text(each.response)]
        for each in row.exchanges
    ]
    return {
        "case": row.case,
        "version": row.version,
        "verdict": row.verdict,
        "exchanges": exchanges,
    }


def _from_json(data: dict[str, object]) -> RecordedRow:
    exchanges = data["exchanges"]
    assert isinstance(exchanges, list)
    found = tuple(
        Exchange(key, version, b64decode(request), None if answer is None else b64decode(answer))
        for key, version, request, answer in exchanges
    )
    version = data["version"]
    assert isinstance(version, int)
    return RecordedRow(str(data["case"]), version, Verdict(str(data["verdict"])), found)


def _text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()
