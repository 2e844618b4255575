"""The processes of a cluster: started, watched and stopped by `cluster up`, their parent.

Nodes that exit are not restarted until a command asks for it, unless the policy says so; a node
that a command ended stays down in any case. Children have their own session, so that Ctrl-C reaches
them only as the SIGTERM of their parent. No other process is ever signalled.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from kraft_wire.cli.cluster.files import ClusterFiles, shell_line
from kraft_wire.cli.cluster.network import ClusterNetwork
from kraft_wire.cli.cluster.restarts import Restarts
from kraft_wire.cli.cluster.setup import command_of, environment_of
from kraft_wire.cli.cluster.state import ClusterState, NodeState

__all__ = ["ClusterProcesses"]

_STOP_SECONDS: Final = 30.0
_STEP_SECONDS: Final = 0.02
_LOG_TAIL_BYTES: Final = 4_096


class ClusterProcesses:
    """Children by node id; changes are in the state, and in `news` as lines."""

    def __init__(
        self,
        files: ClusterFiles,
        state: ClusterState,
        jars: Path | None,
        network: ClusterNetwork | None,
        restarts: Restarts | None = None,
    ) -> None:
        self.news: list[str] = []
        """The events since it was last emptied, one line each."""
        self._files = files
        self._state = state
        self._jars = jars
        self._network = network
        self._restarts = restarts or Restarts()
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, node_id: int) -> None:
        """Start a node that does not run."""
        assert node_id not in self._children, node_id
        node = self._state.nodes[node_id]
        command = command_of(self._files, node, self._jars)
        if self._network is not None:
            command = self._network.command(node_id, command)
        with self._files.log(node_id).open("ab") as log:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._files.directory,
                env=environment_of(),
                start_new_session=True,
            )
        self._children[node_id] = child
        self._restarts.started(node_id, time.monotonic())
        node.pid, node.is_paused, node.note = child.pid, False, ""
        self.news.append(f"node {node_id}: started, process {child.pid}, {node.address}")

    def look(self) -> None:
        """Record which nodes ended, were paused, resumed or cut, and start the requested ones."""
        self._look_at_cuts()
        for node in self._state.nodes.values():
            child = self._children.get(node.node_id)
            if child is not None:
                self._look_at(node, child)
            self._look_at_stop_request(node)
            request = self._files.start_request(node.node_id)
            if request.exists():
                if node.node_id not in self._children:
                    self.start(node.node_id)
                    self._files.save(self._state)  # before the requester continues
                request.unlink(missing_ok=True)
        for node_id in self._restarts.due(time.monotonic()):
            self.start(node_id)
        if self.news:
            self._files.save(self._state)

    def _look_at_stop_request(self, node: NodeState) -> None:
        """Cancel the restart of a node that is to stay down."""
        request = self._files.stop_request(node.node_id)
        if node.node_id not in self._children and request.exists():
            self._restarts.cancelled(node.node_id)
            request.unlink(missing_ok=True)

    def _look_at_cuts(self) -> None:
        former, self._state.cuts = self._state.cuts, self._files.cuts()
        for cut in self._state.cuts:
            if cut not in former:
                self.news.append(f"node {cut.sender}: does not reach node {cut.receiver}")
        for cut in former:
            if cut not in self._state.cuts:
                self.news.append(f"node {cut.sender}: reaches node {cut.receiver} again")

    def _look_at(self, node: NodeState, child: subprocess.Popen[bytes]) -> None:
        if child.poll() is not None:
            del self._children[node.node_id]
            node.pid, node.is_paused = None, False
            node.note = self._how(node, child.returncode) + self._what_next(node, child.returncode)
            self.news.append(f"node {node.node_id}: {node.note}")
            return
        changed = None
        with suppress(ChildProcessError):  # it has just ended, which the next look sees
            changed = os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WCONTINUED | os.WNOHANG)
        is_paused = node.is_paused if changed is None else changed.si_code == os.CLD_STOPPED
        if is_paused != node.is_paused:
            node.is_paused = is_paused
            self.news.append(f"node {node.node_id}: {'paused' if is_paused else 'resumed'}")

    def _how(self, node: NodeState, code: int) -> str:
        """Report how a node ended."""
        if code == -signal.SIGKILL:
            return "killed"
        if code in (0, -signal.SIGTERM, 128 + signal.SIGTERM):
            return "stopped"
        return f"exited with code {code}: {_last_line(self._files.log(node.node_id))}"

    def _what_next(self, node: NodeState, code: int) -> str:
        """Report when an ended node restarts, or how to start it."""
        request = self._files.stop_request(node.node_id)
        if request.exists():
            request.unlink(missing_ok=True)
            pause_s = None
        else:
            pause_s = self._restarts.exited(node.node_id, code, time.monotonic())
        if pause_s is not None:
            return f"; restarts in {pause_s:g} s"
        return f"; to start it again: {shell_line(self._files, 'start', str(node.node_id))}"

    def heal(self) -> None:
        """Heal all cuts: a node that is cut off could not do a controlled shutdown."""
        if self._network is None:
            return
        cuts, self._state.cuts = self._files.cuts(), []
        self._network.heal(cuts)
        for cut in cuts:
            self._files.cut(cut).unlink(missing_ok=True)

    def stop_all(self, *, is_urgent: Callable[[], bool]) -> None:
        """End every child and wait for it: gracefully, until patience ends or it is urgent.

        Brokers first: they ask the controllers before they stop.
        """
        for nodes in (self._state.brokers, self._state.controllers):
            self._stop([each for each in nodes if each.node_id in self._children], is_urgent)
        assert not self._children, sorted(self._children)
        self._files.save(self._state)

    def _stop(self, nodes: list[NodeState], is_urgent: Callable[[], bool]) -> None:
        for node in nodes:
            _signal(self._children[node.node_id], signal.SIGTERM)
            _signal(self._children[node.node_id], signal.SIGCONT)
        deadline = time.monotonic() + _STOP_SECONDS
        left = nodes
        while left:
            for node in left:
                child = self._children[node.node_id]
                if child.poll() is not None:
                    del self._children[node.node_id]
                    node.pid, node.is_paused, node.note = None, False, ""
                elif is_urgent() or time.monotonic() > deadline:
                    _signal(child, signal.SIGKILL)
            left = [each for each in left if each.node_id in self._children]
            time.sleep(_STEP_SECONDS)


def _signal(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        child.send_signal(number)


def _last_line(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - _LOG_TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "its log is empty")
