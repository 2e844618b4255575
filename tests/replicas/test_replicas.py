"""A short run of three brokers of ours without namespaces; and the judge, who must see each wrong.

`make replicas` runs it for long, and with Apache's brokers.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.replicas.campaign import Campaign
from tests.replicas.layouts import LAYOUTS
from tests.replicas.load import KINDS
from tests.replicas.promises import Written
from tests.replicas.replica_logs import EPOCHS, Writers, compare, cut_by_make, tails
from tests.replicas.verdict import Verdict, broken_lines, judge, not_shown

CYCLES = 6
RECORDS = 20_000


@pytest.mark.java
@pytest.mark.client
@pytest.mark.slow
def test_kills_and_pauses_of_three_brokers_lose_and_double_nothing(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, LAYOUTS["ours"], None, 3, print)
    outcome = campaign.run(CYCLES, RECORDS, 240)
    verdict = judge(campaign)
    assert verdict.violations == []
    assert outcome.cycles == CYCLES
    assert sum(outcome.kills.values()) > 0
    assert [each.acknowledged for each in verdict.written] == [RECORDS // len(KINDS)] * len(KINDS)
    assert verdict.records >= RECORDS
    assert verdict.batches > 0


# -- what a run has to show ----------------------------------------------------------------------


def finished(home: Path, layout: str) -> tuple[Campaign, Verdict]:
    """A campaign that never ran, with the figures of one that has shown everything."""
    campaign, verdict = Campaign(home, LAYOUTS[layout], None, 1, print), Verdict(batches=9)
    outcome = campaign.outcome
    outcome.cycles = outcome.cycles_wanted = 100
    outcome.records_wanted = 1_000
    verdict.written = [Written("one", 600, 600), Written("another", 400, 400)]
    outcome.faults.update(dict.fromkeys(campaign.layout.faults, 30))
    for counted in (outcome.led, outcome.cut):
        counted.update({"ours": 5, "Apache": 7})
    return campaign, verdict


def test_run_that_has_shown_everything_lacks_nothing(tmp_path: Path) -> None:
    assert not_shown(*finished(tmp_path, "mixed")) == []


def test_run_that_was_cut_short_or_met_no_divergence_says_so(tmp_path: Path) -> None:
    campaign, verdict = finished(tmp_path, "mixed")
    campaign.outcome.cycles, verdict.written[1].acknowledged, verdict.batches = 99, 399, 0
    del campaign.outcome.faults["strand"], campaign.outcome.cut["Apache"]
    del campaign.outcome.led["ours"]
    assert not_shown(campaign, verdict) == [
        "99 of 100 cycles",
        "999 of 1,000 records acknowledged",
        "no replica was compared",
        "no strand",
        "no kill of a leader, ours",
        "no divergence that was cut, Apache",
    ]


def test_run_of_ours_needs_no_divergence_of_another_make(tmp_path: Path) -> None:
    campaign, verdict = finished(tmp_path, "ours")
    del campaign.outcome.cut["Apache"]
    assert not_shown(campaign, verdict) == []


def test_judge_goes_on_where_a_step_fails(tmp_path: Path) -> None:
    campaign, _ = finished(tmp_path, "ours")
    campaign.outcome.high_watermarks = {0: 5}
    campaign.outcome.violations.append("said before")
    for node in campaign.cluster.controllers.values():
        node.log.write_text("ValueError: of a node\n")
    verdict = judge(campaign)
    assert verdict.violations[0] == "said before"
    assert any("compare_replicas" in each for each in verdict.violations), "nothing is there"
    assert any(each.startswith("audit: ") for each in verdict.violations)
    assert sum("of a node" in each for each in verdict.violations) == 3


def test_lines_of_a_broken_node_are_told_from_those_of_a_killed_one() -> None:
    usual = (
        "broker_heartbeat_failed error=REQUEST_TIMED_OUT failures=1\nmetadata_snapshot offset=7\n"
    )
    assert broken_lines(usual, is_ours=True) == []
    trace = (
        'Traceback (most recent call last):\n  File "x.py", line 1, in f\nAssertionError: (1, 2)\n'
    )
    cut = "replica_truncated_below_high_watermark partition=t-0 offset=1 high_watermark=2\n"
    assert len(broken_lines(usual + trace + usual + cut, is_ours=True)) == 3
    apaches = "[WARN] Truncating t-0 to offset 1 below high watermark 2 (kafka.server.X)\n"
    assert len(broken_lines(apaches, is_ours=False)) == 1


# -- the judge of the disks ----------------------------------------------------------------------


def batch(base_offset: int, epoch: int, *values: bytes) -> bytes:
    """A batch as a leader writes it."""
    records = [Record(offset=base_offset + at, value=each) for at, each in enumerate(values)]
    return bytes(build_batch(records, base_offset=base_offset, partition_leader_epoch=epoch))


LOG = [batch(0, 0, b"a", b"b"), batch(2, 0, b"c"), batch(3, 2, b"d", b"e")]


def partition(home: Path, *segments: Iterable[bytes], epochs: str = "0 0\n2 3") -> Path:
    """A replica's directory, with a segment for each group of batches."""
    home.mkdir(parents=True)
    for number, batches in enumerate(segments):
        (home / f"{number:020}.log").write_bytes(b"".join(batches))
    (home / EPOCHS).write_text(f"0\n{len(epochs.splitlines())}\n{epochs}\n")
    return home


