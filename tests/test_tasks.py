"""docs/TASKS.md, executed: each command of its last column, against a server of the test's own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_principals import AUTHORIZER
from tests.server_process import ServerProcess
from tests.tidiness import CHECKOUT

ROW = re.compile(r"^\| ([^|]+) \|(.*?)\| `([^`]+)` \|$", re.M)
TASKS = {
    task: command.replace("\\|", "|")
    for task, _, command in ROW.findall((CHECKOUT / "docs" / "TASKS.md").read_text("utf-8"))
}
CHANGED = {
    "move replicas": "topics reassign t --to 0=1",
    "change all brokers' setting": (
        "configs alter --broker-defaults --add-config message.max.bytes=900000"
    ),
    "follow new records": "consume t -o latest -f --timeout-ms 1",
    "read as a group": "consume t -g g -f -n 1",
}
"""What a test cannot do as it is written, and what it does instead."""


def test_table_has_the_tasks_of_a_day() -> None:
    assert len(TASKS) >= 30
    assert set(CHANGED) < set(TASKS)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A node with an authorizer, without which it has no access-control entries."""
    with ServerProcess(tmp_path, overrides=AUTHORIZER) as running:
        yield running


@pytest.mark.slow
def test_every_task_is_done_by_its_command(server: ServerProcess) -> None:
    files = {"dump --records F": "a-0/00000000000000000000.log", "audit DIR...": ""}
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "KRAFT_WIRE_BOOTSTRAP_SERVER": server.bootstrap,
    }

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-uc", f"kraft-wire {command}"],
            env=environment,
            input="k:v\n",
            capture_output=True,
            text=True,
            timeout=120,
        )

    for name in ("t", "a", "b"):
        assert run(f"topics create {name} -p 2 --if-not-exists").returncode == 0
    failed = []
    for task, written in TASKS.items():
        command = CHANGED.get(task, written)
        if command in files:
            command = f"{command.split()[0]} {server.data / files[command]}"
        if task == "create a topic":
            run("topics delete t")
        done = run(command)
        if task == "delete a topic":
            run("topics create t -p 6")
        if (done.returncode, done.stderr) != (0, ""):
            failed.append((task, command, done.stderr))
    assert failed == []
