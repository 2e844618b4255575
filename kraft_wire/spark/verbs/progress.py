"""How far a verb is, on standard error: files, records, bytes, rate and time left.

Only a terminal sees it; whoever redirects standard error gets the errors alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from kraft_wire.spark.workers import Amount

__all__ = ["Bar", "progress"]


class Bar:
    """One line; its total is known once the work is planned."""

    def __init__(self, shown: Progress, what: str) -> None:
        self._shown = shown
        self._done = Amount()
        self._task = shown.add_task(what, total=None, counted="")

    def plan(self, size_bytes: int) -> None:
        """Say how many bytes there are to read."""
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
