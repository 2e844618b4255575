"""The catalogue is in its form, and its mutants apply to the code as it is."""

import pytest

from kraft_wire.conformance.case import all_cases
from kraft_wire.sim.crash.points import SCENARIOS
from mutants.catalogue import Mutant, load_all, mutated
from tests.tidiness import CHECKOUT

MUTANTS = load_all()


def test_catalogue_is_as_large_as_promised() -> None:
    assert len(MUTANTS) >= 70
    assert sum("KAFKA-" in one.mirrors or "CVE-" in one.mirrors for one in MUTANTS) >= 36


def test_file_is_named_for_the_whole_title() -> None:
    names = [(one.path, one.path.with_name(one.file_name)) for one in MUTANTS]
    assert [f"git mv {path} {named}" for path, named in names if path != named] == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.id)
def test_mutant_applies_once_and_compiles(mutant: Mutant) -> None:
    for path, source in mutated(mutant, CHECKOUT).items():
        assert source != (CHECKOUT / path).read_text(encoding="utf-8"), path


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.id)
def test_what_must_kill_a_mutant_exists(mutant: Mutant) -> None:
    check = mutant.check
    assert check.verb in ("sim", "node", "cluster", "crash", "flips", "conform", "test")
    assert bool(check.seeds) == (check.verb in ("sim", "node", "cluster"))
    assert bool(check.names) != bool(check.seeds)
    if check.verb == "crash":
        assert set(check.names) <= {scenario.name for scenario in SCENARIOS}
    if check.verb == "conform":
        assert set(check.names) <= {each.name for each in all_cases()}
    if check.verb == "test":
        assert all((CHECKOUT / name.split("::")[0]).exists() for name in check.names)
        assert not any("mutants" in name for name in check.names)
