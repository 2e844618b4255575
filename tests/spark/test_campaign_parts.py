"""The parts of a campaign, compared with what is written down: kinds, rows, spans, the page."""

from __future__ import annotations

import json
import os
import socket
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import parquet

from kraft_wire.conformance.case import Listener
from kraft_wire.conformance.differences import Difference
from kraft_wire.conformance.recording import Recording
from kraft_wire.conformance.target import Unreachable
from kraft_wire.conformance.verdict import Exchange, Outcome, Verdict
from kraft_wire.sim.crash.runs import ScenarioReport
from kraft_wire.sim.runs.run import Failure, Result
from kraft_wire.spark import PipelineError
from kraft_wire.spark.campaign import kinds as kinds_module
from kraft_wire.spark.campaign import page as page_module
from kraft_wire.spark.campaign.kinds import (
    ComparedBrokers,
    CrashStates,
    SimulatedRuns,
    _add,
    broken_result,
)
from kraft_wire.spark.campaign.page import page_of, write_page
from kraft_wire.spark.campaign.span import Done, Span, run_span, sample_of, spans_of
from kraft_wire.spark.campaign.table import CampaignTable, Row

ADDRESSES = ("left:9092", "right:9093")
API_VERSIONS, METADATA = 18, 3


def exchange(api_key: int, response: bytes | None) -> Exchange:
    return Exchange(api_key, 0, b"", response)


