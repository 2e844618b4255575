"""The crash campaign: storage passes it, and storage without a safeguard does not."""

import json
from random import Random

import pytest

from kraft_wire.sim import crash_points
from kraft_wire.sim.crash_points import SAFEGUARDS, main, run_scenario
from kraft_wire.sim.crash_scenarios import SCENARIOS, Scenario
from kraft_wire.sim.crash_states import Limits, many_subsets, plain_subsets
from kraft_wire.sim.files import Atom

FEW = Limits(exhaustive_atoms=4, random_subsets=12, states_max=120)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_no_crash_state_loses_what_was_acknowledged(scenario: Scenario) -> None:
    report = run_scenario(scenario, FEW)
    assert report.violations == 0, report.examples
    assert report.states > 15


@pytest.mark.parametrize("safeguard", SAFEGUARDS)
def test_missing_safeguard_is_noticed(safeguard: str) -> None:
    found = [run_scenario(scenario, FEW, without=safeguard) for scenario in SCENARIOS[-4:]]
    assert sum(report.violations for report in found) > 0


def test_enumeration_is_reproducible() -> None:
    runs = [run_scenario(SCENARIOS[0], FEW, seed=5) for _ in range(2)]
    assert runs[0].states == runs[1].states
    assert runs[0].checks == runs[1].checks


def test_subsets_cover_prefixes_garbage_singles_and_all_of_few() -> None:
    atoms = [Atom(3, False), Atom(5, True)]
    plain = list(plain_subsets(atoms))
    assert (frozenset(), frozenset(), True) in plain
    assert (frozenset([3]), frozenset(), True) in plain
    assert (frozenset([3, 5]), frozenset([5]), True) in plain
    assert (frozenset([5]), frozenset(), False) in plain
    assert len(set(many_subsets(atoms, 2, 0, Random(1)))) == 4
    many = list(many_subsets([Atom(n, True) for n in range(5)], 2, 7, Random(1)))
    assert len(many) == 2 * 10 + 5 + 7


def test_command_prints_figures_and_tells_by_its_exit_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    vote = ["--quick", "--scenario", "vote (quorum-state)"]
    assert main([*vote, "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["violations"] == 0
    assert figures["states"] == sum(each["states"] for each in figures["scenarios"])
    assert main([*vote, "--without", "fsync"]) == 1
    with pytest.raises(SystemExit):
        main(["--scenario", "none"])


def test_campaign_proves_that_each_safeguard_is_seen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crash_points, "SCENARIOS", [SCENARIOS[0], *SCENARIOS[-4:]])
    monkeypatch.setattr(crash_points, "run_all", lambda size_bytes, stride: [])
    assert main(["--quick", "--states", "20"]) == 0
    assert capsys.readouterr().out.count("violations found") == len(SAFEGUARDS)
    monkeypatch.setattr(crash_points, "_WEAKENED_SCENARIOS", ())
    assert main(["--quick", "--states", "20"]) == 1
