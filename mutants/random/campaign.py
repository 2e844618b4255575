"""One mutant after another: the tests that cover it, then the seeds, and what came of it.

Before all that, the rule about names of arguments, which needs no run.

A mutant is killed when a test or a seed fails that passes on the code as it is: a test is run there
once more, alone; of a seed the map knows it. A test that fails there too judges nothing any more.
"""

import ast
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from itertools import chain, zip_longest

from mutants.overlay import Overlay
from mutants.random.candidates import Candidate, covering, source_of
from mutants.random.coverage_map import CoverageMap, Judge, product_files
from mutants.random.fork_server import Answer, forked
from mutants.random.judges import run_seeds, run_tests
from tests.argument_names import Signatures, misplaced

__all__ = ["Bounds", "Campaign", "Outcome"]

_SLOWER = 4
_IMPORT = "import"
_NAMES_RULE = "tests/test_argument_names.py"
_FEW_S, _FEW_FILES = 5.0, 4
_OF_QUORUMS = ("membership", "odd-quorum")
_OF_CLUSTERS = (
    *("transactions", "groups", "eligible-replicas", "directories", "odd-cluster"),
    "tools",
)
"""Kinds of seeds with a focus: half as many run."""
_START_S = 60
"""What a child may take more than its tests take without a mutant."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may be run against one mutant."""

    tests_s: float = 60.0
    tests: int = 400
    files: int = 40
    quorum_seeds: int = 30
    cluster_seeds: int = 10
    judges: tuple[str, ...] = ("tests", "sim")
    hang_s: float = 10.0
    """What a test may take in any case."""


@dataclass(slots=True)
class Outcome:
    """What became of one mutant."""

    id: str
    package: str
    place: str
    operator: str
    old: str
    new: str
    state: str = "survived"
    """`equivalent`, `not executed`, `tests`, `simulator`, `timeout` or `survived`."""
    by: str = ""
    why: str = ""
    covering_tests: int = 0
    covering_seeds: int = 0
    tests_run: int = 0
    seeds_run: int = 0
    seeds_differ: int = 0
    """Seeds whose trace is another one than without the mutant, although nobody objects."""
    seconds: float = 0.0
    closest: list[str] = field(default_factory=list)
    """The tests that are most about its line."""

    def to_json(self) -> dict[str, object]:
        """Return what a record keeps."""
        return asdict(self)


class Campaign:
    """A copy for mutants, a copy of the code as it is, and the map."""

    def __init__(self, known: CoverageMap, bounds: Bounds) -> None:
        self._known, self._bounds = known, bounds
        self._spoilt, self._sound = Overlay(), Overlay()
        for overlay in (self._spoilt, self._sound):
            overlay.compile()
        self._is_sound: dict[str, bool] = {}
        """Whether a test passes alone on the code as it is."""

    def close(self) -> None:
        """Delete the copies."""
        self._spoilt.remove()
        self._sound.remove()

    def run(self, mutant: Candidate) -> Outcome:
        """Run one mutant until something kills it."""
        started = time.monotonic()
        found = Outcome(
            mutant.id, mutant.package, mutant.place, mutant.operator, mutant.old, mutant.new
        )
        if mutant.reason:
            found.state, found.why = "equivalent", mutant.reason
            return found
        judges = covering(mutant, self._known)
        tests = [one for one in judges if not one.is_seed and "tests" in self._bounds.judges]
        seeds = [one for one in judges if one.is_seed and "sim" in self._bounds.judges]
        found.covering_tests, found.covering_seeds = len(tests), len(seeds)
        found.closest = [one.name for one in sorted(tests, key=lambda one: one.breadth)[:3]]
        if not tests and not seeds:
            found.state = "not executed"
        if "tests" in self._bounds.judges and _is_misnamed(found, mutant):
            return found
        with self._spoilt.changed(mutant.sources):
            self._ask_tests(found, tests)
            if found.state == "survived":
                self._ask_seeds(found, seeds)
        found.seconds = round(time.monotonic() - started, 1)
        return found

    def _ask_tests(self, found: Outcome, tests: Sequence[Judge]) -> None:
        """Run a few tests of few files, which kill most, then the others."""
        few = replace(self._bounds, tests_s=min(_FEW_S, self._bounds.tests_s), files=_FEW_FILES)
        asked: set[str] = set()
        for bounds in (few, self._bounds):
            while found.state == "survived":
                left = [one for one in tests if one.name not in asked and self._judges(one)]
                chosen = chosen_tests(left, bounds)
                answer = self._run_tests(self._spoilt, chosen)
                found.tests_run += sum("test" in line for line in answer.lines)
                _judge(found, answer, "tests")
                if found.state == "survived":
                    asked |= {one.name for one in chosen}
                    break
                culprit = next((one for one in chosen if one.name == found.by), chosen[0])
                if not self._passes_alone(culprit):
                    found.state, found.by, found.why = "survived", "", ""

    def _judges(self, test: Judge) -> bool:
        return self._is_sound.get(test.name, True)

    def _run_tests(self, overlay: Overlay, chosen: Sequence[Judge]) -> Answer:
        if not chosen:
            return Answer([], "done", "")
        files = list(dict.fromkeys(one.name.split("::")[0] for one in chosen))
        wanted = {one.name: one.seconds for one in chosen}
        work = partial(run_tests, files=files, wanted=wanted, hang_s=self._bounds.hang_s)
        budget_s = _START_S + _SLOWER * sum(wanted.values())
        return forked(work, overlay.root, budget_s)

    def _passes_alone(self, test: Judge) -> bool:
        if test.name not in self._is_sound:
            answer = self._run_tests(self._sound, [test])
            outcomes = [line["outcome"] for line in answer.lines if "test" in line]
            self._is_sound[test.name] = outcomes == ["passed"]
        return self._is_sound[test.name]

    def _ask_seeds(self, found: Outcome, seeds: Sequence[Judge]) -> None:
        chosen = chosen_seeds(seeds, self._bounds)
        if not chosen:
            return
        rows = [(kind, int(seed)) for kind, seed in (one.name.split(":") for one in chosen)]
        budget_s = _START_S + _SLOWER * sum(one.seconds for one in chosen)
        answer = forked(partial(run_seeds, seeds=rows), self._spoilt.root, budget_s)
        ran = [line for line in answer.lines if "test" in line]
        traces = {one.name: one.trace for one in chosen}
        found.seeds_run = len(ran)
        found.seeds_differ = sum(line.get("trace") != traces[str(line["test"])] for line in ran)
        _judge(found, answer, "simulator")


