"""The host of a node: when it wakes up."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from kraft_wire.node.event_log import EventLog
from kraft_wire.node.limits import ServerLimits
from kraft_wire.node.node import Node
from kraft_wire.server.clock import now_ms
from kraft_wire.server.host import Host


class Sleeper:
    """A node that asks for nothing but to be woken."""

    def __init__(self, after_ms: int) -> None:
        self.config = SimpleNamespace(
            limits=ServerLimits(), security={}, links={}, protected_listeners=()
        )
        self.outputs: list[Any] = []
        self.due_ms = now_ms() + after_ms
        self.woken = asyncio.Event()

    def deadline_ms(self) -> int:
        return self.due_ms

    def tick(self, at_ms: int, wall_ms: int) -> None:
        self.due_ms = at_ms + 3_600_000
        self.woken.set()


def test_deadline_that_comes_sooner_than_the_last_one_is_kept() -> None:
    async def wake() -> None:
        node = Sleeper(after_ms=3_600_000)
        log = cast(EventLog, SimpleNamespace(event=lambda *_, **__: None))
        host = Host(cast(Node, node), asyncio.get_running_loop(), log, lambda reason: None)
        try:
            host.settle_all()
            node.due_ms = now_ms() + 1
            host.settle_all()
            await asyncio.wait_for(node.woken.wait(), 60)
        finally:
            host.stop()

    asyncio.run(wake())
