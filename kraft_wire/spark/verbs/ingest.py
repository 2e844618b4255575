"""`kraft-wire spark ingest`: topics of a live cluster into Parquet or Delta, every record once.

Exactly once needs three things: offsets that can be read again, a checkpoint with the offsets of
each batch, and a sink that takes a batch by its number only once. The checkpoint and the output
therefore belong together; if one of them is missing the query is refused, because Spark would
silently skip or repeat rows.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import pyspark
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from kraft_wire.foreign_text import json_value
from kraft_wire.spark.failure import PipelineError, line_of, translated
from kraft_wire.spark.kraftwire.wire_options import parse_wire_options
from kraft_wire.spark.verbs.staging import refuse_log_directories
from kraft_wire.spark.workers import Amount, Tell, silent

__all__ = [
    "AVAILABLE_NOW",
    "DELTA_SETTINGS",
    "Ingest",
    "Ingested",
    "delta_settings",
    "ingest",
    "start_ingest",
]

Sink = Literal["parquet", "delta"]
Connector = Literal["kraftwire", "kafka"]
Offsets = dict[tuple[str, int], int]

AVAILABLE_NOW: Final = "available-now"
DELTA_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""The settings of a session that writes Delta, besides its jars."""

_DELTA_JAR: Final = "delta-spark"
_JAR_SETTINGS: Final = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
_NO_DELTA: Final = (
    "Delta is not here: give delta-spark_2.13 and delta-storage through --jars, on pyspark 4.2,"
    " or leave out --sink delta"
)
_INTERVAL: Final = re.compile(r"\d+ *(ms|milliseconds?|s|seconds?|m|minutes?|h|hours?)", re.I)
_POLL_S: Final = 1


@dataclass(frozen=True, slots=True)
class Ingest:
    """The input, the output and the trigger."""

    bootstrap_servers: str
    subscribe: str
    """Topics with commas between."""
    output: str
    checkpoint: str
    trigger: str = AVAILABLE_NOW
    """Or an interval, such as `10 seconds`: then it continues until it is stopped."""
    sink: Sink = "parquet"
    connector: Connector = "kraftwire"
    options: Mapping[str, str] = field(default_factory=dict)
    """Further options of the source, which by default begins at `earliest`."""


@dataclass(slots=True)
class Ingested:
    """The totals of this run alone."""

    batches: int = 0
    records: int = 0
    began: Offsets = field(default_factory=dict)
    """Only of partitions that an earlier run has read too."""
    reached: Offsets = field(default_factory=dict)


def delta_settings(conf: Mapping[str, str], jars: Sequence[str] = ()) -> dict[str, str]:
    """Return the settings of a session that writes Delta; `conf` overrules.

    PipelineError where nothing brings the jars: without them Spark starts all the same, and fails
    only later, in many lines.
    """
    given = [*jars, *(conf.get(key, "") for key in _JAR_SETTINGS)]
    installed = Path(pyspark.__file__).parent.glob(f"jars/{_DELTA_JAR}*.jar")
    if not any(_DELTA_JAR in each for each in given) and not any(installed):
        raise PipelineError(_NO_DELTA)
    return {**DELTA_SETTINGS, **conf}


def start_ingest(spark: SparkSession, asked: Ingest) -> StreamingQuery:
    """Start the query; PipelineError where it would not be exactly once, or cannot start."""
    if asked.trigger != AVAILABLE_NOW and not _INTERVAL.fullmatch(asked.trigger.strip()):
        raise PipelineError(
            f"--trigger {asked.trigger!r} is neither {AVAILABLE_NOW} nor such as '10 seconds'"
        )
    _refuse_strangers(asked)
    with translated():
        writer = (
            _loaded(spark, asked)
            .writeStream.format(asked.sink)
            .outputMode("append")
            .option("checkpointLocation", asked.checkpoint)
        )
        if asked.trigger == AVAILABLE_NOW:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=asked.trigger.strip())
        try:
            return writer.start(asked.output)
        except (PySparkException, Py4JError) as error:
            if asked.sink == "delta":
                raise _without_delta(str(error)) from error
            raise