class Brokers:
    """Two brokers whose answers the test decides, in place of `conformance.run`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **verdicts: Verdict) -> None:
        self.calls: list[object] = []
        self.verdicts = verdicts
        self.exchanges = {
            name: (exchange(METADATA, None), exchange(API_VERSIONS, None), exchange(METADATA, None))
            for name in ("left", "right")
        }
        for name in ("learn_target", "read_profile", "drawn_cases", "rows_of", "run_rows"):
            monkeypatch.setattr(kinds_module, name, getattr(self, name))

    def learn_target(self, address: tuple[str, int], seconds: float) -> str:
        self.calls.append((address, seconds))
        return address[0]

    def read_profile(self, name: str) -> str:
        return f"profile {name}"

    def drawn_cases(self, seeds: list[int], requests: int, profile: str) -> object:
        return ("cases", seeds, requests, profile)

    def rows_of(self, cases: object, profile: str) -> object:
        return ("rows", cases, profile)

    def run_rows(self, rows: object, targets: Any, *, keeps_exchanges: bool) -> list[Outcome]:
        assert keeps_exchanges
        (name,) = targets.values()
        assert list(targets) == [Listener.BROKER]
        self.calls.append(rows)
        verdict = self.verdicts.get(name, Verdict.PASSED)
        return [Outcome("drawn.7", 0, verdict, 0.1, exchanges=self.exchanges[name])]


def test_brokers_that_answer_alike_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers(monkeypatch)
    clock = SimpleNamespace(process_time=iter([10.0, 12.5, 0.0, 0.0]).__next__)
    monkeypatch.setattr(kinds_module, "time", clock)
    kind = ComparedBrokers(ADDRESSES, 20, "4.3")
    found, seconds = kind.result(7)
    rows = ("rows", ("cases", [7], 20, "profile 4.3"), "profile 4.3")
    assert brokers.calls == [(("left", 9092), 10.0), rows, (("right", 9093), 10.0), rows]
    marks = {"ApiVersions 0": 1, "Metadata 0": 2}
    digest = blake2b(b"[('ApiVersions 0', 1), ('Metadata 0', 2)]", digest_size=16)
    assert found == Result(
        7,
        events=3,
        trace_hash=digest.hexdigest(),
        marks=Counter(marks),
        looked=Counter({"brokers answer alike": 3}),
    )
    assert seconds == 2.5
    compared: list[Recording] = []
    monkeypatch.setattr(kinds_module, "differences", lambda *both: compared.extend(both) or [])
    kind.result(7)
    assert [(each.about, each.profile) for each in compared] == [
        ("left:9092", "4.3"),
        ("right:9093", "4.3"),
    ]


def test_brokers_that_answer_otherwise_or_fail_are_a_violation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brokers = Brokers(monkeypatch, right=Verdict.FAILED)

    def failure() -> Failure | None:
        return ComparedBrokers(ADDRESSES).result(7)[0].failure

    assert failure() == Failure("brokers answer alike", "(verdict): passed and failed", 3, 0)
    brokers.verdicts["left"] = Verdict.FAILED
    assert failure() == Failure("brokers answer alike", "failed; failed", 3, 0)
    brokers.verdicts.clear()
    assert failure() is None
    unequal = [Difference(f"p{number}", "1", "2", ()) for number in range(9)]
    monkeypatch.setattr(kinds_module, "differences", lambda *_: unequal)
    text = "p0: 1 and 2; p1: 1 and 2; p2: 1 and 2; p3: 1 and 2; p4: 1 and 2"
    assert failure() == Failure("brokers answer alike", text, 3, 0)


def test_brokers_are_tried_before_any_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers(monkeypatch)
    ComparedBrokers(ADDRESSES).check()
    assert brokers.calls == [(("left", 9092), 10.0), (("right", 9093), 10.0)]

    def refuse(address: object, seconds: float) -> None:
        raise Unreachable("nothing listens there")

    monkeypatch.setattr(kinds_module, "learn_target", refuse)
    with pytest.raises(PipelineError, match=r"^--random-conformance: nothing listens there$"):
        ComparedBrokers(ADDRESSES).check()


def test_kinds_say_what_they_run_and_how_to_run_a_seed_again() -> None:
    assert SimulatedRuns().about == {
        "kind": "simulation",
        "events": 2_000,
        "nodes": None,
        "brokers": None,
        "focus": None,
        "model": False,
        "canary": False,
    }
    drawn = SimulatedRuns(9, 3, 2, "groups", model=False, canary=True)
    assert drawn.replay(4) == (
        "kraft-wire sim --seed 4 --events 9 --nodes 3 --brokers 2 --focus groups --canary"
    )
    assert SimulatedRuns().replay(0) == "kraft-wire sim --seed 0 --events 2000"
    assert CrashStates().about == {"kind": "crash states", "scenario": None}
    assert CrashStates("a b").about == {"kind": "crash states", "scenario": "a b"}
    assert CrashStates().replay(3) == "python -m kraft_wire.sim.crash.points --quick --seed 3"
    compared = ComparedBrokers(ADDRESSES, profile="4.3")
    assert compared.about == {"kind": "drawn requests", "requests": 100, "profile": "4.3"}
    assert compared.replay(6) == (
        "kraft-wire conform --compare left:9092 right:9093 --random 6:7 --requests 100"
        " --profile 4.3"
    )


def test_crash_states_add_up_and_the_first_violation_is_kept() -> None:
    found = Result(1)
    _add(found, ScenarioReport("one", operations=2, states=3, checks=5))
    assert found.failure is None
    bad = ScenarioReport("two", operations=20, states=30, checks=50, violations=2)
    bad.examples = ["a", "b"]
    _add(found, bad)
    _add(found, ScenarioReport("three", 1, 1, 1, violations=1, examples=["c"]))
    assert (found.events, found.useful_events) == (34, 23)
    assert found.looked == {"S29 CrashSafe": 56}
    assert found.marks == {"one": 3, "two": 30, "three": 1}
    assert found.failure == Failure("S29 CrashSafe", "two: 2 violations: a; b", 33, 0)


def test_crash_states_are_of_one_scenario_or_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, quorum = SimpleNamespace(name="one"), SimpleNamespace(name="two")
    monkeypatch.setattr(kinds_module, "SCENARIOS", (plain, quorum))
    monkeypatch.setattr(kinds_module, "QUORUM_SCENARIOS", (quorum,))
    calls: list[object] = []

    def run(scenario: Any, limits: object, *, seed: int) -> ScenarioReport:
        calls.append((scenario.name, limits, seed))
        return ScenarioReport(scenario.name, 1, 2, 3, seconds=float(len(calls)))

    monkeypatch.setattr(kinds_module, "run_scenario", run)
    clock = SimpleNamespace(process_time=iter([10.0, 12.5, 1.0, 2.0, 3.0, 4.0]).__next__)
    monkeypatch.setattr(kinds_module, "time", clock)
    found, seconds = CrashStates().result(7)
    assert calls == [("one", kinds_module.QUICK, 7), ("two", kinds_module.QUICK_QUORUM, 7)]
    assert (found.seed, found.events, found.marks, seconds) == (7, 4, {"one": 2, "two": 2}, 2.5)
    again, _ = CrashStates().result(7)
    assert again.trace_hash == found.trace_hash, "times are left out"
    only, seconds = CrashStates("two").result(7)
    assert (only.marks, seconds) == ({"two": 2}, 1.0)
    assert only.trace_hash != found.trace_hash
    assert len(only.trace_hash) == 32


def test_run_that_breaks_is_an_error_of_its_seed() -> None:
    assert broken_result(3, KeyError("x")) == Result(
        3, failure=Failure("(error)", "the run failed: KeyError: 'x'", 0, 0)
    )


def row(seed: int, failure: Failure | None = None, seconds: float = 0.5) -> Row:
    result = Result(
        seed,
        events=50,
        useful_events=20,
        virtual_us=99,
        failure=failure,
        trace_hash="abc",
        committed=3,
        registers=2,
        marks=Counter({"b": 2, "a": 1}),
        faults=Counter({"crash": 4}),
        looked=Counter({"S01": 5}),
        operations=Counter({"produce": 6}),
    )
    return Row(result, seconds, "host/1", f"run {seed}")


@pytest.mark.parametrize(
    ("failure", "columns"),
    [
        (None, ("held", None, None, None, None)),
        (Failure("S05", "lost", 40, 12), ("violation", "S05", "lost", 40, 12)),
        (Failure("(error)", "broke", 0, 0), ("error", "(error)", "broke", 0, 0)),
    ],
)
def test_columns_of_a_row_are_its_result(
    tmp_path: Path, failure: Failure | None, columns: tuple[object, ...]
) -> None:
    names = ("verdict", "invariant", "text", "failed_after_events", "failed_at_us")
    given = row(7, failure)
    assert given.to_json() == {
        "seed": 7,
        "events": 50,
        "useful_events": 20,
        "virtual_us": 99,
        "trace_hash": "abc",
        "committed": 3,
        "registers": 2,
        "marks": [("a", 1), ("b", 2)],
        "faults": [("crash", 4)],
        "looked": [("S01", 5)],
        "operations": [("produce", 6)],
        **dict(zip(names, columns, strict=True)),
        "seconds": 0.5,
        "worker": "host/1",
        "replay": "run 7",
    }
    table = CampaignTable(f"file://{tmp_path}/t", {"kind": "x"})
    table.write([row(3), given], "attempt")
    assert list(table.rows()) == [row(3), given]
    assert table.seeds() == {3, 7}
    (file,) = (tmp_path / "t" / "seeds").iterdir()
    assert file.name == "seeds-3-7.parquet"
    (_, stored) = parquet.read_table(file).to_pylist()
    assert stored == given.to_json()


def test_table_is_of_one_campaign_and_its_folder_is_named_if_it_cannot_be_used(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "a" / "b"
    table = CampaignTable(str(folder), {"kind": "x", "n": 1})
    assert table.folder == folder
    assert (folder / "campaign.json").read_text() == '{"kind": "x", "n": 1}\n'
    assert CampaignTable(str(folder), {"kind": "x", "n": 1}).seeds() == set()
    (tmp_path / "file").touch()
    with pytest.raises(PipelineError) as refused:
        CampaignTable(str(tmp_path / "file"), {})
    assert str(refused.value) == f"{tmp_path}/file: File exists"
    (folder / "campaign.json").write_text("y" * 300)
    with pytest.raises(PipelineError) as refused:
        CampaignTable(str(folder), {})
    assert str(refused.value) == f"{folder} holds another campaign: {'y' * 200}"
    (folder / "campaign.json").write_bytes(b"\xff")
    with pytest.raises(PipelineError, match=f"^{folder}: 'utf-8' codec can't decode"):
        CampaignTable(str(folder), {})


def test_rows_that_cannot_be_written_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = CampaignTable(str(tmp_path), {})

    def replace(part: Path, target: Path) -> None:
        assert part.name == ".seeds-3-3.parquet.7"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="No space"):
        table.write([row(3)], "7")
    assert list((tmp_path / "seeds").iterdir()) == []


class Kind:
    """Seeds with as many events as their number; seed 3 breaks."""

    about: dict[str, object] = {"kind": "counted"}  # noqa: RUF012  # never changed

    def result(self, seed: int) -> tuple[Result, float]:
        if seed == 3:
            raise ValueError("three")
        return Result(seed, events=seed, trace_hash=f"h{seed}"), 0.25

    def replay(self, seed: int) -> str:
        return f"run {seed}"


def test_task_runs_its_seeds_and_keeps_the_rows_of_the_first_time(tmp_path: Path) -> None:
    table = CampaignTable(str(tmp_path), Kind.about)
    worker = f"{socket.gethostname()}/{os.getppid()}"
    again = run_span(Span((2, 4), is_repeat=True), Kind(), table, "1")
    assert again == Done(((2, "h2"), (4, "h4")), 6, worker)
    assert table.seeds() == set()
    assert run_span(Span((2, 3)), Kind(), table, "1") == Done(((2, "h2"), (3, "")), 2, worker)
    broken = broken_result(3, ValueError("three"))
    assert list(table.rows()) == [
        Row(Result(2, events=2, trace_hash="h2"), 0.25, worker, "run 2"),
        Row(broken, 0.0, worker, "run 3"),
    ]


@pytest.mark.parametrize(
    ("seeds", "cores", "sizes"),
    [
        (10, 1, [4, 4, 2]),
        (640, 1, [10] * 64),
        (640, 2, [5] * 128),
        (64 * 257, 1, [256] * 64 + [64]),
        (0, 4, []),
    ],
)
def test_spans_give_each_core_many_tasks_of_4_to_256_seeds(
    seeds: int, cores: int, sizes: list[int]
) -> None:
    spans = spans_of(range(seeds), cores)
    assert [len(span.seeds) for span in spans] == sizes
    assert [seed for span in spans for seed in span.seeds] == list(range(seeds))
    assert not any(span.is_repeat for span in spans)
    assert sample_of(range(10, 20), 3) == [10, 13, 16]
    assert sample_of(range(10, 12), 3) == [10, 11]


def data_of(page: str) -> Any:
    return json.loads(page.split('id="data">')[1].split("</script>")[0])


def test_page_has_cells_slowest_seeds_and_a_part_of_the_violations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "_CELLS_MAX", 3)
    monkeypatch.setattr(page_module, "_LISTED_MAX", 2)
    monkeypatch.setattr(page_module, "_VIOLATIONS_MAX", 1)
    bad = Failure("S05", "lost </script>", 1, 1)
    seconds = [0.1234, 0.4, 0.2, 0.4, 0.1]
    rows = [row(n, bad if n == 3 else None, each) for n, each in enumerate(seconds)]
    figures = {"coverage": {"b": 2, "a": 2, "rare": 0}, "violations": ["<1>", "2"], "x": 9}
    write_page(tmp_path / "page.html", {"kind": "k"}, figures, rows)
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page == page_of({"kind": "k"}, figures, rows)
    line = {"events": 50, "worker": "host/1", "seconds": 0.4}
    assert data_of(page) == {
        "about": {"kind": "k"},
        "figures": {**figures, "violations": ["<1>"]},
        "violations": 2,
        "marks": [["rare", 0], ["a", 2], ["b", 2]],
        "slowest": [line | {"seed": 1, "replay": "run 1"}, line | {"seed": 3, "replay": "run 3"}],
        "seeds_per_cell": 2,
        "cells": [[0, 0.262, 1], [2, 0.3, 0], [4, 0.1, 1]],
    }
    assert figures["violations"] == ["<1>", "2"], "the caller's figures stay"
    assert data_of(page_of({}, figures, []))["cells"] == []
    assert data_of(page_of({}, figures, []))["seeds_per_cell"] == 1


def test_page_has_at_most_20000_cells_and_500_violations() -> None:
    each = row(0)
    violations = [str(number) for number in range(501)]
    figures = {"coverage": {}, "violations": violations}
    full = data_of(page_of({}, figures, [each] * 20_000))
    assert (full["seeds_per_cell"], len(full["cells"])) == (1, 20_000)
    assert full["figures"]["violations"] == violations[:500]
    assert (full["violations"], len(full["slowest"])) == (501, 25)
    more = data_of(page_of({}, figures, [each] * 20_001))
    assert (more["seeds_per_cell"], len(more["cells"])) == (2, 10_001)


def test_page_that_cannot_be_put_in_its_place_leaves_no_part(tmp_path: Path) -> None:
    (tmp_path / "page.html").mkdir()
    with pytest.raises(OSError, match="page"):
        write_page(tmp_path / "page.html", {}, {"coverage": {}, "violations": []}, [])
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]
