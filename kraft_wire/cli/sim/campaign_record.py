"""A campaign's results in a file, one JSON line for each seed, so that it can stop and continue.

The first line describes the campaign; a file of another campaign or kind is refused and left as it
is. Seeds in it are not run again. A line that is cut off is dropped: its seed is run again.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from kraft_wire.foreign_text import json_value
from kraft_wire.sim.runs.run import Failure, Result

__all__ = ["CampaignRecord", "OtherCampaign"]


class OtherCampaign(ValueError):
    """The file holds other results."""


class CampaignRecord:
    """The file of one campaign, open to be added to."""

    def __init__(self, path: Path, what: dict[str, Any]) -> None:
        """Open or begin a file; `what` describes the campaign. OtherCampaign, OSError."""
        self.known: list[tuple[Result, float]] = []
        """The results of an earlier run, with the processor time of each."""
        data = path.read_bytes() if path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        lines = whole.decode("utf-8", "replace").splitlines()
        head = json.dumps(what)
        if data and lines[:1] != [head]:
            begins = lines[0][:100] if lines else "incomplete line"
            raise OtherCampaign(f"{path} holds another campaign: {begins}")
        self.known += [_result(line, path, number) for number, line in enumerate(lines[1:], 2)]
        self._file = path.open("a", encoding="utf-8")
        if len(whole) < len(data):
            self._file.truncate(len(whole))
        if not lines:
            print(head, file=self._file, flush=True)

    def add(self, result: Result, busy_s: float) -> None:
        """Keep one more result."""
        line = {each.name: getattr(result, each.name) for each in fields(Result)}
        line["failure"] = None if result.failure is None else asdict(result.failure)
        line["busy_s"] = round(busy_s, 4)
        print(json.dumps(line, separators=(",", ":")), file=self._file, flush=True)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _result(line: str, path: Path, number: int) -> tuple[Result, float]:
    try:
        stored = json_value(line)
        busy_s = stored.pop("busy_s")
        failure = stored.pop("failure")
        for name in ("faults", "marks", "looked", "operations"):
            stored[name] = Counter(stored[name])
        return Result(failure=None if failure is None else Failure(**failure), **stored), busy_s
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise OtherCampaign(f"{path}, line {number}: not the result of a seed") from error
