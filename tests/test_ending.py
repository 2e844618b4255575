"""A process that a test started is gone when it is over, whatever the process thinks of it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.ending import end


def test_whoever_ends_in_time_says_how() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert end(process, signal.SIGTERM, 60) == -signal.SIGTERM
        assert end(process, signal.SIGTERM, 60) == -signal.SIGTERM, "gone already"


def test_whoever_ignores_a_signal_is_killed_and_told_of() -> None:
    program = "import signal; signal.signal(15, signal.SIG_IGN); print(flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            end(process, signal.SIGTERM, 0.1)
        assert process.returncode == -signal.SIGKILL
