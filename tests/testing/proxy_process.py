"""`kraft-wire proxy` as a process on 127.0.0.1, in front of a cluster of any make."""

from __future__ import annotations

from pathlib import Path

from tests.process import KRAFT_WIRE, KraftWireServer

__all__ = ["ProxyProcess"]


class ProxyProcess(KraftWireServer):
    """The command in front of a cluster, of which it is given the first bootstrap address."""

    def __init__(self, directory: Path, upstream: str, *options: str) -> None:
        super().__init__(directory / "proxy.log", directory / "proxy.json")
        self.options = [
            *("--upstream", upstream.split(",")[0], "--listen", "127.0.0.1:0"),
            *("--control", "127.0.0.1:0", *options),
        ]

    def command(self) -> list[str]:
        return [KRAFT_WIRE, "proxy", *self.options, "--ready-file", str(self.ready_file)]

    @property
    def bootstrap(self) -> str:
        """Where clients bootstrap."""
        return self.ready["listen"]
