"""Which metadata log and which of its snapshots the tables are read from."""

import json
from pathlib import Path

import pytest

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.spark import parse_log_options, read_view
from kraft_wire.spark.kraftlog.schemas import view_schema
from kraft_wire.spark.metadata.snapshot_files import newest_snapshot
from kraft_wire.storage.os_files import OsFileSystem
from tests.spark.log_directories import CLUSTER_ID
from tests.spark.metadata_logs import batches, write_metadata_log

DIRECTORY = "__cluster_metadata-0"


@pytest.mark.parametrize(
    ("as_of", "expected"),
    [(None, 20), (20, 20), (19, 10), (10, 10), (9, None), (0, None)],
)
def test_newest_snapshot_that_ends_in_time_is_taken(
    tmp_path: Path, as_of: int | None, expected: int | None
) -> None:
    """The one at offset 0 is a formatted node's: voters, and no record of the metadata."""
    (tmp_path / DIRECTORY).mkdir()
    for offset, epoch in ((0, 0), (10, 1), (20, 2)):
        (tmp_path / DIRECTORY / f"{offset:020d}-{epoch:010d}.checkpoint").touch()
    found = newest_snapshot(OsFileSystem(), str(tmp_path / DIRECTORY), as_of)
    wanted = (
        None if expected is None else OffsetAndEpoch(Offset(expected), LeaderEpoch(expected // 10))
    )
    assert found == wanted


def rows(*directories: Path) -> list[dict[str, object]]:
    options = {"paths": json.dumps([str(each) for each in directories]), "view": "partitions"}
    return [row for batch in read_view(options) for row in batch.to_pylist()]


def test_partitions_of_a_cluster_are_read_from_the_first_log_that_can_be_read(
    tmp_path: Path,
) -> None:
    """The replicas of a metadata log say the same; one that is damaged is passed over."""
    first, second = tmp_path / "1", tmp_path / "2"
    for node in (first, second):
        write_metadata_log(node, CLUSTER_ID, batches())
    wanted = rows(first)
    assert wanted
    assert rows(first, second) == wanted
    (log,) = (first / DIRECTORY).glob("*.log")
    log.write_bytes(log.read_bytes()[:100])
    assert rows(first, second) == wanted


@pytest.mark.parametrize("view", ["partitions", "metadata", "snapshots"])
def test_chosen_columns_of_a_view_are_those_of_the_whole(tmp_path: Path, view: str) -> None:
    write_metadata_log(tmp_path, CLUSTER_ID, batches())
    options = {"path": str(tmp_path), "view": view}
    whole = [row for batch in read_view(options) for row in batch.to_pylist()]
    names = [*view_schema(parse_log_options(options)).names][::-2]
    chosen = list(read_view(options, names))
    assert [batch.schema.names for batch in chosen] == [names] * len(chosen)
    assert [row for batch in chosen for row in batch.to_pylist()] == [
        {name: row[name] for name in names} for row in whole
    ]
