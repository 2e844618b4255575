"""Which processes descend from another, and what they run: read from /proc, for who kills some."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Running(NamedTuple):
    """A process."""

    pid: int
    parent: int
    command: str


def descendants(*pids: int) -> list[Running]:
    """Every process below one of these, in no order that means anything."""
    everybody = list(_everybody())
    found: list[Running] = []
    parents = set(pids)
    while parents:
        children = [each for each in everybody if each.parent in parents]
        found += children
        parents = {each.pid for each in children}
    return found


def _everybody() -> list[Running]:
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            status = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        if status[0] != "Z":
            found.append(Running(int(entry.name), int(status[1]), words))
    return found
