"""The tests of a Go module as its authors publish them, those that need a broker.

A test needs one if its function, or one that it calls, has one of the words by which the suite
reaches for the broker. The module is copied, because the cache of modules is read-only; nothing in
it is changed. Tests run in one process; those that fail, or that a panic of another one has kept
from running, run again alone, up to twice: the machine may be busy, and a panic ends the process.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.apache.jars import CHECKOUT
from tests.clients.registry import HERE as CLIENTS
from tests.clients.registry import prepare
from tests.scoreboard.results import FAILED, Results, leaves, of_go

__all__ = ["GoSuite", "needs_broker"]

SECONDS_MAX = 900
ALONE_SECONDS_MAX = 120
TRIES = 2
_FUNCTION = re.compile(r"^func (?:\([^)]*\) )?(\w+)\(", re.M)


@dataclass(frozen=True)
class GoSuite:
    """One package of a module that tests/clients/go/go.mod names."""

    module: str
    package: str
    words: Sequence[str]
    environment: Callable[[str], Mapping[str, str]]
    """Of the bootstrap address."""

    @property
    def folder(self) -> Path:
        """The copy of the module."""
        return CHECKOUT / "var" / "clients" / "suites" / self.module.replace("/", "+")

    def build(self) -> Path:
        """Compile all tests of the package; return the program."""
        program = self.folder / "suite.test"
        if not program.exists():
            listed = subprocess.run(
                ["go", "list", "-m", "-f", "{{.Dir}}", self.module],
                cwd=CLIENTS / "go",
                capture_output=True,
                text=True,
                check=True,
            )
            shutil.copytree(listed.stdout.strip(), self.folder, dirs_exist_ok=True)
            for each in self.folder.rglob("*"):
                each.chmod(each.stat().st_mode | 0o200)
            command = ["go", "test", "-mod=mod", "-c", "-o", str(program), f"./{self.package}"]
            prepare(command, self.folder)
        return program

    def version(self) -> str:
        """Return the version that go.mod names."""
        text = (CLIENTS / "go" / "go.mod").read_text("utf-8")
        return re.search(rf"{re.escape(self.module)} (\S+)", text)[1]  # type: ignore[index]  # it is there

    def run(self, bootstrap: str, log: Path) -> Results:
        """Run the tests that need a broker."""
        folder = self.folder / self.package
        program = self.build()
        wanted = needs_broker([*folder.glob("*_test.go")], self.words)
        found = self._run(program, wanted, bootstrap, log, SECONDS_MAX)
        for _ in range(TRIES):
            bad = [each for each in wanted if found.get(each, FAILED) == FAILED]
            for each in bad:
                again = self._run(program, [each], bootstrap, log, ALONE_SECONDS_MAX)
                mine = {name for name in found if name == each or name.startswith(f"{each}/")}
                found = {name: found[name] for name in found.keys() - mine}
                found |= {each: FAILED} | again
        return leaves(found)

    def _run(
        self, program: Path, names: Sequence[str], bootstrap: str, log: Path, seconds: int
    ) -> Results:
        pattern = f"^({'|'.join(names)})$"
        command = [str(program), "-test.v", f"-test.run={pattern}", f"-test.timeout={seconds}s"]
        done = subprocess.run(
            command,
            cwd=self.folder / self.package,
            env={**os.environ, **self.environment(bootstrap)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=seconds + 60,
        )
        with log.open("a") as output:
            output.write(done.stdout)
        return of_go(done.stdout)


def needs_broker(files: Sequence[Path], words: Sequence[str]) -> list[str]:
    """Return the tests whose function, or one that it calls, has one of the words."""
    bodies: dict[str, str] = {}
    for file in sorted(files):
        text = file.read_text("utf-8")
        starts = [(found.start(), found[1]) for found in _FUNCTION.finditer(text)]
        ends = [*[start for start, _ in starts], len(text)][1:]
        for (start, name), end in zip(starts, ends, strict=True):
            bodies[name] = bodies.get(name, "") + text[start:end]
    reached = {name for name, body in bodies.items() if any(each in body for each in words)}
    called = {name: {*re.findall(r"\b\w+\b", body)} - {name} for name, body in bodies.items()}
    while more := {name for name in bodies if called[name] & reached} - reached:
        reached |= more
    return sorted(name for name in reached if name.startswith("Test") and name != "TestMain")