def test_replicas_with_other_segments_and_unlike_tails_are_alike(tmp_path: Path) -> None:
    one = partition(tmp_path / "1" / "t-0", LOG[:1], LOG[1:])
    other = partition(tmp_path / "2" / "t-0", [*LOG, batch(5, 2, b"f"), b"torn"])
    found = compare({1: one, 2: other}, 5)
    assert found.differences == []
    assert (found.batches, found.size_bytes, found.epochs) == (3, sum(map(len, LOG)), 2)
    assert found.segments == {1: 2, 2: 1}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param([LOG[0], LOG[1]], id="ends too early"),
        pytest.param([LOG[0], LOG[2]], id="has a gap"),
        pytest.param([LOG[0], LOG[1], batch(3, 3, b"d", b"e")], id="written in another epoch"),
        pytest.param([LOG[0], LOG[1], batch(3, 2, b"d", b"E")], id="another record"),
        pytest.param([LOG[0], LOG[1], LOG[1], LOG[2]], id="a batch twice"),
        pytest.param([LOG[0], LOG[1], LOG[2][:-1] + b"?"], id="a damaged byte"),
        pytest.param([batch(0, 0, b"a"), batch(1, 0, b"b"), *LOG[1:]], id="other batches"),
    ],
)
def test_replicas_that_differ_are_told(other: list[bytes], tmp_path: Path) -> None:
    one = partition(tmp_path / "1" / "t-0", LOG)
    assert compare({1: one, 2: partition(tmp_path / "2" / "t-0", other)}, 5).differences


@pytest.mark.parametrize("epochs", ["0 0", "0 0\n2 4", "0 0\n1 3", "1 0\n2 3"])
def test_a_checkpoint_of_other_epochs_than_the_batches_have_is_told(
    epochs: str, tmp_path: Path
) -> None:
    replica = partition(tmp_path / "1" / "t-0", LOG, epochs=epochs)
    assert compare({1: replica}, 5).differences


def test_who_wrote_is_read_from_the_batch_that_holds_the_offset(tmp_path: Path) -> None:
    batches = []
    for epoch, offsets in enumerate(([0, 1], [2], [3, 4, 5])):
        records = [Record(offset=each, value=b"x") for each in offsets]
        batch = build_batch(
            records, base_offset=offsets[0], producer_id=9, producer_epoch=epoch, base_sequence=0
        )
        batches.append(bytes(batch))
    partition(tmp_path / "t-4", batches[:2], batches[2:])
    who_wrote = Writers(tmp_path, "t")
    assert [who_wrote(4, offset) for offset in range(6)] == [(9, e) for e in (0, 0, 1, 2, 2, 2)]
    with pytest.raises(AssertionError):
        who_wrote(4, 6)


def test_the_batches_that_were_cut_after_a_kill_are_known(tmp_path: Path) -> None:
    replica = partition(tmp_path / "t-0", LOG[:1], LOG[1:])
    (tail,) = tails(tmp_path, "t")
    assert tail.cut() == []
    (replica / f"{1:020}.log").write_bytes(LOG[1] + batch(3, 3, b"d", b"e"))
    assert [(each.base_offset, each.partition_leader_epoch) for each in tail.cut()] == [(3, 2)]
    assert cut_by_make([("ours", [tail]), ("ours", [tail])]) == {"ours": 1}, "killed twice"
