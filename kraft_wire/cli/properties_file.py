"""Reads a properties file that a command line names; one line says why it cannot be read."""

from kraft_wire.node.config import Setting, settings_of_file

__all__ = ["UnreadableFile", "read_properties"]


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
