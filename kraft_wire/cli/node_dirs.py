"""The argument of every verb that reads log directories: entries of nodes' `log.dirs`."""

from collections.abc import Sequence
from typing import Annotated

import typer

__all__ = ["NodeDirs", "paths_of"]

NodeDirs = Annotated[
    list[str], typer.Argument(metavar="NODE_DIR...", help="Entries of nodes' log.dirs.")
]


def paths_of(node_dirs: Sequence[str]) -> list[str]:
    """Return the directories; an argument may have several, separated by commas."""
    return [part for each in node_dirs for part in each.split(",") if part]
