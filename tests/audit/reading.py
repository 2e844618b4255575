"""Damaged replicas read with `onCorrupt` set to `skip` and `report`: all that is whole, no more.

Without Spark; `tests.spark.damage_frames` asks the same of its frames.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path

import pyarrow as pa

from kraft_wire.spark import read_view
from tests.audit.faults import Damage, Replicas
from tests.audit.whole import Gap, WholeLog, chosen_rows, whole_log
from tests.columnar.by_wire import Row

MODES = ("skip", "report")
_TOLD = re.compile(r"kraftlog: .*/(\d+\.log) position (\d+) \(node (\w+)\): ")


def misread(replicas: Replicas, damage: Damage) -> str | None:
    """Read the damaged replica alone and with the others; say what was read wrongly."""
    directory = replicas.nodes[damage.node]
    log = whole_log(directory / f"{damage.topic}-{damage.partition}", damage)
    for mode in MODES:
        rows, lines = _read([directory], damage, mode)
        wrong = differing(rows, log.rows)
        if mode == "report":
            wrong = wrong or _told_wrongly(lines, log)
        elif lines:
            wrong = f"told {lines[0]}"
        if wrong:
            return f"{mode} of node {damage.node}: {wrong}"
        rows, _ = _read(list(replicas.nodes.values()), damage, mode)
        wrong = differing(rows, chosen_rows(replicas, damage))
        if wrong:
            return f"{mode} of all nodes: {wrong}"
    return None


def differing(rows: Iterable[Row], wanted: Iterable[Row]) -> str | None:
    """Say how many rows there are that should not be, or are not that should."""
    found, expected = sorted(map(repr, rows)), sorted(map(repr, wanted))
    if found == expected:
        return None
    more, fewer = set(found) - set(expected), set(expected) - set(found)
    examples = f"such as {min(more, default='none')} and {min(fewer, default='none')}"
    counts = f"{len(found)} rows where {len(expected)} are whole"
    return f"{counts}: {len(more)} too many, {len(fewer)} missing, {examples}"


def rows_of_table(table: pa.Table) -> list[Row]:
    """The rows of the view `records`, which has headers too, as those of a batch are told."""
    columns = [
        table["offset"].to_pylist(),
        [time // 1000 for time in table["timestamp"].cast(pa.int64()).to_pylist()],
        *(table[name].to_pylist() for name in ("timestampType", "key", "value")),
        [[tuple(each.values()) for each in row or []] for row in table["headers"].to_pylist()],
    ]
    return list(zip(*columns, strict=True))


def _read(paths: Sequence[Path], damage: Damage, mode: str) -> tuple[list[Row], list[str]]:
    """The rows of the damaged partition, and the lines on standard error."""
    options = {
        "path": ",".join(map(str, paths)),
        "assign": json.dumps({damage.topic: [damage.partition]}),
        "includeHeaders": "true",
        "onCorrupt": mode,
    }
    with redirect_stderr(StringIO()) as told:
        batches = list(read_view(options))
    rows = rows_of_table(pa.Table.from_batches(batches)) if batches else []
    return rows, told.getvalue().splitlines()


def _told_wrongly(lines: Iterable[str], log: WholeLog) -> str | None:
    """Say which damage `report` did not tell, or told where there is none."""
    matches = [_TOLD.match(line) for line in lines]
    places = [(match[1], int(match[2])) for match in matches if match]
    if len(places) < len(matches):
        return "a line has another form"
    stretches = [*log.gaps, *([log.tail] if log.tail else [])]
    for file, position in places:
        if not any(_holds(gap, file, position) for gap in stretches):
            return f"{file} position {position} was told, and is whole"
    for gap in log.gaps:
        if not any(_holds(gap, *place) for place in places):
            return f"{gap} was not told"
    return None


def _holds(gap: Gap, file: str, position: int) -> bool:
    return file == gap.file and gap.start <= position < gap.end
