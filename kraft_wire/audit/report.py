"""The report of an audit: the findings as Parquet, and a page for people.

The page is one file that loads nothing: a map with a lane for every replica, offsets from left to
right, and findings as colours, beside a table of the findings. It holds as many lanes as a browser
can show quickly, those with findings first; the Parquet file always holds everything.
"""

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import parquet

from kraft_wire.audit.collector.run import AuditResult
from kraft_wire.audit.collector.sources import CannotAudit
from kraft_wire.audit.collector.tasks import Extent
from kraft_wire.audit.finding import Finding
from kraft_wire.audit.output_place import log_directory_around
from kraft_wire.audit.places import places_of

__all__ = ["FINDINGS", "findings_table", "page_of", "refuse_place", "write_report"]

FINDINGS: Final = pa.schema(
    [
        ("check", pa.string()),
        ("severity", pa.string()),
        ("node", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("file", pa.string()),
        ("position", pa.int64()),
        ("detail", pa.string()),
    ]
)

_LANES_MAX: Final = 20_000
_FINDINGS_MAX: Final = 20_000
_DATA_MARK: Final = "/*DATA*/"


def findings_table(findings: Iterable[Finding]) -> pa.Table:
    """Return the findings as a table."""
    return pa.Table.from_pylist([each.to_json() for each in findings], schema=FINDINGS)


def refuse_place(directory: Path, node_dirs: Iterable[str]) -> None:
    """Raise CannotAudit if no report may be written there; call it before the work."""
    around = log_directory_around(str(directory), node_dirs)
    if around is not None:
        raise CannotAudit(f"{directory} is inside the log directory {around}: use another one")
    if directory.exists() and not directory.is_dir():
        raise CannotAudit(f"{directory}: not a directory")


def write_report(result: AuditResult, directory: Path) -> None:
    """Write `findings.parquet` and `report.html`, both whole or nothing of either."""
    is_new = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    names = ("findings.parquet", "report.html")
    table, page = unfinished = [directory / f".{name}.part" for name in names]
    try:
        parquet.write_table(findings_table(result.findings), table)
        about: dict[str, str | int] = {
            "cluster": result.cluster_id,
            "time_ms": int(time.time() * 1000),
        }
        text = page_of(result.findings, result.outcome.extents, result.summary(), about)
        page.write_text(text, encoding="utf-8")
        for part, name in zip(unfinished, names, strict=True):
            part.replace(directory / name)
    except BaseException:
        for part in unfinished:
            part.unlink(missing_ok=True)
        if is_new:
            with suppress(OSError):  # its content is not ours
                directory.rmdir()
        raise


def page_of(
    findings: Sequence[Finding],
    extents: Sequence[Extent],
    summary: dict[str, int],
    about: Mapping[str, str | int] | None = None,
) -> str:
    """Return the page; `about` is the cluster's id and the time of the audit in milliseconds."""
    found = {(each.topic, each.partition) for each in findings}
    lanes = sorted(
        extents,
        key=lambda each: (
            (each.topic, each.partition) not in found,
            each.topic,
            each.partition,
            len(each.node),
            each.node,
        ),
    )
    content = {
        "summary": summary,
        "about": dict(about or {}),
        "counts": Counter(each.severity for each in findings),
        "lanes": [_lane(each) for each in lanes[:_LANES_MAX]],
        "findings": [each.to_json() for each in findings[:_FINDINGS_MAX]],
        "places": places_of(findings[:_FINDINGS_MAX], extents),
        "hidden": {
            "lanes": max(len(lanes) - _LANES_MAX, 0),
            "findings": max(len(findings) - _FINDINGS_MAX, 0),
        },
    }
    template = files("kraft_wire.audit").joinpath("report.html").read_text(encoding="utf-8")
    assert template.count(_DATA_MARK) == 1, "the page has one placeholder for its data"
    return template.replace(_DATA_MARK, json.dumps(content).replace("<", "\\u003c"))


def _lane(extent: Extent) -> dict[str, object]:
    return {
        "topic": extent.topic,
        "partition": extent.partition,
        "node": extent.node,
        "first": extent.first_offset,
        "start": extent.log_start_offset,
        "end": extent.log_end_offset,
        "bytes": extent.size_bytes,
        "segments": extent.segments,
    }
