"""A client with a group: it finds the group's coordinator, and looks again when that one moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC
from kraft_wire.model import Uuid, uuid_to_text
from kraft_wire.sim.clients.broker_client import BrokerClient
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.judge.answer_fields import judge_coordinator
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kraft_wire.wire.message import Message

__all__ = ["WRONG_NODE", "CoordinatedClient"]

WRONG_NODE: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
"""After these errors the group may have another coordinator."""


class CoordinatedClient(BrokerClient):
    """A client of one group, or of what another kind of coordinator has under a key."""

    coordinator_type = 0
    """The type in FindCoordinator."""
    coordinator_topic = OFFSETS_TOPIC
    """The topic whose leaders coordinate."""

    def __init__(self, context: ClientContext, number: int, topic: str, group: str) -> None:
        super().__init__(context, number, topic)
        self.group = group
        self.coordinator: int | None = None
        """The broker that it takes for the group's coordinator."""

    def new_member_id(self) -> str:
        """Return an id that no member had before."""
        return uuid_to_text(Uuid(self.random.randbytes(16)))

    def find_coordinator(self) -> None:
        """Ask any broker; a step or another try follows."""
        request = FindCoordinatorRequest(
            key_type=self.coordinator_type, coordinator_keys=[self.group]
        )
        node_id = self.some_broker()
        self.ask(node_id, request, lambda response: self._found(node_id, response))

    def _found(self, node_id: int, response: Message | None) -> None:
        if isinstance(response, FindCoordinatorResponse):
            found = response.coordinators[0]
            if found.error_code == 0 and found.node_id >= 0:
                truths = self.context.truth.of_topic(self.coordinator_topic)
                judge_coordinator(node_id, found, truths)
                self.coordinator = found.node_id
                self.step()
                return
        self.again()

    def is_led_by(self, node_id: int) -> bool:
        """Return whether a broker is the group's coordinator, and knows it.

        One that was replaced and does not know it may answer from its old state, as in Kafka.
        """
        judge = self.context.judge
        truths = self.context.truth.of_topic(self.coordinator_topic)
        return bool(truths) and all(judge.leads(node_id, each) for each in truths)

    def ask_coordinator(
        self,
        request: Message,
        then: Callable[[int, Message | None], None],
        version: int | None = None,
    ) -> None:
        """Ask the coordinator; `then` gets its id, and the answer if it led all the time.

        `version` is the newest unless given.
        """
        node_id = self.coordinator
        assert node_id is not None, self.number
        has_led = self.is_led_by(node_id)

        def answered(response: Message | None) -> None:
            if response is None:
                self.coordinator = None
            elif not (has_led and self.is_led_by(node_id)):
                self.context.history.counts["answer of a replaced coordinator"] += 1
                response = None
                self.coordinator = None
            then(node_id, response)

        self.ask(node_id, request, answered, version=version)
