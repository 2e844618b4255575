"""Which clients there are, how each harness is started, and what a client cannot do at all.

A harness is a program that takes ``BOOTSTRAP PREFIX SCENARIO…`` and prints one JSON line per
scenario; in which language it is written is nobody's business but this file's.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.apache.jars import CHECKOUT
from tests.apache.java_process import java_command

HERE = Path(__file__).parent
PREPARE_SECONDS_MAX = 600


class HarnessNotBuilt(RuntimeError):
    """A harness could not be compiled, or its libraries could not be brought."""


@dataclass(frozen=True, slots=True)
class Client:
    """One row of the table."""

    name: str
    command: Callable[[], list[str]]
    judge: str | None = None
    not_applicable: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    """What the harness is told beside its arguments."""


def python_harness(name: str) -> Callable[[], list[str]]:
    """The harness of a Python client."""
    return lambda: [sys.executable, "-W", "ignore", "-m", "tests.clients.python", name]


def java_harness() -> list[str]:
    """The harness over kafka-clients, compiled with the judge's other Java sources."""
    return java_command("judge.ClientHarness", heap_mb=256)


def go_harness(client: str) -> Callable[[], list[str]]:
    """The Go program, which holds all three Go clients and is told which one to use."""

    def build() -> list[str]:
        program = CHECKOUT / "var" / "clients" / "go-harness"
        program.parent.mkdir(parents=True, exist_ok=True)
        prepare(["go", "build", "-o", str(program), "."], HERE / "go")
        return [str(program), client]

    return build


def node_harness() -> list[str]:
    """The Node.js program; its libraries are brought once."""
    folder = HERE / "node"
    libraries = ("@platformatic/kafka", "kafkajs")
    if not all((folder / "node_modules" / each).exists() for each in libraries):
        prepare(["npm", "ci", "--no-audit", "--no-fund"], folder)
    return ["node", str(folder / "harness.mjs")]


def prepare(command: list[str], folder: Path) -> None:
    """Run a build step of a harness."""
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=PREPARE_SECONDS_MAX,
    )
    if done.returncode != 0:
        raise HarnessNotBuilt(f"{' '.join(command)}: {(done.stdout + done.stderr)[-3000:]}")


CLIENTS: dict[str, Client] = {
    client.name: client
    for client in (
        Client(
            "kcat",
            python_harness("kcat"),
            "kcat",
            {"topics": "kcat has no admin commands"},
        ),
        Client("confluent-kafka", python_harness("confluent-kafka")),
        Client("kafka-python", python_harness("kafka-python")),
        Client("aiokafka", python_harness("aiokafka")),
        Client("kafka-clients", java_harness, "java"),
        Client("franz-go", go_harness("franz-go"), "go"),
        Client("sarama", go_harness("sarama"), "go"),
        Client(
            "kafka-go",
            go_harness("kafka-go"),
            "go",
            {"idempotent": "kafka-go has no idempotent producer"},
        ),
        Client("platformatic", node_harness, "node"),
    )
}

GROUP_PROTOCOL = {"GROUP_PROTOCOL": "consumer"}
CONSUMER_PROTOCOL: dict[str, Client] = {
    name: replace(CLIENTS[name], environment=GROUP_PROTOCOL)
    for name in ("confluent-kafka", "kafka-clients", "franz-go", "platformatic")
}
"""Clients whose groups may have the protocol of KIP-848."""
GROUP_SCENARIOS = ("group", "restart-before")
"""Those in which members of a group commit."""

BLANK = {("kcat", "topics"), ("kafka-go", "idempotent"), ("platformatic", "codec-zstd")}
"""What a client cannot: it has no such call, or (zstd) needs a newer Node than may be there."""

FIRST_SCENARIOS = (
    "metadata",
    "codec-none",
    "codec-gzip",
    "codec-snappy",
    "codec-lz4",
    "codec-zstd",
    "keys",
    "headers",
    "nulls",
    "large",
    "idempotent",
    "group",
    "timestamps",
    "seek",
    "topics",
    "auto-create",
    "partitions-200",
    "restart-before",
)
AFTER_RESTART = "restart-after"
TABLE_ROWS = (*FIRST_SCENARIOS[:-1], "restart")
