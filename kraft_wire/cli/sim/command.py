"""`kraft-wire sim`: runs seeds on a simulated cluster, and shows what broke.

One seed or a range of them, a plan file of an earlier failure, or a story. A violation is shown
with its seed, the shortest plan that still fails, and the command that replays it. Exit codes: 0
every invariant held, 1 a violation, 2 could not run.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from kraft_wire.cli.sim.campaign_record import CampaignRecord, OtherCampaign
from kraft_wire.cli.sim.options import (
    BrokersOption,
    CanaryOption,
    EventsOption,
    FocusOption,
    ModelOption,
    NodesOption,
)
from kraft_wire.cli.sim.seeds import CannotRun, check_focus, seed_range
from kraft_wire.cli.sim.totals import counted, show_totals
from kraft_wire.cli.system_refusals import system_refusal
from kraft_wire.cli.tables import new_table, print_table
from kraft_wire.sim.judge.invariants import Canary, kinds_of
from kraft_wire.sim.judge.judge import Signals
from kraft_wire.sim.judge.model.invariant import EveryStepIsInModel
from kraft_wire.sim.plans.plan import Plan, plan_from_json, plan_to_json
from kraft_wire.sim.runs.campaign import Totals, drawn, results_of
from kraft_wire.sim.runs.page import page_of
from kraft_wire.sim.runs.run import Failure, Result, Run, run_plan
from kraft_wire.sim.runs.script import StoryError
from kraft_wire.sim.runs.shrink import Shrunk, shrink
from kraft_wire.sim.runs.story import Story
from kraft_wire.sim.world import World

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_VIOLATION: Final = 1
_COULD_NOT_RUN: Final = 2
_LINE_EVERY_S: Final = 60
"""Interval of progress lines without a terminal."""


_Kinds: TypeAlias = tuple[type[Signals], ...]


@dataclass(frozen=True, slots=True)
class _Campaign:
    """Which seeds to run, and how."""

    seeds: range
    events: int
    nodes: int | None
    brokers: int | None
    canary: bool
    model: bool
    jobs: int
    record: Path | None
    focus: str | None


SeedOption = Annotated[int | None, typer.Option(metavar="N", help="Run one seed.")]
SeedsOption = Annotated[str | None, typer.Option(metavar="A:B", help="Run seeds A to B-1.")]
ScriptOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Run a scenario (.txt) or the plan of a failure (.json)."),
]
TraceOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the events of one run as JSON lines.")
]
HtmlOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write an HTML page of one run.")
]
JobsOption = Annotated[
    int, typer.Option(min=0, metavar="N", help="Number of processes; 0: one per core.")
]
RecordOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Record results, and skip seeds already recorded."),
]
AsJsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command()
def sim(
    seed: SeedOption = None,
    seeds: SeedsOption = None,
    nodes: NodesOption = None,
    brokers: BrokersOption = None,
    focus: FocusOption = None,
    events: EventsOption = 2_000,
    script: ScriptOption = None,
    trace: TraceOption = None,
    html: HtmlOption = None,
    jobs: JobsOption = 0,
    record: RecordOption = None,
    canary: CanaryOption = False,
    model: ModelOption = False,
    as_json: AsJsonOption = False,
) -> None:
    """Run simulated clusters under faults and check invariants after every event."""
    errors = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
    try:
        check_focus(focus, brokers)
        if seeds is not None:
            _check_no_run_of_one(seed, script, trace, html)
            run, jobs = seed_range(seeds), jobs or os.cpu_count() or 1
            many = _Campaign(run, events, nodes, brokers, canary, model, jobs, record, focus)
            is_good = _many(many, as_json)
        elif script is not None and script.suffix != ".json":
            is_good = _story(script, trace, html)
        else:
            plan = _plan(script, seed, nodes, brokers, events, focus)
            kinds = kinds_of(canary=canary, model=model)
            is_good = _one(plan, kinds, trace, html, as_json, focus)
    except (CannotRun, OtherCampaign, OSError) as error:
        reason = system_refusal(error) if isinstance(error, OSError) else error
        errors.print(f"kraft-wire sim: {reason}", markup=False)
        raise typer.Exit(_COULD_NOT_RUN) from error
    if not is_good:
        raise typer.Exit(_VIOLATION)


def _check_no_run_of_one(*options: int | Path | None) -> None:
    if any(each is not None for each in options):
        raise CannotRun("--seeds excludes --seed, --script, --trace and --html")


def _plan(
    script: Path | None,
    seed: int | None,
    nodes: int | None,
    brokers: int | None,
    events: int,
    focus: str | None,
) -> Plan:
    if script is None:
        return drawn(seed or 0, nodes=nodes, brokers=brokers, events=events, focus=focus)
    if seed is not None:
        raise CannotRun("--script excludes --seed, because the script sets it")
    try:
        return plan_from_json(_text_of(script))
    except ValueError as error:
        raise CannotRun(f"{script}: {error}") from error
    except RecursionError as error:
        raise CannotRun(f"{script}: not a plan: it is nested too deeply") from error


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CannotRun(f"{path}: not a text file ({error.reason})") from error


# -- one run ---------------------------------------------------------------------------------------


def _one(
    plan: Plan,
    kinds: _Kinds,
    trace: Path | None,
    html: Path | None,
    as_json: bool,
    focus: str | None,
) -> bool:
    run = Run(plan, kinds=kinds, keeps_trace=trace is not None or html is not None)
    result = run.result()
    _keep(run.world, result, trace, html)
    totals = Totals()
    totals.add(result, 0.0)
    if as_json:
        print(json.dumps({**totals.to_json(), "trace_hash": result.trace_hash}))
    else:
        _show_run(result)
        if result.failure is not None:
            _show_failure(plan, result.failure, kinds, focus)
    return result.failure is None


def _keep(world: World, result: Result, trace: Path | None, html: Path | None) -> None:
    """Write the requested output of a run or a story."""
    if trace is not None:
        trace.write_text("".join(f"{line}\n" for line in world.trace.lines()), encoding="utf-8")
    if html is not None:
        html.write_text(page_of(world, result), encoding="utf-8")


def _show_run(result: Result) -> None:
    table = new_table("", "")
    table.show_header = False
    table.add_row("seed", str(result.seed))
    table.add_row("events", f"{result.events:,}")
    table.add_row("useful events", f"{result.useful_events:,}")
    table.add_row("virtual time", f"{result.virtual_us / 1e6:.3f} s")
    table.add_row("records committed", f"{result.committed:,}")
    table.add_row("faults", counted(result.faults))
    table.add_row("operations", counted(result.operations))
    table.add_row("invariants asked", f"{sum(result.looked.values()):,}")
    table.add_row("trace hash", result.trace_hash)
    table.add_row("verdict", "every invariant held" if result.failure is None else "VIOLATION")
    print_table(table)


def _show_failure(plan: Plan, failure: Failure, kinds: _Kinds, focus: str | None) -> None:
    """Shrink the plan, write the shortest one to a file, and print the command that replays it."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"\n[bold red]{failure.invariant}[/]", f"after {failure.events:,} events")
    console.print(failure.text, markup=False)
    found = _shrunk(plan, failure, kinds)
    path = Path(f"sim-{plan.seed}-{failure.invariant.split()[0]}.json")
    try:
        path.write_text(plan_to_json(found.plan), encoding="utf-8")
    except OSError as error:
        text = f"{path} cannot be written ({error.strerror}); this is the plan:"
        console.print(text, markup=False)
        print(plan_to_json(found.plan))
    console.print(
        f"\nshortest plan after {found.runs} tries: {found.failure.events:,} events, "
        f"{len(found.plan.setup.nodes)} nodes, {len(found.plan.faults)} faults"
    )
    for fault in found.plan.faults:
        text = f"  {fault.at_us / 1e6:9.4f} s  {fault.kind} {fault.target} {fault.other}"
        console.print(text, markup=False)
    console.print(found.failure.text, markup=False)
    flags = " --canary" if Canary in kinds else ""
    flags += " --model" if EveryStepIsInModel in kinds else ""
    replay = f"kraft-wire sim --script {path}{flags} --html {path.stem}.html"
    console.print(f"\nreplay it:  {replay}", markup=False)
    brokers = f" --brokers {len(plan.setup.brokers)}" if plan.setup.brokers else ""
    about = f" --focus {focus}" if focus is not None else ""
    the_seed = f"--seed {plan.seed} --events {plan.events}{brokers}{about}"
    console.print(f"the seed:   kraft-wire sim {the_seed}{flags}", markup=False)


