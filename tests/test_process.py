"""The harness of processes: what it starts is ready or fails, and is gone when the test is over."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process import DidNotStart, Process, accepts, end
from tests.waiting import until


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


class Script(Process):
    """A line of shell as a server, which is ready once its file is there."""

    def __init__(self, home: Path, line: str) -> None:
        super().__init__(home / "log")
        self.directory_of_work = home
        self._line = line

    def command(self) -> list[str]:
        return ["sh", "-c", self._line]

    def prepare(self) -> None:
        self._ready.unlink(missing_ok=True)

    def is_ready(self) -> bool:
        return self._ready.exists()

    @property
    def _ready(self) -> Path:
        return self.log.with_name("ready")


def test_process_is_ready_restarted_and_gone(tmp_path: Path) -> None:
    with Script(tmp_path, "echo begun; touch ready; exec sleep 1000") as script:
        assert (script.is_running, script.died, script.answers) == (True, False, True)
        first = script.pid
        script.restart()
        assert script.pid != first
        assert script.text == "begun\n" * 2
        last = script.pid
    assert (script.is_running, script.stop()) == (False, 0)
    assert not Path(f"/proc/{last}").exists()


def test_process_that_ends_before_it_is_ready_shows_what_it_wrote(tmp_path: Path) -> None:
    script = Script(tmp_path, "echo it is wrong; exit 3")
    with pytest.raises(DidNotStart, match="it is wrong"):
        script.start()
    assert not script.is_running


def test_process_that_ends_by_itself_has_died_until_it_is_waited_for(tmp_path: Path) -> None:
    script = Script(tmp_path, "touch ready; exit 5")
    script.begin()
    until(lambda: script.died)
    assert script.wait() == 5
    assert not script.died


def test_paused_process_ends_in_order(tmp_path: Path) -> None:
    with Script(
        tmp_path, "trap 'exit 7' TERM; touch ready; while :; do sleep 0.01; done"
    ) as script:
        script.pause()
        assert not script.answers
        assert script.stop() == 7
        assert not script.is_paused


def test_port_accepts_while_somebody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert accepts(port)
    assert not accepts(port)
