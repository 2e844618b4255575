"""Which snapshot of a metadata log the tables begin with."""

from pathlib import Path

import pytest

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.spark.metadata.snapshot_files import newest_snapshot
from kraft_wire.storage.os_files import OsFileSystem

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
