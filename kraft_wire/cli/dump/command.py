"""`kraft-wire dump`: what is in the files of a log directory.

Lines for people, coloured and paged on a terminal; JSON lines for programs. Works on the files of a
running node and of Apache Kafka alike, opens nothing for writing, and ends with 1 where it found a
fault.
"""

import contextlib
import json
import mmap
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from kraft_wire.cli.dump.files import Entry, FileFormat, format_of_file
from kraft_wire.cli.dump.records import READERS
from kraft_wire.wire.json_form import Json

__all__ = ["app", "dump", "main"]

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_EARLIEST_CALENDAR_MS: Final = 0
_LATEST_CALENDAR_MS: Final = 253_402_300_799_999  # the end of year 9999


@app.command()
def dump(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Files of a log directory.", exists=True)
    ],
    records: Annotated[bool, typer.Option("--records", help="Print the records too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    records_as: Annotated[
        str | None,
        typer.Option("--as", metavar="KIND", help=f"Kind of records: {', '.join(READERS)}."),
    ] = None,
) -> None:
    """Print .log, .checkpoint, .index, .timeindex, .txnindex, .snapshot and the small files."""
    if records_as is not None and records_as not in READERS:
        raise typer.BadParameter(f"--as is one of {', '.join(READERS)}")
    formats: list[tuple[Path, FileFormat]] = []
    for path in files:
        if path.is_dir():
            raise typer.BadParameter(f"{path} is a directory: name files in it, as {path}/*.log")
        if not path.is_file():
            raise typer.BadParameter(f"{path} is not a regular file")
        found = format_of_file(path.absolute(), with_records=records, records_as=records_as)
        if found is None:
            raise typer.BadParameter(f"{path}: not the name of a Kafka file")
        formats.append((path, found))
    with _printer(as_json) as show:
        faults = sum(_show_file(path, found, show) for path, found in formats)
    if faults:
        raise typer.Exit(1)


def _show_file(path: Path, found: FileFormat, show: Callable[[Entry], None]) -> int:
    """Show all entries of one file and return the number of faults."""
    faults = 0
    with _contents(path) as data:
        show({"kind": "file", "path": str(path), "format": found.name, "sizeInBytes": len(data)})
        for entry in found.read(data):
            faults += entry["kind"] == "fault"
            show(entry)
    return faults


@contextlib.contextmanager
def _contents(path: Path) -> Iterator[bytes | memoryview]:
    """Map the file instead of reading it: segments are large and read once from front to back."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            yield b""
            return
        # Not closed by hand: an error's traceback may still hold slices of the map.
        yield memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


@contextlib.contextmanager
def _printer(as_json: bool) -> Iterator[Callable[[Entry], None]]:
    """Yield a function that prints one entry: JSON lines, plain lines, or lines through a pager."""
    if as_json:
        yield lambda entry: print(json.dumps(entry, separators=(",", ":")))
        return
    pager = shutil.which("less") if sys.stdout.isatty() else None
    if pager is None:
        console = Console(soft_wrap=True, highlight=False)
        yield lambda entry: console.print(_line(entry))
        return
    with subprocess.Popen([pager, "-RFX"], stdin=subprocess.PIPE, text=True) as process:
        console = Console(file=process.stdin, force_terminal=True, soft_wrap=True, highlight=False)
        with contextlib.suppress(BrokenPipeError):  # the reader has seen enough
            yield lambda entry: console.print(_line(entry))
        with contextlib.suppress(BrokenPipeError):
            process.communicate()


def _line(entry: Entry) -> Text:
    """Return the line of an entry for people."""
    return _LINES[str(entry["kind"])](entry)


def _file_line(entry: Entry) -> Text:
    line = Text().append(f"{entry['path']}", style="bold")
    return line.append(f"  {entry['format']}, {entry['sizeInBytes']} bytes", style="dim")


def _batch_line(entry: Entry) -> Text:
    line = Text().append(f"@{entry['position']:<10} ", style="dim")
    line.append(f"{entry.get('baseOffset')}..{entry['lastOffset']}", style="bold green")
    if "count" in entry:
        line.append(f"  {entry['count']} records")
    line.append(f"  {entry['sizeInBytes']} bytes  {entry['compression']}", style="cyan")
    line.append(f"  {_time_text(entry['maxTimestamp'])}")
    if entry["magic"] != 2:
        line.append(f"  format {entry['magic']}", style="yellow")
    else:
        line.append_text(_batch_owner(entry))
    if not entry["crcIsValid"]:
        line.append("  WRONG CHECKSUM", style="bold red")
    return line


def _batch_owner(entry: Entry) -> Text:
    """Return the producer and the kind of a batch."""
    line = Text(f"  epoch {entry['partitionLeaderEpoch']}")
    if entry["producerId"] != -1:
        line.append(f"  producer {entry['producerId']}/{entry['producerEpoch']}", style="magenta")
        line.append(f" sequence {entry['baseSequence']}..{entry['lastSequence']}", style="magenta")
    for flag, word in (("isTransactional", "transactional"), ("isControlBatch", "control")):
        if entry[flag]:
            line.append(f"  {word}", style="yellow")
    if entry["deleteHorizonMs"] is not None:
        line.append(f"  delete horizon {_time_text(entry['deleteHorizonMs'])}", style="yellow")
    return line


def _record_line(entry: Entry) -> Text:
    line = Text().append(f"    {entry['offset']:<10}", style="green")
    line.append(f" {_time_text(entry['timestamp'])} ", style="dim")
    for name, value in entry.items():
        if name not in ("kind", "offset", "timestamp"):
            style = "bold red" if name == "error" else "blue"
            line.append(f" {name}=", style=style).append(_compact(value))
    return line


def _entry_line(entry: Entry) -> Text:
    line = Text("   ")
    for name, value in entry.items():
        if name != "kind":
            line.append(f" {name}=", style="blue").append(_compact(value))
    return line


def _fault_line(entry: Entry) -> Text:
    return Text(f"    fault at byte {entry['position']}: {entry['reason']}", style="bold red")


_LINES: Final[dict[str, Callable[[Entry], Text]]] = {
    "file": _file_line,
    "batch": _batch_line,
    "record": _record_line,
    "entry": _entry_line,
    "fault": _fault_line,
}


def _compact(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _time_text(timestamp_ms: Json) -> str:
    """Return a timestamp as UTC time, or the number where no calendar has it."""
    if not isinstance(timestamp_ms, int) or not (
        _EARLIEST_CALENDAR_MS <= timestamp_ms <= _LATEST_CALENDAR_MS
    ):
        return str(timestamp_ms)
    moment = datetime.fromtimestamp(timestamp_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{timestamp_ms % 1000:03}Z"


def main() -> None:
    """Run the command by itself."""
    app()


if __name__ == "__main__":
    main()
