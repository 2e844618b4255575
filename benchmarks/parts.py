"""What the benchmarks of several processes share: figures of both sides, parts of a run, the table.

A part that fails is noted and the others go on: what was measured is worth as much. Figures are
told as soon as they are there, and where a part failed the logs of all nodes are kept.
"""

import json
import os
import shutil
import signal
import statistics
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.node import spread
from tests.apache.jars import RELEASE

GOAL = 1.0
FAILURES = (Exception,)
"""What a busy machine makes of a round: nobody answers, nobody leads, a process does not end."""


@dataclass
class Row:
    """One figure of both sides."""

    name: str
    unit: str
    ours: float
    apache: float
    ratio: float
    spread: float = 0.0
    goal: float = GOAL
    our_cpu_us: float = 0.0
    """Processor time of our three processes per change."""
    cpu_ratio: float = 0.0
    """Apache's per change over ours."""


Samples = dict[str, list[float]]


class Parts:
    """The parts of a run: a bar for each on standard error, and how long each took."""

    def __init__(self, bars: Progress, rows: list[Row]) -> None:
        """`rows` is where the parts leave their figures."""
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.notes: list[str] = []
        """What stands below the table."""
        self.bars = bars
        self._rows = rows
        self._told = 0
        self._task = bars.add_task("", visible=False)

    @contextmanager
    def part(self, name: str, steps: int) -> Iterator[None]:
        """Run one part of so many steps; one that fails is noted, and the others go on."""
        self._task = self.bars.add_task(name, total=steps)
        begun = time.perf_counter()
        try:
            yield
        except FAILURES:
            self.fail(name)
        self.seconds[name] = round(time.perf_counter() - begun, 1)
        self.bars.console.print(f"{name}: {self.seconds[name]:.0f} s", style="dim")
        for each in self._rows[self._told :]:
            figures = f"{each.ours} and {each.apache} {each.unit}, {each.ratio:.2f}x"
            self.bars.console.print(f"  {each.name}: {figures}", markup=False)
        self._told = len(self._rows)
        self.bars.update(self._task, completed=steps)

    def fail(self, name: str) -> None:
        """Note what failed, with the exception that is being handled."""
        self.failed.append(name)
        traceback.print_exc()

    def step(self, name: str = "") -> None:
        """One step of the present part is done, or begins where it is named."""
        if name:
            self.bars.console.print(f"  {name}", style="dim")
        self.bars.advance(self._task)


def row(name: str, unit: str, samples: Samples, *, more_is_better: bool = False) -> Row:
    """Medians of both sides and their ratio."""
    ours, apache = (statistics.median(samples[side]) for side in ("ours", "apache"))
    ratio = ours / apache if more_is_better else apache / ours
    widest = max(map(spread, samples.values()))
    return Row(name, unit, round(ours, 3), round(apache, 3), round(ratio, 2), widest)


def print_table(console: Console, rows: list[Row]) -> None:
    """Print the rows for people."""
    table = Table(
        "figure", "ours", f"Apache {RELEASE}", "ratio", "goal", "spread", "our CPU", "CPU ratio"
    )
    for each in rows:
        reached = "reached" if each.ratio >= each.goal else "NOT reached"
        table.add_row(
            each.name,
            f"{each.ours:,.2f} {each.unit}",
            f"{each.apache:,.2f} {each.unit}",
            f"{each.ratio:.2f}x",
            f"{each.goal:.1f}x {reached}",
            f"{each.spread:.0%}",
            f"{each.our_cpu_us:.0f} µs" if each.our_cpu_us else "-",
            f"{each.cpu_ratio:.2f}x" if each.cpu_ratio else "-",
        )
    console.print(table)


def keep_logs(folder: Path, title: str) -> Path:
    """Copy what the nodes in a folder wrote to one that stays."""
    kept = Path(tempfile.mkdtemp(prefix=f"kraft-wire-{title}-logs-"))
    for log in folder.glob("**/node-*.log"):
        place = kept / log.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(log, place)
    return kept


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def run_parts(
    title: str, measure: Callable[[Path, Parts, list[Row]], None], *, as_json: bool
) -> int:
    """Measure in a folder of its own, and print the table, also where something failed.

    Return 0 also where a ratio is short, 1 where a part failed.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    load = round(os.getloadavg()[0], 1)
    rows: list[Row] = []
    bars = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True))
    parts = Parts(bars, rows)
    before = signal.signal(signal.SIGTERM, _interrupt)  # nobody is to be left behind
    try:
        with tempfile.TemporaryDirectory(prefix=f"kraft-wire-{title}-") as folder, bars:
            try:
                measure(Path(folder), parts, rows)
            except BaseException:
                parts.failed.append("what was left")
                raise
            finally:
                if parts.failed:
                    parts.notes.append(f"logs: {keep_logs(Path(folder), title)}")
    finally:
        signal.signal(signal.SIGTERM, before)
        found = {
            "title": title,
            "rows": [asdict(each) for each in rows],
            "seconds": parts.seconds,
            "failed": parts.failed,
            "notes": parts.notes,
            "load": [load, round(os.getloadavg()[0], 1)],
        }
        _show(Console(width=140, stderr=as_json), rows, parts, load)
        if as_json:
            print(json.dumps(found))
    return 1 if parts.failed else 0


def _show(console: Console, rows: list[Row], parts: Parts, load: float) -> None:
    print_table(console, rows)
    took = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in parts.seconds.items())
    lines = [
        *parts.notes,
        f"load average {load:.1f} before, {os.getloadavg()[0]:.1f} after; {took}",
        *(f"{name} FAILED: its figures are missing, see above" for name in parts.failed),
    ]
    console.print(*lines, sep="\n", markup=False, highlight=False, soft_wrap=True)
