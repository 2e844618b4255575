"""One metadata log, replayed twice: by `write_tables`, and by Apache's own classes in Java.

Both give the same sums over all partitions at the log's end, so that neither leaves anything out.
Apache's side makes images only; ours also the history of every partition, and Parquet of it all.
"""

import os
import subprocess
import time
from pathlib import Path

import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql import SparkSession

from benchmarks.node import SCRIPT_FLAGS
from benchmarks.spark_sides import Cost
from kraft_wire.spark.verbs.tables import write_tables
from tests.apache.java_process import java_command

HEAP_MB = 1024
SECONDS_MAX = 600
_SUMMED = ("leader", "leaderEpoch", "partitionEpoch")

Sums = tuple[int, ...]
"""Records, partitions, and over these the sums of leader, leader epoch and partition epoch."""


def our_tables(spark: SparkSession, data: Path, output: Path) -> Sums:
    """Write the tables, and add up what they say of the partitions."""
    (written,) = write_tables(spark, [str(data)], str(output), overwrite=output.exists())
    partitions = parquet.read_table(output / "partitions", columns=list(_SUMMED))
    sums = [int(pc.sum(partitions[name]).as_py() or 0) for name in _SUMMED]
    return (written.records, partitions.num_rows, *sums)


def apache_replay(data: Path) -> tuple[Cost, Sums, float]:
    """Return the cost of the whole Java process, its sums, and the seconds of its replay alone."""
    command = java_command(
        "judge.MetadataReplay",
        [str(data / "__cluster_metadata-0")],
        heap_mb=HEAP_MB,
        base_flags=SCRIPT_FLAGS,
    )
    before, begun = os.times(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, check=True, timeout=SECONDS_MAX)
    wall, after = time.perf_counter() - begun, os.times()
    *sums, milliseconds = map(int, done.stdout.split())
    cpu = after.children_user + after.children_system
    cost = Cost(wall, cpu - before.children_user - before.children_system)
    return cost, tuple(sums), milliseconds / 1e3
