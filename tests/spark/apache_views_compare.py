"""Every view of one node's directory beside what Apache's own classes read there."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from kraft_wire.spark import PipelineError
from kraft_wire.spark.failure import translated
from tests.spark.apache_views_digests import (
    Digests,
    digests,
    first_difference,
    read_rows,
    rows_of,
)
from tests.spark.apache_views_oracle import write_apache_rows

LEVELS = ("read_uncommitted", "read_committed")
SNAPSHOT = "partitions snapshot "
_LOG = ("topic", "partition")
_METADATA_LOG = "__cluster_metadata-0"


@dataclass(frozen=True)
class View:
    """One reading of a directory, named as `judge.ViewDigests` names it."""

    name: str
    options: Mapping[str, str]
    place: str
    """The column that says where in its group a row stands."""
    group: tuple[str, ...] = ()
    """The columns that name a group; none where the view is of the metadata log alone."""

    def load(self, spark: SparkSession, directory: Path) -> DataFrame:
        """The frame over a directory."""
        return spark.read.format("kraftlog").options(**self.options).load(str(directory))


@dataclass(frozen=True)
class Compared:
    """One view, or one reading of live topics, beside what somebody else read."""

    node: str
    view: str
    rows: int
    """Ours."""
    other_rows: int
    seconds: float
    """Of our reading."""
    difference: str = ""
    """The first place that differs, or what ended our reading; empty where all is equal."""

    @property
    def is_equal(self) -> bool:
        """Whether both sides have the same rows."""
        return not self.difference


def views_of(apaches: Mapping[str, Digests]) -> list[View]:
    """Return what is compared: every view, and the partitions by each snapshot that Apache has."""
    ends = [name.removeprefix(SNAPSHOT) for name in apaches if name.startswith(SNAPSHOT)]
    images = {"partitions replay": {"image": "replay"}} | {
        SNAPSHOT + end: {"image": "snapshot", "asOfOffset": end} for end in ends
    }
    return [
        *(_records(start, level) for start in ("physical", "earliest") for level in LEVELS),
        View("batches", {"view": "batches"}, "baseOffset", _LOG),
        View("segments", {"view": "segments"}, "baseOffset", _LOG),
        View("metadata", {"view": "metadata"}, "offset"),
        View("snapshots", {"view": "snapshots"}, "endOffset"),
        *(
            View(name, {"view": "partitions"} | options, "partition", ("topic",))
            for name, options in images.items()
        ),
    ]


def _records(start: str, level: str) -> View:
    options = {
        "view": "records",
        "startingOffsets": start,
        "isolationLevel": level,
        "includeHeaders": "true",
        "includeBatchFields": "true",
    }
    return View(f"records {start} {level}", options, "offset", _LOG)


def compare_view(
    spark: SparkSession, node: str, view: View, directory: Path, apaches: Digests, read: Path
) -> Compared:
    """Hold a view of a directory to what Apache's classes read in `read`, which is the same one.

    JavaFailed where Apache's classes do not say which row of a group differs.
    """
    theirs = sum(each.rows for each in apaches.values())
    begun = time.monotonic()
    try:
        with translated():
            own = digests(view.load(spark, directory), view.group, _METADATA_LOG)
    except PipelineError as error:
        return Compared(node, view.name, 0, theirs, time.monotonic() - begun, str(error))
    seconds = time.monotonic() - begun
    rows = sum(each.rows for each in own.values())
    difference = ""
    if (group := first_group(own, apaches)) is not None:
        ours = rows_of(view.load(spark, directory), view.group, view.place, group, _METADATA_LOG)
        difference = f"{group}, {view.place} {_place(spark, ours, read, view, group)}"
    return Compared(node, view.name, rows, theirs, seconds, difference)


def first_group(ours: Digests, theirs: Digests) -> str | None:
    """Return the first group that differs, None where all are equal."""
    names = sorted(ours.keys() | theirs.keys())
    return next((name for name in names if ours.get(name) != theirs.get(name)), None)


def _place(spark: SparkSession, ours: DataFrame, read: Path, view: View, group: str) -> int:
    with tempfile.TemporaryDirectory(prefix="kraft-wire-rows-") as folder:
        printed = Path(folder) / "rows"
        write_apache_rows(read, view.name, group, printed)
        return first_difference(ours, read_rows(spark, printed))
