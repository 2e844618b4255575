"""Directories whose owners go on while they are audited: what changes meanwhile is no fault."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.audit.collector import CannotAudit, plan_audit, reading, run_audit
from kraft_wire.audit.collector.reading import read_indexes
from kraft_wire.columnar import list_partitions
from kraft_wire.model import Offset, TopicPartition
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.files import File
from kraft_wire.storage.leader_epochs import LeaderEpochs
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.memory_records import iter_batches
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import parse_batches
from tests.audit.clean_set import write_clean_set

Faults = list[tuple[str, str, str, int]]


@pytest.fixture
def nodes(tmp_path: Path) -> list[Path]:
    return write_clean_set(tmp_path / "clean")


def planned(nodes: list[Path]) -> Any:
    return plan_audit([str(node) for node in nodes])


def faults(plan: Any) -> Faults:
    found = run_audit(plan, processes=1).findings
    return [(each.check, each.severity, each.topic, each.partition) for each in found]


def grow(nodes: list[Path]) -> None:
    """Append to a log of each node, with an index entry for each batch, and checkpoint."""
    config = LogConfig(segment_bytes=1 << 20, index_interval_bytes=1)
    for node in nodes:
        directory = LogDirectory.open(OsFileSystem(), str(node))
        directory.load_logs(lambda _topic: config, 1)
        log = directory.logs[TopicPartition("orders", 0)]
        for _ in range(20):
            base = int(log.log_end_offset)
            data = bytes(
                build_batch(
                    [Record(b"k", b"v" * 300, base, 1_700_000_000_000 + base)],
                    base_offset=base,
                    partition_leader_epoch=2,
                    producer_id=7,
                    producer_epoch=0,
                    base_sequence=base,
                )
            )
            log.append(data, parse_batches(memoryview(data)), 1, 1)
            log.update_high_watermark(Offset(log.log_end_offset))
        directory.close(broker_epoch=1)


def segments(node: Path, partition: str) -> list[Path]:
    return sorted((node / partition).glob("*.log"))


def remove(segment: Path) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        segment.with_suffix(suffix).unlink(missing_ok=True)


def test_segment_that_was_read_before_it_was_deleted_with_the_next_leaves_no_gap(
    nodes: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, *_ = segments(nodes[0], "orders-0")
    open_for_reading = OsFileSystem.open_for_reading

    def late(fs: OsFileSystem, path: str) -> File:
        file = open_for_reading(fs, path)
        if path == str(first) and second.exists() and len(plans) == 1:
            remove(first)
            remove(second)
        return file

    plans: list[Any] = []
    monkeypatch.setattr(OsFileSystem, "open_for_reading", late)
    plans.append(planned(nodes))
    assert faults(plans[0]) == []
    assert not second.exists()


def test_leader_epochs_that_follow_what_is_deleted_are_waited_for(
    nodes: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, *_ = segments(nodes[0], "orders-0")
    remove(first)
    epochs = LeaderEpochs(OsFileSystem(), str(first.parent))
    epochs.load()

    def pause(_seconds: float) -> None:
        epochs.truncate_from_start(Offset(int(second.stem)))

    monkeypatch.setattr(reading, "time", SimpleNamespace(sleep=pause, time=time.time))
    assert faults(planned(nodes)) == []


@pytest.mark.parametrize("left", [1, 0])
def test_segments_that_retention_deletes_meanwhile_leave_no_gap(
    nodes: list[Path], left: int
) -> None:
    plan = planned(nodes)
    files = segments(nodes[0], "orders-0")
    for segment in files[: len(files) - left]:
        remove(segment)
    assert faults(plan) == []


def test_partition_that_is_deleted_meanwhile_is_not_missed(nodes: list[Path]) -> None:
    plan = planned(nodes)
    for node in nodes[:2]:
        (node / "orders-0").rename(node / "orders-0.0123456789abcdef-delete")
    assert faults(plan) == []


def test_index_entries_of_what_is_appended_meanwhile_are_not_judged(
    nodes: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    grown: list[bool] = []

    def late(*given: Any) -> Any:
        if not grown:
            grown.append(True)
            grow(nodes)
        return read_indexes(*given)

    monkeypatch.setattr("kraft_wire.audit.collector.tasks.read_indexes", late)
    assert faults(planned(nodes)) == []
    assert grown


def test_high_watermark_is_not_newer_than_the_logs_that_are_held_against_it(
    nodes: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(fs: Any, directory: str, **given: Any) -> Any:
        found = list_partitions(fs, directory, **given)
        if directory == str(nodes[0]):
            grow(nodes)
        return found

    monkeypatch.setattr("kraft_wire.audit.collector.sources.list_partitions", slow)
    assert faults(planned(nodes)) == []


def test_compacted_file_may_be_longer_than_the_one_it_takes_the_place_of(
    nodes: list[Path],
) -> None:
    plan = planned(nodes)
    first, second = segments(nodes[0], "state-0")[:2]
    content = first.read_bytes() + second.read_bytes()
    remove(second)
    remove(first)
    first.write_bytes(content)
    assert faults(plan) == []


def test_what_the_cleaner_went_over_is_compacted_though_no_metadata_log_says_so(
    nodes: list[Path],
) -> None:
    for node in nodes:
        shutil.rmtree(node / "__cluster_metadata-0")
    first = segments(nodes[0], "state-0")[0]
    head, _, *rest = (bytes(batch.view) for batch in iter_batches(first.read_bytes()))
    remove(first)
    first.write_bytes(b"".join([head, *rest]))
    assert [each[:2] for each in faults(planned(nodes))] == [("gap", "error")]
    for node in nodes:
        (node / "cleaner-offset-checkpoint").write_text("0\n1\nstate 0 100\n")
    assert faults(planned(nodes)) == []


def test_directories_of_two_clusters_are_refused(nodes: list[Path]) -> None:
    properties = nodes[2] / "meta.properties"
    properties.write_text(properties.read_text().replace("cluster.id=5", "cluster.id=6"))
    with pytest.raises(CannotAudit, match=r"node-3 is of cluster 6L6g.*: audit one cluster"):
        planned(nodes)
