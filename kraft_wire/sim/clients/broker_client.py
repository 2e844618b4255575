"""The base of all clients of brokers: links to several nodes, metadata, and retries.

A client has one request in flight and trusts its newest metadata. It knows nothing that a client
could not know; only the topics' names are given to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from kraft_wire.model import Uuid
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.link import ClientLink
from kraft_wire.sim.judge.answer_fields import judge_metadata
from kraft_wire.sim.scheduler import stream
from kraft_wire.sim.setup import BROKER_PORT
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["BrokerClient"]

_BACKOFF_US: Final = 50_000


class BrokerClient(ABC):
    """One client of brokers; subclasses implement `step`."""

    def __init__(self, context: ClientContext, number: int, topic: str) -> None:
        self.context = context
        self.stage = context.stage
        self.number = number
        self.topic = topic
        self.topic_id: Uuid | None = None
        self.leaders: dict[int, tuple[int, int]] = {}
        """Partition -> leader and its epoch, from the newest metadata."""
        self.random = stream(self.stage.seed, "caller", number)
        self.lacks_leaders = False
        """Whether some partition of the topic had no leader then."""
        self.is_done = False
        self.is_busy = False
        self.think_us = 20_000
        self.timeout_us = 1_500_000
        self._links: dict[int, ClientLink] = {}
        self._newest: dict[tuple[Uuid, int], tuple[int, int]] = {}
        """Topic id and partition -> newest leader epoch that was heard of, and its leader."""

    def start(self) -> None:
        """Begin after a while."""
        self.later(self.think_us)

    def later(self, mean_us: int) -> None:
        """Take the next step after a pause."""
        delay_us = int(self.random.expovariate(1 / mean_us)) + 1
        self.stage.scheduler.after(delay_us, self._go_on)

    def again(self) -> None:
        """A request failed: refresh the leaders, after a moment."""
        self.topic_id = None
        self.later(_BACKOFF_US)

    def _go_on(self) -> None:
        if self.is_busy:
            return
        if self.topic_id is None and not self.is_done:
            self._learn()
        else:
            self.step()

    @abstractmethod
    def step(self) -> None:
        """Do the next step; it ends with an `ask`, `later` or `again`, or the client is over."""

    def ask(
        self,
        node_id: int,
        request: Message,
        then: Callable[[Message | None], None],
        timeout_us: int | None = None,
        version: int | None = None,
    ) -> None:
        """Send a request to a broker; `then` gets the answer, or None after the timeout."""
        timeout_us = self.timeout_us if timeout_us is None else timeout_us
        link = self._links.get(node_id)
        if link is None:
            link = self._links[node_id] = ClientLink(
                self.stage, self.context.traffic, -100 - self.number
            )
        self.is_busy = True
        asked_us = self.stage.now_us

        def answered(response: Message | None) -> None:
            self.is_busy = False
            if response is None and self.stage.now_us >= asked_us + timeout_us:
                self.context.unanswered(node_id, self.number, request, asked_us)
            then(response)

        link.ask(node_id, BROKER_PORT, request, timeout_us, answered, version)

    def some_broker(self) -> int:
        """Return any broker."""
        return self.random.choice(self.stage.setup.brokers)

    def _learn(self) -> None:
        topics = [MetadataRequestTopic(name=self.topic)]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        node_id = self.some_broker()
        self.ask(node_id, request, lambda response: self._learnt(node_id, response))

    def _learnt(self, node_id: int, response: Message | None) -> None:
        if not isinstance(response, MetadataResponse):
            self.later(_BACKOFF_US)
            return
        judge_metadata(node_id, response, self.context.truth)
        topic = response.topics[0]
        if topic.error_code:
            self.topic_is_gone()
            self.later(_BACKOFF_US)
            return
        found = {}
        for each in topic.partitions:
            key, place = (topic.topic_id, each.partition_index), (each.leader_epoch, each.leader_id)
            # KIP-320: metadata older than the known leader epoch is ignored.
            epoch, leader = self._newest[key] = max(self._newest.get(key, place), place)
            found[each.partition_index] = (leader, epoch)
        self.leaders = {number: each for number, each in found.items() if each[0] >= 0}
        self.lacks_leaders = len(self.leaders) < len(found)
        if not self.leaders:
            self.later(_BACKOFF_US)
            return
        self.topic_id = topic.topic_id
        self.learnt()

    def learnt(self) -> None:
        """The topic is known again."""
        self.step()

    def topic_is_gone(self) -> None:
        """Drop the topic's leaders, because the topic is gone."""
        self.leaders = {}
