"""`python -m mutants.random --seed S --count N`: draw mutants, and see which of them live.

Each runs against the cheapest tests that execute its line, then against seeds of the simulators.
Exit code 0 when every mutant that is executed is dead or equivalent, 1 when one lives, 2 for wrong
arguments.
"""

import json
import multiprocessing
import os
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from mutants.catalogue import StaleMutant, load_all
from mutants.random import coverage_map, fork_server, report
from mutants.random.campaign import Bounds, Campaign, Outcome
from mutants.random.candidates import Candidate, of_catalogue, of_drawn, source_of
from mutants.random.drawing import all_mutants, draw, equivalents, is_within, package_of

__all__ = ["main"]

_BOUNDS = Bounds()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign."""
    options = _options(arguments)
    console = Console(stderr=options.json, width=None if sys.stdout.isatty() else 200)

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
        console.file.flush()

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # so that the copies are deleted
    fork_server.preload()
    if not options.no_map:
        coverage_map.build(say, options.map_only or ())
    if options.map_only is not None:
        return 0
    if options.unexecuted:
        _list_unexecuted(options, say)
        return 0
    chosen = _chosen(options)
    kept = _kept(options.record)
    outcomes: dict[str, Outcome] = {one.id: kept[one.id] for one in chosen if one.id in kept}
    for outcome in _run_all(_left(chosen, outcomes, options.again), options):
        outcomes[outcome.id] = outcome
        say(report.line(outcome))
        if options.record:
            with options.record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(outcome.to_json()) + "\n")
    _tell(console, [outcomes[one.id] for one in chosen], chosen, options)
    return int(any(one.state == "survived" for one in outcomes.values()))


def _options(arguments: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser(prog="python -m mutants.random", description=__doc__)
    add = parser.add_argument
    add("--seed", type=int, default=1)
    add("--count", type=int, default=100)
    add("--packages", default="", help="as cli,broker/producing; all but sim, a judge itself")
    add("--judges", default="tests,sim", help="tests, sim or both")
    add("--catalogue", action="store_true", help="the mutants of the catalogue, not random ones")
    add("--only", action="append", default=[], metavar="ID", help="repeatable; prints the change")
    add("--tests-s", type=float, default=_BOUNDS.tests_s, help="seconds of tests for one mutant")
    add("--tests", type=int, default=_BOUNDS.tests, help="tests for one mutant")
    add("--quorum-seeds", type=int, default=_BOUNDS.quorum_seeds)
    add("--cluster-seeds", type=int, default=_BOUNDS.cluster_seeds)
    add("--jobs", type=int, default=1)
    add("--record", type=Path, help="keeps JSON lines; the same command continues a stopped run")
    add("--again", action="store_true", help="run those of the record again that live")
    add("--no-map", action="store_true", help="take the coverage map as it is")
    add("--map-only", nargs="*", metavar="PREFIX", help="make the coverage map, of some files")
    add("--unexecuted", action="store_true", help="only list the lines that no test and seed run")
    add("--json", action="store_true", help="figures as one JSON object")
    options = parser.parse_args(arguments)
    if options.jobs < 1 or options.count < 1:
        parser.error("--jobs and --count are at least 1")
    if not set(options.judges.split(",")) <= {"tests", "sim"}:
        parser.error("--judges are tests, sim or both")
    return options


def _list_unexecuted(options: Namespace, say: Callable[[str], None]) -> None:
    """Print place, function and first line of each block in which any bug would live."""
    paths = [one for one in coverage_map.product_files() if is_within(one, _packages(options))]
    sources = {one: source_of(one) for one in paths}
    for block in coverage_map.CoverageMap().unexecuted(sources):
        line = sources[block.path].splitlines()[block.first - 1].strip()
        say(f"{block.path}:{block.first} {block.function}: {line}")


def _packages(options: Namespace) -> set[str]:
    return {one for one in options.packages.split(",") if one}


def _chosen(options: Namespace) -> list[Candidate]:
    packages = _packages(options)
    wanted = {one for each in options.only for one in each.split(",")}
    if options.catalogue:
        found = list(_catalogue())
        found = [one for one in found if all(is_within(path, packages) for path in one.sources)]
    else:
        paths = [one for one in coverage_map.product_files() if package_of(one) != "sim"]
        reasons = equivalents()
        sources = {one: source_of(one) for one in paths}
        drawn = (
            [one for one in all_mutants(sources) if one.id in wanted]
            if wanted
            else draw(sources, options.seed, options.count, packages)
        )
        found = [of_drawn(one, reasons.get(one.key, "")) for one in drawn]
    found = [one for one in found if not wanted or one.id in wanted]
    return sorted(found, key=lambda one: one.id)  # the first half is as the whole


def _catalogue() -> Iterator[Candidate]:
    for mutant in load_all():
        try:
            yield of_catalogue(mutant)
        except StaleMutant as error:
            print(error, file=sys.stderr)


def _kept(record: Path | None) -> dict[str, Outcome]:
    if record is None or not record.exists():
        return {}
    lines = record.read_text(encoding="utf-8").splitlines()
    return {one.id: one for one in (Outcome(**json.loads(text)) for text in lines)}


def _left(
    chosen: Sequence[Candidate], outcomes: Mapping[str, Outcome], again: bool
) -> list[Candidate]:
    """Return those that were not run, or are to be run once more."""
    lived = {one.id for one in outcomes.values() if one.state in ("survived", "not executed")}
    explained = {one.id for one in outcomes.values() if one.state == "equivalent"}
    return [
        one
        for one in chosen
        if one.id not in outcomes
        or (again and one.id in lived)
        or (bool(one.reason) != (one.id in explained))
    ]


def _run_all(todo: Sequence[Candidate], options: Namespace) -> Iterator[Outcome]:
    known = coverage_map.CoverageMap()
    bounds = replace(
        _BOUNDS,
        tests_s=options.tests_s,
        tests=options.tests,
        quorum_seeds=options.quorum_seeds,
        cluster_seeds=options.cluster_seeds,
        judges=tuple(options.judges.split(",")),
    )
    campaigns = [Campaign(known, bounds) for _ in range(min(options.jobs, len(todo)))]
    try:
        if len(campaigns) <= 1:
            yield from (campaigns[0].run(one) for one in todo)
        else:
            yield from _in_parallel(campaigns, todo)
    finally:
        for campaign in campaigns:
            campaign.close()


_mine: list[Campaign] = []
"""In a worker: its campaign."""


def _in_parallel(campaigns: Sequence[Campaign], todo: Sequence[Candidate]) -> Iterator[Outcome]:
    context = multiprocessing.get_context("fork")
    free = context.SimpleQueue()
    for number in range(len(campaigns)):
        free.put(number)

    with ProcessPoolExecutor(
        len(campaigns), context, lambda: _mine.append(campaigns[free.get()])
    ) as workers:
        for future in as_completed([workers.submit(_run_mine, one) for one in todo]):
            yield future.result()


def _run_mine(mutant: Candidate) -> Outcome:
    return _mine[0].run(mutant)


def _tell(
    console: Console, outcomes: list[Outcome], chosen: Sequence[Candidate], options: Namespace
) -> None:
    if options.json:
        print(json.dumps([one.to_json() for one in outcomes]))
        return
    console.print(report.mutant_table(outcomes))
    console.print(report.package_table(outcomes))
    for text in report.survivors(outcomes):
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    for mutant in chosen if options.only else ():
        console.print(mutant.diff(), markup=False, highlight=False, soft_wrap=True)


def _hash_alike() -> None:
    """Begin again where sets and dicts of texts would not have the same order in every run."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "mutants.random", *sys.argv[1:]])


if __name__ == "__main__":
    _hash_alike()
    sys.exit(main())
