"""The Spark session of the verbs of `kraft-wire spark`.

Spark reads some of its settings from the environment of the process that starts it: the workers'
interpreter must be the driver's, or they use the `python3` on the path.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.quiet_start import quiet_start
from kraft_wire.spark.registration import register

__all__ = ["running", "session"]

_QUIET: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
"""Settings that `--conf` can override."""


def session(
    master: str = "local[*]",
    *,
    conf: Mapping[str, str] | None = None,
    jars: Sequence[str] = (),
    app_name: str = "kraft-wire",
) -> SparkSession:
    """Return the active session, or start one; the formats are registered with it.

    `conf` overrides the settings here; `spark.pyspark.python` in it is the workers' interpreter if
    theirs has another path than this one. Errors: PipelineError if Spark does not start.
    """
    workers = (conf or {}).get("spark.pyspark.python", sys.executable)
    os.environ["PYSPARK_PYTHON"] = workers
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(app_name).master(master)
    settings = _QUIET | ({"spark.jars": ",".join(jars)} if jars else {}) | dict(conf or {})
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        started = builder.getOrCreate()
    except (PySparkException, RuntimeError, OSError) as error:
        first = str(error).strip().splitlines()[0]
        raise PipelineError(f"Spark does not start with master {master}: {first}") from error
    started.sparkContext.setLogLevel("ERROR")
    register(started)
    return started


@contextmanager
def running(
    master: str, *, conf: Mapping[str, str] | None = None, jars: Sequence[str] = ()
) -> Iterator[SparkSession]:
    """Start a session for one verb and stop it afterwards; an existing session stays.

    The JVM's lines are not shown: a failure is one line of the verb, not a trace for each task.
    """
    if _has_session():
        yield session(master, conf=conf, jars=jars)
        return
    with quiet_start():
        started = session(master, conf=conf, jars=jars)
        started.sparkContext.setLogLevel("OFF")
    try:
        yield started
    finally:
        started.stop()


def _has_session() -> bool:
    """Return whether this process has a session, active in this thread or not."""
    try:
        SparkSession.active()
    except PySparkException:
        return False
    return True
