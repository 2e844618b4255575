"""Nodes as processes, with processes of the test: their command, their files and their end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kraft_wire.testing import observed_server
from kraft_wire.testing import subprocesses as processes_module
from kraft_wire.testing.in_process import DidNotStart
from kraft_wire.testing.observed_server import ObservedServer
from kraft_wire.testing.plan import ClusterPlan, node_properties
from kraft_wire.testing.subprocesses import Subprocesses


class Process:
    """A process that writes its ready file, or ends with a log."""

    made: list[Process]
    log = ""
    is_slow = False

    def __init__(self, command: list[str], **options: Any) -> None:
        self.command, self.options = command, options
        self.calls: list[object] = []
        self.made.append(self)
        if self.log:
            Path(options["stdout"].name).write_text(self.log)
        else:
            Path(command[5]).write_text("{}")

    def poll(self) -> int | None:
        return 1 if self.log else None

    def wait(self, seconds: float | None = None) -> None:
        self.calls.append(("wait", seconds))
        if self.is_slow and seconds is not None:
            raise subprocess.TimeoutExpired("x", seconds)

    def terminate(self) -> None:
        self.calls.append("terminate")

    def kill(self) -> None:
        self.calls.append("kill")


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> type[Process]:
    kind = cast(type[Process], type("Kind", (Process,), {"made": []}))
    monkeypatch.setattr(processes_module.subprocess, "Popen", kind)
    environ = {"KAFKA_NODE_ID": "9", "KAFKA": "1", "PATH": "/bin"}
    monkeypatch.setattr(processes_module, "os", SimpleNamespace(environ=environ))
    return kind


PLAN = ClusterPlan.of(2, ["broker,controller", "broker"], {"x": 1})


def test_each_node_has_its_files_and_its_command(kind: type[Process], tmp_path: Path) -> None:
    cluster = Subprocesses(PLAN, tmp_path / "c", 7)
    cluster.start()
    first, second = kind.made
    for number, process in ((1, first), (2, second)):
        stem = tmp_path / "c" / f"node-{number}"
        assert process.command == [
            *(sys.executable, "-m", "kraft_wire.cli.main", "server", "--ready-file"),
            *(f"{stem}.ready", f"{stem}.properties"),
        ]
        assert process.options["env"] == {"KAFKA": "1", "PATH": "/bin"}
        properties = node_properties(PLAN, number, str(stem), cluster.ports)
        lines = (tmp_path / "c" / f"node-{number}.properties").read_text().splitlines()
        assert lines == [f"{key}={value}" for key, value in properties.items()]
        assert (stem / "meta.properties").exists()
    assert list(cluster.ports) == [1, 2]
    assert list(cluster.ports[1]) == ["PLAINTEXT", "CONTROLLER"]
    cluster.kill_node(2)
    cluster.kill_node(2)
    assert second.calls == ["kill", ("wait", None)]
    cluster.stop_node(2)
    cluster.start_node(2)
    assert len(kind.made) == 3
    cluster.stop()
    for process in (first, kind.made[2]):
        assert process.calls == ["terminate", "terminate", ("wait", 20.0)]


def test_node_that_does_not_end_is_killed(kind: type[Process], tmp_path: Path) -> None:
    kind.is_slow = True
    cluster = Subprocesses(PLAN, tmp_path, 7)
    cluster.start()
    cluster.stop_node(1)
    assert kind.made[0].calls == ["terminate", ("wait", 20.0), "kill", ("wait", None)]
    cluster.stop()


def test_node_that_ends_at_once_is_told_with_the_end_of_its_log(
    kind: type[Process], tmp_path: Path
) -> None:
    kind.log = "a" * 500 + "b" * 2_000
    cluster = Subprocesses(PLAN, tmp_path, 7)
    with pytest.raises(DidNotStart) as refused:
        cluster.start()
    assert str(refused.value) == f"node 1 is not ready: {'b' * 2_000}"
    assert [each.calls[0] for each in kind.made] == ["terminate", "terminate"]


def test_server_without_a_trace_keeps_no_exchanges(tmp_path: Path) -> None:
    plain = ObservedServer(None, None)
    assert not plain._recorder.is_on
    traced = ObservedServer(None, str(tmp_path / "trace"))
    assert traced._recorder.is_on
    traced._recorder.trace_to(None)
    assert not traced._recorder.is_on
    assert observed_server.EPHEMERAL_SETTINGS == {
        "log.dirs": "memory",
        "storage.ballast.bytes": "0",
    }
    disk = plain.disk()
    disk.open("f", create=True)
    assert disk.names("") == ["f"]
