"""Directories to findings: what the metadata log says counts, and what was read is counted."""

from __future__ import annotations

import json
import shutil
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from kraft_wire.audit import Finding
from kraft_wire.audit.collector import (
    AuditPlan,
    AuditResult,
    CannotAudit,
    checks_of,
    plan_audit,
    read_high_watermarks,
    read_ledger_file,
    reading,
    run_audit,
)
from kraft_wire.audit.collector.reading import read_indexes, read_replica
from kraft_wire.audit.collector.run import _pack_bytes
from kraft_wire.columnar.segments import list_partitions
from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.generated.no_op_record import NoOpRecord
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.memory_records import iter_batches
from kraft_wire.wire.records.record import Record
from tests.audit.clean_set import values_in, write_clean_set, write_snapshot

BYTES_OF_A_POOL = 1
"""A limit so small that even this audit is spread over processes."""


@pytest.fixture
def nodes(tmp_path: Path) -> list[Path]:
    return write_clean_set(tmp_path / "clean")


def audit(nodes: list[Path], **told: object) -> AuditResult:
    return run_audit(plan_audit([str(node) for node in nodes], **told), processes=1)  # type: ignore[arg-type]  # what a test tells


def errors(result: AuditResult) -> list[Finding]:
    return [each for each in result.findings if each.severity == "error"]


def records_of(partition: Path) -> list[tuple[int, bytes | None]]:
    """Offset and value of every record, read by the wire's own decoder."""
    return [
        (record.offset, None if record.value is None else bytes(record.value))
        for segment in sorted(partition.glob("*.log"))
        for batch in iter_batches(segment.read_bytes())
        for record in batch.records()
    ]


