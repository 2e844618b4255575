"""Every bit of every kind of file flipped, and read by production code.

Part of `make crash`. Per kind at least 64 KiB of small files, each of which is damaged in every bit
(in every seventh if it has no checksum), cut to every length and, sector by sector, filled with
zeros or with another sector. A verdict is the reaction of production code:

- refused: named, and not used;
- rebuilt: derived again, and right;
- harmless: the content read is the content written;
- unseen: other content is read. Unseen is a violation for content under a checksum and for content
  derived from it; in text files only parsing and cross-checks find damage.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from enum import Enum
from itertools import repeat
from multiprocessing import get_context

from rich.table import Table

from kraft_wire.sim.crash.bit_flip_fixtures import KINDS, Fixture, Kind
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.producers.producer_state import CorruptSnapshot
from kraft_wire.storage.segment import CorruptLog
from kraft_wire.storage.snapshots.metadata_snapshot import CorruptMetadataSnapshot

__all__ = ["FlipReport", "Verdict", "flip_table", "run_all", "run_kind"]

_SECTOR_BYTES = 512
_REFUSALS = (CorruptCheckpoint, CorruptLog, CorruptMetadataSnapshot, CorruptSnapshot)
_SAMPLED_STRIDE = 7
"""Where no checksum promises anything, one bit in seven, another one in each byte."""


class Verdict(Enum):
    """Production code's reaction to a damaged file."""

    REFUSED = "refused"
    RIGHT = "right"
    UNSEEN = "unseen"


@dataclass(slots=True)
class FlipReport:
    """The figures of one kind of file."""

    name: str
    is_checked: bool
    """Whether unseen damage is a fault, because a checksum covers the content or its source."""
    file_bytes: int = 0
    flips: int = 0
    others: int = 0
    """Cuts, zeroed and exchanged sectors."""
    refused: int = 0
    right: int = 0
    """Rebuilt, or nothing that is read was touched."""
    unseen: int = 0
    violations: int = 0
    example: str = ""


def run_kind(kind: Kind, *, size_bytes: int, stride: int = 1) -> FlipReport:
    """Spoil fixtures of one kind until `size_bytes` are done; of the damages every `stride`-th."""
    assert stride > 0, stride
    report = FlipReport(kind.name, kind.is_checked)
    for number, fixture in enumerate(kind.fixtures()):
        if report.file_bytes >= size_bytes:
            break
        report.file_bytes += len(fixture.content)
        for at, (what, spoilt) in enumerate(_damages(fixture.content, number % stride, stride)):
            if what.startswith("bit"):
                report.flips += 1
            else:
                report.others += 1
            _note(report, kind, what, _judge(fixture, spoilt), at)
    return report


def _damages(content: bytes, first: int, stride: int) -> Iterator[tuple[str, bytes]]:
    """Yield every flipped bit, every cut, every sector zeroed or exchanged with the first."""
    for bit in range(first, 8 * len(content), stride):
        spoilt = bytearray(content)
        spoilt[bit >> 3] ^= 1 << (bit & 7)
        yield f"bit {bit & 7} of byte {bit >> 3}", bytes(spoilt)
    for length in range(first, len(content), stride):
        yield f"cut to {length}", content[:length]
    zeros = bytes(_SECTOR_BYTES)
    for start in range(0, len(content), _SECTOR_BYTES):
        end = min(start + _SECTOR_BYTES, len(content))
        for what, filling in (("zeros", zeros), ("sector 0", content[:_SECTOR_BYTES])):
            spoilt = bytearray(content)
            spoilt[start:end] = filling[: end - start].ljust(end - start, b"\0")
            if spoilt != content:
                yield f"{what} at {start}", bytes(spoilt)


def _judge(fixture: Fixture, spoilt: bytes) -> "Verdict | str":
    """Read the damaged file; a text is an unexpected error."""
    try:
        seen = fixture.read(spoilt)
    except _REFUSALS:
        return Verdict.REFUSED
    except Exception as error:  # noqa: BLE001  # reading must not raise any error
        return f"{type(error).__name__}: {error}"
    return Verdict.RIGHT if seen == fixture.expected else Verdict.UNSEEN


def _note(report: FlipReport, kind: Kind, what: str, verdict: "Verdict | str", at: int) -> None:
    assert at >= 0, at
    match verdict:
        case Verdict.REFUSED:
            report.refused += 1
            return
        case Verdict.RIGHT:
            report.right += 1
            return
        case Verdict.UNSEEN:
            report.unseen += 1
            if not kind.is_checked:
                report.example = report.example or what
                return
            text = f"{what}: other content is read"
        case str():
            text = f"{what}: {verdict}"
    report.violations += 1
    report.example = text if report.violations == 1 else report.example


def flip_table(reports: list[FlipReport]) -> Table:
    """Return the figures for people."""
    table = Table(title="Spoilt files")
    for column in ("file", "bytes", "bit flips", "cuts, sectors", "refused", "right", "unseen"):
        table.add_column(column, justify="left" if column == "file" else "right")
    for report in reports:
        table.add_row(
            report.name,
            f"{report.file_bytes:,}",
            f"{report.flips:,}",
            f"{report.others:,}",
            f"{report.refused:,}",
            f"{report.right:,}",
            f"{report.unseen:,}" + (" (!)" if report.violations else ""),
        )
    return table


def run_all(size_bytes: int, stride: int) -> list[FlipReport]:
    """Run every kind, as many at a time as there are processors."""
    assert size_bytes > 0, size_bytes
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as workers:
        return list(workers.map(_run_number, range(len(KINDS)), repeat(size_bytes), repeat(stride)))


def _run_number(number: int, size_bytes: int, stride: int) -> FlipReport:
    kind = KINDS[number]
    return run_kind(
        kind,
        size_bytes=size_bytes,
        stride=stride if kind.has_checksum else stride * _SAMPLED_STRIDE,
    )