def _shrunk(plan: Plan, failure: Failure, kinds: _Kinds) -> Shrunk:
    with _progress("shrinking", None) as (progress, task):

        def fails(candidate: Plan) -> Failure | None:
            progress.advance(task)
            return run_plan(candidate, kinds=kinds).failure

        return shrink(plan, failure, fails)


# -- many runs -------------------------------------------------------------------------------------


def _many(campaign: _Campaign, as_json: bool) -> bool:
    """Run many seeds; ^C prints the results so far, and is not a success."""
    totals = Totals()
    try:
        _add_up(campaign, totals)
        is_stopped = False
    except KeyboardInterrupt:
        is_stopped = True
    if as_json:
        print(json.dumps(totals.to_json()))
    else:
        show_totals(totals)
        if totals.failures:
            seed, failure = min(totals.failures, key=lambda one: (one[1].events, one[0]))
            plan = drawn(
                seed,
                nodes=campaign.nodes,
                brokers=campaign.brokers,
                events=campaign.events,
                focus=campaign.focus,
            )
            kinds = kinds_of(canary=campaign.canary, model=campaign.model)
            _show_failure(plan, failure, kinds, campaign.focus)
    if is_stopped and not totals.failures:
        raise CannotRun(f"stopped after {totals.seeds:,} of {len(campaign.seeds):,} seeds")
    return not totals.failures


