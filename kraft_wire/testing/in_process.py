"""The nodes of a cluster in a thread of this process: one loop, and a clock that a test moves."""

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path
from traceback import walk_tb
from typing import Final

from kraft_wire.model import Uuid
from kraft_wire.node.event_log import EventLog
from kraft_wire.testing.clock import Clock
from kraft_wire.testing.exchanges import Recorder
from kraft_wire.testing.faults.rules import FaultRules
from kraft_wire.testing.local_node import LocalNode, Surroundings
from kraft_wire.testing.loop_thread import LoopThread
from kraft_wire.testing.plan import ClusterPlan, Identity
from kraft_wire.testing.seeded_random import SeededRandom

__all__ = ["DidNotStart", "InProcess", "NodeFailed"]

_READY_S: Final = 30.0
_LOOK_S: Final = 0.001
_STEP_MS: Final = 500
"""Time advances in steps of this: nodes exchange messages between two steps."""
_STEPS_MAX: Final = 2_000
"""A step is longer if there would be more steps than this."""
_SETTLE_S: Final = 0.002
_TURNS: Final = 20
_numbers = count(1)


class DidNotStart(Exception):
    """A cluster was not ready in time, or one of its nodes could not start."""


class NodeFailed(Exception):
    """A node ended by itself: its disk failed, or an assertion."""


class InProcess:
    """Runs the nodes of a plan."""

    def __init__(
        self, plan: ClusterPlan, directory: Path | None, seed: int, write: Callable[[str], None]
    ) -> None:
        self._plan = plan
        self._directory = directory
        self._seed = seed
        self._write = write
        self._clock = Clock()
        self.rules = FaultRules(self._topic_name)
        self.recorder = Recorder(self._clock.wall_ms)
        self.nodes: dict[int, LocalNode] = {}
        self.failures: list[str] = []
        self.thread: LoopThread | None = None

    def _topic_name(self, topic_id: Uuid) -> str | None:
        """Return the name of a topic from the metadata image of the first node that has it."""
        for each in self.nodes.values():
            if each.node is not None:
                topic = each.node.raft.committed.image.topic_by_id(topic_id)
                if topic is not None:
                    return topic.name
        return None

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start every node and wait until all are ready. Errors: DidNotStart."""
        self.failures.clear()
        self.thread = LoopThread(f"kraft-wire cluster {next(_numbers)}")
        self.thread.loop.set_exception_handler(self._exception)
        try:
            self.thread.call(self._start)
            self.await_ready()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        assert self.thread is not None, "the loop runs"
        random_source = SeededRandom(self._seed)
        around = Surroundings(
            self._plan,
            self.thread.loop,
            self._clock,
            random_source,
            self.rules,
            self.recorder,
            Identity.draw(self._plan, random_source),
            EventLog(self._write),
            self._directory,
            self.failures.append,
        )
        for node_id in self._plan.node_ids:
            self.nodes[node_id] = LocalNode(node_id, around)
        for each in self.nodes.values():
            each.start()

    def _exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """Record an error that nothing handles, print its traceback, and end the node."""
        error = context.get("exception")
        self.failures.append(f"{context.get('message')}: {error!r}")
        if isinstance(error, BaseException):
            loop.default_exception_handler(context)
            self._end_failed(error)

    def _end_failed(self, error: BaseException) -> None:
        """End the node that raised an error, as its process would end."""
        callers = [frame.f_locals.get("self") for frame, _ in walk_tb(error.__traceback__)]
        for each in self.nodes.values():
            if each.node is not None and any(caller is each.node for caller in callers):
                each.kill()

    def await_ready(self, failures_before: int = 0) -> None:
        """Wait until every running node has a leader, and all brokers know each other.

        Of `failures` the first `failures_before` are of earlier lives. Errors: DidNotStart.
        """
        assert self.thread is not None, "it runs"
        if not self.thread.call(self._is_ready):
            self.thread.run(self._await_ready(failures_before))

    async def _await_ready(self, failures_before: int) -> None:
        until = asyncio.get_running_loop().time() + _READY_S
        while not self._is_ready():
            if len(self.failures) > failures_before:
                raise DidNotStart("; ".join(self.failures[failures_before:]))
            if asyncio.get_running_loop().time() > until:
                raise DidNotStart(f"the cluster is not ready after {_READY_S:g} s")
            await asyncio.sleep(_LOOK_S)

    def _is_ready(self) -> bool:
        running = [each for each in self.nodes.values() if each.node is not None]
        brokers = {each.node_id for each in running if "broker" in self._role(each)}
        for each in running:
            assert each.node is not None, "chosen"
            image = each.node.raft.committed.image
            active = {broker_id for broker_id, broker in image.brokers.items() if broker.active}
            if brokers - active or (each.node_id in brokers and not each.serves_clients):
                return False
        return True

    def _role(self, node: LocalNode) -> str:
        return self._plan.roles[node.node_id - 1]

    def stop(self) -> None:
        """End every node and the thread."""
        if self.thread is None:
            return
        thread, self.thread = self.thread, None
        if self._directory is None:
            thread.call(self._kill_all)
        else:
            thread.run(self._stop_all())
        thread.stop()
        self.recorder.trace_to(None)
        self.nodes.clear()

    def _kill_all(self) -> None:
        for each in self.nodes.values():
            each.kill()
            each.close()

    async def _stop_all(self) -> None:
        for each in self.nodes.values():
            await each.stop()
            each.close()

    def reset(self) -> None:
        """Give every node an empty disk, and drop rules and exchanges."""
        assert self.thread is not None, "it runs"
        if self._directory is not None:
            raise ValueError("reset needs a cluster in memory: it does not remove a directory")
        self.rules.clear()
        failures_before = len(self.failures)
        self.thread.call(self._reset)
        self.await_ready(failures_before)

    def _reset(self) -> None:
        self._clock.ahead_ms = 0
        for each in self.nodes.values():
            each.begin_anew()
        self.recorder.clear()

    # -- time ------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Advance the clock of all nodes; events due in that time happen before this returns."""
        assert self.thread is not None, "it runs"
        self.thread.run(self._advance(round(seconds * 1000)))

    async def _advance(self, duration_ms: int) -> None:
        step_ms = max(_STEP_MS, duration_ms // _STEPS_MAX)
        left = duration_ms
        while left > 0:
            step = min(step_ms, left)
            self._clock.ahead_ms += step
            left -= step
            for each in self.nodes.values():
                if each.host is not None:
                    each.host.tick()
            if len(self.nodes) > 1:
                await self._settle()

    @staticmethod
    async def _settle() -> None:
        """Let nodes answer each other, on a machine that is busy too: turns of the loop count."""
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        await asyncio.sleep(_SETTLE_S)
