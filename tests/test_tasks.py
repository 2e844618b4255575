"""docs/TASKS.md, executed: each command of its last column, against a server of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import tasks
from tests.server_process import ServerProcess


def test_table_has_the_tasks_of_a_day_and_their_times() -> None:
    assert len(tasks.TASKS) >= 30
    assert set(tasks.CHANGED) < set(tasks.TASKS)
    assert set(tasks.APACHES) < set(tasks.TASKS)
    timed = tasks.PAGE.read_text("utf-8").partition(tasks.TIMES)[2]
    listed = [line.split(" | ")[0].strip("| ") for line in timed.splitlines() if line[:2] == "| "]
    assert listed == ["task", *tasks.TASKS], "run python -m tests.tasks --write"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A node with an authorizer, without which it has no access-control entries."""
    with ServerProcess(tmp_path, overrides=tasks.AUTHORIZER) as running:
        yield running


@pytest.mark.slow
def test_every_task_is_done_by_its_command(server: ServerProcess) -> None:
    tasks.prepare(server)
    environment = tasks.environment_for(server)
    failed = []
    for task in tasks.TASKS:
        command = tasks.ours(task, server.data)
        with tasks.around(task, environment):
            done = tasks.run_task(command, environment)
        if (done.returncode, done.stderr) != (0, ""):
            failed.append((task, command, done.stderr))
    assert failed == []