def ledger_of(partition: Path, path: Path) -> Path:
    topic, _, number = partition.name.rpartition("-")
    lines = [
        {
            "topic": topic,
            "partition": int(number),
            "offset": offset,
            "crc32": zlib.crc32(value or b""),
        }
        for offset, value in records_of(partition)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_summary_counts_what_was_read(nodes: list[Path]) -> None:
    logs = [path.read_bytes() for node in nodes for path in node.glob("*/*.log")]
    batches = sum(1 for log in logs for _ in iter_batches(log))
    assert audit(nodes).summary() == {
        "nodes": 3,
        "partitions": 5,
        "batches": batches,
        "bytes": sum(map(len, logs)),
        "errors": 0,
    }


def test_pool_finds_what_one_process_finds(
    nodes: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = sorted((nodes[1] / "orders-0").glob("*.log"))[1]
    data = bytearray(segment.read_bytes())
    data[200] ^= 4
    segment.write_bytes(data)
    shutil.rmtree(nodes[2] / "payments-0")
    alone = audit(nodes)
    for name in ("_SMALL_BYTES", "_PACK_BYTES_MIN", "_PACK_BYTES_MAX"):
        monkeypatch.setattr(f"kraft_wire.audit.collector.run.{name}", BYTES_OF_A_POOL)
    told: list[int] = []
    plan = plan_audit([str(node) for node in nodes])
    pooled = run_audit(plan, processes=2, progress=told.append)
    assert pooled.findings == alone.findings
    assert pooled.summary() == alone.summary()
    assert sum(told) == alone.summary()["bytes"]


def test_replica_outside_the_isr_that_ends_too_early_is_a_warning(nodes: list[Path]) -> None:
    for path in (nodes[1] / "orders-0").glob("*"):
        if path.stem.isdecimal() and int(path.stem) > 0:
            path.unlink()
    (found,) = audit(nodes).findings
    assert (found.check, found.severity, found.node) == ("below-high-watermark", "error", "2")
    shutil.rmtree(nodes[0] / "__cluster_metadata-0")
    shutil.rmtree(nodes[2] / "__cluster_metadata-0")
    metadata = nodes[1] / "__cluster_metadata-0"
    for snapshot in metadata.glob("*.checkpoint"):
        snapshot.unlink()
    (metadata / f"{0:020d}.log").write_bytes(b"")  # knows no partition, so nobody is in sync
    (found,) = audit(nodes).findings
    assert (found.check, found.severity) == ("below-high-watermark", "warn")


def test_replica_whose_directory_is_gone_is_missed_where_it_was_kept(nodes: list[Path]) -> None:
    shutil.rmtree(nodes[1] / "payments-0")
    (found,) = audit(nodes).findings
    assert (found.check, found.severity, found.node) == ("below-high-watermark", "error", "2")
    assert found.topic == "payments"
    properties = nodes[1] / "meta.properties"
    lines = properties.read_text().splitlines()
    kept = [line for line in lines if not line.startswith("directory.id")]
    properties.write_text("\n".join(kept))  # which of the node's directories it is, nobody knows
    assert audit(nodes).findings == []


def test_partition_that_is_gone_from_all_nodes_is_missed_on_each(
    nodes: list[Path], tmp_path: Path
) -> None:
    ledger = read_ledger_file(ledger_of(nodes[0] / "payments-0", tmp_path / "acks.jsonl"))
    for node in nodes:
        shutil.rmtree(node / "payments-0")
    found = audit(nodes).findings
    assert [(each.check, each.severity, each.node) for each in found] == [
        ("below-high-watermark", "error", node) for node in ("1", "2", "3")
    ]
    assert {(each.topic, each.partition) for each in found} == {("payments", 0)}
    (alone,) = audit(nodes[:1]).findings
    assert (alone.check, alone.node) == ("below-high-watermark", "1")
    told = audit(nodes, high_watermarks={("payments", 0): 7}, ledger=ledger)
    (lost,) = told.findings
    assert (lost.check, lost.severity, lost.node, lost.offset) == (
        "acknowledged",
        "error",
        "1,2,3",
        0,
    )
    plan = plan_audit([str(node) for node in nodes], ledger=ledger)
    assert len(run_audit(plan, ("below-high-watermark",), processes=1).findings) == 3


@pytest.mark.parametrize("text", ["0\n9\n", "0\n0\n", ""])
def test_leader_epochs_that_say_nothing_are_one_finding(nodes: list[Path], text: str) -> None:
    (nodes[0] / "orders-0" / "leader-epoch-checkpoint").write_text(text)
    (found,) = audit(nodes).findings
    assert (found.check, found.node, found.file) == ("epoch", "1", "leader-epoch-checkpoint")


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("replication-offset-checkpoint", "below-high-watermark"),
        ("log-start-offset-checkpoint", "gap"),
    ],
)
def test_offset_checkpoint_that_cannot_be_read_is_one_finding(
    nodes: list[Path], name: str, check: str
) -> None:
    (nodes[1] / name).write_text("0\n1\norders 0\n")
    (found,) = audit(nodes).findings
    assert (found.check, found.severity, found.node, found.file) == (check, "error", "2", name)
    assert (found.topic, found.partition) == ("", -1)


def test_metadata_log_that_ends_below_a_snapshot_is_a_warning(nodes: list[Path]) -> None:
    log = nodes[2] / "__cluster_metadata-0" / f"{0:020d}.log"
    first = next(iter(iter_batches(log.read_bytes())))
    log.write_bytes(log.read_bytes()[: first.size_bytes])
    (found,) = audit(nodes).findings
    assert (found.check, found.severity, found.node) == ("below-high-watermark", "warn", "3")


def test_directory_of_an_earlier_topic_of_the_name_is_no_replica(nodes: list[Path]) -> None:
    """What a node has that slept while the topic was deleted and made anew (KIP-516)."""
    for path in (nodes[2] / "orders-0").iterdir():
        path.unlink()
    shutil.copytree(nodes[2] / "payments-0", nodes[2] / "orders-0", dirs_exist_ok=True)
    checkpoint = nodes[2] / "replication-offset-checkpoint"
    lines = [line.split() for line in checkpoint.read_text().splitlines()]
    higher = [[*each[:2], "1000"] if each[:2] == ["orders", "0"] else each for each in lines]
    checkpoint.write_text("".join(" ".join(each) + "\n" for each in higher))
    assert errors(audit(nodes)) != []
    plan = planned_without(nodes, in_sync="3")
    (found,) = run_audit(plan, processes=1).findings
    assert (found.severity, found.node, found.topic) == ("info", "3", "orders")
    assert "an earlier topic of this name" in found.detail


