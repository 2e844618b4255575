"""Tools in the shared virtual machine against the same tools in processes of their own."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.apache import tool_runner
from tests.apache.jars import RELEASE
from tests.apache.java_process import Outcome
from tests.apache.node import ApacheNode
from tests.apache.tools import run_tool

pytestmark = [pytest.mark.java, pytest.mark.slow]

IN_STACKS = ("\tat ", "\t... ")
"""Lines of a stack trace, whose lowest frames are those of what called the main class."""
CONSUMED = ("--topic", "run", "--from-beginning", "--max-messages", "3", "--timeout-ms", "20000")


@contextmanager
def processes_only() -> Iterator[None]:
    """Have each tool run in a process of its own, as beside a tool of another thread."""
    with tool_runner._locks[RELEASE]:
        yield


def without_stacks(done: Outcome) -> tuple[int, str, list[str]]:
    errors = [line for line in done.stderr.splitlines() if not line.startswith(IN_STACKS)]
    return done.exit_code, done.stdout, errors


REFUSED: dict[str, Sequence[str]] = {
    "kafka-configs": ["--describe"],
    "kafka-console-consumer": [],
    "kafka-consumer-groups": ["--list"],
    "kafka-delete-records": ["--bogus"],
    "kafka-dump-log": ["--files", "/nonexistent.log"],
    "kafka-features": ["--bootstrap-server", "127.0.0.1:1:1", "describe"],
    "kafka-get-offsets": ["--bootstrap-server", "nobody"],
    "kafka-log-dirs": ["--describe"],
    "kafka-metadata-quorum": ["--bootstrap-server", "nobody", "describe", "--status"],
    "kafka-storage": ["info", "-c", "/nonexistent"],
    "kafka-topics": ["--list", "--bootstrap-server", "nobody:1", "--command-config", "/none"],
    "kafka-transactions": ["--bogus"],
}


@pytest.mark.parametrize("tool", REFUSED)
def test_a_refusal_is_the_same(tool: str) -> None:
    shared = run_tool(tool, REFUSED[tool])
    with processes_only():
        alone = run_tool(tool, REFUSED[tool])
    assert alone.exit_code != 0
    assert without_stacks(shared) == without_stacks(alone)


def test_what_a_tool_does_is_the_same_at_its_first_and_second_run(
    apache_node: ApacheNode,
) -> None:
    at = ["--bootstrap-server", apache_node.bootstrap]
    produced = run_tool("kafka-console-producer", [*at, "--topic", "run"], stdin="a\nb\nc\n")
    assert (produced.exit_code, produced.stderr) == (0, "")
    first, second = (run_tool("kafka-console-consumer", [*at, *CONSUMED]) for _ in range(2))
    with processes_only():
        alone = run_tool("kafka-console-consumer", [*at, *CONSUMED])
    assert sorted(alone.stdout.splitlines()) == ["a", "b", "c"]
    assert first == second == alone


def test_a_tool_that_hangs_is_killed_and_the_next_one_runs(apache_node: ApacheNode) -> None:
    waiting = ["--bootstrap-server", apache_node.bootstrap, "--topic", "nothing", "--group", "g"]
    started = time.monotonic()
    with pytest.raises(
        tool_runner.ToolHung, match=r"hung for 2 s in org\.apache\..*poll.* < .*: \["
    ):
        run_tool("kafka-console-consumer", waiting, timeout_s=2)
    assert time.monotonic() - started >= 2
    assert run_tool("kafka-storage", ["random-uuid"]).exit_code == 0


def test_a_tool_that_leaves_a_client_open_ends_its_virtual_machine(tmp_path: Path) -> None:
    """The client would look for its brokers as long as the virtual machine runs."""
    quick = tmp_path / "quick.properties"
    quick.write_text("request.timeout.ms=700\ndefault.api.timeout.ms=900\n")
    unreachable = ["--bootstrap-server", "127.0.0.1:1", "--command-config", str(quick)]
    for tool, ends in (("kafka-topics", False), ("kafka-transactions", True)):
        verb = "list" if ends else "--list"
        failed = run_tool(tool, [*unreachable, verb])
        assert (failed.exit_code, "Timed out" in failed.text) == (1, True), failed
        assert has_runner() != ends
    assert run_tool("kafka-storage", ["random-uuid"]).exit_code == 0
    assert has_runner()


def has_runner() -> bool:
    """Whether a virtual machine waits for a tool; those of tests with options of their own stay."""
    options = os.environ.get(tool_runner.OPTIONS, "")
    runner = tool_runner._runners.get((os.getpid(), RELEASE, options))
    return runner is not None and runner.is_alive


def test_a_virtual_machine_that_a_tool_ends_is_told() -> None:
    """As argparse4j does with `System.exit`, which nothing can intercept."""
    with pytest.raises(tool_runner.ToolRunnerDied, match="ClusterTool"):
        run_tool("kafka-cluster", [])
    assert run_tool("kafka-storage", ["random-uuid"]).exit_code == 0
