"""Reads a properties file that a command line names, and writes entries that are read as they were.

An error is one line with the reason.
"""

from typing import Final

from kraft_wire.node.config.node_config import Setting, settings_of_file

__all__ = ["UnreadableFile", "property_line", "read_properties"]

_SIGNS: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
_SIGNS_IN_KEYS: Final = _SIGNS | {sign: f"\\{sign}" for sign in " =:#!"}
_ASCII_PRINTED: Final = range(0x20, 0x7F)


class UnreadableFile(Exception):
    """A file cannot be read as text; the text is one line."""


def read_properties(path: str) -> dict[str, Setting]:
    """Return the entries of a properties file; errors: UnreadableFile, ConfigError."""
    try:
        with open(path, encoding="utf-8") as file:
            return settings_of_file(file.read(), path)
    except OSError as error:
        raise UnreadableFile(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path}: not a text file ({error.reason})") from error


def property_line(key: str, value: str) -> str:
    """Return an entry's line in ASCII: Java takes a file for ISO 8859-1, and we for UTF-8."""
    if value.startswith(" "):
        first, rest = "\\ ", value[1:]
    else:
        first, rest = "", value
    return f"{_escaped(key, _SIGNS_IN_KEYS)}={first}{_escaped(rest, _SIGNS)}\n"


def _escaped(text: str, signs: dict[str, str]) -> str:
    return "".join(signs.get(each) or _in_ascii(each) for each in text)


def _in_ascii(character: str) -> str:
    if ord(character) in _ASCII_PRINTED:
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
