"""`python -m mutants.probe CHECK.json VERDICT.json`: run one check in this working directory.

Run by `campaign` inside an overlay. The verdict names what failed first, and how many seeds, states
or tests it took; `replay` is the very check that failed, so that it can be run without the mutant.
An error of the harness (nothing could be imported or collected) is no verdict: exit code 2.
"""

import json
import os
import sys
import traceback
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import kraft_wire
from kraft_wire.sim.crash.bit_flip_fixtures import KINDS
from kraft_wire.sim.crash.bit_flips import run_kind
from kraft_wire.sim.crash.points import SCENARIOS, run_scenario
from kraft_wire.sim.crash.states import Limits
from kraft_wire.sim.judge.violation import Violation
from mutants.catalogue import Check

__all__ = ["Verdict", "main", "probe"]

HEALED_MS = 3_000
_FLIPPED_BYTES = 4_096
_FIRST_STATES = 25
_TIMEOUT_S = 60
_HANG_S = 10
"""What a test waits for at most, so that it fails by its own words before its time is over."""


@dataclass(slots=True)
class Verdict:
    """What a check came to."""

    failed: str = ""
    """What failed first; empty: nothing did."""
    needed: int = 0
    unit: str = ""
    replay: Check | None = None
    unexpected: str = ""
    """What failed without being expected; that does not count."""


def probe(check: Check) -> Verdict:
    """Run a check until something expected fails."""
    runs = {
        "sim": _simulated,
        "node": _simulated_nodes,
        "cluster": _simulated_nodes,
        "crash": _crashed,
        "flips": _flipped,
        "conform": _conformed,
        "test": _tested,
    }
    return runs[check.verb](check)


def _counts(check: Check, text: str) -> bool:
    """The model may refuse a step before the invariant that is expected sees what came of it."""
    return not check.expect or any(word in text for word in (*check.expect, "S31"))


def _simulated(check: Check) -> Verdict:
    from tests.raft import swarm  # only here: the other verbs do not need it

    swarm.HEALED_MS = HEALED_MS
    verdict = Verdict(unit="seeds")
    for seed in check.seeds:
        verdict.needed += 1
        failure = ""
        try:
            swarm.Day(seed, check.events, storm=check.storm).run()
        except Exception as error:  # noqa: BLE001  # every kind of failure is a finding
            failure = _named(error)
        if failure and _counts(check, failure):
            verdict.failed = failure
            verdict.replay = replace(check, seeds=(seed,))
            return verdict
        verdict.unexpected = verdict.unexpected or failure
    return verdict


def _simulated_nodes(check: Check) -> Verdict:
    """Whole nodes over simulated disks and wires: the same seeds as `kraft-wire sim`.

    Of quorums, or of clusters with brokers, as with `--brokers 0`.
    """
    from kraft_wire.sim.runs.campaign import drawn  # likewise
    from kraft_wire.sim.runs.run import run_plan

    brokers = 0 if check.verb == "cluster" else None
    verdict = Verdict(unit="seeds")
    for seed in check.seeds:
        verdict.needed += 1
        try:
            plan = drawn(seed, events=check.events, nodes=None, brokers=brokers, focus=check.focus)
            failure = run_plan(plan).failure
            text = "" if failure is None else f"{failure.invariant} {failure.text}"
        except Exception as error:  # noqa: BLE001  # every kind of failure is a finding
            text = _named(error)
        if text and _counts(check, text):
            verdict.failed = " ".join(text.split())[:70]
            verdict.replay = replace(check, seeds=(seed,))
            return verdict
        verdict.unexpected = verdict.unexpected or text
    return verdict


def _named(error: Exception) -> str:
    """Name an invariant by its id, an assert of the product by its place, others by their type."""
    from tests.raft.invariants import Broken

    if isinstance(error, (Broken, Violation)):
        return " ".join(str(error).split("(")[0].split())[:60]
    last = traceback.extract_tb(error.__traceback__)[-1]
    kind = "assert" if isinstance(error, AssertionError) else type(error).__name__
    if kind == "assert" and str(error).startswith("S24"):
        return "S24 NoBusyLoop"
    return f"{kind} in {Path(last.filename).stem}.{last.name}"


