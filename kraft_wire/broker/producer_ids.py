"""Producer ids (KIP-98, KIP-730): taken one by one from blocks that the controller hands out.

The next block is asked for before the present one is used up. Where the controller is this process
the first id is there at once; elsewhere the first client is told to come again, as by Kafka. What
is left of a block when the broker stops is never used.
"""

from typing import TYPE_CHECKING, Final

from kraft_wire.wire.generated.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["ProducerIds"]

PREFETCH_BELOW: Final = 100
"""Ids left when the next block is asked for: a tenth of the controller's blocks, as in Kafka."""

ANSWER_AWAITED_MS: Final = 5_000
"""How long an unanswered request for a block keeps the next one back."""


class ProducerIds:
    """The ids that this broker may give out now."""

    __slots__ = ("_asked_at_ms", "_left", "_next_block")

    def __init__(self) -> None:
        """Start without any: the first request asks for a block."""
        self._left = range(0)
        self._next_block = range(0)
        self._asked_at_ms: int | None = None

    def take(self, broker: "Broker", now_ms: int) -> int | None:
        """Return an id that nobody else gets; None while the controller has not answered."""
        if not self._next_block and len(self._left) < PREFETCH_BELOW:
            self._ask(broker, now_ms)
        if not self._left:
            self._left, self._next_block = self._next_block, range(0)
        if not self._left:
            return None
        taken = self._left[0]
        self._left = self._left[1:]
        return taken

    def _ask(self, broker: "Broker", now_ms: int) -> None:
        asked_at_ms = self._asked_at_ms
        if asked_at_ms is not None and now_ms - asked_at_ms < ANSWER_AWAITED_MS:
            return
        registered = broker.image.brokers.get(broker.node_id)
        if registered is None:
            return
        self._asked_at_ms = now_ms
        request = AllocateProducerIdsRequest(
            broker_id=broker.node_id, broker_epoch=registered.broker_epoch
        )
        broker.ask_controller(request, self._answered)

    def _answered(self, response: Message) -> None:
        assert isinstance(response, AllocateProducerIdsResponse), response
        self._asked_at_ms = None
        if response.error_code == ErrorCode.NONE and not self._next_block:
            start = response.producer_id_start
            self._next_block = range(start, start + response.producer_id_len)
