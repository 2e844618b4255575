"""The calls of one request, which may be coordinated by several partitions of the state topic."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import ClockReading, arrival_of
from kraft_wire.broker.deferred_response import DeferredResponse
from kraft_wire.broker.share_persister import PersisterResult, SharePartitionKey
from kraft_wire.broker.share_state.calls import StateCall
from kraft_wire.model import Uuid
from kraft_wire.wire.message import Message

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["StateResults", "is_answered_empty", "serve"]

_Response = TypeVar("_Response", bound=Message)

StateResults: TypeAlias = dict[Uuid, dict[int, PersisterResult]]
"""By topic id and partition."""


class _Topic(Protocol):
    @property
    def partitions(self) -> Sequence[Any]: ...


def is_answered_empty(group_id: str, topics: Iterable[_Topic]) -> bool:
    """Whether Kafka answers a request with nothing: no group, no topics, or one without any."""
    listed = list(topics)
    return not (group_id and listed and all(topic.partitions for topic in listed))


def serve(
    broker: "Broker",
    context: RequestContext,
    calls: Sequence[StateCall],
    respond: Callable[[StateResults], _Response],
) -> _Response | Parked:
    """Make the calls in order; respond, now or later, when each has its result.

    A share partition that is called twice has one result, of its last call.
    """
    if not calls:
        return respond({})
    results: list[PersisterResult | None] = [None] * len(calls)
    waiting = len(calls)
    deferred = DeferredResponse[_Response](broker.complete, context.reply_to)

    def answered(place: int, result: PersisterResult) -> None:
        nonlocal waiting
        results[place] = result
        waiting -= 1
        if not waiting:
            deferred.send(respond(_by_topic(calls, results)))

    at = arrival_of(context)
    for place, call in enumerate(calls):

        def then(result: PersisterResult, later: ClockReading, place: int = place) -> None:
            answered(place, result)

        broker.share_states.coordinator.call(call, at, then)
    return deferred.result()


def _by_topic(
    calls: Sequence[StateCall], results: Sequence[PersisterResult | None]
) -> StateResults:
    found: StateResults = {}
    for call, result in zip(calls, results, strict=True):
        assert result is not None, call
        key: SharePartitionKey = call.key
        found.setdefault(key.topic_id, {})[key.partition] = result
    return found
