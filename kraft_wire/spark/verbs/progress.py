"""How far a verb is, on standard error: files, records, bytes, rate and time left.

Only a terminal shows it: redirected standard error has the errors alone. A campaign of seeds, which
may take hours, prints a line a minute there.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from kraft_wire.spark.workers import Amount

__all__ = ["Bar", "SeedBar", "progress", "seed_progress"]

_LINE_EVERY_S: Final = 60


class Bar:
    """One line; its total is known once the work is planned."""

    def __init__(self, shown: Progress, what: str) -> None:
        self._shown = shown
        self._done = Amount()
        self._task = shown.add_task(what, total=None, counted="")

    def plan(self, size_bytes: int) -> None:
        """Set the number of bytes to read."""
        self._shown.update(self._task, total=max(size_bytes, 1))

    def tell(self, gained: Amount) -> None:
        """Show that so much more is done."""
        done = Amount(*(old + new for old, new in zip(self._done, gained, strict=True)))
        self._done = done
        counted = f"{done.files:,} files, {done.records:,} records"
        self._shown.update(self._task, completed=done.size_bytes, counted=counted)


@contextmanager
def progress(what: str) -> Iterator[Bar]:
    """Show a bar while the body runs."""
    console = Console(stderr=True, highlight=False, emoji=False)
    shown = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[counted]}"),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with shown:
        yield Bar(shown, what)


class SeedBar:
    """One line of seeds, events and their rate."""

    def __init__(self, shown: Progress, seeds: int) -> None:
        self._shown = shown
        self._seeds = seeds
        self._done = Amount()
        self._began_s = self._printed_s = time.monotonic()
        self._task = shown.add_task("seeds", total=seeds, counted="")

    def tell(self, gained: Amount) -> None:
        """Show that so many more seeds (files) and events (records) are done."""
        self._done = Amount(*(old + new for old, new in zip(self._done, gained, strict=True)))
        now_s = time.monotonic()
        rate = self._done.records / max(now_s - self._began_s, 0.001)
        counted = f"{self._done.records:,} events, {rate:,.0f} a second"
        self._shown.update(self._task, completed=self._done.files, counted=counted)
        if self._shown.disable and now_s - self._printed_s >= _LINE_EVERY_S:
            self._printed_s = now_s
            self._shown.console.print(f"{self._done.files:,}/{self._seeds:,} seeds, {counted}")


@contextmanager
def seed_progress(seeds: int) -> Iterator[SeedBar]:
    """Show a bar of seeds while the body runs, or a line a minute."""
    console = Console(stderr=True, highlight=False, emoji=False)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[counted]}"),
        TimeRemainingColumn(),
    )
    is_hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=is_hidden) as shown:
        yield SeedBar(shown, seeds)