def _crashed(check: Check) -> Verdict:
    verdict = Verdict(unit="states")
    chosen = [one for one in SCENARIOS if one.name in check.names]
    if len(chosen) != len(check.names):
        raise LookupError(f"no such crash scenario among {check.names}")
    states = min(_FIRST_STATES, check.states)
    while True:
        limits = Limits(exhaustive_atoms=6, random_subsets=32, states_max=states)
        for scenario in chosen:
            try:
                report = run_scenario(scenario, limits)
                verdict.needed += report.states
                examples = report.examples
            except Exception as error:  # noqa: BLE001  # the scenario itself came to a halt
                examples = [_named(error)]
            for text in examples:
                if _counts(check, text):
                    verdict.failed = f"{scenario.name}: {text}"[:70]
                    verdict.replay = replace(check, names=(scenario.name,), states=states)
                    return verdict
                verdict.unexpected = verdict.unexpected or text
        if states >= check.states:
            return verdict
        states = min(states * 4, check.states)


def _flipped(check: Check) -> Verdict:
    verdict = Verdict(unit="damages")
    chosen = [one for one in KINDS if one.name in check.names]
    if len(chosen) != len(check.names):
        raise LookupError(f"no such kind of file among {check.names}")
    for kind in chosen:
        report = run_kind(kind, size_bytes=_FLIPPED_BYTES, stride=check.states)
        verdict.needed += report.flips + report.others
        if report.violations:
            verdict.failed = f"{kind.name}: {report.example}"[:70]
            verdict.replay = replace(check, names=(kind.name,))
            break
    return verdict


def _conformed(check: Check) -> Verdict:
    """Judge a node of ours from the wire: cases by name, or all of them where none is named."""
    os.environ["KRAFT_WIRE_HANG_S"] = str(_HANG_S)
    from tests.conformance.judged_nodes import our_node, until_one_fails  # likewise

    with TemporaryDirectory() as scratch, our_node(Path(scratch)) as node:
        failed, needed = until_one_fails(node, check.names)
    verdict = Verdict(failed=failed, needed=needed, unit="rows")
    if failed:
        verdict.replay = replace(check, names=(failed,))
    return verdict


class _Listener:
    """Counts tests, and keeps the first that failed."""

    def __init__(self) -> None:
        self.done = 0
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take one phase of one test."""
        self.done += report.when == "call" or report.failed
        if report.failed and not self.failed:
            self.failed = report.nodeid


def _tested(check: Check) -> Verdict:
    os.environ["KRAFT_WIRE_HANG_S"] = str(_HANG_S)
    listener = _Listener()
    options = ["-x", "-q", "-p", "no:randomly", "--tb=short", f"--timeout={_TIMEOUT_S}"]
    code = pytest.main([*options, *check.names], plugins=[listener])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest ended with {code!r}")
    if code == pytest.ExitCode.TESTS_FAILED and not listener.failed:
        raise RuntimeError("nothing was run")
    verdict = Verdict(needed=listener.done, unit="tests")
    if listener.failed:
        verdict.failed = listener.failed.split("[")[0].removeprefix("tests/")
        verdict.replay = replace(check, names=(listener.failed,))
    return verdict


def main(arguments: list[str]) -> int:
    """Read the check, write the verdict."""
    assert str(Path.cwd()) in str(kraft_wire.__file__), "the package is not the overlay's"
    given, wanted = (Path(one) for one in arguments)
    verdict = probe(Check.of(json.loads(given.read_text(encoding="utf-8"))))
    wanted.write_text(json.dumps(asdict(verdict)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Exception:  # noqa: BLE001  # the harness failed, which kills nothing
        traceback.print_exc()
        sys.exit(2)
