"""Registers the formats with a session.

A session finds them by itself if this package is installed (`pyspark_kraftlog`,
`pyspark_kraftwire`); a registration also reaches sessions without it on their path, and gives the
number of parallel tasks.
"""

import os
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from kraft_wire.spark.kraftlog.log_source import KraftLogSource
from kraft_wire.spark.kraftwire.wire_source import KraftWireSource

__all__ = ["register"]

_SOURCES: Final[tuple[type[DataSource], ...]] = (KraftLogSource, KraftWireSource)
_PARALLELISM: Final = ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism")


def register(session: SparkSession) -> None:
    """Register the formats with a session, classic or Connect."""
    cores = parallelism_of(session)
    for source in _SOURCES:
        known = type(source.__name__, (source,), {"parallelism": cores})
        session.dataSource.register(known)


def parallelism_of(session: SparkSession) -> int:
    """Return how many tasks of a session run at a time, or the processors here."""
    for key in _PARALLELISM:
        text = session.conf.get(key, None)
        if text is not None and text.isdecimal() and int(text):
            return int(text)
    try:
        return max(int(session.sparkContext.defaultParallelism), 1)
    except (AttributeError, PySparkException):  # a Connect session has no context
        return os.cpu_count() or 1


def _register_with_active_session() -> None:
    session = SparkSession.getActiveSession()
    if session is not None:
        register(session)


_register_with_active_session()
