"""Kafka's small text files of numbered lines: version, count, then one entry per line.

The offset checkpoints of a log directory (`recovery-point-offset-checkpoint` and its siblings) and
a partition's `leader-epoch-checkpoint` have this format. It has no checksum, so parsing is strict:
any deviation is `CorruptCheckpoint`.
"""

from collections.abc import Iterable

from kraft_wire.storage.files import FileSystem, MissingFile, StorageError, replace_file

__all__ = ["CorruptCheckpoint", "number", "read_entries", "write_entries"]

_VERSION = "0"
_NUMBER_DIGITS_MAX = 19


class CorruptCheckpoint(StorageError):
    """A checkpoint file has an invalid format; names the line."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__("parse", path, reason)


def read_entries(fs: FileSystem, path: str, fields: int) -> list[list[str]] | None:
    """Return the entries, each split into `fields` words; None without the file."""
    assert path, "a path is needed"
    assert fields > 0, fields
    try:
        data = fs.read(path)
    except MissingFile:
        return None
    if not data:
        return []  # Kafka creates its checkpoints empty and writes them later
    lines = _lines(path, data)
    if lines[0] != _VERSION:
        raise CorruptCheckpoint(path, f"line 1 is not version {_VERSION}")
    if len(lines) < 2 or lines[1] != str(len(lines) - 2):
        raise CorruptCheckpoint(path, f"line 2 is not the count of the {len(lines) - 2} entries")
    entries = [line.split(" ") for line in lines[2:]]
    for number, words in enumerate(entries, start=3):
        if len(words) != fields or not all(words):
            raise CorruptCheckpoint(path, f"line {number} does not have {fields} words")
    return entries


def write_entries(
    fs: FileSystem, path: str, entries: Iterable[Iterable[object]], *, durable: bool = True
) -> None:
    """Replace the file atomically."""
    assert path, "a path is needed"
    lines = [" ".join(map(str, words)) for words in entries]
    assert all("\n" not in line for line in lines), lines
    text = "".join(f"{line}\n" for line in [_VERSION, str(len(lines)), *lines])
    replace_file(fs, path, text.encode("utf-8"), durable=durable)


def number(path: str, word: str) -> int:
    """Parse a decimal as Kafka writes it: no sign but minus, no leading zeros, 64 bits."""
    digits = word.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > _NUMBER_DIGITS_MAX:
        raise CorruptCheckpoint(path, f"{word!r} is not a number")
    if str(int(word)) != word or int(word) >= 1 << 63:
        raise CorruptCheckpoint(path, f"{word!r} is not a 64-bit number in plain form")
    assert int(word) >= -(1 << 63), word
    return int(word)


def _lines(path: str, data: bytes) -> list[str]:
    assert data, "an empty file has no version"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(path, f"invalid UTF-8 at byte {error.start}") from error
    if not text.endswith("\n"):
        raise CorruptCheckpoint(path, "the last line is incomplete")
    return text.split("\n")[:-1]
