"""What `kraft-wire server` prints when it is ready, and its ready file."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.cli.server import command, metrics_endpoint
from kraft_wire.node.config.node_config import load_config, settings_of_file
from kraft_wire.node.disks.opening import StartError
from kraft_wire.node.event_log import EventLog
from kraft_wire.sim.disk.files import SimFileSystem

A = SimpleNamespace(name="A", advertised_host="a", advertised_port=1, port=11)
B = SimpleNamespace(name="B", advertised_host="b", advertised_port=2, port=12)
TRY_PRODUCE = "echo hello | kraft-wire produce test --bootstrap-server a:1"
TRY_QUORUM = "kraft-wire quorum describe --bootstrap-controller a:1"


def test_keys_that_are_not_known_are_named_before_the_node_starts() -> None:
    text = "node.id=1\nprocess.roles=broker\ncontroller.quorum.voters=2@h:1\nlog.dirs=/a\n"
    text += "controller.listener.names=CONTROLLER\nlog.dir=/b\nfrobnicate=1\nno.such.key=x\n"
    config = load_config(settings_of_file(text, "server.properties"), {})
    lines: list[str] = []
    with pytest.raises(StartError, match="/a is not formatted"):
        command._open_node(config, SimFileSystem(), EventLog(lines.append, lambda: 0))
    named = [line for line in lines if "unknown_config_key" in line]
    assert ["key=frobnicate" in named[0], "key=no.such.key" in named[1]] == [True, True]
    assert len(named) == 2


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        (
            {},
            [
                "node 7 of cluster c is ready on a:1",
                "data in /d, /e; what is acknowledged survives a killed process",
                f"try  {TRY_PRODUCE}",
            ],
        ),
        (
            {"flushes": True, "listeners": [A, B]},
            [
                "node 7 of cluster c is ready on a:1, B on b:2",
                "data in /d, /e; what is acknowledged survives power loss",
                f"try  {TRY_PRODUCE}",
            ],
        ),
        (
            {"ephemeral": True, "flushes": True},
            [
                "node 7 of cluster c is ready on a:1",
                "data in memory; what is acknowledged survives nothing",
                f"try  {TRY_PRODUCE}",
            ],
        ),
        (
            {"broker": False},
            [
                "node 7 of cluster c is ready on a:1",
                "data in /d, /e; what is acknowledged survives power loss, as metadata always does",
                f"try  {TRY_QUORUM}",
            ],
        ),
    ],
)
def test_ready_node_says_where_it_is_and_what_to_try(
    more: dict[str, Any], lines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ready.json"
    parsed: Any = command._Arguments(
        ready_file=str(file), is_ephemeral=more.get("ephemeral", False), control_address="x:9"
    )
    node: Any = SimpleNamespace(cluster_id="c", flushes_every_append=more.get("flushes", False))
    config: Any = SimpleNamespace(
        all_listeners=more.get("listeners", [A]),
        all_dirs=["/d", "/e"],
        log_dirs=["/d", "e"],
        is_broker=more.get("broker", True),
        node_id=7,
    )
    command._announce(parsed, node, config)
    assert capsys.readouterr().out == "".join(f"kraft-wire: {line}\n" for line in lines)
    assert file.read_text().endswith("}\n")
    assert json.loads(file.read_text()) == {
        "pid": os.getpid(),
        "node_id": 7,
        "cluster_id": "c",
        "listeners": {
            each.name: f"{each.advertised_host}:{each.port}" for each in config.all_listeners
        },
        "log_dirs": [] if parsed.is_ephemeral else ["/d", f"{os.getcwd()}/e"],
        "control": "x:9",
    }
    assert list(tmp_path.iterdir()) == [file]
    command._take_away_ready_file(str(file))
    command._take_away_ready_file(str(file))
    command._take_away_ready_file(None)
    assert list(tmp_path.iterdir()) == []


def test_place_of_the_ready_file_is_checked_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: str) -> str:
        with pytest.raises(command._UsageError) as error:
            command._check_ready_file(path)
        return str(error.value).replace(str(tmp_path), "D")

    command._check_ready_file(None)
    command._check_ready_file(f"{tmp_path}/ready.json")
    monkeypatch.chdir(tmp_path)
    command._check_ready_file("ready.json")
    assert refused(str(tmp_path)) == "--ready-file D: Is a directory"
    assert refused(f"{tmp_path}/x/ready.json") == "--ready-file D/x/ready.json: No such directory"
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (str(tmp_path), os.W_OK))
    text = "--ready-file D/ready.json: the directory cannot be written to"
    assert refused(f"{tmp_path}/ready.json") == text


def test_ready_file_that_cannot_be_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    path = f"{tmp_path}/ready.json"
    with pytest.raises(StartError) as error:
        command._write_ready_file(path, "x")
    assert str(error.value) == f"--ready-file {path}: No space left on device"
    assert list(tmp_path.iterdir()) == []


def test_metrics_report_ready_until_the_server_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Callable[[], bool]] = []
    events: list[tuple[str, str]] = []
    failure: list[OSError] = []

    def serve(host: object, address: str, port: int, is_ready: Callable[[], bool]) -> Any:
        assert (address, port) == ("m", 0)
        if failure:
            raise failure.pop()
        asked.append(is_ready)
        socket = SimpleNamespace(getsockname=lambda: ("m", 9404))
        return SimpleNamespace(sockets=[socket])

    monkeypatch.setattr(metrics_endpoint, "serve_metrics", serve)
    log = SimpleNamespace(event=lambda name, address: events.append((name, address)))
    host = SimpleNamespace(is_stopping=False, log=log)
    loop = SimpleNamespace(run_until_complete=lambda result: result)
    serving: Any = SimpleNamespace(host=host, loop=loop)
    state: Any = SimpleNamespace(is_ready=False)
    command._serve_metrics(serving, "m", 0, state)
    (is_ready,) = asked
    seen = []
    for state.is_ready, host.is_stopping in ((False, False), (True, False), (True, True)):
        seen.append(is_ready())
    assert seen == [False, True, False]
    assert events == [("metrics", "http://m:9404/metrics")]
    for error, reason in (
        (OSError(errno.EADDRINUSE, "long text"), os.strerror(errno.EADDRINUSE)),
        (OSError("no such name"), "no such name"),
    ):
        failure.append(error)
        with pytest.raises(StartError, match=rf"^cannot serve metrics on m:0: {reason}$"):
            command._serve_metrics(serving, "m", 0, state)
