"""Snapshots of producers that belong to no segment are removed, or they would only ever grow."""

from kraft_wire.model import Offset
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.cleaning.cleaner import compact
from kraft_wire.storage.files import replace_file
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.producers.snapshots import snapshot_offsets, snapshot_path
from tests.storage.making import DIRECTORY, fill, open_at

SMALL = LogConfig(segment_bytes=500)
COMPACTED = LogConfig(segment_bytes=500, cleanup_policy=("compact",))


def test_each_clean_stop_leaves_one_snapshot_and_not_one_more() -> None:
    """ProducerStateManager.removeStraySnapshots of 4.3.1 keeps the newest stray one only."""
    fs = SimFileSystem()
    log = open_at(fs)
    for _ in range(4):
        fill(log, 1)
        log.close()
        log = open_at(fs, is_clean=True)
    assert snapshot_offsets(fs, DIRECTORY) == [4]


def test_snapshots_at_the_bases_of_segments_are_kept() -> None:
    fs = SimFileSystem()
    log = open_at(fs, SMALL)
    fill(log, 12)
    log.close()
    replace_file(fs, snapshot_path(DIRECTORY, Offset(1)), b"?")
    log = open_at(fs, SMALL, is_clean=True)
    bases = [segment.base_offset for segment in log.segments]
    assert len(bases) > 2
    assert snapshot_offsets(fs, DIRECTORY) == [*bases[1:], 12]


def test_compaction_removes_the_snapshots_of_the_segments_that_it_joins() -> None:
    """UnifiedLog.replaceSegments of 4.3.1 deletes those of segments without a successor."""
    fs = SimFileSystem()
    log = open_at(fs, COMPACTED)
    fill(log, 20)
    before = snapshot_offsets(fs, DIRECTORY)
    log.update_high_watermark(log.log_end_offset)
    for _ in range(2):  # the first pass leaves small segments, which the second one joins
        compact(fs, log, Offset(0), 1)
    bases = [segment.base_offset for segment in log.segments]
    assert len(bases) < len(before)
    assert snapshot_offsets(fs, DIRECTORY) == bases[1:]
