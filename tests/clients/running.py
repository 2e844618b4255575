"""Run harnesses against a broker and collect what they say, scenario by scenario.

A harness is told by REPLICAS in its environment how many replicas a topic has; more than one means
that brokers restart while it runs. One that hangs, dies or keeps silent is a failure of the
scenarios it owes, and leaves no process behind. Codecs are checked on the broker's disk as well: a
client that sends uncompressed without saying so looks fine from outside.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.clients.registry import AFTER_RESTART, BLANK, FIRST_SCENARIOS, Client

HARNESS_SECONDS_MAX = 420
CLUSTER_HARNESS_SECONDS_MAX = 1200
SCENARIO_SECONDS_MAX = 90
CLUSTER_SCENARIO_SECONDS_MAX = 180
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
BATCH_PREFIX = struct.Struct(">qiibIh")
LOG_OVERHEAD_BYTES = 12
BROKEN = (AssertionError, OSError, subprocess.SubprocessError)
"""What a broker, or a process of a cluster, that does not do as it is told raises."""
DETAIL_MAX = 500

Table = dict[str, dict[str, "Result"]]
"""By client and scenario."""


class Broker(Protocol):
    """What a broker under test, or a cluster of them, is here."""

    @property
    def data(self) -> Path:
        """Where partitions are, or where the directories of several brokers are."""

    @property
    def log(self) -> Path:
        """What it wrote."""

    @property
    def bootstrap(self) -> str:
        """``host:port``, of several brokers with commas."""

    def restart(self) -> None:
        """Stop gracefully, start again over the same data on the same port."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one scenario with one client."""

    status: str
    detail: str = ""
    seconds: float = 0.0

    @property
    def green(self) -> bool:
        """Done as Kafka promises, or nothing that this client can do."""
        return self.status in ("ok", "not applicable")


def run_client(
    client: Client, bootstrap: str, prefix: str, scenarios: Sequence[str], replicas: int = 1
) -> dict[str, Result]:
    """Run scenarios with one client; every one of them has a result."""
    wanted = [name for name in scenarios if name not in client.not_applicable]
    results = {
        name: Result("not applicable", client.not_applicable[name])
        for name in scenarios
        if name in client.not_applicable
    }
    limit, each = HARNESS_SECONDS_MAX, SCENARIO_SECONDS_MAX
    if replicas > 1:
        limit, each = CLUSTER_HARNESS_SECONDS_MAX, CLUSTER_SCENARIO_SECONDS_MAX
    seconds = min(limit, each * max(1, len(wanted)))
    environment = {**os.environ, **client.environment, "REPLICAS": str(replicas)}
    stdout, end = _run([*client.command(), bootstrap, prefix, *wanted], seconds, environment)
    for line in stdout.splitlines():
        results.update(_said(client, line))
    for name in wanted:
        results.setdefault(name, Result("fail", f"the harness said nothing: {end}"))
    return results


def _run(command: list[str], seconds: float, environment: dict[str, str]) -> tuple[str, str]:
    """Standard output of a harness, and how it ended in words."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=environment,
        process_group=0,
    )
    try:
        stdout, stderr = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _kill_group(process)
        stdout, _ = process.communicate()
        return stdout, f"no end within {seconds:.0f} s"
    finally:
        _kill_group(process)  # a harness may have started programs, and has ended before them
        process.wait()
    tail = stderr.strip().splitlines()[-3:]
    return stdout, f"exit {process.returncode}, {' | '.join(tail)[:300]}"


def _kill_group(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _said(client: Client, line: str) -> dict[str, Result]:
    """What a line of a harness says of a scenario; nothing where it is none, or was cut off."""
    try:
        said = json.loads(line) if line.startswith("{") else None
    except ValueError:
        said = None
    if said is None:
        return {}
    name, detail = said["scenario"], said["detail"]
    if said["status"] == "not applicable" and (client.name, name) not in BLANK:
        return {name: Result("fail", f"a cell that was never blank: {detail}", said["seconds"])}
    return {name: Result(said["status"], detail, said["seconds"])}


def run_all(
    clients: Iterable[Client],
    broker: Broker,
    scenarios: Sequence[str] = FIRST_SCENARIOS,
    *,
    replicas: int = 1,
    say: Callable[[str], None] = lambda line: None,
    ended: Callable[[str, Table], str] = lambda prefix, table: "",
) -> Table:
    """All scenarios with all clients, with one restart of the broker for all of them.

    `ended` is told of each client that has run, by the prefix of its topics, which but for
    `PREFIX-restart` nobody needs any more. Where it returns a reason the others are not run.
    """
    stamp = f"{int(time.time())}"
    table: Table = {}
    reason = ""
    chosen = list(clients)
    for client in chosen:
        prefix = f"{client.name}-{stamp}"
        if reason:
            table[client.name] = {name: Result("fail", f"not run: {reason}") for name in scenarios}
            continue
        began = time.monotonic()
        table[client.name] = run_client(client, broker.bootstrap, prefix, scenarios, replicas)
        _check_codecs(table[client.name], broker.data, prefix)
        green = sum(result.green for result in table[client.name].values())
        say(f"{client.name}: {green} of {len(scenarios)} in {time.monotonic() - began:.0f} s")
        for name, result in table[client.name].items():
            if not result.green:
                say(f"  {name}: {result.detail}")
        reason = ended(prefix, table)
    if "restart-before" in scenarios:
        _restart(chosen, broker, stamp, replicas, table, reason)
    return table


def _restart(
    chosen: Sequence[Client],
    broker: Broker,
    stamp: str,
    replicas: int,
    table: Table,
    reason: str,
) -> None:
    """Restart the broker and run what comes after it; both halves of the scenario are one cell."""
    if not reason:
        try:
            broker.restart()
        except BROKEN as error:
            reason = f"no restart: {error}"[:DETAIL_MAX]
    for client in chosen:
        results = table[client.name]
        result = results.pop("restart-before")
        if reason and result.green:
            result = Result("fail", reason)
        if result.green:
            prefix = f"{client.name}-{stamp}"
            after = run_client(client, broker.bootstrap, prefix, [AFTER_RESTART], replicas)
            result = after[AFTER_RESTART]
        results["restart"] = result


def _check_codecs(results: dict[str, Result], data: Path, prefix: str) -> None:
    for codec in CODEC_NAMES:
        name = f"codec-{codec}"
        if name in results and results[name].status == "ok":
            found = codecs_on_disk(data, f"{prefix}-{name}-0")
            if found != {codec}:
                results[name] = Result("fail", f"on disk the batches are {sorted(found)}")


def codecs_on_disk(data: Path, partition: str) -> set[str]:
    """The codecs of all batches in the segments of all of a partition's replicas."""
    found: set[str] = set()
    for segment in (*data.glob(f"{partition}/*.log"), *data.glob(f"*/{partition}/*.log")):
        content = segment.read_bytes()
        position = 0
        while position + BATCH_PREFIX.size <= len(content):
            _, length, _, magic, _, attributes = BATCH_PREFIX.unpack_from(content, position)
            if length <= 0 or magic != 2:
                break
            found.add(CODEC_NAMES[attributes & 7])
            position += LOG_OVERHEAD_BYTES + length
    return found
