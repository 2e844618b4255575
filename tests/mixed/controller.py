"""One controller as a process, of either make, with a directory that either make's tool formatted.

Ours is started by `kraft-wire server`, Apache's by its main class, both over the same kind of
server.properties. Whatever a process writes is kept beside its directory. Does not look inside.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.apache.java_process import java_command, run_java
from tests.chaos.network import Network
from tests.command_forks import run_forked
from tests.process import KRAFT_WIRE, Process, write_properties

OURS = "ours"
CLUSTER_ID = "kWjudgeAAAAAAAAAAAAAAA"
HEAP_MB = 256


class FormatFailed(RuntimeError):
    """A format tool ended with an error; the text holds what it said."""


class Controller(Process):
    """One member of a quorum, which can be formatted and wiped; whoever asks it waits for it."""

    heap_mb = HEAP_MB
    """Of Apache's."""
    host = "127.0.0.1"
    prefix: Sequence[str] = ()
    """What comes before the command of a node in a network of its own."""

    def __init__(
        self, node_id: int, make: str, home: Path, port: int, properties: Mapping[str, str]
    ) -> None:
        """`make` is `ours` or a release of Apache Kafka."""
        super().__init__(home / f"node-{node_id}.log")
        self.node_id = node_id
        self.make = make
        self.port = port
        self.data = home / f"node-{node_id}"
        self.properties_file = home / f"node-{node_id}.properties"
        self.properties = dict(properties)

    def live_in(self, network: Network | None) -> None:
        """Take the address and the namespace that a network has for it; None: the loopback."""
        if network is not None:
            self.host = network.host(self.node_id)
            self.prefix = network.prefix(self.node_id)

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"{self.host}:{self.port}"

    @property
    def is_ours(self) -> bool:
        """Whether it is not one of Apache's."""
        return self.make == OURS

    def format(self, *arguments: str, make: str | None = None) -> None:
        """Write the properties, and format the directory with the tool of a make (its own)."""
        write_properties(self.properties_file, self.properties)
        tool = make or self.make
        given = ["format", "-t", CLUSTER_ID, "-c", str(self.properties_file), *arguments]
        if tool == OURS:
            ours = run_forked(given)
            code, text = ours.returncode, (ours.stdout + ours.stderr).decode()
        else:
            done = run_java("kafka.tools.StorageTool", given, release=tool)
            code, text = done.exit_code, done.text
        if code:
            raise FormatFailed(text)

    def directory_id(self) -> str:
        """Its identity as meta.properties says."""
        lines = (self.data / "meta.properties").read_text().splitlines()
        return next(line.split("=", 1)[1] for line in lines if line.startswith("directory.id="))

    def wipe(self) -> None:
        """Lose the disk of a process that does not run."""
        assert not self.is_running, self.node_id
        shutil.rmtree(self.data)

    def command(self) -> Sequence[str]:
        if self.is_ours:
            return [*self.prefix, KRAFT_WIRE, "server", str(self.properties_file)]
        arguments = [str(self.properties_file)]
        flags = ["-Djudge.level=WARN", "-Xms32m"]
        command = java_command(
            "kafka.Kafka", arguments, release=self.make, heap_mb=self.heap_mb, flags=flags
        )
        return [*self.prefix, *command]
