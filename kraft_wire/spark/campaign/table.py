"""The table of a campaign: one row a seed, in a directory from which a later run continues.

`seeds/` holds the Parquet files. A task writes its rows under a hidden name and renames the file,
so that each row exists once and whole, even if the task was repeated. `campaign.json` has the
parameters of the campaign; a directory of something else is refused and not changed. Driver and
workers must share it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from kraft_wire.sim.runs.run import Failure, Result
from kraft_wire.spark.failure import PipelineError

__all__ = ["ROWS", "CampaignTable", "Row"]

_COUNTS: Final = pa.map_(pa.string(), pa.int64())
ROWS: Final = pa.schema(
    [
        ("seed", pa.int64()),
        ("verdict", pa.string()),
        ("invariant", pa.string()),
        ("text", pa.string()),
        ("failed_after_events", pa.int64()),
        ("failed_at_us", pa.int64()),
        ("events", pa.int64()),
        ("useful_events", pa.int64()),
        ("virtual_us", pa.int64()),
        ("trace_hash", pa.string()),
        ("marks", _COUNTS),
        ("faults", _COUNTS),
        ("looked", _COUNTS),
        ("operations", _COUNTS),
        ("committed", pa.int64()),
        ("registers", pa.int64()),
        ("seconds", pa.float64()),
        ("worker", pa.string()),
        ("replay", pa.string()),
    ]
)
"""`verdict` is `held`, `violation` or `error`; `seconds` is processor time."""

_SAME_NAME: Final = (
    *("seed", "events", "useful_events", "virtual_us"),
    *("trace_hash", "committed", "registers"),
)
_COUNTED: Final = ("marks", "faults", "looked", "operations")
_ABOUT: Final = "campaign.json"
_PARTS: Final = "seeds"


class Row(NamedTuple):
    """One seed's result, and the worker that ran it."""

    result: Result
    seconds: float
    worker: str
    replay: str

    def to_json(self) -> dict[str, Any]:
        """Return the columns."""
        result, failure = self.result, self.result.failure
        verdict = "held"
        if failure is not None:
            verdict = "error" if failure.invariant == "(error)" else "violation"
        return {
            **{name: getattr(result, name) for name in _SAME_NAME},
            **{name: sorted(getattr(result, name).items()) for name in _COUNTED},
            "verdict": verdict,
            "invariant": failure and failure.invariant,
            "text": failure and failure.text,
            "failed_after_events": failure and failure.events,
            "failed_at_us": failure and failure.now_us,
            "seconds": self.seconds,
            "worker": self.worker,
            "replay": self.replay,
        }

    @classmethod
    def of_json(cls, row: dict[str, Any]) -> Row:
        """Return the row of a result of `to_json`."""
        result = Result(**{name: row[name] for name in _SAME_NAME})
        for name in _COUNTED:
            setattr(result, name, Counter(dict(row[name])))
        if row["verdict"] != "held":
            fields = ("invariant", "text", "failed_after_events", "failed_at_us")
            result.failure = Failure(*(row[name] for name in fields))
        return cls(result, row["seconds"], row["worker"], row["replay"])


class CampaignTable:
    """The directory."""

    def __init__(self, folder: str, about: dict[str, object]) -> None:
        """Open or begin it. Errors: PipelineError if it holds another campaign or anything else."""
        self._folder = Path(folder.removeprefix("file://")).absolute()
        about_file = self._folder / _ABOUT
        wanted = json.dumps(about)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if not about_file.exists():
                if any(self._folder.iterdir()):
                    raise PipelineError(f"{folder} holds other files: give a new directory")
                (self._folder / _PARTS).mkdir()
                about_file.write_text(wanted + "\n", encoding="utf-8")
            found = about_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise PipelineError(f"{folder}: {getattr(error, 'strerror', None) or error}") from error
        if found != wanted:
            raise PipelineError(f"{folder} holds another campaign: {found[:200]}")

    @property
    def folder(self) -> Path:
        """Where `campaign.json` and `campaign.html` are."""
        return self._folder

    def write(self, rows: Iterable[Row], attempt: str) -> None:
        """Store rows, all of them or none; `attempt` is a name that no other writer has."""
        found = [row.to_json() for row in rows]
        name = f"seeds-{found[0]['seed']}-{found[-1]['seed']}.parquet"
        parts = self._folder / _PARTS
        part = parts / f".{name}.{attempt}"
        try:
            parquet.write_table(pa.Table.from_pylist(found, schema=ROWS), part)
            os.replace(part, parts / name)
        finally:
            part.unlink(missing_ok=True)

    def seeds(self) -> set[int]:
        """Return the seeds that have a row."""
        return {
            seed
            for path in self._parts()
            for seed in _read(path, ["seed"]).column("seed").to_pylist()
        }

    def rows(self) -> Iterator[Row]:
        """Yield every row; PipelineError at a file that cannot be read."""
        for path in self._parts():
            yield from map(Row.of_json, _read(path, ROWS.names).to_pylist())

    def _parts(self) -> list[Path]:
        return sorted((self._folder / _PARTS).glob("seeds-*.parquet"))


def _read(path: Path, columns: list[str]) -> pa.Table:
    try:
        return parquet.read_table(path, columns=columns)
    except (pa.ArrowException, OSError) as error:
        first = str(error).splitlines()[0]
        raise PipelineError(f"{path} cannot be read; delete it to run it again: {first}") from error
