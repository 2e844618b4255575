"""`python -m tests.chaos [--cycles N] [--minutes M] [--failovers N] [--seed S] [--json]`.

Three nodes of ours under four clients, hurt by `kill -9`, pauses and one-way partitions; then the
history is judged against the logs, and failovers are timed beside Apache's three controllers. What
the machine lacks (namespaces, Java) is said and left out. Exit code 1 when anything was lost, has
no order that explains it, or a process ended by itself.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table

from kraft_wire.cli.cluster.network import missing
from tests.chaos.campaign import Campaign, Outcome
from tests.chaos.failover import compared, percentile
from tests.chaos.network import Network
from tests.chaos.quorum import NODES
from tests.chaos.verdict import Verdict, judge
from tests.judges import missing_programs, not_run_reason

GOAL = 1.0


def say(line: str) -> None:
    """Print progress with the time of day."""
    print(time.strftime("%H:%M:%S ") + line, file=sys.stderr, flush=True)


def chaos(home: Path, arguments: argparse.Namespace) -> tuple[Outcome, Verdict]:
    """Run the cycles and judge them."""
    why = "asked for" if arguments.no_network else missing()
    with ExitStack() as stack:
        net = None
        if why is None:
            net = stack.enter_context(Network(NODES))
        else:
            say(f"no partitions, kills and pauses only: {why}")
        campaign = Campaign(home, net, arguments.seed, say)
        outcome = campaign.run(arguments.cycles, arguments.minutes * 60)
    directories = {each.node_id: each.data for each in campaign.quorum.nodes.values()}
    say(f"judging {len(outcome.operations)} operations")
    return outcome, judge(outcome.operations, directories, outcome.high_watermark)


def failovers(home: Path, rounds: int) -> dict[str, list[float]]:
    """Time failovers of both sides, where there is Java."""
    lacking = missing_programs(["java"])
    if not rounds or lacking:
        why = not_run_reason(lacking) if lacking else "not asked for"
        say(f"no failover beside Apache: {why}")
        return {}
    return compared(home, rounds, say)


def show(outcome: Outcome, verdict: Verdict, times: dict[str, list[float]]) -> None:
    """Print everything as a table."""
    table = Table("figure", "value", title="chaos of three processes")
    cycles = f"{outcome.cycles} in {outcome.seconds:.0f} s, {outcome.a_minute:.1f} a minute"
    table.add_row("cycles", cycles)
    table.add_row("faults", ", ".join(f"{n} {kind}" for kind, n in sorted(outcome.faults.items())))
    table.add_row("epochs", str(outcome.epochs))
    for kind, number in sorted(verdict.outcomes.items()):
        table.add_row(kind, f"{number:,}")
    table.add_row("acknowledged, lost", f"{verdict.acknowledged:,}, {verdict.lost}")
    table.add_row("registers with an order", f"{verdict.registers:,}")
    table.add_row("logs alike", f"{verdict.compared_bytes:,} bytes, {verdict.committed:,} offsets")
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        if times:
            ours, apache = (percentile(times[side], share) for side in ("ours", "apache"))
            ratio = ours / apache
            reached = "reached" if ratio <= GOAL else "NOT reached"
            figures = f"ours {ours:.2f} s, Apache {apache:.2f} s, {ratio:.2f}x (at most {GOAL}x)"
            table.add_row(f"failover {name} of {len(times['ours'])}", f"{figures} {reached}")
    console = Console(width=120)
    console.print(table)
    for line in [*verdict.violations[:20], *outcome.died]:
        console.print(line, style="red")


def main() -> int:
    """Run and judge."""
    parser = argparse.ArgumentParser(prog="make chaos")
    parser.add_argument("--cycles", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=90.0, help="of the cycles, at most")
    parser.add_argument("--failovers", type=int, default=25, help="rounds beside Apache")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-network", action="store_true", help="kills and pauses only")
    parser.add_argument("--keep", type=Path, help="a folder for directories and logs")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kraft-wire-chaos-") as scratch:
        home = arguments.keep or Path(scratch)
        outcome, verdict = chaos(home / "chaos", arguments)
        times = failovers(home / "failover", arguments.failovers)
    if arguments.json:
        figures = {
            "cycles": outcome.cycles,
            "seconds": round(outcome.seconds, 1),
            "faults": dict(outcome.faults),
            "outcomes": dict(verdict.outcomes),
            "lost": verdict.lost,
            "violations": verdict.violations,
            "died": outcome.died,
            "failover_s": times,
        }
        print(json.dumps(figures))
    else:
        show(outcome, verdict, times)
    return 1 if verdict.violations or outcome.died else 0


if __name__ == "__main__":
    sys.exit(main())
