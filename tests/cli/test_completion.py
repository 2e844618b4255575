"""`kraft-wire completion zsh|fish`: the scripts, run by the shells themselves where they are."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.process import KRAFT_WIRE
from tests.waiting import HANG_S, until

ENVIRONMENT = {
    **os.environ,
    "PATH": f"{Path(KRAFT_WIRE).parent}{os.pathsep}{os.environ['PATH']}",
    "TERM": "dumb",
}


def program(name: str) -> str:
    """The path of a shell; the test is skipped where it is missing."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"not run: {name} is not installed (apt-get install {name})")
    return found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("kraft-wire topics add-p", ["add-partitions"]),
        ("kraft-wire groups re", ["reset-offsets"]),
        ("kraft-wire cluster up --restart on", ["on-failure"]),
        ("kraft-wire dump re", ["records.log"]),
    ],
)
def test_fish_offers_what_may_follow(line: str, found: list[str], tmp_path: Path) -> None:
    (tmp_path / "records.log").touch()
    script = f"kraft-wire completion fish | source; complete -C '{line}'"
    done = subprocess.run(
        [program("fish"), "--no-config", "-c", script],
        cwd=tmp_path,
        env={**ENVIRONMENT, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert (done.stdout.split(), done.stderr) == (found, "")


class Zsh:
    """A zsh on a terminal of its own, without anybody's settings."""

    def __init__(self, home: Path) -> None:
        self.shown = ""
        self._terminal, child = pty.openpty()
        os.set_blocking(self._terminal, False)
        self._process = subprocess.Popen(
            [program("zsh"), "-f", "-i"],
            stdin=child,
            stdout=child,
            stderr=child,
            cwd=home,
            env={**ENVIRONMENT, "HOME": str(home), "PS1": "% "},
            start_new_session=True,
        )
        os.close(child)

    def type(self, text: str, expected: str) -> None:
        """Type, and wait until something is shown after that."""
        before = len(self.shown)
        os.write(self._terminal, text.encode())
        until(lambda: expected in self._read()[before:], lambda: self.shown)

    def _read(self) -> str:
        with suppress(BlockingIOError):  # nothing more for now
            self.shown += os.read(self._terminal, 1 << 16).decode("utf-8", "replace")
        return self.shown

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)


@pytest.fixture
def zsh(tmp_path: Path) -> Iterator[Zsh]:
    found = Zsh(tmp_path)
    yield found
    found.end()


def test_zsh_completes_on_tab(zsh: Zsh, tmp_path: Path) -> None:
    (tmp_path / "records.log").touch()
    zsh.type("autoload -U compinit && compinit -u -D && print load''ed\n", "\nloaded")
    zsh.type("source <(kraft-wire completion zsh) && print sour''ced\n", "\nsourced")
    zsh.type("kraft-wire topics add-p\t", "add-partitions")
    zsh.type("\x15kraft-wire cluster up --restart on\t", "on-failure")
    zsh.type("\x15kraft-wire dump re\t", "records.log")
