"""What `benchmarks.spark` measures with: one query over three formats, and what it costs.

Processor time is that of the JVM with every process below it, those that ended included; memory is
the largest resident set of a Python worker so far, as the kernel keeps it.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from benchmarks.node import SCRIPT_FLAGS
from tests.apache.java_process import java_command

TICKS = os.sysconf("SC_CLK_TCK")
DUMP_HEAP_MB = 256
DUMP_SECONDS_MAX = 900


class Cost(NamedTuple):
    """What one run took, in seconds."""

    wall: float
    cpu: float


Totals = tuple[int, ...]
"""Records, value bytes, key bytes, sum of offsets, headers: equal on every side."""


class ProcessTree:
    """The JVM of a session, its Python workers, and whatever else they start."""

    def __init__(self, spark: SparkSession) -> None:
        jvm = spark.sparkContext._jvm
        assert jvm is not None, "a session of another process has no JVM here"
        self._root = int(jvm.java.lang.ProcessHandle.current().pid())

    def cpu_seconds(self) -> float:
        """Of all that run, and of those that they have waited for."""
        return sum(_ticks(pid) for pid in self._pids()) / TICKS

    def worker_bytes_max(self) -> int:
        """The most that one Python process below the JVM ever had in memory."""
        found = [_peak_bytes(pid) for pid in self._pids() if pid != self._root]
        return max(found, default=0)

    def _pids(self) -> list[int]:
        parents = {int(each.name): _parent(each) for each in Path("/proc").glob("[0-9]*")}
        found = [self._root]
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid]
        return found


def _fields(process: Path) -> list[str]:
    """The fields of `stat` behind the command's name; none for a process that ended."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _parent(process: Path) -> int:
    fields = _fields(process)
    return int(fields[1]) if fields else -1


def _ticks(pid: int) -> int:
    """User and system time, its own and of the children that it waited for."""
    return sum(map(int, _fields(Path(f"/proc/{pid}"))[11:15]))


def _peak_bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    peaks = [line.split()[1] for line in text.splitlines() if line.startswith("VmHWM:")]
    return int(peaks[0]) << 10 if peaks else 0


def frame(
    spark: SparkSession, name: str, options: Mapping[str, str], *, headers: bool
) -> DataFrame:
    """One format with its options."""
    reader = spark.read.format(name).options(**options)
    return reader.option("includeHeaders", str(headers).lower()).load()


def totals(found: DataFrame, *, headers: bool) -> Totals:
    """Go over every record and every column that costs anything."""
    sums = [
        sql.count(sql.lit(1)),
        sql.sum(sql.length("value")),
        sql.sum(sql.length("key")),
        sql.sum("offset"),
        sql.sum(sql.size("headers") if headers else sql.lit(0)),
    ]
    (row,) = found.agg(*sums).collect()
    return tuple(int(each or 0) for each in row)


def fingerprints(found: DataFrame) -> list[tuple[object, ...]]:
    """A hash over all columns of all rows of each partition, whatever their order."""
    columns = [name for name in found.columns if name != "headers"]
    marks = sql.xxhash64(*columns, sql.to_json("headers"))
    grouped = found.groupBy("topic", "partition").agg(sql.count(sql.lit(1)), sql.bit_xor(marks))
    return sorted(tuple(row) for row in grouped.collect())


def dump(segments: list[Path]) -> tuple[Cost, int]:
    """Run `kafka-dump-log --deep-iteration --print-data-log`; return its cost and its records."""
    files = ",".join(map(str, segments))
    command = java_command(
        "org.apache.kafka.tools.DumpLogSegments",
        ["--deep-iteration", "--print-data-log", "--files", files],
        heap_mb=DUMP_HEAP_MB,
        base_flags=SCRIPT_FLAGS,
    )
    with tempfile.TemporaryFile() as output:
        before, begun = os.times(), time.perf_counter()
        subprocess.run(command, stdout=output, check=True, timeout=DUMP_SECONDS_MAX)
        wall, after = time.perf_counter() - begun, os.times()
        output.seek(0)
        records = sum(line.startswith(b"| offset:") for line in output)
    cpu = after.children_user + after.children_system
    return Cost(wall, cpu - before.children_user - before.children_system), records


def scan_batches(spark: SparkSession, path: str) -> tuple[int, int]:
    """Return how many whole batches with right checksums the logs hold, and their bytes."""
    found = spark.read.format("kraftlog").option("view", "batches").load(path)
    sums = [sql.count(sql.lit(1)), sql.sum("sizeInBytes")]
    (row,) = found.where("crcValid and status = 'ok'").agg(*sums).collect()
    return int(row[0]), int(row[1])
