"""The command pointed at a running broker, ours or Apache's."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.apache.node import ApacheNode
from tests.command_forks import run_forked
from tests.server_process import ServerProcess

PROGRAM = str(Path(sys.executable).parent / "kraft-wire")


class Commands:
    """Runs verbs against one broker."""

    def __init__(self, broker: ServerProcess | ApacheNode) -> None:
        self.broker = broker
        self.bootstrap = broker.bootstrap

    def run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a verb to its end."""
        return run_forked([*arguments, "--bootstrap-server", self.bootstrap], stdin)

    def did(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run a verb that must succeed without a word on standard error."""
        done = self.run(*arguments, stdin=stdin)
        assert (done.returncode, done.stderr) == (0, b""), done
        return done.stdout.decode()

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a verb that goes on; the caller ends it."""
        command = [PROGRAM, *arguments, "--bootstrap-server", self.bootstrap]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )


@pytest.fixture(params=["ours", pytest.param("apache", marks=pytest.mark.java)])
def commands(request: pytest.FixtureRequest) -> Commands:
    """Every verb against our node and Apache's."""
    name = "module_server" if request.param == "ours" else "apache_node"
    broker: Any = request.getfixturevalue(name)
    return Commands(broker)
