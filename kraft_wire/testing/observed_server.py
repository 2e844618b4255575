"""The test features of `kraft-wire server`: data in memory, faults, a trace, a control port."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kraft_wire.model import Uuid
from kraft_wire.node.disks.opening import StartError
from kraft_wire.node.event_log import EventLog
from kraft_wire.node.node import Node
from kraft_wire.testing.clock import Clock
from kraft_wire.testing.exchanges import Recorder
from kraft_wire.testing.faults.control_port import serve_control
from kraft_wire.testing.faults.documents import InvalidRule, read_rules
from kraft_wire.testing.faults.rules import FaultRules
from kraft_wire.testing.memory_files import MemoryFileSystem
from kraft_wire.testing.node_host import NodeHost

__all__ = ["EPHEMERAL_SETTINGS", "ObservedServer", "add_rules_of_file", "open_control"]

EPHEMERAL_SETTINGS: Final = {"log.dirs": "memory", "storage.ballast.bytes": "0"}
"""Settings of a node in memory, which the command line overrides: no ballast."""


class ObservedServer:
    """The rules and the record of one server, and the host that follows them."""

    def __init__(self, faults_file: str | None, trace_file: str | None) -> None:
        """Errors: StartError for a file that cannot be used."""
        self._clock = Clock()
        self._node: Node | None = None
        self.rules = FaultRules(self._topic_name)
        self._recorder = Recorder(self._clock.wall_ms, keeps=False)
        if faults_file is not None:
            add_rules_of_file(self.rules, faults_file)
        if trace_file is not None:
            try:
                self._recorder.trace_to(trace_file)
            except OSError as error:
                raise StartError(f"--trace {trace_file}: {error.strerror}") from error

    def disk(self) -> MemoryFileSystem:
        """Return an empty disk in memory."""
        return MemoryFileSystem(self._clock.wall_ms)

    def host(
        self,
        node: Node,
        loop: asyncio.AbstractEventLoop,
        log: EventLog,
        stop_at_once: Callable[[str], None],
    ) -> NodeHost:
        """Return the host of a node."""
        self._node = node
        return NodeHost(node, loop, log, stop_at_once, self._clock, self.rules, self._recorder)

    def _topic_name(self, topic_id: Uuid) -> str | None:
        assert self._node is not None, "requests come to a node"
        topic = self._node.raft.committed.image.topic_by_id(topic_id)
        return None if topic is None else topic.name


def add_rules_of_file(rules: FaultRules, path: str) -> None:
    """Put the rules of a file into force. Errors: StartError."""
    try:
        for each in read_rules(Path(path).read_text(encoding="utf-8")):
            rules.add(*each)
    except OSError as error:
        raise StartError(f"--faults {path}: {error.strerror}") from error
    except (InvalidRule, UnicodeDecodeError) as error:
        raise StartError(f"--faults {path}: {error}") from error


async def open_control(rules: FaultRules, address: str) -> str:
    """Serve the rules over HTTP, and return where. Errors: StartError."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise StartError(f"--control {address} is not an address of the form host:port")
    try:
        server = await serve_control(rules, host, int(port))
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise StartError(f"--control {address}: {reason}") from error
    bound: tuple[str, int] = server.sockets[0].getsockname()[:2]
    return f"{bound[0]}:{bound[1]}"
