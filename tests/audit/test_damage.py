"""Damage of eight kinds to three replicas: each fault is found and named once, none on clean ones.

And what it left whole is read. A few hundred seeds here; `python -m tests.audit` runs as many as
wanted, on real directories and through Spark too.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kraft_wire.audit.collector import plan_audit, run_audit
from kraft_wire.columnar import BatchColumns
from kraft_wire.columnar.arrays import Bools
from kraft_wire.model import Offset
from kraft_wire.storage.leader_epochs import LeaderEpochs
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.memory_records import iter_batches
from kraft_wire.wire.records.record import Record
from tests.audit.campaign import Campaign, Verdict
from tests.audit.clean_set import write_clean_set
from tests.audit.faults import FAULTS, METADATA, Replicas, damaged, forge_snapshot
from tests.audit.reading import misread

SEEDS = 225
PARTS = 5


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return Campaign(write_clean_set(tmp_path_factory.mktemp("audit") / "clean"))


def test_clean_replicas_have_no_findings(campaign: Campaign) -> None:
    assert campaign.before == []


@pytest.mark.parametrize("part", range(PARTS))
def test_each_fault_is_found_and_named_once(campaign: Campaign, part: int) -> None:
    share = SEEDS // PARTS
    for seed in range(part * share, (part + 1) * share):
        judged = campaign.run(seed)
        assert judged.verdict is Verdict.NAMED, judged


def _up_to_damage(columns: BatchColumns, *_: object) -> Bools:
    """The rows of a reader that stops where it meets the first damage."""
    rows: Bools = np.logical_and.accumulate(columns.is_valid)
    return rows


@pytest.mark.parametrize(
    ("place", "fault", "reason"),
    [
        ("kraft_wire.spark.kraftlog.log_walk._in_range", _up_to_damage, "missing"),
        ("kraft_wire.spark.kraftlog.record_views.judge_damage", lambda *_: None, "was not told"),
        ("tests.audit.whole.rows_of", lambda _: [], "too many"),
    ],
    ids=["stops", "is silent", "shows too much"],
)
def test_reader_that_is_wrong_is_seen(
    campaign: Campaign,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    fault: Callable[..., object],
    reason: str,
) -> None:
    """The judge must be able to say no."""
    monkeypatch.setattr(place, fault)
    reasons = []
    for seed in range(0, 10 * len(FAULTS), len(FAULTS)):
        with campaign.damaged(seed) as damage:
            assert damage.kind == "bit flip"
            reasons.append(misread(campaign.replicas, damage))
    assert any(each is not None and reason in each for each in reasons), reasons


def test_fault_that_finds_nothing_to_break_leaves_its_turn_to_the_next(nodes: list[Path]) -> None:
    """Directories of brokers alone have no snapshots; those of nobody yet have nothing at all."""
    for node in nodes:
        for snapshot in node.glob(f"{METADATA}-0/*.checkpoint"):
            snapshot.unlink()
    replicas = Replicas.of(nodes, frozenset())
    turn = FAULTS.index(forge_snapshot)
    assert damaged(replicas, turn).kind == "stale index"
    for node in nodes:
        for partition in node.glob("*-[0-9]"):
            shutil.rmtree(partition)
    for seed in range(len(FAULTS)):
        with pytest.raises(LookupError, match="nothing in these directories"):
            damaged(replicas, seed)


@pytest.fixture
def nodes(tmp_path: Path) -> list[Path]:
    return write_clean_set(tmp_path / "clean")


def segments(node: Path, partition: str = "orders-0") -> list[Path]:
    return sorted((node / partition).glob("*.log"))


def audited(nodes: list[Path]) -> list[tuple[str, str, str, int]]:
    plan = plan_audit([str(node) for node in nodes])
    found = run_audit(plan, processes=1).findings
    return [(each.check, each.node, each.topic, each.partition) for each in found]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_log_files_emptied_from_the_end_are_one_loss(nodes: list[Path], count: int) -> None:
    for segment in segments(nodes[0])[-count:]:
        segment.write_bytes(b"")  # and the indexes stay
    assert audited(nodes) == [("below-high-watermark", "1", "orders", 0)]


def test_bytes_put_into_a_batch_are_one_fault(nodes: list[Path]) -> None:
    segment = segments(nodes[0])[1]
    data = segment.read_bytes()
    first, second, *_ = iter_batches(data)
    at = first.size_bytes + second.size_bytes // 2
    segment.write_bytes(data[:at] + b"abc" + data[at:])
    assert audited(nodes) == [("crc", "1", "orders", 0)]


@pytest.mark.parametrize("index", [0, 1, 2])
def test_file_of_another_partition_is_one_fault(nodes: list[Path], index: int) -> None:
    foreign = segments(nodes[0], "payments-0")[index].read_bytes()
    segments(nodes[0])[index].write_bytes(foreign)
    (found,) = audited(nodes)
    assert found[0] in ("log-matching", "divergence")
    assert found[1:] == ("1", "orders", 0)


def test_first_files_that_are_gone_are_one_gap(nodes: list[Path]) -> None:
    """What is deleted by design leaves the leader epochs too (KIP-101)."""
    for path in (nodes[1] / "orders-0").glob("*"):
        if path.stem.isdecimal() and int(path.stem) < int(segments(nodes[0])[2].stem):
            path.unlink()
    assert audited(nodes) == [("gap", "2", "orders", 0)]
    epochs = LeaderEpochs(OsFileSystem(), str(nodes[1] / "orders-0"))
    epochs.load()
    epochs.truncate_from_start(Offset(int(segments(nodes[1])[0].stem)))
    assert audited(nodes) == []


def test_log_start_behind_every_log_is_the_fault_of_its_node(nodes: list[Path]) -> None:
    (nodes[2] / "log-start-offset-checkpoint").write_text("0\n1\norders 0 100000\n")
    assert audited(nodes) == [("below-high-watermark", "3", "orders", 0)]


def test_bytes_put_into_an_offset_are_one_fault(nodes: list[Path]) -> None:
    """What follows them is a whole batch, for a checksum does not cover its offset."""
    segment = segments(nodes[0])[1]
    data = segment.read_bytes()
    place = next(iter_batches(data)).size_bytes + 3
    segment.write_bytes(data[:place] + bytes(range(100, 113)) + data[place:])
    assert audited(nodes) == [("crc", "1", "orders", 0)]


@pytest.mark.parametrize("shift", [-1, 3])
def test_files_under_the_name_of_another_offset_are_one_fault(
    nodes: list[Path], shift: int
) -> None:
    base = int(segments(nodes[0])[1].stem)
    for path in (nodes[0] / "orders-0").glob(f"{base:020d}.*"):
        path.rename(path.with_name(f"{base + shift:020d}{path.suffix}"))
    assert audited(nodes) == [("gap", "1", "orders", 0)]


def test_log_whose_policy_was_compact_may_have_gaps(nodes: list[Path]) -> None:
    """A batch with fewer records than offsets says so, whatever the metadata say by now."""
    for node in nodes:
        shutil.rmtree(node / "orders-0")
        (node / "orders-0").mkdir()
        records = [Record(None, b"value", offset=offset) for offset in (1, 3)]
        batch = build_batch(records, partition_leader_epoch=2)
        last = build_batch([Record(None, b"")], base_offset=400, partition_leader_epoch=2)
        (node / "orders-0" / f"{0:020d}.log").write_bytes(batch + last)
    assert audited(nodes) == []
