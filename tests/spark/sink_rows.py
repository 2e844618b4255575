"""``python sink_rows.py FORMAT SINK JARS``: what a sink holds, read by Spark alone, as one JSON.

For every partition the number of rows, of distinct offsets, the lowest and the highest; and of all
values, which are numbers, how many distinct ones there are and their sum. Run by the interpreter
that wrote the sink.
"""

from __future__ import annotations

import json
import sys


def main() -> int:
    """Read and print."""
    from pyspark.sql import functions as f

    from kraft_wire.spark.session import running
    from kraft_wire.spark.verbs.ingest import DELTA_SETTINGS

    sink_format, sink, jars = sys.argv[1:4]
    conf = dict(DELTA_SETTINGS) if sink_format == "delta" else {}
    conf |= {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
    with running("local[2]", conf=conf, jars=[each for each in jars.split(",") if each]) as spark:
        rows = spark.read.format(sink_format).load(sink)
        offset, number = f.col("offset"), f.expr("try_cast(string(value) AS bigint)")
        every = rows.groupBy("partition").agg(
            f.count("*"), f.countDistinct(offset), f.min(offset), f.max(offset)
        )
        partitions = {row[0]: list(row)[1:] for row in every.collect()}
        numbers = rows.agg(f.countDistinct(number), f.sum(number)).collect()[0]
    print(json.dumps({"partitions": partitions, "numbers": list(numbers)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
