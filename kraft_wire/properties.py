"""Reads the text of a Java properties file, remembering the line of each entry.

The format of `java.util.Properties`: lines end with \\n, \\r or both, comments begin with # or
!, a key ends at =, : or white space, a backslash at the end of a line continues it, and \\uXXXX
(UTF-16), \\n, \\t, \\r, \\f are characters. The last entry of a key counts.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Property", "parse_properties"]

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SPACE = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")


class Property(NamedTuple):
    """One entry with the number of the line on which it begins."""

    key: str
    value: str
    line: int


def parse_properties(text: str) -> list[Property]:
    """Return the entries in order; this format has no errors."""
    return [_entry(line, number) for line, number in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[tuple[str, int]]:
    """Yield lines without comments and blanks, continued ones joined."""
    pending, began = "", 0
    for number, raw in enumerate(_LINE_END.split(text), 1):
        line = raw.lstrip(_SPACE)
        if not pending and (not line or line[0] in "#!"):
            continue
        began = began if pending else number
        trailing = len(line) - len(line.rstrip("\\"))
        if trailing % 2:
            pending += line[:-1]
            continue
        yield pending + line, began
        pending = ""
    if pending:
        yield pending, began


def _entry(line: str, number: int) -> Property:
    end = _key_end(line)
    rest = line[end:].lstrip(_SPACE)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_SPACE)
    return Property(_unescaped(line[:end]), _unescaped(rest), number)


def _key_end(line: str) -> int:
    position = 0
    while position < len(line):
        if line[position] == "\\":
            position += 1
        elif line[position] in "=:" or line[position] in _SPACE:
            return position
        position += 1
    return len(line)


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    characters: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\":  # never the last one: it would continue the line
            character = text[position]
            position += 1
            if character == "u" and _is_hex(text[position : position + 4]):
                character = chr(int(text[position : position + 4], 16))
                position += 4
            else:
                character = _ESCAPES.get(character, character)
        characters.append(character)
    units = "".join(characters).encode("utf-16-le", "surrogatepass")
    return units.decode("utf-16-le", "replace")


def _is_hex(digits: str) -> bool:
    return len(digits) == 4 and all(digit in "0123456789abcdefABCDEF" for digit in digits)
