"""The view `segments` read in this process: a row for each file, with chosen columns or all."""

from pathlib import Path

from kraft_wire.columnar.schemas import SEGMENTS
from kraft_wire.model import Offset, TopicPartition, Uuid
from kraft_wire.spark import read_view
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.directory.meta_properties import MetaProperties, write_meta_properties
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import parse_batches


def directory_of(path: Path, batches: int) -> str:
    fs = OsFileSystem()
    path.mkdir()
    write_meta_properties(fs, str(path), MetaProperties("cluster", 1, Uuid(b"d" * 16)))
    logs = LogDirectory.open(fs, str(path))
    if batches:
        config = LogConfig(segment_bytes=200)
        log = logs.create_log(TopicPartition("t", 0), Uuid(b"t" * 16), config, 1)
        for at in range(batches):
            record = Record(b"k", b"v" * 60, at, 1_700_000_000_000 + at)
            data = bytes(build_batch([record], base_offset=at))
            log.append(data, parse_batches(memoryview(data)), 1, 1)
        log.update_high_watermark(Offset(log.log_end_offset))
    logs.close(broker_epoch=1)
    return str(path)


def test_every_segment_is_a_row(tmp_path: Path) -> None:
    path = directory_of(tmp_path / "one", batches=3)
    (whole,) = read_view({"path": path, "view": "segments"})
    assert whole.schema.names == SEGMENTS.names
    (chosen,) = read_view({"path": path, "view": "segments"}, ["file", "topic"])
    assert chosen.to_pylist() == [{"file": f"{at:020d}.log", "topic": "t"} for at in range(3)]


def test_no_segments_are_no_rows(tmp_path: Path) -> None:
    path = directory_of(tmp_path / "none", batches=0)
    assert list(read_view({"path": path, "view": "segments"})) == []
