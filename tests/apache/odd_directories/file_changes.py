"""Small changes of single files, as they happen to users: the parts that changes are made of."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

__all__ = [
    "Change",
    "added",
    "copied_to",
    "cut_by",
    "cut_to",
    "doubled",
    "emptied",
    "entry",
    "flipped",
    "moved",
    "removed",
    "replaced",
    "text",
    "together",
]

Change = Callable[[Path], None]
"""A change of the directory of a partition."""


def removed(*patterns: str) -> Change:
    """Remove the files of these patterns; each must exist."""

    def change(directory: Path) -> None:
        for pattern in patterns:
            found = list(directory.glob(pattern))
            assert found, (directory, pattern)
            for file in found:
                file.unlink()

    return change


def emptied(name: str) -> Change:
    """Leave a file without bytes, created if it is missing."""
    return text(name, "")


def text(name: str, content: str) -> Change:
    """Write a file."""

    def change(directory: Path) -> None:
        (directory / name).write_bytes(content.encode())

    return change


def cut_to(name: str, size: int) -> Change:
    """Cut a file to so many bytes."""

    def change(directory: Path) -> None:
        data = (directory / name).read_bytes()
        assert size < len(data), (directory / name, len(data))
        (directory / name).write_bytes(data[:size])

    return change


def cut_by(name: str, size: int) -> Change:
    """Remove bytes from the end of a file."""

    def change(directory: Path) -> None:
        data = (directory / name).read_bytes()
        assert size < len(data), (directory / name, len(data))
        (directory / name).write_bytes(data[:-size])

    return change


def added(name: str, data: bytes) -> Change:
    """Append bytes to a file."""

    def change(directory: Path) -> None:
        with (directory / name).open("ab") as file:
            file.write(data)

    return change


def doubled(name: str) -> Change:
    """Repeat the content of a file."""

    def change(directory: Path) -> None:
        (directory / name).write_bytes((directory / name).read_bytes() * 2)

    return change


def flipped(name: str, at: int) -> Change:
    """Change one byte of a file; a negative position counts from the end."""

    def change(directory: Path) -> None:
        data = bytearray((directory / name).read_bytes())
        data[at] ^= 0x55
        (directory / name).write_bytes(data)

    return change


def replaced(name: str, old: str, new: str) -> Change:
    """Replace a part of a text file, which must have it."""

    def change(directory: Path) -> None:
        before = (directory / name).read_text()
        assert old in before, (directory / name, before)
        (directory / name).write_bytes(before.replace(old, new, 1).encode())

    return change


def copied_to(source: str, target: str) -> Change:
    """Copy a file to another name in the same directory."""

    def change(directory: Path) -> None:
        shutil.copy2(directory / source, directory / target)

    return change


def moved(source: str, target: str) -> Change:
    """Rename a file."""

    def change(directory: Path) -> None:
        (directory / source).rename(directory / target)

    return change


def together(*changes: Change) -> Change:
    """Make several changes in a row."""

    def change(directory: Path) -> None:
        for each in changes:
            each(directory)

    return change


def entry(checkpoint: str, *offsets: int | str) -> Change:
    """Replace a partition's lines in a checkpoint of its log directory; none: remove them."""

    def change(directory: Path) -> None:
        file = directory.parent / checkpoint
        topic, _, number = directory.name.rpartition("-")
        lines = file.read_text().splitlines()[2:]
        kept = [line for line in lines if not line.startswith(f"{topic} {number} ")]
        kept += [f"{topic} {number} {offset}" for offset in offsets]
        file.write_text("".join(f"{line}\n" for line in ["0", str(len(kept)), *kept]))

    return change
