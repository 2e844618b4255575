"""`python -m tests.replicas [--layout NAME] [--cycles N] [--records N] [--seed S] [--json]`.

Layout `mixed`: two brokers of Apache Kafka 4.3.1 and one of ours on Apache's controllers, killed;
`ours`: three controllers and three brokers of ours, killed, paused and cut off one way (root);
`apache`: Apache's alone, to know what the harness itself does. Real producers, of Apache's and of
librdkafka's, write meanwhile to a topic of three replicas, of which two have to be in sync; a
consumer reads along. In the end all is read back, and the brokers' logs are compared byte for byte.
Ctrl-C ends the faults, and what was done is judged. Exit code 1 when anything is wrong; then the
directories are kept. Exit code 3 when nothing is wrong, but less was shown than was asked for:
cycles, records, a divergence of each make. The figures so far are in a file of the run's folder
before they are judged.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from kraft_wire.cli.cluster.network import missing
from tests.chaos.network import Network
from tests.judges import missing_programs, not_run_reason
from tests.replicas.campaign import Campaign
from tests.replicas.cluster import ids
from tests.replicas.layouts import LAYOUTS
from tests.replicas.load import KINDS
from tests.replicas.verdict import Verdict, judge


def run(home: Path, arguments: argparse.Namespace) -> tuple[Campaign, Verdict]:
    """Run a campaign with a bar on standard error, and judge it."""
    layout = LAYOUTS[arguments.layout]
    cycles = arguments.cycles or layout.cycles
    console = Console(stderr=True, highlight=False)
    with ExitStack() as stack:
        net = None
        why = "asked for" if arguments.no_network else missing()
        if layout.needs_network and why is None:
            net = stack.enter_context(Network(ids(layout)))
        elif layout.needs_network:
            console.print(f"no partitions, kills and pauses only: {why}")
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        bar = stack.enter_context(Progress(*columns, TimeRemainingColumn(), console=console))
        task = bar.add_task(f"{arguments.layout}, seed {arguments.seed}", total=cycles)

        def say(line: str) -> None:
            bar.console.print(line, markup=False, soft_wrap=True)
            bar.update(task, completed=campaign.outcome.cycles)

        campaign = Campaign(home, layout, net, arguments.seed, say)
        campaign.run(cycles, arguments.records, arguments.minutes * 60)
    write(home, figures(campaign, Verdict()))
    console.print("judging what is there")
    return campaign, judge(campaign)


def write(home: Path, found: dict[str, object]) -> None:
    """Leave the figures in a file, for whoever cannot wait or comes too late."""
    (home / "figures.json").write_text(json.dumps(found, indent=1))


def figures(campaign: Campaign, verdict: Verdict) -> dict[str, object]:
    """All figures of a run."""
    outcome = campaign.outcome
    kinds = zip(KINDS, verdict.written, strict=False)
    idempotent = [each for kind, each in kinds if kind.is_idempotent]
    lost = sum(each.lost for each in verdict.written) if outcome.stored else "not known"
    waits = sorted(round(each, 1) for each in outcome.waits_s) or [0.0]
    return {
        "cycles": outcome.cycles,
        "of": outcome.cycles_wanted,
        "stopped": outcome.is_stopped,
        "seconds": round(outcome.seconds, 1),
        "faults": dict(outcome.faults),
        "kills": dict(outcome.kills),
        "partitions led by the killed": dict(outcome.led),
        "batches cut after a kill": dict(outcome.cut),
        "whole again, s": {"p50": waits[len(waits) // 2], "slowest": waits[-1]},
        "leader epochs": outcome.leader_epochs,
        "acknowledged": sum(each.acknowledged for each in verdict.written),
        "lost": lost,
        "duplicated, idempotent": sum(each.duplicated for each in idempotent),
        "written again by librdkafka, under another epoch": sum(
            each.repeated for each in verdict.written
        ),
        "producers": [asdict(each) for each in verdict.written],
        "read back": verdict.records,
        "readers begun anew": campaign.reader.begun_anew,
        "batches alike": verdict.batches,
        "bytes alike": verdict.compared_bytes,
        "epochs in the logs": verdict.epochs,
        "segments": verdict.segments,
        "bytes audited": verdict.audited_bytes,
        "errors in Apache's logs": dict(verdict.apache_errors),
        "violations": verdict.violations,
        "not shown": verdict.not_shown,
    }


def show(title: str, found: dict[str, object]) -> None:
    """Print the figures as a table."""
    table = Table("figure", "value", title=title)
    for name, value in found.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key}: {each}" for key, each in value.items())
        elif isinstance(value, list):
            value = "\n".join(map(_line, value)) or "none"
        table.add_row(name, str(value))
    Console(width=150, markup=False).print(table)


def _line(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return str(value)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def main() -> int:
    """Run and judge."""
    parser = argparse.ArgumentParser(prog="make replicas")
    parser.add_argument("--layout", choices=LAYOUTS, default="ours")
    parser.add_argument("--cycles", type=int, help="faults; 100 with Apache's brokers, else 300")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=120.0, help="of the cycles, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-network", action="store_true", help="kills and pauses only")
    parser.add_argument("--keep", type=Path, help="a folder for directories and logs")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    arguments = parser.parse_args()
    lacking = missing_programs(["java"])
    if lacking:
        print(not_run_reason(lacking), file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, _interrupt)
    home = arguments.keep or Path(tempfile.mkdtemp(prefix="kraft-wire-replicas-"))
    began = {"layout": arguments.layout, "seed": arguments.seed, "load before": os.getloadavg()[0]}
    try:
        campaign, verdict = run(home, arguments)
    except BaseException:
        print(f"not judged; kept for whoever looks into it: {home}", file=sys.stderr)
        raise
    found = {**began, **figures(campaign, verdict)}
    write(home, found)
    if arguments.json:
        print(json.dumps(found))
    else:
        show(f"layout {arguments.layout}, seed {arguments.seed}", found)
    if verdict.is_good and not arguments.keep:
        shutil.rmtree(home)
    elif not verdict.is_good:
        print(f"kept for whoever looks into it: {home}", file=sys.stderr)
    if not verdict.is_good:
        return 1
    return 3 if verdict.not_shown else 0


if __name__ == "__main__":
    sys.exit(main())
