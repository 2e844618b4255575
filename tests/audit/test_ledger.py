"""The ledger against three clean replicas, and against a leader that lost or changed records."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from kraft_wire.audit.collector import plan_audit, read_ledger_file, run_audit
from kraft_wire.audit.collector.sources import CannotAudit
from kraft_wire.wire.records.memory_records import iter_batches
from kraft_wire.wire.records.record_batch import RecordBatch
from tests.audit.clean_set import write_clean_set

PLACE = ("orders", 0)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_clean_set(tmp_path_factory.mktemp("replicas"))


def checksums(node: Path, topic: str = "orders") -> dict[int, int]:
    """The ledger of all that a node has of partition 0."""
    return {
        record.offset: zlib.crc32(bytes(record.value or b""))
        for path in sorted((node / f"{topic}-0").glob("*.log"))
        for batch in iter_batches(path.read_bytes())
        for record in batch.records()
    }


def audited(
    nodes: list[Path], tmp_path: Path, sums: dict[int, int], topic: str = "orders"
) -> list[tuple[str, str, int, str]]:
    """Check, node, offset and text of all findings, with a ledger."""
    acks = tmp_path / "acks.jsonl"
    acks.write_text(
        "".join(
            json.dumps({"topic": topic, "partition": 0, "offset": offset, "crc32": checksum}) + "\n"
            for offset, checksum in sums.items()
        )
    )
    plan = plan_audit([str(node) for node in nodes], ledger=read_ledger_file(acks))
    result = run_audit(plan, processes=1)
    return [(each.check, each.node, each.offset, each.detail) for each in result.findings]


def test_what_is_there_is_no_finding_in_whatever_order_and_however_often(
    nodes: list[Path], tmp_path: Path
) -> None:
    sums = checksums(nodes[0])
    assert audited(nodes, tmp_path, dict(reversed(sums.items()))) == []


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda sums: sums | {40: 1}, [(40, "the acknowledged record has another value")]),
        (
            lambda sums: sums | {40: 1, 41: 1, 42: 1},
            [
                (
                    40,
                    "the acknowledged record has another value; the next 2, up to 42 fail too",
                )
            ],
        ),
        (
            lambda sums: sums | {40: 1, 42: 1},
            [
                (40, "the acknowledged record has another value"),
                (42, "the acknowledged record has another value"),
            ],
        ),
        (
            lambda sums: sums | {max(sums) + 1: 0},
            [(-1, "the acknowledged record is not in the leader's log")],
        ),
        (lambda sums: {max(sums) + 1: 0, 0: sums[0]}, [(-1, "the acknowledged record is not")]),
        (lambda sums: {0: 7}, [(0, "the acknowledged record has another value")]),
    ],
)
def test_what_is_wrong_is_one_finding_for_each_run_of_lines(
    nodes: list[Path],
    tmp_path: Path,
    spoil: Callable[[dict[int, int]], dict[int, int]],
    expected: list[tuple[int, str]],
) -> None:
    sums = checksums(nodes[0])
    found = audited(nodes, tmp_path, spoil(sums))
    end = max(sums) + 1
    assert [each[:3] for each in found] == [
        ("acknowledged", "1", end if offset < 0 else offset) for offset, _ in expected
    ]
    for (*_, text), (_, wanted) in zip(found, expected, strict=True):
        assert text.startswith(wanted)


def test_records_below_the_log_start_are_not_asked_for(nodes: list[Path], tmp_path: Path) -> None:
    sums = checksums(nodes[0])
    copies = write_clean_set(tmp_path / "moved")
    for node in copies:
        (node / "log-start-offset-checkpoint").write_text("0\n1\norders 0 41\n")
    assert audited(copies, tmp_path, sums | {39: 1, 40: 1}) == []
    (found,) = audited(copies, tmp_path, sums | {40: 1, 41: 1})
    assert found[:3] == ("acknowledged", "1", 41)


def test_of_a_compacted_topic_records_may_be_gone_but_not_changed(
    nodes: list[Path], tmp_path: Path
) -> None:
    sums = checksums(nodes[0], "state")
    assert audited(nodes, tmp_path, sums | {max(sums) + 5: 1}, "state") == []
    (found,) = audited(nodes, tmp_path, sums | {40: 1}, "state")
    assert found[:3] == ("acknowledged", "1", 40)


def without_batch(node: Path, offset: int) -> tuple[int, int]:
    """Take away the batch with an offset, cleanly; return its first and its last offset."""
    path = [each for each in sorted((node / "orders-0").glob("*.log")) if int(each.stem) <= offset][
        -1
    ]
    data, at = path.read_bytes(), 0
    kept, taken = [], (-1, -1)
    for batch in iter_batches(data):
        assert isinstance(batch, RecordBatch)
        if batch.base_offset <= offset <= batch.last_offset:
            taken = batch.base_offset, batch.last_offset
        else:
            kept.append(data[at : at + batch.size_bytes])
        at += batch.size_bytes
    path.write_bytes(b"".join(kept))
    for suffix in (".index", ".timeindex"):
        path.with_suffix(suffix).unlink()
    return taken


def test_a_loss_of_the_leader_is_told_once_and_that_of_a_follower_beside_it(
    tmp_path: Path,
) -> None:
    """The gap of the leader is named by the ledger; the follower's is a finding of its own."""
    nodes = write_clean_set(tmp_path / "nodes")
    sums = checksums(nodes[0])
    first, last = without_batch(nodes[0], 40)
    assert without_batch(nodes[1], 40) == (first, last)
    assert [each[:3] for each in audited([nodes[0]], tmp_path, sums)] == [
        ("acknowledged", "1", first)
    ]
    found = [each[:3] for each in audited(nodes, tmp_path, sums)]
    assert ("acknowledged", "1", first) in found
    assert [each for each in found if each[1] == "2"] == [("gap", "2", last + 1)]
    assert not [each for each in found if each[0] == "gap" and each[1] == "1"]


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[]",
        "{}",
        '{"topic": "t", "partition": 0, "offset": 1}',
        '{"topic": "t", "partition": 0, "offset": "x", "crc32": 1}',
        '{"topic": "t", "partition": 0, "offset": 9223372036854775808, "crc32": 1}',
    ],
)
def test_line_that_is_none_is_named(tmp_path: Path, line: str) -> None:
    acks = tmp_path / "acks.jsonl"
    good = '{"topic": "t", "partition": 0, "offset": 1, "crc32": 1}'
    acks.write_text(f"{good}\n\n{line}\n")
    with pytest.raises(
        CannotAudit, match=r"acks\.jsonl:3: not a JSON object with topic, partition"
    ):
        read_ledger_file(acks)
