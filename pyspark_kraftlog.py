"""Where Spark looks for the format `kraftlog`: modules named `pyspark_…` with a `DefaultSource`."""

from kraft_wire.spark.kraftlog.log_source import KraftLogSource as DefaultSource

__all__ = ["DefaultSource"]
