"""`kraft-wire spark sim`: many seeds of the simulator on Spark's workers, one row a seed."""

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from kraft_wire.cli.sim.options import (
    BrokersOption,
    CanaryOption,
    EventsOption,
    FocusOption,
    ModelOption,
    NodesOption,
)
from kraft_wire.cli.sim.seeds import CannotRun, check_focus, seed_range
from kraft_wire.cli.sim.totals import show_totals
from kraft_wire.cli.spark.options import Conf, Jars, Master, refusing, settings_of

if TYPE_CHECKING:
    from kraft_wire.spark.campaign.kinds import Kind
    from kraft_wire.spark.verbs.sim import CampaignOutcome

__all__ = ["sim"]

_VIOLATION = 1


_CrashPoints = Annotated[
    bool, typer.Option("--crash-points", help="Check crash points drawn from each seed instead.")
]
_RandomConformance = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--random-conformance",
        metavar="A B",
        help="Compare two brokers, HOST:PORT each, with random requests instead.",
    ),
]
_Output = Annotated[
    str,
    typer.Option(metavar="DIR", help="Directory of the results; recorded seeds are skipped."),
]
_SeedsPerTask = Annotated[
    int | None,
    typer.Option(
        min=1, max=100_000, metavar="N", help="Seeds per task (default: by their number)."
    ),
]
_Requests = Annotated[
    int, typer.Option(min=1, metavar="N", help="With --random-conformance: requests per seed.")
]
_Twice = Annotated[
    int, typer.Option("--run-twice", min=0, metavar="N", help="Seeds to run twice and compare.")
]


def sim(
    seeds: Annotated[str, typer.Option(metavar="A:B", help="Run seeds A to B-1.")],
    output: _Output,
    nodes: NodesOption = None,
    brokers: BrokersOption = None,
    focus: FocusOption = None,
    events: EventsOption = 2_000,
    canary: CanaryOption = False,
    model: ModelOption = False,
    crash_points: _CrashPoints = False,
    random_conformance: _RandomConformance = None,
    requests: _Requests = 100,
    run_twice: _Twice = 20,
    seeds_per_task: _SeedsPerTask = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    master: Master = "local[*]",
    conf: Conf = None,
    jars: Jars = None,
) -> None:
    """Run seeds of the simulator as Spark tasks.

    Each violation is shown with the command that replays it. Exit codes: 0 every invariant held,
    1 a violation or a seed with two traces, 2 could not run.
    """
    with refusing(jars) as jar_files:
        from kraft_wire.spark.campaign.kinds import SimulatedRuns
        from kraft_wire.spark.campaign.table import CampaignTable
        from kraft_wire.spark.failure import PipelineError
        from kraft_wire.spark.session import running
        from kraft_wire.spark.verbs.progress import seed_progress
        from kraft_wire.spark.verbs.sim import run_campaign

        try:
            check_focus(focus, brokers)
            chosen = seed_range(seeds)
        except CannotRun as error:
            raise PipelineError(str(error)) from error
        kind: Kind = SimulatedRuns(events, nodes, brokers, focus, model, canary)
        if crash_points or random_conformance is not None:
            kind = _other_kind(random_conformance, requests, both=crash_points)
        table, settings = CampaignTable(output, kind.about), settings_of(conf)
        with (
            running(master, conf=settings, jars=jar_files) as spark,
            seed_progress(len(chosen)) as bar,
        ):
            outcome = run_campaign(
                spark,
                chosen,
                kind,
                table,
                repeats=run_twice,
                seeds_per_task=seeds_per_task,
                tell=bar.tell,
            )
    if as_json:
        print(json.dumps(outcome.to_json()))
    else:
        _show(outcome, output)
    if not outcome.is_good:
        raise typer.Exit(_VIOLATION)


def _other_kind(addresses: tuple[str, str] | None, requests: int, *, both: bool) -> "Kind":
    """Return the kind of --crash-points or --random-conformance; `both` where they are two."""
    from kraft_wire.spark.campaign.kinds import ComparedBrokers, CrashStates
    from kraft_wire.spark.failure import PipelineError

    if addresses is None:
        return CrashStates()
    if both:
        raise PipelineError("--crash-points and --random-conformance exclude each other")
    kind = ComparedBrokers(addresses, requests)
    kind.check()
    return kind


def _show(outcome: "CampaignOutcome", output: str) -> None:
    console = Console(highlight=False, soft_wrap=True, emoji=False)
    show_totals(outcome.totals)
    figures = outcome.to_json()
    twice, apart = figures["seeds_run_twice"], figures["seeds_run_on_two_workers"]
    console.print(f"{outcome.known:,} seeds had a row before")
    console.print(f"{twice:,} seeds ran twice, {apart:,} of them on two workers")
    for seed in figures["seeds_with_two_traces"]:
        console.print(f"seed {seed} gave two trace hashes")
    for violation in figures["violations"]:
        console.print(f"replay seed {violation['seed']}:  {violation['replay']}", markup=False)
    console.print(f"page: {output}/campaign.html", markup=False)
