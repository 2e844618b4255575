"""Run harnesses against a broker and collect what they say, scenario by scenario.

A harness is told by REPLICAS in its environment how many replicas a topic has; more than one means
that brokers restart while it runs. One that hangs, dies or keeps silent is a failure of the
scenarios it owes. Codecs are checked on the broker's disk as well: a client that sends uncompressed
without saying so looks fine from outside.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.clients.registry import AFTER_RESTART, FIRST_SCENARIOS, Client

HARNESS_SECONDS_MAX = 420
CLUSTER_HARNESS_SECONDS_MAX = 1200
SCENARIO_SECONDS_MAX = 90
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
BATCH_PREFIX = struct.Struct(">qiibIh")
LOG_OVERHEAD_BYTES = 12


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
    limit = HARNESS_SECONDS_MAX if replicas == 1 else CLUSTER_HARNESS_SECONDS_MAX
    seconds = min(limit, SCENARIO_SECONDS_MAX * max(1, len(wanted)))
    stdout, end = _run([*client.command(), bootstrap, prefix, *wanted], seconds, replicas)
    for line in stdout.splitlines():
        if line.startswith("{"):
            said = json.loads(line)
            results[said["scenario"]] = Result(said["status"], said["detail"], said["seconds"])
    for name in wanted:
        results.setdefault(name, Result("fail", f"the harness said nothing: {end}"))
    return results


def _run(command: list[str], seconds: float, replicas: int) -> tuple[str, str]:
    """Standard output of a harness, and how it ended in words."""
    environment = {**os.environ, "REPLICAS": str(replicas)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=seconds, env=environment
        )
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
        text = said.decode(errors="replace") if isinstance(said, bytes) else said
        return text, f"no end within {seconds:.0f} s"
    tail = done.stderr.strip().splitlines()[-3:]
    return done.stdout, f"exit {done.returncode}, {' | '.join(tail)[:300]}"


def run_all(
    clients: Iterable[Client],
    broker: Broker,
    scenarios: Sequence[str] = FIRST_SCENARIOS,
    *,
    replicas: int = 1,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, dict[str, Result]]:
    """All scenarios with all clients, with one restart of the broker for all of them."""
    stamp = f"{int(time.time())}"
    table: dict[str, dict[str, Result]] = {}
    chosen = list(clients)
    for client in chosen:
        prefix = f"{client.name}-{stamp}"
        began = time.monotonic()
        table[client.name] = run_client(client, broker.bootstrap, prefix, scenarios, replicas)
        _check_codecs(table[client.name], broker.data, prefix)
        green = sum(result.green for result in table[client.name].values())
        say(f"{client.name}: {green} of {len(scenarios)} in {time.monotonic() - began:.0f} s")
        for name, result in table[client.name].items():
            if not result.green:
                say(f"  {name}: {result.detail}")
    if "restart-before" in scenarios:
        broker.restart()
        for client in chosen:
            prefix = f"{client.name}-{stamp}"
            after = run_client(client, broker.bootstrap, prefix, [AFTER_RESTART], replicas)
            before = table[client.name].pop("restart-before")
            table[client.name]["restart"] = after[AFTER_RESTART] if before.green else before
    return table


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
