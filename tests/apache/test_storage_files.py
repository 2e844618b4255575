"""Apache's own kafka-dump-log finds no fault in the files of a stopped log directory."""

import re
from pathlib import Path

import pytest

from kraft_wire.model import Offset, TopicPartition, Uuid
from kraft_wire.storage.cleaning.cleaner import compact
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.compression.codecs import Compression
from tests.apache.java_process import run_java
from tests.storage.making import append, batch_bytes, marker_bytes

DUMP = "org.apache.kafka.tools.DumpLogSegments"
FAULTS = re.compile(
    r"Mismatches in|Found timestamp mismatch|don't match|not found|out of order|Exception|corrupt",
    re.IGNORECASE,
)
TOPIC_ID = Uuid(bytes(range(1, 17)))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every codec, idempotent and transactional producers, rolls, compaction, then a clean stop."""
    path = tmp_path_factory.mktemp("logs")
    fs = OsFileSystem()
    config = LogConfig(segment_bytes=20_000, index_interval_bytes=1000)
    logs = LogDirectory.open(fs, str(path))
    log = logs.create_log(TopicPartition("plain", 0), TOPIC_ID, config, 1)
    for at in range(200):
        codec = list(Compression)[at % len(Compression)]
        end = log.log_end_offset
        append(log, batch_bytes(end, count=1 + at % 3, size=200, epoch=at // 50, compression=codec))
    log = logs.create_log(TopicPartition("transactions", 0), TOPIC_ID, config, 1)
    for at in range(40):
        end = log.log_end_offset
        data = batch_bytes(end, producer_id=at % 2, sequence=at // 2, transactional=at % 2 == 1)
        append(log, data)
        if at % 10 == 9:
            append(log, marker_bytes(log.log_end_offset, producer_id=1, abort=at % 20 == 9))
    compacted = LogConfig(segment_bytes=3000, index_interval_bytes=500, cleanup_policy=("compact",))
    log = logs.create_log(TopicPartition("compacted", 0), TOPIC_ID, compacted, 1)
    for at in range(150):
        append(log, batch_bytes(log.log_end_offset, key=b"%d" % (at % 7), size=100))
    log.roll(1)
    log.update_high_watermark(Offset(log.log_end_offset))
    compact(fs, log, Offset(0), 1)
    logs.close(broker_epoch=1)
    return path


def dump(files: list[Path], *flags: str) -> str:
    names = ",".join(map(str, files))
    done = run_java(DUMP, ["--files", names, *flags])
    assert done.exit_code == 0, done.text
    return done.text


@pytest.mark.java
@pytest.mark.slow
def test_logs_and_snapshots_are_read_whole(directory: Path) -> None:
    for flag in ([], ["--deep-iteration"]):
        text = dump(sorted(directory.rglob("*.log")), *flag)
        assert not FAULTS.search(text), FAULTS.search(text)
        assert "isvalid: false" not in text
        assert text.count("isvalid: true") > 200
    text = dump([*directory.rglob("*.snapshot"), *directory.rglob("*.txnindex")])
    assert "producerId: 0" in text
    assert not FAULTS.search(text), text


@pytest.mark.java
@pytest.mark.slow
def test_indexes_pass_the_sanity_check_and_agree_with_the_logs(directory: Path) -> None:
    files = [*directory.rglob("*.index"), *directory.rglob("*.timeindex")]
    assert sum(file.stat().st_size for file in files) > 1000
    text = dump(sorted(files), "--index-sanity-check")
    assert text.count("passed sanity check") + text.count("is empty") == len(files), text
    assert not FAULTS.search(text), text
    text = dump(sorted(files), "--verify-index-only")
    assert not FAULTS.search(text), text
