"""Run harnesses against a broker and collect what they say, scenario by scenario.

A harness that hangs, dies or keeps silent is a failure of the scenarios it owes. Codecs are checked
on the broker's disk as well: a client that sends uncompressed without saying so looks fine from
outside.
"""

from __future__ import annotations

import json
import struct
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.clients.registry import AFTER_RESTART, FIRST_SCENARIOS, Client

HARNESS_SECONDS_MAX = 420
SCENARIO_SECONDS_MAX = 90
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
BATCH_PREFIX = struct.Struct(">qiibIh")
LOG_OVERHEAD_BYTES = 12


class Broker(Protocol):
    """What a broker under test is here: an address, a data directory, a log, a restart."""

    data: Path
    log: Path

    @property
    def bootstrap(self) -> str:
        """``host:port``."""

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
    client: Client, bootstrap: str, prefix: str, scenarios: Sequence[str]
) -> dict[str, Result]:
    """Run scenarios with one client; every one of them has a result."""
    wanted = [name for name in scenarios if name not in client.not_applicable]
    results = {
        name: Result("not applicable", client.not_applicable[name])
        for name in scenarios
        if name in client.not_applicable
    }
    seconds = min(HARNESS_SECONDS_MAX, SCENARIO_SECONDS_MAX * max(1, len(wanted)))
    stdout, end = _run([*client.command(), bootstrap, prefix, *wanted], seconds)
    for line in stdout.splitlines():
        if line.startswith("{"):
            said = json.loads(line)
            results[said["scenario"]] = Result(said["status"], said["detail"], said["seconds"])
    for name in wanted:
        results.setdefault(name, Result("fail", f"the harness said nothing: {end}"))
    return results


def _run(command: list[str], seconds: float) -> tuple[str, str]:
    """Standard output of a harness, and how it ended in words."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        said = late.stdout or b""
        text = said.decode(errors="replace") if isinstance(said, bytes) else said
        return text, f"no end within {seconds:.0f} s"
    tail = done.stderr.strip().splitlines()[-3:]
    return done.stdout, f"exit {done.returncode}, {' | '.join(tail)[:300]}"


def run_all(
    clients: Iterable[Client], broker: Broker, scenarios: Sequence[str] = FIRST_SCENARIOS
) -> dict[str, dict[str, Result]]:
    """All scenarios with all clients, with one restart of the broker for all of them."""
    stamp = f"{int(time.time())}"
    table: dict[str, dict[str, Result]] = {}
    chosen = list(clients)
    for client in chosen:
        prefix = f"{client.name}-{stamp}"
        table[client.name] = run_client(client, broker.bootstrap, prefix, scenarios)
        _check_codecs(table[client.name], broker.data, prefix)
    if "restart-before" in scenarios:
        broker.restart()
        for client in chosen:
            prefix = f"{client.name}-{stamp}"
            after = run_client(client, broker.bootstrap, prefix, [AFTER_RESTART])[AFTER_RESTART]
            before = table[client.name].pop("restart-before")
            table[client.name]["restart"] = before if not before.green else after
    return table


def _check_codecs(results: dict[str, Result], data: Path, prefix: str) -> None:
    for codec in CODEC_NAMES:
        name = f"codec-{codec}"
        if name in results and results[name].status == "ok":
            found = codecs_on_disk(data / f"{prefix}-{name}-0")
            if found != {codec}:
                results[name] = Result("fail", f"on disk the batches are {sorted(found)}")


def codecs_on_disk(partition: Path) -> set[str]:
    """The codecs of all batches in a partition's segments."""
    found: set[str] = set()
    for segment in sorted(partition.glob("*.log")):
        content = segment.read_bytes()
        position = 0
        while position + BATCH_PREFIX.size <= len(content):
            _, length, _, magic, _, attributes = BATCH_PREFIX.unpack_from(content, position)
            if length <= 0 or magic != 2:
                break
            found.add(CODEC_NAMES[attributes & 7])
            position += LOG_OVERHEAD_BYTES + length
    return found
