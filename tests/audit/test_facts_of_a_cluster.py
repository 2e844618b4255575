"""Where the facts of a cluster come from: its metadata log, or a snapshot where that is cut."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kraft_wire.audit.collector.metadata import MetadataLog, cluster_facts, quorum_high_watermark
from kraft_wire.columnar.segments import PartitionFiles, list_partitions
from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch, Uuid
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.audit.clean_set import write_snapshot

FS = OsFileSystem()


def topic(name: str) -> bytes:
    return encode_record(VersionedRecord(TopicRecord(name=name, topic_id=Uuid(name.encode() * 16))))


def node(path: Path, begin: int, names: str, snapshots: dict[int, str]) -> PartitionFiles:
    """A metadata log from `begin` on, a topic a batch, and snapshots by their ends."""
    directory = path / "__cluster_metadata-0"
    directory.mkdir(parents=True)
    data = b"".join(
        build_batch([Record(None, topic(name))], base_offset=begin + at, partition_leader_epoch=1)
        for at, name in enumerate(names)
    )
    (directory / f"{begin:020d}.log").write_bytes(data)
    for end, held in snapshots.items():
        snapshot_id = OffsetAndEpoch(Offset(end), LeaderEpoch(1))
        write_snapshot(directory, snapshot_id, [topic(name) for name in held])
    (files,) = [each for each in list_partitions(FS, str(path)) if each.partition == 0]
    return files


def names_of(*copies: PartitionFiles) -> str:
    return "".join(sorted(cluster_facts(FS, MetadataLog(FS, copies)).topic_ids))


def test_log_that_has_its_beginning_is_folded_from_there(tmp_path: Path) -> None:
    """A snapshot that says otherwise is damaged, and a finding of its own."""
    assert names_of(node(tmp_path / "1", 0, "abc", {2: "xy"})) == "abc"


@pytest.mark.parametrize(
    ("begin", "names", "snapshots", "wanted"),
    [
        (2, "cd", {2: "ab"}, "abcd"),
        (2, "cd", {2: "ab", 3: "xyz"}, "dxyz"),
        (2, "cd", {1: "a"}, ""),
        (4, "", {2: "a", 3: "abc"}, "abc"),
    ],
)
def test_cut_log_continues_its_newest_snapshot_that_it_reaches(
    begin: int, names: str, snapshots: dict[int, str], wanted: str, tmp_path: Path
) -> None:
    assert names_of(node(tmp_path / "1", begin, names, snapshots)) == wanted


def test_no_log_is_no_facts_and_what_has_a_snapshot_is_committed(tmp_path: Path) -> None:
    assert names_of() == ""
    nothing = node(tmp_path / "0", 0, "abc", {})
    assert quorum_high_watermark(FS, MetadataLog(FS, [nothing])) == -1
    copy = node(tmp_path / "1", 0, "abc", {1: "a", 2: "ab"})
    assert quorum_high_watermark(FS, MetadataLog(FS, [copy])) == 2


def test_snapshots_are_beyond_only_where_no_log_reaches_them(tmp_path: Path) -> None:
    """A node that lags has snapshots of its leader's that its own log does not reach."""
    short, long = (
        node(tmp_path / "1", 0, "a", {1: "a", 3: "abc"}),
        node(tmp_path / "2", 0, "abc", {}),
    )
    assert MetadataLog(FS, [short, long]).beyond() == {}
    end = OffsetAndEpoch(Offset(3), LeaderEpoch(1))
    assert MetadataLog(FS, [short]).beyond() == {end: [short]}


def test_snapshot_is_not_beyond_while_one_of_the_logs_grows(tmp_path: Path) -> None:
    """Nodes that run append between the listing of files and the comparison."""
    snapshots = {3: "abc"}
    one, two = (node(tmp_path / name, 0, "a", snapshots) for name in "12")
    log = MetadataLog(FS, [one, two])
    assert len(log.beyond()) == 1
    with open(f"{two.directory}/{0:020d}.log", "ab") as file:
        file.write(b"more")
    assert log.beyond() == {}


@pytest.mark.parametrize("change", ["rolled", "removed"])
def test_snapshot_is_not_beyond_while_a_log_has_another_segment(
    change: str, tmp_path: Path
) -> None:
    copy = node(tmp_path / "1", 0, "a", {3: "abc"})
    log = MetadataLog(FS, [copy])
    if change == "removed":
        os.remove(f"{copy.directory}/{0:020d}.log")
    with open(f"{copy.directory}/{9:020d}.log", "wb"):
        pass
    assert log.beyond() == {}


def test_snapshot_is_the_one_that_most_nodes_have(tmp_path: Path) -> None:
    copies = [
        node(tmp_path / str(number), 2, "cd", {2: names})
        for number, names in enumerate(["xy", "ab", "ab"])
    ]
    assert names_of(*copies) == "abcd"


def test_snapshot_of_a_minority_behind_every_log_is_no_fact(tmp_path: Path) -> None:
    """Committed records are in the logs of a majority; the half of the nodes may be one."""
    copies = [
        node(tmp_path / str(number), 0, "a", {3: "abc"} if number else {}) for number in (0, 1)
    ]
    assert MetadataLog(FS, copies).unreached() == frozenset()
    assert quorum_high_watermark(FS, MetadataLog(FS, copies)) == 3
    third = node(tmp_path / "2", 0, "a", {})
    log = MetadataLog(FS, [*copies, third])
    assert log.unreached() == {OffsetAndEpoch(Offset(3), LeaderEpoch(1))}
    assert quorum_high_watermark(FS, log) == -1


@pytest.mark.parametrize(
    ("offset", "epoch", "is_inside"),
    [(0, None, False), (1, 1, False), (3, 1, False), (4, None, False)],
)
def test_epoch_before_an_offset_is_that_of_its_last_record(
    offset: int, epoch: int | None, is_inside: bool, tmp_path: Path
) -> None:
    log = MetadataLog(FS, [node(tmp_path / "1", 0, "abc", {})])
    assert log.epoch_before(offset) == epoch
    assert log.has_batch_around(offset) is is_inside
