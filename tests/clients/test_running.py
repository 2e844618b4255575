"""What a harness that misbehaves, or a restart that fails, makes of a table: red, nothing lost."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.clients import running
from tests.clients.registry import Client
from tests.clients.running import Table, run_all, run_client
from tests.waiting import until

OK = '{"scenario": "%s", "status": "ok", "detail": "", "seconds": 0.1}'


def harness(body: str, name: str = "made up") -> Client:
    """A client whose harness is some lines of Python; `told` is what it was asked for."""
    program = f"import os, subprocess, sys, time\ntold = sys.argv[3:]\n{body}"
    return Client(name, lambda: [sys.executable, "-c", program])


class OneBroker:
    """A broker that nobody talks to; it may fail to restart."""

    def __init__(self, home: Path, *, restarts: bool = True) -> None:
        self.data, self.log, self.bootstrap = home, home / "log", "nowhere:1"
        self._restarts = restarts

    def restart(self) -> None:
        """End, and come back or not."""
        assert self._restarts, "it does not come back"


def test_harness_that_hangs_is_ended_with_what_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "SCENARIO_SECONDS_MAX", 5)
    child = tmp_path / "child"
    client = harness(
        f"print('{OK % 'keys'}')\n"
        'print(\'{"scenario": "nulls", "st\', end=\'\', flush=True)\n'
        "started = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(child)!r}, 'w').write(str(started.pid))\n"
        "time.sleep(600)"
    )
    results = run_client(client, "nowhere:1", "p", ["keys", "nulls"])
    assert results["keys"].green
    assert "no end within" in results["nulls"].detail
    _until_gone(int(child.read_text()))


def test_program_that_a_harness_leaves_behind_is_ended(tmp_path: Path) -> None:
    child = tmp_path / "child"
    client = harness(
        "started = subprocess.Popen(['sleep', '600'], stdout=-3, stderr=-3)\n"
        f"open({str(child)!r}, 'w').write(str(started.pid))\n"
        f"print('{OK % 'keys'}', flush=True)\n"
        "os._exit(0)"
    )
    assert run_client(client, "nowhere:1", "p", ["keys"])["keys"].green
    _until_gone(int(child.read_text()))


def _until_gone(pid: int) -> None:
    until(lambda: not _runs(pid), lambda: f"{pid} was left behind")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def test_cell_is_blank_only_where_the_client_cannot() -> None:
    told = '{"scenario": "topics", "status": "not applicable", "detail": "no", "seconds": 0}'
    for name, is_blank in (("kcat", True), ("sarama", False)):
        results = run_client(harness(f"print('{told}')", name), "nowhere:1", "p", ["topics"])
        assert results["topics"].green is is_blank, name


def test_table_stays_where_the_restart_fails(tmp_path: Path) -> None:
    client = harness(f"[print('{OK}' % each) for each in told]")
    broker = OneBroker(tmp_path, restarts=False)
    table = run_all([client], broker, ["keys", "restart-before"])
    assert table["made up"]["keys"].green
    assert "it does not come back" in table["made up"]["restart"].detail
    whole = run_all([client], OneBroker(tmp_path), ["keys", "restart-before"])
    assert all(result.green for result in whole["made up"].values())


def test_clients_are_not_run_once_there_is_a_reason(tmp_path: Path) -> None:
    clients = [harness(f"[print('{OK}' % each) for each in told]", name) for name in ("a", "b")]
    seen: list[list[str]] = []

    def ended(prefix: str, table: Table) -> str:
        seen.append(list(table))
        return "a broker is gone"

    table = run_all(clients, OneBroker(tmp_path), ["keys", "restart-before"], ended=ended)
    assert seen == [["a"]]
    assert table["a"]["keys"].green
    assert {table["b"][name].status for name in ("keys", "restart")} == {"fail"}
    assert table["a"]["restart"].status == "fail"
