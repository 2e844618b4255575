"""The calls to one other broker: a `BrokerRequests`, with one request in flight."""

from collections.abc import Callable
from typing import Final, cast

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.share_persister import PersisterResult, SharePartitionKey
from kraft_wire.broker.share_state.calls import CallKind, StateCall
from kraft_wire.broker.share_state.coordinator_requests import request_of, results_of
from kraft_wire.broker.share_state.pending_call import PendingCall
from kraft_wire.model import LeaderEpoch
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["CoordinatorQueue"]

_CALLS_MAX: Final = 1_000
"""Bound on the calls of one request."""
_NOT_ANSWERED: Final = PersisterResult(
    ErrorCode.UNKNOWN_SERVER_ERROR, "The response has no result for the share partition."
)


class CoordinatorQueue:
    """Calls wait here while a request is in flight, so that the next one has many of them."""

    __slots__ = ("_answered", "_in_flight", "_queue")

    def __init__(
        self, answered: Callable[[PendingCall, PersisterResult, ClockReading], None]
    ) -> None:
        """`answered` takes the result of each call."""
        self._answered = answered
        self._queue: dict[PendingCall, None] = {}
        self._in_flight: list[PendingCall] = []

    @property
    def is_waiting(self) -> bool:
        """Whether calls are queued, or a request is in flight."""
        return bool(self._queue or self._in_flight)

    def add(self, call: PendingCall) -> None:
        """Queue a call."""
        self._queue[call] = None

    def take_moved(self, is_led: Callable[[PendingCall], bool]) -> list[PendingCall]:
        """Give up the queued calls whose coordinator is another broker now."""
        moved = [call for call in self._queue if not is_led(call)]
        for call in moved:
            del self._queue[call]
        return moved

    # -- a `BrokerRequests` ----------------------------------------------------------------------

    def request(self, broker_epoch: int, now_ms: int) -> Message | None:
        """Return a request with the oldest call, and those of its kind and group.

        It has one call for each share partition: of two, the response would have one result.
        """
        if self._in_flight or not self._queue:
            return None
        first = next(iter(self._queue)).call
        batch: dict[SharePartitionKey, PendingCall] = {}
        for each in self._queue:
            is_alike = each.call.kind is first.kind and each.call.key.group_id == first.key.group_id
            if is_alike and each.call.key not in batch:
                batch[each.call.key] = each
                if len(batch) == _CALLS_MAX:
                    break
        self._in_flight = list(batch.values())
        for each in self._in_flight:
            del self._queue[each]
        calls = [each.call for each in self._in_flight]
        return request_of(first.kind, first.key.group_id, calls)

    def answered(self, response: Message, now_ms: int, wall_ms: int) -> None:
        """Hand back the results, share partition by share partition."""
        results = results_of(response)
        at = ClockReading(now_ms, wall_ms)
        in_flight, self._in_flight = self._in_flight, []
        for each in in_flight:
            key = each.call.key
            result = results.get((key.topic_id, key.partition), _NOT_ANSWERED)
            self._answered(each, _of_the_leader(each.call, result), at)

    def failed(self, now_ms: int, wall_ms: int) -> None:
        """Have the calls in flight repeated: no response came."""
        in_flight, self._in_flight = self._in_flight, []
        at = ClockReading(now_ms, wall_ms)
        for each in in_flight:
            self._answered(each, PersisterResult(ErrorCode.NETWORK_EXCEPTION), at)

    def deadline_ms(self) -> int | None:
        """Return None: queued calls are sent at once."""
        return None


def _of_the_leader(call: StateCall, result: PersisterResult) -> PersisterResult:
    """Return a result with the leader epoch that a read has made known; its response has none."""
    if call.kind is not CallKind.READ or result.state is None:
        return result
    leader_epoch = cast("LeaderEpoch", call.argument)
    return result._replace(state=result.state._replace(leader_epoch=leader_epoch))
