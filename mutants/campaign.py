"""Running the catalogue: each mutant in an overlay, each kill proven not to be the check's fault.

A mutant is killed when its check fails as expected *and* the very same seed, scenario or test
passes on the code without it. Everything else (survived, stale, out of time, a broken harness, a
check that fails anyway) is a failure of the campaign.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Lock

from mutants.catalogue import Check, Mutant, StaleMutant, mutated
from mutants.overlay import CHECKOUT, Overlay

__all__ = ["Result", "probe_in", "run_all"]

KILLED = "killed"
BASELINE_BUDGET_S = 600
_PARSING = Lock()
"""CPython 3.11 before 3.11.8 counts the depth of two threads' syntax trees together (gh-106905)."""


@dataclass(slots=True)
class Result:
    """What became of one mutant."""

    mutant: Mutant
    state: str
    """`killed`, `survived`, `stale`, `timeout`, `broken` or `unsound`."""
    by: str = ""
    needed: int = 0
    unit: str = ""
    seconds: float = 0.0
    replay: Check | None = None

    @property
    def is_killed(self) -> bool:
        """Whether the mutant is dead."""
        return self.state == KILLED

    def figures(self) -> dict[str, object]:
        """Return what `--json` prints of it."""
        mutant = self.mutant
        return {
            "id": mutant.id,
            "title": mutant.title,
            "mirrors": mutant.mirrors,
            "area": mutant.area,
            "modules": list(mutant.modules),
            "state": self.state,
            "by": self.by,
            "needed": self.needed,
            "unit": self.unit,
            "seconds": round(self.seconds, 1),
            "replay": asdict(self.replay) if self.replay is not None else None,
        }


class _Overlays:
    """As many copies as there are mutants at a time."""

    def __init__(self, count: int) -> None:
        self.all = [Overlay() for _ in range(count)]
        self._free: SimpleQueue[Overlay] = SimpleQueue()
        for overlay in self.all:
            self._free.put(overlay)

    @contextmanager
    def one(self) -> Iterator[Overlay]:
        """Lend a copy."""
        overlay = self._free.get()
        try:
            yield overlay
        finally:
            self._free.put(overlay)


def run_all(
    mutants: Sequence[Mutant], jobs: int, on_result: Callable[[Result], None]
) -> list[Result]:
    """Run mutants, `jobs` at a time, then their checks without them; in the order given."""
    overlays = _Overlays(max(1, min(jobs, len(mutants))))
    try:
        with ThreadPoolExecutor(jobs) as workers:
            futures = {workers.submit(_run, one, overlays): one.id for one in mutants}
            found: dict[str, Result] = {}
            for future in as_completed(futures):
                result = future.result()
                found[result.mutant.id] = result
                on_result(result)
            results = [found[one.id] for one in mutants]
            unsound = workers.map(lambda check: _fails_anyway(check, overlays), _merged(results))
            failing = [reason for reason in unsound if reason]
        if failing:
            _find_unsound(results, overlays)
        return results
    finally:
        for overlay in overlays.all:
            overlay.remove()


def _run(mutant: Mutant, overlays: _Overlays) -> Result:
    started = time.monotonic()
    try:
        with _PARSING:
            sources = mutated(mutant, CHECKOUT)
    except (StaleMutant, SyntaxError) as error:
        return Result(mutant, "stale", str(error))
    with overlays.one() as overlay, overlay.changed(sources):
        result = _judged(mutant, probe_in(overlay, mutant.check, mutant.budget_s))
    result.seconds = time.monotonic() - started
    return result


def _judged(mutant: Mutant, outcome: "dict[str, object] | str") -> Result:
    """Turn a verdict into a result; a text says why there is no verdict."""
    if isinstance(outcome, str):
        return Result(mutant, "timeout" if outcome == "timeout" else "broken", outcome)
    needed = outcome["needed"]
    assert isinstance(needed, int), outcome
    result = Result(mutant, "survived", needed=needed, unit=str(outcome["unit"]))
    replay = outcome["replay"]
    if outcome["failed"] and isinstance(replay, dict):
        result.state, result.by = KILLED, str(outcome["failed"])
        result.replay = Check.of(replay)
    elif outcome["unexpected"]:
        result.by = f"not what is expected: {outcome['unexpected']}"
    return result


def probe_in(overlay: Overlay, check: Check, budget_s: float) -> "dict[str, object] | str":
    """Run a check in an overlay; its verdict, or why there is none."""
    with TemporaryDirectory() as scratch:
        given, wanted = Path(scratch, "check.json"), Path(scratch, "verdict.json")
        given.write_text(json.dumps(asdict(check)), encoding="utf-8")
        code, output = overlay.run(["mutants.probe", str(given), str(wanted)], budget_s)
        if code is None:
            return "timeout"
        if code != 0 or not wanted.exists():
            lines = output.strip().splitlines() or ["no output"]
            return f"exit code {code}: {lines[-1]}"
        verdict = json.loads(wanted.read_text(encoding="utf-8"))
        assert isinstance(verdict, dict), verdict
        return verdict


def _merged(results: Sequence[Result]) -> list[Check]:
    """Return the checks that killed, few enough to be run once each without any mutant."""
    tests: list[str] = []
    seeds: dict[tuple[str, bool, int], list[int]] = {}
    others: list[Check] = []
    for result in results:
        check = result.replay
        if check is None:
            continue
        if check.verb == "test":
            tests += [name for name in check.names if name not in tests]
        elif check.verb in ("sim", "node", "cluster"):
            known = seeds.setdefault((check.verb, check.storm, check.events), [])
            known += [seed for seed in check.seeds if seed not in known]
        elif replace(check, expect=()) not in others:
            others.append(replace(check, expect=()))
    merged = [Check("test", names=tuple(tests))] if tests else []
    merged += [
        Check(verb, seeds=tuple(each), storm=storm, events=events)
        for (verb, storm, events), each in seeds.items()
    ]
    return merged + others


def _fails_anyway(check: Check, overlays: _Overlays) -> str:
    """Run a check on the code as it is; why it proves nothing, empty where it passes."""
    with overlays.one() as overlay:
        outcome = probe_in(overlay, check, BASELINE_BUDGET_S)
    if isinstance(outcome, str):
        return outcome
    return str(outcome["failed"] or outcome["unexpected"])


def _find_unsound(results: Sequence[Result], overlays: _Overlays) -> None:
    """Some check fails without a mutant: find out which kills are no kills."""
    for result in results:
        if result.replay is not None:
            reason = _fails_anyway(replace(result.replay, expect=()), overlays)
            if reason:
                result.state, result.by = "unsound", f"fails without the mutant: {reason}"
