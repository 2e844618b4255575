"""What a JVM writes while Spark starts is not shown, unless the start fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.log_directories import WrittenLogs

START = """
import os, subprocess, sys, threading
from kraft_wire.spark.quiet_start import quiet_start
with quiet_start():
    script = "echo WARN chatter >&2; echo 1 ERROR bad >&2; echo up; read line; echo later >&2"
    pipes = {{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}}
    child = subprocess.Popen(["sh", "-c", script], **pipes)
    child.stdout.readline()
    {in_start}
child.communicate(b"go\\n")
for each in threading.enumerate():
    if each.name == "jvm-lines":
        each.join(60)
print("own", file=sys.stderr)
"""


def standard_error(in_start: str) -> list[str]:
    """Return what a process wrote whose start ran `in_start` after its child was up."""
    code = START.format(in_start=in_start)
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    return done.stderr.splitlines()


def test_start_shows_errors_only_and_later_lines_at_once() -> None:
    lines = standard_error("pass")
    assert "WARN chatter" not in lines
    assert sorted(lines) == ["1 ERROR bad", "later", "own"]


def test_lines_that_nobody_has_read_when_the_start_ends_are_part_of_it() -> None:
    late = "sys.setswitchinterval(100); os.write(2, b'WARN chatter\\n' * 2_000)"
    lines = standard_error(late)
    assert sorted(lines) == ["1 ERROR bad", "later", "own"]


def test_half_a_line_that_python_still_holds_when_the_start_ends_is_part_of_it() -> None:
    lines = standard_error("sys.stderr.write('WARN half')")
    assert sorted(lines) == ["1 ERROR bad", "later", "own"]


def test_start_that_fails_shows_every_line() -> None:
    lines = standard_error("raise SystemExit('no')")
    assert lines[:2] == ["WARN chatter", "1 ERROR bad"]
    assert "no" in lines


@pytest.mark.java
def test_verb_writes_its_result_and_nothing_to_standard_error(tmp_path: Path) -> None:
    logs = WrittenLogs(tmp_path / "node-1", 1)
    logs.append("orders", 0, 10)
    logs.close()
    verb = [sys.executable, "-m", "kraft_wire", "spark", "export", str(logs.path)]
    done = subprocess.run(
        [*verb, "--output", str(tmp_path / "out"), "--master", "local[1]"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].split()[:2] == ["directory", "files"]