@cache
def _signatures() -> Signatures:
    return Signatures.of(ast.parse(source_of(path)) for path in product_files())


def _is_misnamed(found: Outcome, mutant: Candidate) -> bool:
    """Return whether an argument is passed to a parameter that is named otherwise only now."""
    for path, text in mutant.sources.items():
        before, now = (
            {str(one) for one in misplaced(ast.parse(each), _signatures())}
            for each in (source_of(path), text)
        )
        if not now <= before:
            found.state, found.by, found.why = "tests", _NAMES_RULE, min(now - before)
            return True
    return False


def _judge(found: Outcome, answer: Answer, judge: str) -> None:
    """Read what a child told; one that could not go on was killed as by a test that fails."""
    failed = next((line for line in answer.lines if line.get("outcome") == "failed"), None)
    began = [str(line["began"]) for line in answer.lines if "began" in line]
    ended = next((line["ended"] for line in answer.lines if "ended" in line), None)
    if failed is not None:
        found.by, found.why = str(failed["test"]), " ".join(str(failed["why"]).split())
        found.state = "timeout" if "Timeout (>" in found.why else judge
    elif answer.state == "timeout":
        found.state, found.by = "timeout", began[-1] if began else _IMPORT
    elif answer.state == "broken" or ended not in (None, 0):
        found.state, found.by, found.why = judge, began[-1] if began else _IMPORT, _end_of(answer)


def _end_of(answer: Answer) -> str:
    return " ".join(answer.output.split())[-300:]


def chosen_tests(tests: Sequence[Judge], bounds: Bounds) -> list[Judge]:
    """Choose the closest and the cheapest tests in turns, of many files; file by file.

    The result is in the order in which they run: the cheapest file first.
    """
    closest = sorted(tests, key=lambda one: (one.breadth, one.seconds, one.name))
    cheapest = _by_turns(sorted(tests, key=lambda one: (one.seconds, one.name)))
    chosen: dict[str, list[Judge]] = {}
    seconds, count, seen = 0.0, 0, set()
    for one in chain.from_iterable(zip_longest(closest, cheapest)):
        assert one is not None
        file = one.name.split("::")[0]
        if one.name in seen or (file not in chosen and len(chosen) >= bounds.files):
            continue
        if count >= bounds.tests or (count and seconds + one.seconds > bounds.tests_s):
            continue
        seen.add(one.name)
        chosen.setdefault(file, []).append(one)
        seconds, count = seconds + one.seconds, count + 1
    files = sorted(chosen.values(), key=lambda each: sum(one.seconds for one in each))
    return [one for each in files for one in each]


def _by_turns(tests: Sequence[Judge]) -> list[Judge]:
    """Return the first of every file, then the second of every file, and so on."""
    files: dict[str, list[Judge]] = {}
    for one in tests:
        files.setdefault(one.name.split("::")[0], []).append(one)
    return [one for row in zip_longest(*files.values()) for one in row if one is not None]


def chosen_seeds(seeds: Sequence[Judge], bounds: Bounds) -> list[Judge]:
    """Choose seeds of each kind: half the cheapest, half those that reach most of the product."""
    counts = {
        "quorum": bounds.quorum_seeds,
        **dict.fromkeys(_OF_QUORUMS, bounds.quorum_seeds // 2),
        "cluster": bounds.cluster_seeds,
        **dict.fromkeys(_OF_CLUSTERS, bounds.cluster_seeds // 2),
    }
    found = []
    for kind, count in counts.items():
        of_kind = [one for one in seeds if one.name.startswith(f"{kind}:")]
        cheapest = sorted(of_kind, key=lambda one: (one.seconds, one.name))
        broadest = sorted(of_kind, key=lambda one: (-one.breadth, one.name))
        turns = chain.from_iterable(zip(cheapest, broadest, strict=True))
        found.append(list(dict.fromkeys(turns))[:count])
    quorums, *others = found
    rows = zip_longest(*(quorums[place::2] for place in range(2)), *others)
    return [one for row in rows for one in row if one is not None]
