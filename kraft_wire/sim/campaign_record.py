"""A campaign's results in a file, one JSON line for each seed, so that it can stop and go on.

The first line says what was run; a file of something else is refused. Seeds that stand there are
not lived through again. A line that a death cut off is dropped: its seed is run anew.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO, Any

from kraft_wire.sim.run import Failure, Result

__all__ = ["CampaignRecord", "OtherCampaign"]


class OtherCampaign(ValueError):
    """The file holds the results of something else."""


class CampaignRecord:
    """The file of one campaign, open to be added to."""

    def __init__(self, path: Path, what: dict[str, Any]) -> None:
        """Open or begin a file; `what` says which campaign it is. OtherCampaign, OSError."""
        self.known: list[tuple[Result, float]] = []
        """What an earlier run left: results with the processor time of each."""
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()
        head = json.dumps(what)
        if lines and lines[0] != head:
            raise OtherCampaign(f"{path} holds another campaign: {lines[0][:100]}")
        self.known += map(_result, lines[1:])
        self._file: IO[str] = path.open("w", encoding="utf-8")
        for line in lines or [head]:
            print(line, file=self._file)
        self._file.flush()

    def add(self, result: Result, busy_s: float) -> None:
        """Keep one more result."""
        line = {each.name: getattr(result, each.name) for each in fields(Result)}
        line["failure"] = None if result.failure is None else asdict(result.failure)
        line["busy_s"] = round(busy_s, 4)
        print(json.dumps(line, separators=(",", ":")), file=self._file, flush=True)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _result(line: str) -> tuple[Result, float]:
    stored = json.loads(line)
    busy_s = stored.pop("busy_s")
    failure = stored.pop("failure")
    for name in ("faults", "marks", "looked", "operations"):
        stored[name] = Counter(stored[name])
    return Result(failure=None if failure is None else Failure(**failure), **stored), busy_s
