"""A campaign on a standalone cluster of a master and two workers, one of them killed on the way.

``python -m tests.spark.campaign_on_cluster --seeds 0:10000`` runs it and prints what it shows: each
seed has one row, sampled seeds have the trace hash of a run in this process, and a planted bug is
found and replayed from its line. `--rates` compares the rates of one worker and of two instead.
Exit codes: 0 all of that holds, 1 not.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pyarrow import parquet

from kraft_wire.cli.sim.seeds import seed_range
from kraft_wire.sim.runs.campaign import results_of
from tests.process import KRAFT_WIRE
from tests.spark.standalone import Standalone

SMALL = ["--conf", "spark.driver.memory=1g", "--conf", "spark.executor.memory=700m"]
PLANTED = range(1, 9)
"""Seeds that a false invariant is judged in."""


class Campaign:
    """`kraft-wire spark sim` on a cluster, into one directory."""

    def __init__(self, cluster: Standalone, output: Path, words: list[str]) -> None:
        self.output = output
        program = [KRAFT_WIRE, "spark", "sim", "--output", str(output), "--json", *words]
        self._command = [*program, "--master", cluster.url, *SMALL]
        self._log = output.with_suffix(".log")
        self.figures: dict[str, Any] = {}

    def start(self) -> subprocess.Popen[bytes]:
        environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"}
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=log, env=environment
            )

    def end(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for the end; the figures are read, where there are any."""
        text, _ = process.communicate()
        if text.strip():
            self.figures = json.loads(text)
        return process.returncode

    def parts(self) -> int:
        return len(list((self.output / "seeds").glob("seeds-*.parquet")))

    def hashes(self) -> list[tuple[int, str]]:
        """Seed and trace hash of every row."""
        table = parquet.read_table(self.output / "seeds", columns=["seed", "trace_hash"])
        return sorted(
            zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True)
        )


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)


def lived_through_a_kill(cluster: Standalone, home: Path, given: argparse.Namespace) -> list[str]:
    """Run the seeds, kill a worker on the way; return what is wrong."""
    words = ["--seeds", given.seeds, "--events", str(given.events)]
    if given.seeds_per_task:
        words += ["--seeds-per-task", str(given.seeds_per_task)]
    campaign = Campaign(cluster, home / "table", words)
    seeds = seed_range(given.seeds)
    process = campaign.start()
    while campaign.parts() < given.kill_after_parts and process.poll() is None:
        time.sleep(0.2)
    victim = cluster.workers.pop()
    say(f"kill -9 worker {victim.pid}; {campaign.parts()} files so far")
    victim.kill()
    code = campaign.end(process)
    figures, found = campaign.figures, campaign.hashes()
    wrong = [] if code == 0 else [f"exit code {code}"]
    if [seed for seed, _ in found] != list(seeds):
        wrong.append(f"{len(found)} rows of {len(set(found))} seeds, not one of {len(seeds)} each")
    sampled = [seeds[at * len(seeds) // given.sample] for at in range(given.sample)]
    here = {one.seed: one.trace_hash for one, _ in results_of(sampled, events=given.events)}
    unequal = [seed for seed, trace in found if here.get(seed, trace) != trace]
    wrong += [f"seed {seed} has another trace here" for seed in unequal]
    say(
        f"{figures['seeds']:,} seeds, {figures['events']:,} events, "
        f"{len(figures['violations'])} violations; by worker {figures['seeds_by_worker']}; "
        f"{figures['seeds_run_on_two_workers']} of {figures['seeds_run_twice']} ran on two; "
        f"{len(sampled) - len(unequal)} of {len(sampled)} sampled seeds equal here"
    )
    return wrong


def planted_bug_was_found(cluster: Standalone, home: Path) -> list[str]:
    """Judge a false invariant, and replay the first violation from its line."""
    seeds = f"{PLANTED.start}:{PLANTED.stop}"
    words = ["--seeds", seeds, "--events", "300", "--canary", "--seeds-per-task", "2"]
    campaign = Campaign(cluster, home / "planted", words)
    code = campaign.end(campaign.start())
    violations = campaign.figures.get("violations", [])
    if code != 1 or not violations:
        return [f"the planted bug was not found: exit code {code}"]
    program, *rest = shlex.split(violations[0]["replay"])
    replayed = subprocess.run(
        [str(Path(KRAFT_WIRE).with_name(program)), *rest, "--json"],
        stdout=subprocess.PIPE,
        check=False,
        cwd=home,
    )
    (again,) = json.loads(replayed.stdout)["violations"]
    say(f"planted bug: {len(violations)} violations; replayed: {violations[0]['replay']}")
    is_equal = all(again[key] == violations[0][key] for key in ("seed", "invariant", "events"))
    return [] if is_equal else [f"the replay differs: {again}"]


def rates(home: Path, given: argparse.Namespace) -> None:
    """Run the same seeds on one worker and on two, and compare the rates."""
    found = {}
    for count in (1, 2):
        with Standalone(home / f"cluster-{count}", sys.executable, workers=count) as cluster:
            words = ["--seeds", given.seeds, "--events", str(given.events), "--run-twice", "0"]
            campaign = Campaign(cluster, home / f"table-{count}", words)
            started = time.monotonic()
            assert campaign.end(campaign.start()) == 0
            seconds = time.monotonic() - started
        found[count] = campaign.figures["events"] / seconds
        say(f"{count} workers: {found[count]:,.0f} events a second, {seconds:.0f} s with the start")
    say(f"two workers have {found[2] / found[1]:.2f} times the rate of one")


def main() -> int:
    """Do what is asked for; 0 when all of it holds."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.campaign_on_cluster")
    parser.add_argument("--seeds", default="0:120")
    parser.add_argument("--events", type=int, default=2_000)
    parser.add_argument("--seeds-per-task", type=int)
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--kill-after-parts", type=int, default=4)
    parser.add_argument("--rates", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="campaign-") as scratch:
        home = Path(scratch)
        if given.rates:
            rates(home, given)
            return 0
        with Standalone(home / "cluster", sys.executable) as cluster:
            wrong = lived_through_a_kill(cluster, home, given)
            wrong += planted_bug_was_found(cluster, home)
    for line in wrong:
        say(line)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