def planned_without(nodes: list[Path], in_sync: str) -> AuditPlan:
    """A plan as if one node were in no ISR."""
    plan = plan_audit([str(node) for node in nodes])
    for at, task in enumerate(plan.tasks):
        facts = replace(task.facts, isr=(task.facts.isr or frozenset()) - {in_sync})
        plan.tasks[at] = replace(task, facts=facts)
    return plan


def test_told_high_watermark_counts(nodes: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "watermarks.json"
    file.write_text(json.dumps({"orders": {"0": 10_000}}))
    (found,) = audit(nodes, high_watermarks=read_high_watermarks(file)).findings
    assert (found.check, found.topic, found.partition) == ("below-high-watermark", "orders", 0)


def test_high_watermarks_are_read_in_three_forms(nodes: list[Path], tmp_path: Path) -> None:
    known = read_high_watermarks(nodes[0] / "replication-offset-checkpoint")
    assert set(known) == {("orders", 0), ("orders", 1), ("payments", 0), ("state", 0)}
    lines = tmp_path / "lines.json"
    lines.write_text('{"topic": "t", "partition": 1, "offset": 5}\n')
    assert read_high_watermarks(lines) == {("t", 1): 5}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "0\n",
        "0\n1\n",
        "nothing of that kind\n",
        "{}\n[]\n",
        '{"t": {"0": 1e999}}',
        '{"t":' * 9999,
    ],
)
def test_what_tells_no_high_watermarks_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "text").write_text(text)
    with pytest.raises(CannotAudit, match="text: neither an offset checkpoint nor JSON"):
        read_high_watermarks(tmp_path / "text")


def test_acknowledged_records_are_there_until_the_leader_loses_them(
    nodes: list[Path], tmp_path: Path
) -> None:
    partition = nodes[0] / "orders-1"
    ledger = read_ledger_file(ledger_of(partition, tmp_path / "acks.jsonl"))
    assert audit(nodes, ledger=ledger).findings == []
    segments = sorted(partition.glob("*.log"))
    first_lost = int(segments[-1].stem)
    for node in nodes:  # a loss that no replica can show
        for path in (node / "orders-1").glob(f"{segments[-1].stem}.*"):
            path.unlink()
        checkpoint = node / "replication-offset-checkpoint"
        lines = checkpoint.read_text().splitlines()
        kept = [line for line in lines[2:] if not line.startswith("orders 1 ")]
        checkpoint.write_text("\n".join([lines[0], str(len(kept)), *kept]) + "\n")
    assert errors(audit(nodes)) == []
    (found,) = errors(audit(nodes, ledger=ledger))
    assert (found.check, found.node, found.offset) == ("acknowledged", "1", first_lost)


def test_acknowledged_value_that_changed_everywhere_is_one_finding(
    nodes: list[Path], tmp_path: Path
) -> None:
    file = ledger_of(nodes[0] / "payments-0", tmp_path / "acks.jsonl")
    lines = file.read_text().splitlines()
    changed = json.loads(lines[30])
    changed["crc32"] ^= 1
    file.write_text("\n".join([*lines[:30], json.dumps(changed), *lines[31:]]))
    (found,) = audit(nodes, ledger=read_ledger_file(file)).findings
    assert (found.check, found.offset) == ("acknowledged", changed["offset"])
    assert "another value" in found.detail


