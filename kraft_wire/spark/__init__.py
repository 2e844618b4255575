"""Kafka's log directories as Spark tables, through PySpark and without a jar: the extra `spark`.

Importing the package registers the formats with the active session. Read in this order: `options`
and `schemas` define the possible reads, `replicas` and `planning` turn them into tasks, `log_walk`
and the modules `…_views` read them; none of these needs a session. `log_source`, `tasks`, `filters`
and `log_stream` put Spark's Data Source API around them. Without the extra the import raises
ImportError, whose message names the packages to install.
"""

from kraft_wire.spark.available import PACKAGES
from kraft_wire.spark.failure import PipelineError, translated
from kraft_wire.spark.kraftlog.log_source import KraftLogSource
from kraft_wire.spark.kraftlog.options import LogOptions, parse_log_options
from kraft_wire.spark.kraftlog.views import ViewTask, plan_view, read_task, read_view
from kraft_wire.spark.kraftwire.wire_source import KraftWireSource
from kraft_wire.spark.registration import register
from kraft_wire.spark.session import running, session

__all__ = [
    "PACKAGES",
    "KraftLogSource",
    "KraftWireSource",
    "LogOptions",
    "PipelineError",
    "ViewTask",
    "parse_log_options",
    "plan_view",
    "read_task",
    "read_view",
    "register",
    "running",
    "session",
    "translated",
]