def _without_delta(text: str) -> Exception:
    """Return the error if a query into Delta does not start."""
    if "DATA_SOURCE_NOT_FOUND" in text:
        return PipelineError(_NO_DELTA)
    line = line_of(text)
    if "NoSuchMethod" in text or "NoClassDef" in text or "ClassNotFound" in text:
        line = f"Delta's jars do not fit pyspark {pyspark.__version__}: {line}"
    return PipelineError(line)


def ingest(
    spark: SparkSession,
    asked: Ingest,
    *,
    tell: Tell = silent,
    started: Callable[[StreamingQuery], None] = lambda _query: None,
) -> Ingested:
    """Run the query to its end and return its totals; an interrupt also ends it.

    `started` gets the query, so that the caller can stop it.
    """
    query = start_ingest(spark, asked)
    started(query)
    taken = Ingested()
    last_batch = -1
    with translated():
        try:
            while not query.awaitTermination(_POLL_S):
                last_batch = _note(query, last_batch, taken, tell)
        except KeyboardInterrupt:
            query.stop()
        _note(query, last_batch, taken, tell)
    return taken


def _loaded(spark: SparkSession, asked: Ingest) -> DataFrame:
    options = {"startingOffsets": "earliest", **asked.options}
    options["kafka.bootstrap.servers"] = asked.bootstrap_servers
    options["subscribe"] = asked.subscribe
    if asked.connector == "kraftwire":  # refused here it is one line, and the query never starts
        parse_wire_options(options, streaming=True)
    try:
        return spark.readStream.format(asked.connector).options(**options).load()
    except AnalysisException as error:
        if asked.connector == "kafka" and "find" in str(error):
            raise PipelineError(
                "Spark's own connector is not here: give its jars through --jars, or leave out"
                " --connector kafka"
            ) from error
        raise


def _refuse_strangers(asked: Ingest) -> None:
    """Refuse an output without its checkpoint, or the reverse, where that is visible."""
    places = asked.output, asked.checkpoint
    if any("://" in place for place in places):
        return
    for place in places:
        refuse_log_directories(place)
    output, checkpoint = (Path(place) for place in places)
    # a query that was killed before its first offsets leaves directories, and no file
    has_rows = any(found.is_file() for found in output.rglob("*"))
    has_offsets = any((checkpoint / "commits").glob("[0-9]*"))
    if has_rows and not (checkpoint / "offsets").is_dir():
        raise PipelineError(
            f"{output} holds rows, and {checkpoint} does not say which: give the checkpoint that"
            " they were written with, or a new output"
        )
    if has_offsets and not has_rows:
        raise PipelineError(
            f"{checkpoint} says that rows were written, and {output} holds none: give the output"
            " of this checkpoint, or a new checkpoint"
        )


def _note(query: StreamingQuery, last_batch: int, taken: Ingested, tell: Tell) -> int:
    """Add the batches since the last look; returns the number of the newest."""
    for progress in query.recentProgress:
        if progress.batchId <= last_batch or not progress.numInputRows:
            continue
        last_batch = progress.batchId
        taken.batches += 1
        taken.records += progress.numInputRows
        _note_offsets(progress, taken)
        tell(Amount(records=progress.numInputRows))
    return last_batch


def _note_offsets(progress: StreamingQueryProgress, taken: Ingested) -> None:
    for source in progress.sources:
        for key, offset in _offsets(source.startOffset).items():
            taken.began.setdefault(key, offset)
        taken.reached |= _offsets(source.endOffset)


def _offsets(text: str | None) -> Offsets:
    """Read the offsets of a source; empty for another JSON."""
    try:
        topics = json_value(text or "{}") or {}
        return {
            (topic, int(number)): int(offset)
            for topic, partitions in topics.items()
            for number, offset in partitions.items()
        }
    except (ValueError, AttributeError):
        return {}
