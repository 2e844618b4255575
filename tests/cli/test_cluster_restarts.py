"""Which nodes `cluster up` restarts: those that failed, later each time, not those stopped."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraft_wire.cli.cluster import processes
from kraft_wire.cli.cluster.files import ClusterFiles
from kraft_wire.cli.cluster.processes import ClusterProcesses
from kraft_wire.cli.cluster.restarts import RestartPolicy, Restarts
from kraft_wire.cli.cluster.state import ClusterState, NodeState
from tests.waiting import until


def on_failure() -> Restarts:
    restarts = Restarts(RestartPolicy.ON_FAILURE)
    restarts.started(1, 0.0)
    return restarts


def test_pause_doubles_and_begins_anew_after_a_steady_run() -> None:
    restarts = on_failure()
    pauses = []
    now_s = 0.0
    for _ in range(7):
        pause_s = restarts.exited(1, 2, now_s)
        assert pause_s is not None
        pauses.append(pause_s)
        assert restarts.due(now_s + pause_s - 0.1) == []
        now_s += pause_s
        assert restarts.due(now_s) == [1]
        restarts.started(1, now_s)
        assert restarts.due(now_s) == []
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    assert restarts.exited(1, 2, now_s + 60) == 1


@pytest.mark.parametrize("code", [0, -signal.SIGTERM, 128 + signal.SIGTERM])
def test_node_that_stopped_by_itself_or_was_asked_to_is_not_restarted(code: int) -> None:
    assert on_failure().exited(1, code, 5.0) is None


@pytest.mark.parametrize("code", [1, 2, -signal.SIGKILL, -signal.SIGSEGV])
def test_no_policy_restarts_nothing(code: int) -> None:
    restarts = Restarts()
    restarts.started(1, 0.0)
    assert restarts.exited(1, code, 5.0) is None
    assert on_failure().exited(1, code, 5.0) == 1


def test_restart_that_is_cancelled_is_never_due() -> None:
    restarts = on_failure()
    assert restarts.exited(1, 2, 0.0) == 1
    restarts.cancelled(1)
    assert restarts.due(1_000.0) == []


class Up:
    """One node, which is a shell, under a policy."""

    def __init__(self, directory: Path) -> None:
        self.files = ClusterFiles(directory)
        self.node = NodeState(1, "kraft-wire", 9001)
        self.state = ClusterState("cluster", nodes={1: self.node})
        restarts = Restarts(RestartPolicy.ON_FAILURE)
        self.processes = ClusterProcesses(self.files, self.state, None, None, restarts)

    def looked(self) -> list[str]:
        """Look until there is news."""

        def look() -> list[str]:
            self.processes.look()
            return self.processes.news

        news = until(look)
        self.processes.news = []
        return news


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Up]:
    monkeypatch.setattr(processes, "command_of", lambda *_: ["sleep", "1000"])
    found = Up(tmp_path)
    found.processes.start(1)
    found.processes.news.clear()
    yield found
    found.processes.stop_all(is_urgent=lambda: True)


def test_killed_process_is_started_again(up: Up) -> None:
    former = up.node.pid
    assert former is not None
    os.kill(former, signal.SIGKILL)
    assert up.looked() == ["node 1: killed; restarts in 1 s"]
    (line,) = up.looked()
    assert line.startswith("node 1: started, process ")
    assert up.node.pid not in (None, former)
    assert up.node.note == ""


def test_node_that_a_command_ends_stays_down(up: Up) -> None:
    assert up.node.pid is not None
    up.files.stop_request(1).touch()
    up.processes.look()
    assert up.files.stop_request(1).exists(), "not before it has ended"
    os.kill(up.node.pid, signal.SIGKILL)
    start = f"kraft-wire cluster start 1 --dir {up.files.directory}"
    assert up.looked() == [f"node 1: killed; to start it again: {start}"]
    assert not up.files.stop_request(1).exists()


def test_restart_is_cancelled_by_a_command(up: Up) -> None:
    assert up.node.pid is not None
    os.kill(up.node.pid, signal.SIGKILL)
    assert up.looked() == ["node 1: killed; restarts in 1 s"]
    up.files.stop_request(1).touch()
    up.processes.look()
    assert not up.files.stop_request(1).exists()
    assert up.processes._restarts.due(1e12) == []
