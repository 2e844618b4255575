"""Keep Spark's classes as the virtual machine holds them: a session starts in half the time.

``python -m tests.spark.class_archive`` starts a session, runs queries of the kinds that the tests
run, and lets the virtual machine write at its end which classes it had loaded. Without the archive
every test runs all the same; Java itself ignores one of another virtual machine or of other jars.

Source: JEP 350, dynamic class-data sharing archives.
"""

from __future__ import annotations

import os
import tempfile
from importlib.metadata import version
from pathlib import Path

from tests.tidiness import CHECKOUT

OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable with which Spark's launcher starts a driver's virtual machine."""
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A test's Spark ends before a thorough compiler pays, and two of them share two processors."""
WRITE_SECONDS_MAX = 300


def archive() -> Path:
    """Where the classes of the installed Spark are kept."""
    return CHECKOUT / "var" / "spark" / f"{version('pyspark')}.jsa"


def quick_options() -> str:
    """What starts a driver of a test soon."""
    try:
        is_there = archive().exists()
    except ModuleNotFoundError:  # no Spark
        is_there = False
    shared = f" -XX:SharedArchiveFile={archive()} -Xlog:disable" if is_there else ""
    return QUICK_START + shared


def make() -> Path:
    """Write the archive unless it is there."""
    if archive().exists():
        return archive()
    archive().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive().parent, prefix=".classes-") as scratch:
        written = Path(scratch, archive().name)
        os.environ[OPTIONS] = f"{QUICK_START} -XX:ArchiveClassesAtExit={written} -Xlog:disable"
        _run_queries(Path(scratch))
        written.replace(archive())
    return archive()


def _run_queries(folder: Path) -> None:
    from kraft_wire.spark import session

    started = session("local[2]", conf={"spark.sql.warehouse.dir": str(folder / "tables")})
    numbers = started.range(100).selectExpr("id", "id % 3 AS part")
    numbers.write.partitionBy("part").parquet(str(folder / "numbers"))
    read = started.read.parquet(str(folder / "numbers"))
    read.groupBy("part").count().orderBy("part").collect()
    read.mapInArrow(lambda batches: batches, "id long, part int").toPandas()
    stream = started.readStream.schema("id long, part int").parquet(str(folder / "numbers"))
    query = stream.writeStream.format("parquet").option("checkpointLocation", str(folder / "at"))
    query.trigger(availableNow=True).start(str(folder / "copied")).awaitTermination()
    gateway = started.sparkContext._gateway
    started.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(WRITE_SECONDS_MAX)


if __name__ == "__main__":
    print(make())
