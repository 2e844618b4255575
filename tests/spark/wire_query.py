"""``python -m tests.spark.wire_query BOOTSTRAP TOPIC SINK CHECKPOINT``: a stream to be killed.

It reads a topic into Parquet, a few offsets a trigger, until it has what was there at its start.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kraft_wire.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def start_query(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    sink: str,
    checkpoint: str,
    *,
    per_trigger: int = 100,
) -> StreamingQuery:
    """Start the stream, from where its checkpoint says it is."""
    stream = spark.readStream.format("kraftwire").option("kafka.bootstrap.servers", bootstrap)
    stream = stream.option("subscribe", topic).option("startingOffsets", "earliest")
    frame = stream.option("maxOffsetsPerTrigger", str(per_trigger)).load()
    writer = frame.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    return writer.trigger(availableNow=True).start(sink)


def main() -> int:
    """Run the stream to its end, or until somebody ends it."""
    spark = session("local[2]", conf={"spark.driver.memory": "1g"})
    start_query(spark, *sys.argv[1:]).awaitTermination()
    return 0


if __name__ == "__main__":
    sys.exit(main())
