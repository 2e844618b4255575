"""Campaigns over workers in this process: every seed once, as `kraft-wire sim` runs it."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from kraft_wire.cli.sim.command import app as sim_app
from kraft_wire.sim.runs.campaign import Totals, results_of
from kraft_wire.sim.runs.run import Failure, Result
from kraft_wire.spark.campaign.kinds import ComparedBrokers, CrashStates, SimulatedRuns
from kraft_wire.spark.campaign.page import page_of
from kraft_wire.spark.campaign.span import sample_of, spans_of
from kraft_wire.spark.campaign.table import CampaignTable, Row
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.verbs.sim import CampaignOutcome, run_campaign
from kraft_wire.spark.workers import Amount
from tests.spark.local_session import LocalSession

SHORT = SimulatedRuns(events=60)


@dataclass(frozen=True, slots=True)
class Fake:
    """A kind whose results the test decides; its seeds are counted in a file."""

    log: Path
    bad: int | None = None
    is_drifting: bool = False

    @property
    def about(self) -> dict[str, object]:
        return {"kind": "fake"}

    def result(self, seed: int) -> tuple[Result, float]:
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"{seed}\n")
        if seed == self.bad:
            raise ZeroDivisionError("by chance")
        runs = self.log.read_text(encoding="utf-8").splitlines().count(str(seed))
        trace = f"{seed}-{runs if self.is_drifting else 0}"
        return Result(seed, events=seed, trace_hash=trace, marks=Counter({"seen": 2})), 0.25

    def replay(self, seed: int) -> str:
        return f"replay {seed}"

    def runs(self) -> Counter[int]:
        return Counter(map(int, self.log.read_text(encoding="utf-8").split()))


def campaign(
    kind: Fake | SimulatedRuns | CrashStates, output: Path, seeds: range, **options: int
) -> CampaignOutcome:
    spark = cast(SparkSession, LocalSession(2))
    return run_campaign(spark, seeds, kind, CampaignTable(str(output), kind.about), **options)


def test_campaign_has_the_figures_and_hashes_of_the_same_seeds_run_here(tmp_path: Path) -> None:
    outcome = campaign(SHORT, tmp_path / "table", range(3, 12), repeats=2)
    here = Totals()
    for found in results_of(range(3, 12), events=60):
        here.add(*found)
    assert outcome.totals.hashes == here.hashes
    figures, wanted = outcome.to_json(), here.to_json()
    wanted["events_per_core_second"] = figures["events_per_core_second"]
    assert {name: figures[name] for name in wanted} == wanted
    assert figures["seeds_run_twice"] == 2
    assert figures["seeds_with_two_traces"] == []
    assert outcome.is_good


def test_seeds_with_a_row_are_not_run_again(tmp_path: Path) -> None:
    kind = Fake(tmp_path / "log")
    campaign(kind, tmp_path / "table", range(5), repeats=0, seeds_per_task=2)
    (tmp_path / "table" / "seeds" / "seeds-2-3.parquet").unlink()
    told: list[Amount] = []
    spark = cast(SparkSession, LocalSession(2))
    table = CampaignTable(str(tmp_path / "table"), kind.about)
    outcome = run_campaign(spark, range(8), kind, table, repeats=0, tell=told.append)
    assert kind.runs() == Counter({0: 1, 1: 1, 2: 2, 3: 2, 4: 1, 5: 1, 6: 1, 7: 1})
    assert [row.result.seed for row in outcome.rows] == list(range(8))
    assert outcome.known == 3
    assert Amount(*map(sum, zip(*told, strict=True))) == Amount(files=8, records=2 + 3 + 5 + 6 + 7)


def test_rows_outside_the_range_are_kept_and_not_counted(tmp_path: Path) -> None:
    kind = Fake(tmp_path / "log")
    campaign(kind, tmp_path / "table", range(6), repeats=0)
    outcome = campaign(kind, tmp_path / "table", range(4, 7), repeats=0)
    assert outcome.totals.seeds == 3
    assert CampaignTable(str(tmp_path / "table"), kind.about).seeds() == set(range(7))


def test_seed_whose_run_breaks_is_a_row_and_the_others_go_on(tmp_path: Path) -> None:
    outcome = campaign(Fake(tmp_path / "log", bad=1), tmp_path / "table", range(3), repeats=0)
    assert not outcome.is_good
    assert [row.result.failure is None for row in outcome.rows] == [True, False, True]
    table = parquet.read_table(tmp_path / "table" / "seeds")
    assert table.column("verdict").to_pylist() == ["held", "error", "held"]
    assert "ZeroDivisionError: by chance" in table.column("text").to_pylist()[1]


def test_seed_with_two_traces_is_named(tmp_path: Path) -> None:
    kind = Fake(tmp_path / "log", is_drifting=True)
    outcome = campaign(kind, tmp_path / "table", range(4), repeats=2)
    assert outcome.to_json()["seeds_with_two_traces"] == [0, 2]
    assert not outcome.is_good


def test_violation_can_be_replayed_from_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kind = SimulatedRuns(events=300, canary=True)
    outcome = campaign(kind, tmp_path / "table", range(1, 3), repeats=0)
    violation = outcome.to_json()["violations"][0]
    program, verb, *words = shlex.split(violation["replay"])
    assert (program, verb) == ("kraft-wire", "sim")
    replayed = CliRunner().invoke(sim_app, [*words, "--json"])
    assert replayed.exit_code == 1, replayed.output
    (again,) = json.loads(replayed.output)["violations"]
    assert (again["invariant"], again["events"]) == (violation["invariant"], violation["events"])


def test_replay_line_names_every_option() -> None:
    kind = SimulatedRuns(events=5, nodes=3, brokers=0, model=True)
    assert kind.replay(9) == "kraft-wire sim --seed 9 --events 5 --nodes 3 --brokers 0 --model"
    assert CrashStates("append and flush").replay(2) == (
        "python -m kraft_wire.sim.crash.points --quick --seed 2 --scenario 'append and flush'"
    )


def test_crash_states_are_counted_and_a_seed_draws_the_same_ones(tmp_path: Path) -> None:
    kind = CrashStates("append and flush")
    outcome = campaign(kind, tmp_path / "table", range(1, 3), repeats=1)
    first, second = (row.result for row in outcome.rows)
    assert first.marks["append and flush"] == first.events > 100
    assert first.looked["S29 CrashSafe"] >= first.events
    assert first.trace_hash != second.trace_hash
    assert outcome.is_good


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("campaign.json", '{"kind": "other"}', 'holds another campaign: {"kind": "other"}'),
        ("notes.txt", "mine", "holds other files"),
    ],
)
def test_folder_of_something_else_is_refused_and_left_alone(
    tmp_path: Path, name: str, content: str, line: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(PipelineError, match=line):
        CampaignTable(str(tmp_path), SHORT.about)
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text(encoding="utf-8") == content


def test_damaged_part_is_named(tmp_path: Path) -> None:
    table = CampaignTable(str(tmp_path), SHORT.about)
    (tmp_path / "seeds" / "seeds-0-3.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(PipelineError, match=r"seeds-0-3\.parquet cannot be read; delete it"):
        table.seeds()


@pytest.mark.parametrize(
    ("address", "line"),
    [("nowhere", "'nowhere' is not HOST:PORT"), ("127.0.0.1:1", "cannot connect to 127.0.0.1:1")],
)
def test_broker_that_cannot_be_compared_is_named_before_any_seed(address: str, line: str) -> None:
    with pytest.raises(PipelineError, match=f"--random-conformance: {line}"):
        ComparedBrokers((address, address)).check()


def test_row_comes_back_from_its_columns() -> None:
    failure = Failure("S01 SingleLeaderPerEpoch", "two leaders", 40, 12)
    result = Result(7, 50, 20, 99, failure, "abc", committed=3, registers=2)
    result.marks["became Leader"] = 2
    row = Row(result, 0.5, "host/1", "kraft-wire sim --seed 7")
    assert Row.of_json(row.to_json()) == row


def test_page_shows_violations_rare_marks_and_the_slowest_seeds_first() -> None:
    rows = [Row(Result(seed, events=1), float(seed), "host/1", f"run {seed}") for seed in range(40)]
    rows[5].result.failure = Failure("S05 <b>", "lost", 1, 1)
    outcome = CampaignOutcome(rows=rows)
    for row in rows:
        row.result.marks.update({"often": 3, "once": 1})
        outcome.totals.add(row.result, row.seconds)
    page = page_of(SHORT.about, outcome.to_json(), rows)
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert data["marks"] == [["once", 40], ["often", 120]]
    assert [line["seed"] for line in data["slowest"]] == list(range(39, 14, -1))
    assert data["figures"]["violations"][0]["replay"] == "run 5"
    assert data["cells"][5] == [5, 5.0, 0]
    assert "<b>" not in page.split('id="data">')[1].split("</script>")[0]


def test_seeds_are_cut_into_spans_and_a_sample_is_spread() -> None:
    assert [span.seeds for span in spans_of([1, 2, 5, 9, 10], 2, 2)] == [(1, 2), (5, 9), (10,)]
    assert {len(span.seeds) for span in spans_of(range(256 * 1024), 2)} == {256}
    assert {len(span.seeds) for span in spans_of(range(40), 2)} == {4}
    assert sample_of(range(100, 200), 4) == [100, 125, 150, 175]
    assert sample_of([3], 4) == [3]
    assert sample_of([], 4) == []
