"""The crash campaign: storage passes it, and storage without a safeguard does not."""

import json
from random import Random

import pytest

from kraft_wire.sim.crash import points
from kraft_wire.sim.crash.harness import Outcome
from kraft_wire.sim.crash.moves import MOVE_SCENARIOS
from kraft_wire.sim.crash.points import SAFEGUARDS, main, run_scenario
from kraft_wire.sim.crash.promises import Departed, Promise, QuorumTruth
from kraft_wire.sim.crash.quorum import QuorumScenario, Variant
from kraft_wire.sim.crash.runs import LARGE_SECTOR_BYTES, Pass
from kraft_wire.sim.crash.scenarios import SCENARIOS, Scenario
from kraft_wire.sim.crash.states import Limits, many_subsets, plain_subsets
from kraft_wire.sim.crash.stories import ELECTIONS, QUORUM_SCENARIOS
from kraft_wire.sim.crash.transactions import TRANSACTION_SCENARIOS
from kraft_wire.sim.disk.files import Atom, SimFileSystem

FEW = Limits(exhaustive_atoms=4, random_subsets=12, states_max=120)
FEWER = Limits(exhaustive_atoms=2, random_subsets=2, states_max=60, recovery_every=16)
ALONE = QUORUM_SCENARIOS[-1]


@pytest.mark.parametrize(
    "scenario",
    [*SCENARIOS, *MOVE_SCENARIOS, *TRANSACTION_SCENARIOS],
    ids=lambda scenario: scenario.name,
)
def test_no_crash_state_loses_what_was_acknowledged(scenario: Scenario) -> None:
    report = run_scenario(scenario, FEW)
    assert report.violations == 0, report.examples
    assert report.states > 15


@pytest.mark.parametrize("scenario", QUORUM_SCENARIOS, ids=lambda scenario: scenario.name)
def test_no_crash_state_of_a_quorum_breaks_a_promise(scenario: Scenario) -> None:
    report = run_scenario(scenario, FEWER)
    assert report.violations == 0, report.examples
    assert report.states > 100, "the whole story is played"


@pytest.mark.parametrize("safeguard", SAFEGUARDS)
def test_missing_safeguard_is_noticed_in_a_quorum(safeguard: str) -> None:
    assert run_scenario(ALONE, FEW, without=safeguard).violations > 0


@pytest.mark.parametrize(
    ("promise", "complaint"),
    [
        (Promise(epoch=50), "epoch 1 after 50"),
        (Promise(epoch=1, vote=(1, 3)), "is forgotten"),
        (Promise(end_offset=1_000), "acknowledged up to 1000"),
        (Promise(end_offset=6, end_epoch=9), "is of epoch 1, not 9"),
        (Promise(snapshot_offset=1_000), "the announced snapshot at 1000 is lost"),
    ],
)
def test_judge_of_a_quorum_notices_a_broken_promise(promise: Promise, complaint: str) -> None:
    found: list[str] = []

    class Broken(QuorumScenario):
        def verify(self, fs: SimFileSystem, ledger: object, is_ordered: bool) -> Outcome:
            assert isinstance(ledger, Promise)
            if ledger.end_offset >= 6 and not found:
                found.extend(super().verify(fs, promise, is_ordered).violations)
            return Outcome([])

    story = "until settled\nwrites leader 6"
    run_scenario(Broken("planted", story, [Variant("voters=1", 1)]), FEWER)
    assert any(complaint in text for text in found), found


def test_truth_of_a_story_is_told_over_disks_with_the_same_sectors() -> None:
    """In this variant power is lost over three small sectors or two large ones: two stories."""
    large = [Pass(LARGE_SECTOR_BYTES, FEWER.states_max * 10)]
    elections = QuorumScenario("elections", ELECTIONS, [Variant("voters=1,2,3 seed=20", 3)])
    report = run_scenario(elections, FEWER, passes=large)
    assert report.violations == 0, report.examples
    assert report.states > 60


def test_equal_disks_of_two_clusters_are_two_second_starts() -> None:
    """A static quorum's voters are in no file."""
    clusters = [Variant("voters=1,2,3", 1), Variant("voters=1,2,3,4,5", 1)]
    report = run_scenario(QuorumScenario("two clusters", "until settled", clusters), FEWER)
    assert report.violations == 0, report.examples


def test_story_is_not_judged_by_the_truth_of_another() -> None:
    class Mistaken(QuorumScenario):
        def _true_story(self, variant: Variant, sector_bytes: int) -> QuorumTruth:
            return super()._true_story(Variant("voters=1 seed=2", 1), sector_bytes)

    story = "until settled\nwrites leader 3\nkill 1\nrestart 1\nuntil settled"
    with pytest.raises(Departed, match="appends"):
        run_scenario(Mistaken("another", story, [Variant("voters=1 seed=1", 1)]), FEWER)


@pytest.mark.parametrize("safeguard", SAFEGUARDS)
def test_missing_safeguard_is_noticed(safeguard: str) -> None:
    found = (run_scenario(scenario, FEW, without=safeguard) for scenario in SCENARIOS[-4:])
    assert any(report.violations for report in found)


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
    monkeypatch.setattr(points, "SCENARIOS", [SCENARIOS[0], *SCENARIOS[-4:], ALONE])
    monkeypatch.setattr(points, "run_all", lambda size_bytes, stride: [])
    assert main(["--quick", "--states", "20"]) == 0
    assert capsys.readouterr().out.count("violations found in storage") == len(SAFEGUARDS)
    monkeypatch.setattr(points, "_WEAKENED_SCENARIOS", ())
    assert main(["--quick", "--states", "20"]) == 1