def _add_up(campaign: _Campaign, totals: Totals) -> None:
    """Add the recorded results, then those of the other seeds as they arrive."""
    what: dict[str, object] = {
        "events": campaign.events,
        "nodes": campaign.nodes,
        "canary": campaign.canary,
    }
    if campaign.brokers is not None:
        what["brokers"] = campaign.brokers
    if campaign.focus is not None:
        what["focus"] = campaign.focus
    if campaign.model:
        what["model"] = True
    record = None if campaign.record is None else CampaignRecord(campaign.record, what)
    known = {} if record is None else {one[0].seed: one for one in record.known}
    seeds = [seed for seed in campaign.seeds if seed not in known]
    with _progress("seeds", len(campaign.seeds)) as (progress, task):
        for found in known.values():
            if found[0].seed in campaign.seeds:
                totals.add(*found)
        progress.update(task, completed=totals.seeds)
        said_s = time.monotonic()
        for result, busy_s in results_of(
            seeds,
            events=campaign.events,
            nodes=campaign.nodes,
            brokers=campaign.brokers,
            canary=campaign.canary,
            model=campaign.model,
            jobs=campaign.jobs,
            focus=campaign.focus,
        ):
            totals.add(result, busy_s)
            if record is not None:
                record.add(result, busy_s)
            note = f"{totals.events:,} events, {len(totals.failures)} violations"
            progress.update(task, completed=totals.seeds, note=note)
            if not progress.console.is_terminal and time.monotonic() - said_s >= _LINE_EVERY_S:
                said_s = time.monotonic()
                progress.console.print(f"{totals.seeds:,}/{len(campaign.seeds):,} seeds, {note}")
    if record is not None:
        record.close()


@contextmanager
def _progress(what: str, total: int | None) -> Iterator[tuple[Progress, TaskID]]:
    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as progress:
        yield progress, progress.add_task(what, total=total, note="")


def _story(path: Path, trace: Path | None, html: Path | None) -> bool:
    """Play a story and print its record."""
    keeps_trace = trace is not None or html is not None
    text = _text_of(path)
    try:
        story = Story(text, keeps_trace=keeps_trace)
        sys.stdout.write(story.text)
        _keep(story.world, story.result(), trace, html)
    except StoryError as error:
        raise CannotRun(f"{path}: {error}") from error
    return story.is_right
