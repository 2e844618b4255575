"""A forked `kraft-wire` against one that was started: nobody can tell them apart."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests import command_forks
from tests.command_forks import run_forked
from tests.process import KRAFT_WIRE

NOWHERE = ("-b", "127.0.0.1:1")
COMMANDS = {
    "no verb": (),
    "version": ("--version",),
    "unknown verb": ("topcs",),
    "verb alone": ("acls",),
    "unknown option": ("acls", "add", "--bogus"),
    "nobody listens": ("topics", "list", *NOWHERE),
    "standard input": ("wire", "decode", "--request"),
    "long output": ("wire", "schema", "FetchRequest"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_forked_command_ends_as_one_that_was_started(name: str) -> None:
    stdin = b"00 12 00 00\nnonsense\n"
    started = subprocess.run([KRAFT_WIRE, *COMMANDS[name]], input=stdin, capture_output=True)
    assert vars(run_forked(COMMANDS[name], stdin)) == vars(started)


def test_directory_and_variables_are_those_of_the_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_forked(["random-uuid"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("KAFKA_NODE_ID", "7")
    Path("server.properties").write_text("process.roles=broker\nlog.dirs=data\n")
    arguments = ["format", "-t", "kWjudgeAAAAAAAAAAAAAAA", "-c", "server.properties"]
    started = subprocess.run([KRAFT_WIRE, *arguments], capture_output=True)
    forked = run_forked(arguments)
    assert (forked.returncode, forked.stderr) == (started.returncode, started.stderr)
    helped = run_forked(["topics", "create", "--help"]).stdout
    assert max(map(len, helped.decode().splitlines())) <= 60


def test_drawn_ids_differ() -> None:
    assert len({run_forked(["random-uuid"]).stdout for _ in range(5)}) == 5


def test_a_command_that_hangs_is_killed_and_the_next_runs() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_forked(["proxy", "--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0"], timeout_s=1)
    assert run_forked(["--version"]).returncode == 0


def test_a_second_thread_starts_the_program() -> None:
    with command_forks._lock:
        assert run_forked(["--version"]).stdout.startswith(b"kraft-wire ")
