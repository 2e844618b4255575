"""Whole findings with the offsets that they explain, whole plans, results and pages of an audit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kraft_wire.audit import report as report_module
from kraft_wire.audit.collector import (
    AuditPlan,
    AuditResult,
    CannotAudit,
    checks_of,
    read_high_watermarks,
    read_ledger_file,
)
from kraft_wire.audit.collector import run as run_module
from kraft_wire.audit.collector.checkpoints import damaged_checkpoints, highest_watermarks
from kraft_wire.audit.collector.missing_replicas import MissingReplicas, directory_ids
from kraft_wire.audit.collector.reading import read_transaction_files
from kraft_wire.audit.collector.sources import PartitionReplicas, cluster_id_of, node_directories
from kraft_wire.audit.collector.tasks import Extent, PartitionTask, TaskResult
from kraft_wire.audit.fault import END_OF_LOG, Fault, explains
from kraft_wire.audit.finding import CHECKS, Finding
from kraft_wire.audit.hanging_checks import CoordinatedTransaction, check_hanging
from kraft_wire.audit.layout import Layout, layout_of
from kraft_wire.audit.ledger import Acknowledged, check_acknowledged
from kraft_wire.audit.metadata_facts import Assignment, MetadataFacts
from kraft_wire.audit.partition_audit import PartitionFacts
from kraft_wire.audit.replica import Replica, batches_of_columns, joined_batches
from kraft_wire.audit.report import FINDINGS, findings_table, page_of, refuse_place
from kraft_wire.audit.transaction_checks import OpenTransaction
from kraft_wire.columnar import PartitionFiles, SegmentFile, batch_columns, window_of
from kraft_wire.model import TopicPartition, Uuid
from kraft_wire.storage.directory.meta_properties import MetaProperties, write_meta_properties
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.audit.test_transactions import Directory, with_three_segments

FS = OsFileSystem()
FIRST, SECOND, THIRD = (f"{base:020d}.log" for base in (0, 6, 10))


def batch(offset: int, count: int = 2) -> bytes:
    records = [Record(b"k", b"v%d" % at, at) for at in range(offset, offset + count)]
    return bytes(build_batch(records, base_offset=offset, partition_leader_epoch=1))


SIZE, WIDE = len(batch(0)), len(batch(10))
"""Of batches whose values have 2 and 3 characters."""


def flipped(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def layout(content: dict[int, list[bytes]], **facts: Any) -> Layout:
    """The layout of a replica of t-3 on node 1 with these segments."""
    parts = [
        batches_of_columns(batch_columns(window_of(b"".join(each))), base)
        for base, each in content.items()
    ]
    given: dict[str, Any] = {"log_start_offset": 0, "segments": [*content]} | facts
    return layout_of(Replica("1", "t", 3, joined_batches(parts), **given))


def finding(check: str, severity: Any, offset: int, file: str, position: int, text: str) -> Finding:
    return Finding(check, severity, "1", "t", 3, offset, file, position, text)


CLEAN = {0: [batch(0), batch(2), batch(4)], 6: [batch(6), batch(8)], 10: [batch(10)]}


def test_clean_layout_has_its_rows_and_its_end() -> None:
    found = layout(CLEAN)
    assert found.rows.tolist() == [0, 1, 2, 3, 4, 5]
    assert (found.faults, found.log_end_offset) == ([], 12)
    assert (found.torn_row, found.torn_fault, found.misplaced) == (None, None, frozenset())


def test_damaged_batch_explains_the_offsets_between_its_neighbours() -> None:
    found = layout(CLEAN | {6: [flipped(batch(6)), batch(8)]})
    text = "wrong checksum of the batch"
    assert found.faults == [Fault(finding("crc", "error", 6, SECOND, 0, text), 6, 8)]
    assert found.rows.tolist() == [0, 1, 2, 4, 5]
    last = layout(CLEAN | {10: [flipped(batch(10))]})
    assert last.faults == [Fault(finding("crc", "error", 10, THIRD, 0, text), 10, END_OF_LOG)]
    first = layout(CLEAN | {0: [flipped(batch(0)), batch(2), batch(4)]}, log_start_offset=1)
    assert first.faults == [Fault(finding("crc", "error", 0, FIRST, 0, text), 1, 2)]


@pytest.mark.parametrize("segments", [[0, 6, 10], []])
def test_torn_end_is_a_warning_at_the_first_offset_that_is_not_there(segments: list[int]) -> None:
    torn = CLEAN | {10: [batch(10), batch(12)[:-9]]}
    found = layout(torn, segments=segments)
    text = f"{WIDE - 9} bytes after the last complete batch are not a batch"
    fault = Fault(finding("crc", "warn", 12, THIRD, WIDE, text), 12, END_OF_LOG)
    assert (found.torn_row, found.torn_fault, found.faults) == (6, fault, [fault])
    more = layout(torn, segments=[0, 6, 10, 12])
    error = Fault(finding("crc", "error", 12, THIRD, WIDE, text), 12, END_OF_LOG)
    assert (more.torn_row, more.torn_fault, more.faults) == (None, None, [error])


def test_torn_fault_is_the_one_at_the_end_and_no_other_damage() -> None:
    """Both have the same position, in different files."""
    torn = CLEAN | {6: [batch(6), flipped(batch(8))], 10: [batch(10), batch(12)[:-9]]}
    found = layout(torn)
    assert [each.finding.file for each in found.faults] == [SECOND, THIRD]
    assert found.torn_fault == found.faults[1]


def test_gap_explains_its_offsets_and_is_a_warning_below_the_log_start() -> None:
    gap = CLEAN | {6: [batch(8)]}
    for start, severity in ((0, "error"), (7, "error"), (8, "warn")):
        (fault,) = layout(gap, log_start_offset=start).faults
        assert (fault.first_offset, fault.end_offset) == (6, 8)
        found = fault.finding
        assert (found.check, found.severity, found.offset) == ("gap", severity, 8)
        assert (found.file, found.position) == (SECOND, 0)
    assert layout(gap, is_compacted=True).faults == []


def test_file_under_another_offset_is_named_and_explains_nothing() -> None:
    named = {0: CLEAN[0], 7: CLEAN[6], 10: CLEAN[10]}
    found = layout(named)
    text = "the file has the batches from 6 on"
    wanted = finding("gap", "error", 6, f"{7:020d}.log", 0, text)
    assert found.faults == [Fault(wanted, 0, 0)]
    assert found.misplaced == {7}
    assert found.log_end_offset == 12


def test_files_that_were_swapped_are_one_fault_and_read_in_the_order_of_offsets() -> None:
    found = layout({0: CLEAN[0], 6: CLEAN[10], 10: CLEAN[6]})
    text = f"the file has the batches from 10 on: its content is swapped with that of {THIRD}"
    assert found.faults == [Fault(finding("gap", "error", 10, SECOND, 0, text), 0, 0)]
    assert found.misplaced == {6, 10}
    assert found.replica.batches.base_offset[found.rows].tolist() == [0, 2, 4, 6, 8, 10]
    assert found.log_end_offset == 12


def test_faults_explain_their_offsets_on_their_nodes() -> None:
    fault = Fault(Finding("gap", "error", "1,3", "t", 0, 5, "", -1, ""), 5, 8)
    places = [(node, at) for node in ("1", "2", "3") for at in (4, 5, 7, 8)]
    assert [each for each in places if explains([fault], *each)] == [
        *(("1", 5), ("1", 7)),
        *(("3", 5), ("3", 7)),
    ]
    assert Fault(fault.finding, 5).end_offset == END_OF_LOG == 1 << 63


def acknowledged(*lines: tuple[int, int]) -> Acknowledged:
    return Acknowledged(*np.array(lines, np.int64).reshape(-1, 2).T)


def check(found: Layout, ledger: Acknowledged, *held: tuple[int, int]) -> list[Finding]:
    own = acknowledged(*held)
    return list(check_acknowledged(found, ledger, own.offsets, own.checksums))


def test_lost_records_are_one_finding_for_each_run_with_its_place() -> None:
    ledger = acknowledged((1, 5), (2, 5), (3, 5), (7, 5), (11, 5), (20, 5))
    held = [(1, 5), (2, 6), (7, 5), (11, 4)]
    value, gone = "has another value", "is not in the leader's log"
    assert check(layout(CLEAN), ledger, *held) == [
        finding(
            *("acknowledged", "error", 2, FIRST, SIZE),
            f"the acknowledged record {value}; the next 1, up to 3 fail too",
        ),
        finding(
            *("acknowledged", "error", 11, THIRD, 0),
            f"the acknowledged record {value}; the next 1, up to 20 fail too",
        ),
    ]
    compacted = layout(CLEAN, is_compacted=True)
    assert [each.offset for each in check(compacted, ledger, *held)] == [2, 11]
    late = layout(CLEAN, log_start_offset=3)
    assert check(late, ledger, (7, 5), (11, 5)) == [
        finding(*("acknowledged", "error", 3, FIRST, SIZE), f"the acknowledged record {gone}"),
        finding(*("acknowledged", "error", 20, THIRD, 0), f"the acknowledged record {gone}"),
    ]


def test_log_without_batches_has_lost_everything_and_no_place() -> None:
    empty = layout({0: []})
    text = "the acknowledged record is not in the leader's log; the next 1, up to 7 fail too"
    assert check(empty, acknowledged((4, 0), (7, 0))) == [
        finding("acknowledged", "error", 4, "", -1, text)
    ]
    assert check(empty, acknowledged()) == []


IDS = [Uuid(bytes([each] * 16)) for each in (1, 2, 3)]


def test_missing_replicas_are_whole_findings(tmp_path: Path) -> None:
    for number, directory_id in ((1, IDS[0]), (2, IDS[1]), (3, None)):
        (tmp_path / str(number)).mkdir()
        properties = MetaProperties("5L6g3nShT-eMCtK--X86sw", number, directory_id)
        write_meta_properties(FS, str(tmp_path / str(number)), properties)
    (tmp_path / "4").mkdir()
    (tmp_path / "5").mkdir()
    (tmp_path / "5" / "meta.properties").write_bytes(b"\xff")
    known = directory_ids(FS, [str(tmp_path / str(each)) for each in (5, 4, 1, 2, 3)])
    assert known == {IDS[0]: "1", IDS[1]: "2"}
    assignment = Assignment([1, 2, 3], [1], 1, IDS)
    facts = MetadataFacts(
        is_known=True, assignments=dict.fromkeys([("t", 0), ("u", 1)], assignment)
    )
    files = PartitionFiles("1", "u", 1, "/1/u-1", [], log_start_offset=0)
    missing = MissingReplicas(facts, [PartitionReplicas("u", 1, (files,))], known)
    assert (("t", 0) in missing, ("u", 1) in missing, ("u", 0) in missing) == (True, True, False)
    lines = {("t", 0): acknowledged((4, 1), (9, 1)), ("u", 1): acknowledged((4, 1))}
    text = "the replica's directory is missing, the high watermark is {}"

    def gone(severity: Any, node: str, topic: str, partition: int, watermark: int) -> Finding:
        place = (node, topic, partition, 0, "", -1)
        return Finding("below-high-watermark", severity, *place, text.format(watermark))

    assert missing.findings({("t", 0): 5, ("u", 1): 1}, lines) == [
        gone("error", "1", "t", 0, 5),
        gone("warn", "2", "t", 0, 5),
        Finding(
            *("acknowledged", "error", "1,2", "t", 0, 4, "", -1),
            "2 acknowledged records are lost with the partition's directory",
        ),
        gone("warn", "2", "u", 1, 1),
    ]
    assert missing.findings({("t", 0): 0}, {}) == []


OPENED = OpenTransaction("1", "t", 0, 7, 2, 40, "f.log", 9, 0)


@pytest.mark.parametrize(
    ("known", "severity", "text"),
    [
        (None, "warn", "open transaction of producer 7 epoch 2, which belongs to no"),
        ([("t", 1)], "warn", "open transaction of producer 7 epoch 2, whose tid lacks this"),
        ([("t", 0)], "info", "open transaction of tid (Ongoing), producer 7 epoch 2, is older"),
    ],
)
def test_hanging_transaction_is_a_whole_finding(
    known: list[tuple[str, int]] | None, severity: Any, text: str
) -> None:
    coordinated = {}
    if known is not None:
        coordinated[7] = CoordinatedTransaction("tid", "Ongoing", frozenset(known), 0, 60_000)
    (found,) = check_hanging([OPENED], coordinated, 900_001)
    ends = {"no": " transactional id", "this": " partition", "older": " than its timeout"}
    whole = text + ends[text.rsplit(" ", 1)[1]]
    assert found == Finding("hanging", severity, "1", "t", 0, 40, "f.log", 9, whole)


def test_transaction_files_are_read_whole(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    with_three_segments(directory)
    end = int(directory.data.log_end_offset)
    directory.audit()
    bases = [int(each.stem) for each in sorted((tmp_path / "t-0").glob("*.log"))]
    segments = [SegmentFile(f"{base:020d}.log", base, 1) for base in bases]
    files = PartitionFiles("1", "t", 0, str(tmp_path / "t-0"), segments, log_start_offset=0)
    found = read_transaction_files(FS, files)
    aborted = [(1, 0, 2), (2, 1, 4), (2, 7, 8)]
    assert found.damage == {}
    entries = [entry[:3] for base in bases for entry in found.indexes.get(base, [])]
    assert entries == aborted
    assert sorted(found.snapshots) == [*bases[1:], end]
    assert {each[0]: each[4] for each in found.snapshots[end]} == {1: -1, 2: -1, 3: 9, 5: -1}
    broken = tmp_path / "t-0" / f"{end:020d}.snapshot"
    broken.write_bytes(broken.read_bytes()[:-1])
    index = tmp_path / "t-0" / f"{bases[0]:020d}.txnindex"
    index.write_bytes(index.read_bytes()[:-1])
    damaged = read_transaction_files(FS, files)
    assert sorted(damaged.damage) == [index.name, broken.name]
    assert sorted(damaged.snapshots) == bases[1:]
    gone = PartitionFiles("1", "t", 0, str(tmp_path / "x"), segments, log_start_offset=0)
    assert read_transaction_files(FS, gone).snapshots == {}


def task(topic: str, size: int, replicas: int = 1) -> PartitionTask:
    files = [
        PartitionFiles(str(node), topic, 0, "/", [SegmentFile("0", 0, size)], log_start_offset=0)
        for node in range(replicas)
    ]
    return PartitionTask(PartitionReplicas(topic, 0, tuple(files)), PartitionFacts())


OPEN_COST = 64 << 10


def test_packs_are_filled_from_the_largest_on(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [task("a", 10), task("b", 500), task("c", 100, 2), task("d", 90)]
    plan = AuditPlan(tasks, [], [])
    assert plan.size_bytes == 10 + 500 + 200 + 90

    def packs(size: int) -> list[list[str]]:
        return [[each.source.topic for each in pack] for pack in plan.packs(size)]

    assert packs(1) == [["b"], ["c"], ["d"], ["a"]]
    assert packs(3 * OPEN_COST + 700) == [["b", "c"], ["d", "a"]]
    assert packs(3 * OPEN_COST + 699) == [["b"], ["c", "d"], ["a"]]
    assert packs(9 * OPEN_COST) == [["b", "c", "d", "a"]]
    monkeypatch.setattr(run_module, "_PACK_PARTITIONS_MAX", 2)
    assert packs(9 * OPEN_COST) == [["b", "c"], ["d", "a"]]
    assert list(AuditPlan([], [], []).packs(1)) == []


def some(check: str, topic: str, severity: Any = "error", node: str = "1", at: int = 0) -> Finding:
    return Finding(check, severity, node, topic, 0, at, "", -1, "")


def test_known_findings_of_a_loss_are_the_ledgers() -> None:
    gone, lost = some("below-high-watermark", "a"), some("acknowledged", "a")
    other = some("below-high-watermark", "b")
    plan = AuditPlan([], [], [gone, lost, other])
    assert plan.known_findings(CHECKS) == [lost, other]
    assert plan.known_findings(("below-high-watermark",)) == [gone, other]
    assert plan.hanging_findings(TaskResult(), ("crc",)) == []


def extent(topic: str, node: str) -> Extent:
    return Extent(node, topic, 0, 1, 2, 9, 100, (1, 5), (40, 60))


def test_results_add_up_and_findings_are_sorted() -> None:
    late, early = some("gap", "t", "warn", at=9), some("crc", "t", node="2")
    result = TaskResult([late], [extent("t", "1")], 3, 100, [OPENED])
    result.add(TaskResult([early, some("crc", "s")], [extent("t", "2")], 4, 50, [OPENED]))
    assert result == TaskResult(
        [late, early, some("crc", "s")],
        [extent("t", "1"), extent("t", "2")],
        7,
        150,
        [OPENED, OPENED],
    )
    whole = AuditResult(result, ["1", "2"], 5, "c")
    assert whole.findings == [some("crc", "s"), early, late]
    assert [whole.count(each) for each in ("error", "warn", "info")] == [2, 1, 0]
    assert whole.summary() == {
        "nodes": 2,
        "partitions": 5,
        "batches": 7,
        "bytes": 150,
        "errors": 2,
    }


def test_page_has_lanes_with_findings_first_and_a_part_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(report_module, "_LANES_MAX", 3)
    monkeypatch.setattr(report_module, "_FINDINGS_MAX", 2)
    findings = [some("crc", "t", node="10", at=5), some("gap", "t", "warn"), some("crc", "t")]
    lanes = [extent("s", "1"), extent("t", "10"), extent("t", "9"), extent("a", "1")]
    page = page_of(findings, lanes, {"errors": 2}, {"cluster": "<c>"})
    text = page.split('id="data">')[1].split("</script>")[0]
    assert "<" not in text
    lane = {"partition": 0, "first": 1, "start": 2, "end": 9, "bytes": 100, "segments": [1, 5]}
    assert json.loads(text) == {
        "summary": {"errors": 2},
        "about": {"cluster": "<c>"},
        "counts": {"error": 2, "warn": 1},
        "lanes": [
            lane | {"topic": "t", "node": "9"},
            lane | {"topic": "t", "node": "10"},
            lane | {"topic": "a", "node": "1"},
        ],
        "findings": [each.to_json() for each in findings[:2]],
        "places": [{"10": 5}, {}],
        "hidden": {"lanes": 1, "findings": 1},
    }
    table = findings_table(findings)
    assert table.schema == FINDINGS
    assert table.to_pylist()[0] == {
        "check": "crc",
        "severity": "error",
        "node": "10",
        "topic": "t",
        "partition": 0,
        "offset": 5,
        "file": "",
        "position": -1,
        "detail": "",
    }


def test_page_has_at_most_20000_lanes_and_findings() -> None:
    page = page_of([some("crc", "t")] * 20_001, [extent("t", "1")] * 20_001, {})
    found = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert (len(found["lanes"]), len(found["findings"])) == (20_000, 20_000)
    assert found["hidden"] == {"lanes": 1, "findings": 1}


def refused(call: Any) -> str:
    with pytest.raises(CannotAudit) as error:
        call()
    return str(error.value)


def test_place_of_a_report_is_refused_in_a_log_directory_and_for_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refuse_place(tmp_path / "new", [str(tmp_path / "node")])
    inside = tmp_path / "node" / "out"
    assert refused(lambda: refuse_place(inside, [str(tmp_path / "node")])) == (
        f"{inside} is inside the log directory {tmp_path}/node: use another one"
    )
    file = tmp_path / "file"
    assert refused(lambda: refuse_place(file, [])) == f"{file}: not a directory"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0\n2\nt 0 5\nu 1 6\n", {("t", 0): 5, ("u", 1): 6}),
        ('{"t": {"0": 5, "1": "6"}}', {("t", 0): 5, ("t", 1): 6}),
        ('{"topic": "t", "partition": 1, "offset": 5}', {("t", 1): 5}),
        (
            '{"topic":"t","partition":1,"offset":5}\n\n{"topic":"t","partition":2,"offset":6}\n',
            {("t", 1): 5, ("t", 2): 6},
        ),
        ("{}", {}),
        ("1\n1\nt 0 5\n", None),
        ("0\n2\nt 0 5\n", None),
        ("0\n1\nt 0\n", None),
        ('{"topic": "t"}\n{', None),
        ("", None),
    ],
)
def test_high_watermarks_have_three_forms(
    tmp_path: Path, text: str, found: dict[tuple[str, int], int] | None
) -> None:
    path = tmp_path / "watermarks"
    path.write_text(text)
    if found is not None:
        assert read_high_watermarks(path) == found
    else:
        line = f"{path}: neither an offset checkpoint nor JSON of offsets"
        assert refused(lambda: read_high_watermarks(path)) == line


def test_inputs_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff")
    for read in (read_high_watermarks, read_ledger_file):
        assert refused(lambda: read(binary)) == f"{binary}: not UTF-8"  # noqa: B023  # called at once
        absent = tmp_path / "no"
        assert refused(lambda: read(absent)) == f"{absent}: No such file or directory"  # noqa: B023  # called at once
    names = ", ".join(CHECKS)
    assert refused(lambda: checks_of("crc,x")) == f"--checks crc,x: the checks are {names}"
    assert refused(lambda: checks_of(" , ")) == f"--checks  , : the checks are {names}"
    assert checks_of(" gap , crc,gap") == ("crc", "gap")
    assert checks_of(None) == CHECKS


def test_directories_are_of_one_cluster_and_given_once(tmp_path: Path) -> None:
    nodes = [str(tmp_path / each) for each in ("1", "2", "3", "4")]
    for number, (path, cluster_id) in enumerate(zip(nodes, ["a", "b", None, None], strict=True)):
        Path(path).mkdir()
        if cluster_id is not None:
            write_meta_properties(FS, path, MetaProperties(cluster_id, number, None))
    (tmp_path / "4" / "meta.properties").write_text("version=9\n")
    assert node_directories(FS, [f"{nodes[2]}/", nodes[0], nodes[3]]) == [
        *(nodes[2], nodes[0]),
        nodes[3],
    ]
    assert cluster_id_of(FS, [nodes[2], nodes[1], nodes[0]]) == "b"
    assert cluster_id_of(FS, nodes[2:]) == ""
    (tmp_path / "file").touch()
    lines = {
        (): "no directory is given",
        (nodes[0], f"{nodes[0]}/"): f"{nodes[0]}/: given twice",
        (f"{tmp_path}/no",): f"{tmp_path}/no: no such directory",
        (f"{tmp_path}/file",): f"{tmp_path}/file: not a directory",
        tuple(nodes[:3]): f"{nodes[1]} is of cluster b, {nodes[0]} of a: audit one cluster",
    }
    for paths, line in lines.items():
        assert refused(lambda: node_directories(FS, paths)) == line  # noqa: B023  # called at once


def test_damaged_checkpoints_are_whole_findings(tmp_path: Path) -> None:
    node, nameless = tmp_path / "n", tmp_path / "m"
    for each in (node, nameless):
        each.mkdir()
        (each / "replication-offset-checkpoint").write_text("0\nx\n")
        (each / "log-start-offset-checkpoint").write_text("0\n0\n")
    write_meta_properties(FS, str(node), MetaProperties("c", 7, None))
    (node / "log-start-offset-checkpoint").write_text("9\n0\n")
    found = damaged_checkpoints(FS, [str(node), str(nameless)])
    assert [(each.check, each.severity, each.node, each.file) for each in found] == [
        ("below-high-watermark", "error", "7", "replication-offset-checkpoint"),
        ("gap", "error", "7", "log-start-offset-checkpoint"),
        ("below-high-watermark", "error", "m", "replication-offset-checkpoint"),
    ]
    for each in found:
        assert (each.topic, each.partition, each.offset, each.position) == ("", -1, -1, -1)
        assert each.detail.startswith("the checkpoint is damaged: ")
    t0, t1 = TopicPartition("t", 0), TopicPartition("t", 1)
    checkpointed: Any = [{t0: 5, t1: 2}, {t0: 4}]
    assert highest_watermarks(checkpointed, {("t", 1): 3, ("u", 0): 1}) == {
        t0: 5,
        t1: 3,
        ("u", 0): 1,
    }
