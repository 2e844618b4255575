"""A Kafka cluster for tests: real sockets, started in milliseconds, controlled from Python."""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from kraft_wire.testing.admin import create_topic
from kraft_wire.testing.exchanges import Exchange
from kraft_wire.testing.faults.injecting import Faults
from kraft_wire.testing.in_process import InProcess, NodeFailed
from kraft_wire.testing.memory_files import MemoryFileSystem
from kraft_wire.testing.plan import CLIENTS, CONTROLLERS, ClusterPlan, Ports
from kraft_wire.testing.subprocesses import Subprocesses

__all__ = ["Cluster"]

T = TypeVar("T")

_HOST: Final = "127.0.0.1"


class Cluster:
    """A cluster that runs inside `with` or `async with`, or between `start` and `stop`."""

    def __init__(
        self,
        nodes: int = 1,
        *,
        roles: Sequence[str] | None = None,
        configs: Mapping[str, object] | None = None,
        topics: Mapping[str, int] | Iterable[str] = (),
        in_process: bool = True,
        directory: Path | str | None = None,
        seed: int = 0,
        verbose: bool = False,
    ) -> None:
        """Describe the cluster; nothing runs yet. Errors: ValueError.

        `nodes` are each broker and controller; `roles` lists "broker", "controller" or
        "broker,controller" for each node instead. `configs` are keys of server.properties.
        `topics` are created at the start, with one partition or the number in the mapping.
        Nodes run in a thread of this process over memory, unless `in_process` is false or a
        `directory` is named. `verbose` writes the nodes' log lines to stderr.
        """
        self._plan = ClusterPlan.of(nodes, roles, configs)
        self._topics = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)
        self._temporary: Path | None = None
        place = None if directory is None else Path(directory)
        self._local: InProcess | None = None
        self._processes: Subprocesses | None = None
        if in_process:
            self._local = InProcess(self._plan, place, seed, _writer(verbose))
        else:
            if place is None:
                place = self._temporary = Path(tempfile.mkdtemp(prefix="kraft-wire-"))
            self._processes = Subprocesses(self._plan, place, seed)

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start every node, wait until they serve clients, and create the topics."""
        (self._local or self._subprocesses).start()
        self._create_topics()
        return self

    def _create_topics(self) -> None:
        for name, partitions in self._topics.items():
            self.create_topic(name, partitions)

    def stop(self) -> None:
        """End every node. Errors: NodeFailed where one had ended by itself before."""
        (self._local or self._subprocesses).stop()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
        if self._local is not None and self._local.failures:
            raise NodeFailed("; ".join(self._local.failures))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.stop)

    def reset(self) -> None:
        """Return to the state after `start`: no records, groups, faults or exchanges.

        Ports stay; connections of clients end. Only for a cluster in memory.
        """
        self.in_process.reset()
        self._create_topics()

    # -- addresses -------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of every broker, with commas between them."""
        return ",".join(self._addresses(CLIENTS))

    @property
    def bootstrap_controllers(self) -> str:
        """`host:port` of every controller, with commas between them."""
        return ",".join(self._addresses(CONTROLLERS))

    def _addresses(self, listener: str) -> list[str]:
        return [f"{_HOST}:{ports[listener]}" for ports in self._ports.values() if listener in ports]

    @property
    def _ports(self) -> Ports:
        if self._local is None:
            return self._subprocesses.ports
        return {node_id: node.ports for node_id, node in self._local.nodes.items()}

    # -- topics ----------------------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int = -1,
        configs: Mapping[str, object] | None = None,
    ) -> str:
        """Create a topic, and return its name once every broker serves it.

        Errors: RequestRefused with Kafka's error.
        """
        servers = self._addresses(CLIENTS)
        create_topic(servers, name, partitions, replication_factor, configs or {})
        return name

    # -- nodes, time, faults, exchanges ----------------------------------------------------------

    @property
    def in_process(self) -> InProcess:
        """The nodes in this process. Errors: ValueError where they are processes."""
        if self._local is None:
            raise ValueError("this needs a cluster with in_process=True")
        return self._local

    @property
    def _subprocesses(self) -> Subprocesses:
        assert self._processes is not None, "a cluster is either"
        return self._processes

    @property
    def faults(self) -> Faults:
        """Adds fault rules: `cluster.faults.inject_error(...)`; see docs/FAULTS.md."""
        return Faults(self.in_process.rules)

    def kill_node(self, node_id: int) -> None:
        """End a node as SIGKILL does."""
        if self._local is None:
            self._subprocesses.kill_node(node_id)
        else:
            self._call(self._local.nodes[node_id].kill)

    def stop_node(self, node_id: int) -> None:
        """End a node as SIGTERM does."""
        if self._local is None:
            self._subprocesses.stop_node(node_id)
        else:
            assert self._local.thread is not None, "it runs"
            self._local.thread.run(self._local.nodes[node_id].stop())

    def start_node(self, node_id: int) -> None:
        """Start a node again over its data, and wait until it serves."""
        if self._local is None:
            self._subprocesses.start_node(node_id)
        else:
            failures_before = len(self._local.failures)
            self._call(self._local.nodes[node_id].start)
            self._local.await_ready(failures_before)

    def disk(self, node_id: int) -> MemoryFileSystem:
        """Return the disk of a node in memory: set `is_full` or `is_broken`."""
        disk = self.in_process.nodes[node_id].fs
        if not isinstance(disk, MemoryFileSystem):
            raise ValueError("this needs a cluster in memory")
        return disk

    def advance(self, seconds: float) -> None:
        """Advance the clock of all nodes: sessions expire, and retention runs, without a wait."""
        self.in_process.advance(seconds)

    def requests(self, api: str | None = None, client_id: str | None = None) -> list[Exchange]:
        """Return the newest requests with their responses, oldest first, decoded on access."""
        recorder = self.in_process.recorder
        return self._call(lambda: recorder.exchanges(api, client_id))

    def trace_to(self, path: Path | str | None) -> None:
        """Write each exchange from now on as a line of JSON; None ends that."""
        recorder = self.in_process.recorder
        self._call(lambda: recorder.trace_to(path))

    def _call(self, function: Callable[[], T]) -> T:
        thread = self.in_process.thread
        if thread is None:
            raise ValueError("the cluster does not run")
        return thread.call(function)


def _writer(verbose: bool) -> Callable[[str], None]:
    def write(line: str) -> None:
        if verbose:
            sys.stderr.write(line)

    return write
