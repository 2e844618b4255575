"""The one exception of this package: what a user gave or has is wrong, said in one line.

Spark wraps what happens on a worker into a long trace, often into several. `translated` digs the
line out again, so that a verb can print it and end with 2.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

__all__ = ["PipelineError", "translated"]

_PLANNERS: Final = ("_data_source", "streaming_source")
"""Processes that Spark starts for data sources alone: there it may leave out the trace, and what it
shows begins with our line. A task's process runs the functions of others too."""

_OURS: Final = re.compile(r"PipelineError: ([^\n]+)")
_PLAIN_LINE: Final = re.compile(r"^\s*(?:at |File |Traceback|Driver stacktrace|\.{3} \d+ more)")


class PipelineError(Exception):
    """What is wrong, where, and what to do, in one line."""

    def __init__(self, line: str) -> None:
        super().__init__(" ".join(line.splitlines()))
        if any(planner in word for planner in _PLANNERS for word in sys.argv):
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"


@contextmanager
def translated() -> Iterator[None]:
    """Raise every failure of the body that Spark or the system reports as a PipelineError."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise PipelineError(_line_of(str(error))) from error
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise PipelineError(f"{place}{error.strerror or error}") from error


def _line_of(text: str) -> str:
    """Return our own line out of a trace of Spark's, else the first that says anything."""
    own = _OURS.findall(text)
    if own:
        return str(own[-1]).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if not _PLAIN_LINE.match(line)]
    return (telling or lines or ["Spark failed without a word"])[0]