@pytest.mark.parametrize(
    "line",
    [
        '{"topic": "t"}',
        "[]",
        "7",
        "{",
        '{"topic": "t", "partition": 0, "offset": 100000000000000000000, "crc32": 2}',
        '{"topic": "t", "partition": 0, "offset": "many", "crc32": 2}',
        '{"topic": "t", "partition": 0, "offset": null, "crc32": 2}',
        '{"topic": "t", "partition": 0, "offset": 1e999, "crc32": 2}',
    ],
)
def test_ledger_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "acks"
    file.write_text(f'{{"topic": "t", "partition": 0, "offset": 1, "crc32": 2}}\n{line}\n')
    with pytest.raises(CannotAudit, match=r"acks:2: not a JSON object with topic, partition"):
        read_ledger_file(file)


def test_ledger_about_a_partition_that_is_nowhere_is_refused(nodes: list[Path]) -> None:
    with pytest.raises(CannotAudit, match="no directory holds other-0"):
        plan_audit([str(nodes[0])], high_watermarks={("other", 0): 5})


def test_what_is_no_log_directory_is_refused(nodes: list[Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for path, reason in (
        ("missing", "no such directory"),
        ("file", "not a directory"),
        ("empty", "not a log directory"),
    ):
        with pytest.raises(CannotAudit, match=reason):
            plan_audit([str(tmp_path / path)])
    with pytest.raises(CannotAudit, match="given twice"):
        plan_audit([str(nodes[0]), f"{nodes[0]}/"])
    copy = tmp_path / "copy"
    shutil.copytree(nodes[0], copy)
    with pytest.raises(CannotAudit, match="node 1 has this partition"):
        plan_audit([str(nodes[0]), str(copy)])


def test_directory_without_identity_is_called_by_its_name(nodes: list[Path]) -> None:
    (nodes[2] / "meta.properties").unlink()
    assert audit(nodes).nodes == ["1", "2", "node-3"]


def test_loss_in_a_directory_without_identity_is_an_error(nodes: list[Path]) -> None:
    (nodes[2] / "meta.properties").unlink()
    for path in (nodes[2] / "orders-0").glob("*"):
        if path.stem.isdecimal() and int(path.stem) > 0:
            path.unlink()
    (found,) = audit(nodes).findings
    assert (found.check, found.severity, found.node) == ("below-high-watermark", "error", "node-3")


def test_checks_are_chosen_by_name() -> None:
    assert checks_of("index, crc") == ("crc", "index")
    assert len(checks_of(None)) == 12
    with pytest.raises(CannotAudit, match="the checks are crc, gap"):
        checks_of("crc,luck")


def test_indexes_are_read_as_far_as_they_are_written(nodes: list[Path]) -> None:
    index = max((nodes[0] / "orders-0").glob("*.index"))
    with index.open("ab") as file:  # the preallocated rest of a node that was killed
        file.truncate(10 << 20)
    assert audit(nodes).findings == []
    assert OsFileSystem().exists(str(index))


@pytest.mark.parametrize("chunk_bytes", [12, 24])
def test_index_that_is_longer_than_a_piece_is_read_whole(
    nodes: list[Path], monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    fs = OsFileSystem()
    each = [
        (files, segment)
        for files in list_partitions(fs, str(nodes[0]), with_ends=False)
        for segment in files.segments
    ]
    whole = [read_indexes(fs, *one) for one in each]
    monkeypatch.setattr(reading, "_CHUNK_BYTES", chunk_bytes)
    in_pieces = [read_indexes(fs, *one) for one in each]
    assert [repr(one) for one in in_pieces] == [repr(one) for one in whole]
    assert max(len(one.timestamps) for one in whole) > 2


def begin_metadata_log_at(nodes: list[Path], start: int) -> None:
    """Remove the oldest batches of every node's metadata log; each has one record."""
    for node in nodes:
        log = node / "__cluster_metadata-0" / f"{0:020d}.log"
        batches = list(iter_batches(log.read_bytes()))
        left = log.read_bytes()[sum(each.size_bytes for each in batches[:start]) :]
        log.with_name(f"{start:020d}.log").write_bytes(left)
        log.unlink()
        (log.parent / "leader-epoch-checkpoint").write_text(f"0\n1\n1 {start}\n")


def test_later_snapshot_is_judged_by_the_first_and_the_log_behind_it(nodes: list[Path]) -> None:
    """All copies agree, and are not what the log makes of the snapshot that it begins with."""
    begin_metadata_log_at(nodes, 4)
    assert audit(nodes).findings == []
    snapshot_id = OffsetAndEpoch(Offset(7), LeaderEpoch(1))
    for node in nodes:
        (older,) = (node / "__cluster_metadata-0").glob(f"{4:020d}-*.checkpoint")
        (newer,) = (node / "__cluster_metadata-0").glob(f"{7:020d}-*.checkpoint")
        newer.unlink()
        write_snapshot(newer.parent, snapshot_id, values_in(older))
    found = errors(audit(nodes))
    assert {(each.check, each.offset) for each in found} == {("snapshot", 7)}


def test_metadata_of_a_log_that_begins_behind_a_snapshot_is_that_of_most_copies(
    nodes: list[Path],
) -> None:
    begin_metadata_log_at(nodes, 7)
    assert audit(nodes).findings == []
    directory = nodes[0] / "__cluster_metadata-0"
    (snapshot,) = directory.glob(f"{7:020d}-*.checkpoint")
    snapshot.unlink()
    write_snapshot(directory, OffsetAndEpoch(Offset(7), LeaderEpoch(1)), [])
    plan = plan_audit([str(node) for node in nodes])
    facts = {(task.source.topic, task.source.partition): task.facts for task in plan.tasks}
    assert facts["orders", 0].isr == {"1", "2", "3"}
    (found,) = run_audit(plan, processes=1).findings
    assert (found.check, found.node) == ("snapshot", "1")


def test_metadata_without_a_log_is_what_the_newest_snapshot_says(nodes: list[Path]) -> None:
    for node in nodes:
        (node / "__cluster_metadata-0" / f"{0:020d}.log").unlink()
    plan = plan_audit([str(node) for node in nodes])
    facts = {(task.source.topic, task.source.partition): task.facts for task in plan.tasks}
    assert facts["orders", 0].isr == {"1", "2", "3"}
    (found,) = run_audit(plan, processes=1).findings
    assert (found.check, found.node, found.topic) == (
        "below-high-watermark",
        "1,2,3",
        "__cluster_metadata",
    )


@pytest.mark.parametrize(("offset", "epoch"), [(900, 1), (900, 3), (10, 1)])
def test_snapshot_behind_every_log_is_the_fault_of_its_node(
    nodes: list[Path], offset: int, epoch: int
) -> None:
    directory = nodes[1] / "__cluster_metadata-0"
    snapshot = max(directory.glob("*.checkpoint"))
    shutil.copy(snapshot, directory / f"{offset:020d}-{epoch:010d}.checkpoint")
    (found,) = audit(nodes).findings
    assert (found.check, found.node, found.offset) == ("snapshot", "2", offset)


def test_equal_damage_of_a_snapshot_is_that_of_each_node(nodes: list[Path]) -> None:
    for node in nodes[1:]:
        snapshot = max((node / "__cluster_metadata-0").glob("*.checkpoint"))
        data = bytearray(snapshot.read_bytes())
        data[-1] ^= 1
        snapshot.write_bytes(data)
    found = errors(audit(nodes))
    assert {each.check for each in found} == {"snapshot"}
    assert sorted(node for each in found for node in each.node.split(",")) == ["2", "3"]


def test_header_of_a_snapshot_has_another_time_on_the_node_that_led(nodes: list[Path]) -> None:
    """Apache's leader was told of its batch when it appended it, 249 ms after its first record."""
    directory = nodes[2] / "__cluster_metadata-0"
    snapshot = max(directory.glob("*.checkpoint"))
    values = values_in(snapshot)
    offset, epoch = map(int, snapshot.stem.split("-"))
    snapshot_id = OffsetAndEpoch(Offset(offset), LeaderEpoch(epoch))
    snapshot.unlink()
    write_snapshot(directory, snapshot_id, values, last_contained_ms=1_700_000_000_249)
    assert snapshot.read_bytes() != (nodes[0] / directory.name / snapshot.name).read_bytes()
    assert audit(nodes).findings == []


def test_snapshot_of_a_log_that_grew_since_it_was_listed_is_no_fault(nodes: list[Path]) -> None:
    directory = nodes[1] / "__cluster_metadata-0"
    log = directory / f"{0:020d}.log"
    plan = plan_audit([str(node) for node in nodes])
    next_batch = build_batch([Record(None, b"")], base_offset=9, partition_leader_epoch=1)
    log.write_bytes(log.read_bytes() + next_batch)
    shutil.copy(max(directory.glob("*.checkpoint")), directory / f"{10:020d}-{1:010d}.checkpoint")
    assert run_audit(plan, processes=1).findings == []


def test_log_says_nothing_of_snapshots_behind_a_record_without_a_value(nodes: list[Path]) -> None:
    """No node can replay such a record: what follows is unknown, not what it was before."""
    snapshot_id = OffsetAndEpoch(Offset(10), LeaderEpoch(1))
    whole = (nodes[0] / "__cluster_metadata-0" / f"{0:020d}.log").read_bytes()
    findings = []
    for value in (None, encode_record(VersionedRecord(NoOpRecord()))):
        batch = build_batch([Record(None, value)], base_offset=9, partition_leader_epoch=1)
        for node in nodes:
            log = node / "__cluster_metadata-0" / f"{0:020d}.log"
            log.write_bytes(whole + batch)
            (log.parent / f"{10:020d}-{1:010d}.checkpoint").unlink(missing_ok=True)
            write_snapshot(log.parent, snapshot_id, [])
        findings.append({(each.check, each.offset) for each in errors(audit(nodes))})
    assert findings == [set(), {("snapshot", 10)}]


@pytest.mark.parametrize(("epoch", "is_needed"), [(0, True), (3, True), (-1, False)])
@pytest.mark.parametrize("sequence", [-1, 0, 7])
def test_leader_epochs_are_missed_where_a_batch_has_one(
    tmp_path: Path, epoch: int, is_needed: bool, sequence: int
) -> None:
    """Batches of Kafka before 0.11 have no epoch, later ones have; the producer does not matter."""
    batch = build_batch(
        [Record(b"k", b"v")],
        partition_leader_epoch=epoch,
        producer_id=-1 if sequence < 0 else 7,
        producer_epoch=-1 if sequence < 0 else 0,
        base_sequence=sequence,
    )
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020d}.log").write_bytes(batch)
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").write_text("0\n0\n")
    (files,) = list_partitions(OsFileSystem(), str(tmp_path))
    replica = read_replica(OsFileSystem(), files, is_compacted=False)
    assert replica is not None
    assert bool(replica.epochs_damage) == is_needed


def test_ledger_of_the_metadata_log_shows_a_loss_on_all_nodes(
    nodes: list[Path], tmp_path: Path
) -> None:
    ledger = read_ledger_file(ledger_of(nodes[0] / "__cluster_metadata-0", tmp_path / "acks"))
    assert audit(nodes, ledger=ledger).findings == []
    for node in nodes:
        log = node / "__cluster_metadata-0" / f"{0:020d}.log"
        *kept, _ = iter_batches(log.read_bytes())
        log.write_bytes(log.read_bytes()[: sum(each.size_bytes for each in kept)])
    (found,) = audit(nodes, ledger=ledger).findings
    assert (found.check, found.severity) == ("acknowledged", "error")


@pytest.mark.parametrize(
    ("size_mib", "processes", "pack_mib"),
    [
        (0, 4, 8),
        (64, 1, 8),
        (72, 1, 9),
        (72, 2, 8),
        (2_048, 1, 256),
        (2_056, 1, 256),
        (4_096, 4, 128),
    ],
)
def test_task_reads_an_eighth_of_a_process_s_share(
    size_mib: int, processes: int, pack_mib: int
) -> None:
    """But at least 8 MiB, and at most 256."""
    assert _pack_bytes(size_mib << 20, processes) == pack_mib << 20
