"""Where Spark looks for the format `kraftwire`: modules `pyspark_…` that have a `DefaultSource`."""

from kraft_wire.spark.kraftwire.wire_source import KraftWireSource as DefaultSource

__all__ = ["DefaultSource"]
