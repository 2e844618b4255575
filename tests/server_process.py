"""A ``kraft-wire server`` as a process on 127.0.0.1, with a data directory that outlives it.

It is started as a person starts it: the command of the virtual environment, ``--listen`` on a free
port, ready when the ready file appears. Does not look inside the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.ports import free_port
from tests.process import KraftWireServer


class ServerProcess(KraftWireServer):
    """Start, stop, kill and restart one kraft-wire server over one data directory.

    The port is chosen once, so that clients find the server again after a restart.
    """

    def __init__(
        self, directory: Path, *, overrides: Mapping[str, str] | None = None, port: int = 0
    ) -> None:
        super().__init__(directory / "server.log", directory / "ready.json")
        self.directory = directory
        self.data = directory / "data"
        self.overrides = dict(overrides or {})
        self._port = port or free_port()

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the first listener."""
        listeners: dict[str, str] = self.ready["listeners"]
        return next(iter(listeners.values()))

    def arguments(self) -> list[str]:
        arguments = ["--data", str(self.data), "--listen", f"127.0.0.1:{self._port}"]
        for key, value in self.overrides.items():
            arguments += ["--override", f"{key}={value}"]
        return arguments
