"""Checks the place of results: any directory except a log directory.

Kafka takes every directory in an entry of `log.dirs` for a partition, and a node with a directory
of another name there does not start.
"""

from collections.abc import Iterable
from pathlib import Path

from kraft_wire.storage.directory.meta_properties import META_PROPERTIES

__all__ = ["log_directory_around"]


def log_directory_around(output: str, known: Iterable[str] = ()) -> str | None:
    """Return the log directory that would hold the results; `known` are some that are read."""
    places = Path(output).resolve().parents
    for each in known:
        if Path(each).resolve() in places:
            return each
    around = (str(place) for place in places if (place / META_PROPERTIES).is_file())
    return next(around, None)
