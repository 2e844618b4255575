"""The one exception of this package: an error in a user's input or environment, in one line.

Spark wraps a worker's error into a long trace, often into several. `line_first` puts our line right
behind Spark's message that a worker failed, for users' own queries; `translated` extracts the line,
so that a verb can print it and exit with 2.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError
from pyspark import TaskContext
from pyspark.errors import PySparkException

__all__ = ["PipelineError", "line_first", "translated"]

_PLANNERS: Final = ("_data_source", "streaming_source")
"""Processes that Spark starts for data sources alone: there the trace may be left out, so that the
output begins with our line. A task's process runs other functions too: see `line_first`."""

_HIDE_TRACE: Final = "SPARK_HIDE_TRACEBACK"

_OURS: Final = re.compile(r"PipelineError: ([^\n]+)")
_PLAIN_LINE: Final = re.compile(
    r"^\s*(?:at |File |Traceback|Driver stacktrace|\.{3} \d+ more|An error occurred while calling)"
)


class PipelineError(Exception):
    """The error, its place, and the remedy, in one line."""

    def __init__(self, line: str) -> None:
        super().__init__(" ".join(line.splitlines()))
        if any(planner in word for planner in _PLANNERS for word in sys.argv):
            os.environ[_HIDE_TRACE] = "1"


@contextmanager
def line_first() -> Iterator[None]:
    """Put the line of a PipelineError that ends the body before any trace.

    Only for functions that Spark itself calls: the worker's process ends with the error, so that no
    other trace is left out.
    """
    try:
        yield
    except PipelineError:
        if TaskContext.get() is not None:
            os.environ[_HIDE_TRACE] = "1"
        raise


@contextmanager
def translated() -> Iterator[None]:
    """Raise every failure of the body that Spark or the system reports as a PipelineError."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise PipelineError(line_of(str(error))) from error
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise PipelineError(f"{place}{error.strerror or error}") from error


def line_of(text: str) -> str:
    """Return our own line from a trace of Spark, else its first line with text."""
    own = _OURS.findall(text)
    if own:
        return str(own[-1]).strip()
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if not _PLAIN_LINE.match(line)]
    return (telling or lines or ["Spark failed without a message"])[0]
