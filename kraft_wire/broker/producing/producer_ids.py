"""Producer ids (KIP-98, KIP-730): taken one by one from blocks that the controller hands out.

The next block is requested before the present one is used up. A broker without a block lets its
first clients wait for the controller's answer, which comes with the next flush. Kafka's broker
returns a retriable error instead, about which clients log a warning. The rest of a block is never
used after the broker stops.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.ports import AskController
from kraft_wire.wire.generated.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.init_producer_id import InitProducerIdResponse
from kraft_wire.wire.message import Message

if TYPE_CHECKING:
    from kraft_wire.broker.context import ReplyTo

__all__ = ["ANSWER_AWAITED_MS", "ProducerIds", "id_answer"]

PREFETCH_BELOW: Final = 100
"""Ids left when the next block is asked for: a tenth of the controller's blocks, as in Kafka."""

ANSWER_AWAITED_MS: Final = 5_000
"""How long an unanswered request for a block keeps clients waiting, and the next one back."""

_ID_MAX: Final = (1 << 63) - 1


class ProducerIds:
    """The ids that this broker may give out now, and the requests that wait for one."""

    __slots__ = (
        "_ask_controller",
        "_asked_at_ms",
        "_complete",
        "_left",
        "_next_block",
        "_node_id",
        "_registered_epoch",
        "_waiting",
    )

    def __init__(
        self,
        node_id: int,
        registered_epoch: Callable[[], int | None],
        ask_controller: AskController,
        complete: "Callable[[ReplyTo, Message], None]",
    ) -> None:
        """Start without ids: the first request asks for a block.

        `registered_epoch` returns the broker epoch that the metadata have of this node, None while
        it is not registered. `complete` answers a parked request.
        """
        self._node_id = node_id
        self._registered_epoch = registered_epoch
        self._ask_controller = ask_controller
        self._complete = complete
        # Non-obvious 8: never taken over from an earlier run: reuse would be a duplicate producer.
        self._left = range(0)
        self._next_block = range(0)
        self._asked_at_ms: int | None = None
        self._waiting: list[tuple[ReplyTo, Callable[[], None]]] = []
        """In the order of their requests; requests wait only while a block is requested."""

    def take(self, now_ms: int) -> int | None:
        """Return a unique id; None while the controller has not answered."""
        if not self._next_block and len(self._left) < PREFETCH_BELOW:
            self._ask(now_ms)
        return self._next()

    def park(self, reply_to: "ReplyTo") -> bool:
        """Let a request wait for the requested block; false if none is requested."""

        def answer() -> None:
            self._complete(reply_to, id_answer(self._next()))

        return self._wait(reply_to, answer)

    def await_block(self, reply_to: "ReplyTo", now_ms: int, run: Callable[[], None]) -> bool:
        """Run a request once there are ids, or on timeout; false if it can run now."""
        if not self._left and not self._next_block:
            self._ask(now_ms)
        if self._left or self._next_block:
            return False
        return self._wait(reply_to, run)

    def _wait(self, reply_to: "ReplyTo", run: Callable[[], None]) -> bool:
        if self._asked_at_ms is None:
            return False
        self._waiting.append((reply_to, run))
        return True

    def deadline_ms(self) -> int | None:
        """Return when `expire` is due, None while no request waits."""
        if self._asked_at_ms is None or not self._waiting:
            return None
        return self._asked_at_ms + ANSWER_AWAITED_MS

    def expire(self, now_ms: int) -> None:
        """Answer waiting requests to retry, once the controller's answer counts as lost."""
        deadline_ms = self.deadline_ms()
        if deadline_ms is not None and deadline_ms <= now_ms:
            self.answer_waiting()

    def forget(self, connection_id: int) -> None:
        """Drop the requests of a closed connection."""
        if self._waiting:
            self._waiting = [
                each for each in self._waiting if each[0].connection_id != connection_id
            ]

    def answer_waiting(self) -> None:
        """Answer waiting requests: with an id while ids are left, else with a retriable error."""
        waiting, self._waiting = self._waiting, []
        for _, run in waiting:
            run()

    def _next(self) -> int | None:
        if not self._left:
            self._left, self._next_block = self._next_block, range(0)
        if not self._left:
            return None
        taken = self._left[0]
        self._left = self._left[1:]
        return taken

    def _ask(self, now_ms: int) -> None:
        asked_at_ms = self._asked_at_ms
        if asked_at_ms is not None and now_ms - asked_at_ms < ANSWER_AWAITED_MS:
            return
        broker_epoch = self._registered_epoch()
        if broker_epoch is None:
            return
        self._asked_at_ms = now_ms
        request = AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=broker_epoch)
        self._ask_controller(request, self._answered)

    def _answered(self, response: Message, now_ms: int) -> None:
        assert isinstance(response, AllocateProducerIdsResponse), response
        self._asked_at_ms = None
        start = response.producer_id_start
        end = start + response.producer_id_len
        is_usable = 0 <= start <= end <= _ID_MAX + 1
        if response.error_code == ErrorCode.NONE and is_usable and not self._next_block:
            self._next_block = range(start, end)
        self.answer_waiting()


def id_answer(
    producer_id: int | None, error: ErrorCode = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
) -> InitProducerIdResponse:
    """Return the answer with an id, or with the error."""
    if producer_id is None:
        return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
