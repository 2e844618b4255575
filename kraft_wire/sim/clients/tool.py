"""The base of clients that ask coordinators what operators' tools ask."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.coordinated_client import CoordinatedClient

__all__ = ["Tool"]


class Tool(CoordinatedClient):
    """One tool on one topic; each step is drawn from those that a subclass has."""

    def __init__(self, context: ClientContext, number: int, topic: str, key: str) -> None:
        """`key` is a group, or a transactional id, by which the coordinator is found."""
        super().__init__(context, number, topic, key)
        self.timeout_us = 4_000_000
        self.think_us = 60_000

    @abstractmethod
    def steps(self) -> tuple[Callable[[], None], ...]:
        """Return what the tool may do next."""

    def step(self) -> None:
        if self.is_done or self.topic_id is None:
            return
        if self.coordinator is None:
            self.find_coordinator()
        else:
            self.random.choice(self.steps())()
