"""The response of a handler that may have to wait for the commit of a record."""

from typing import Generic, TypeVar

from kraft_wire.broker.context import PARKED, Parked, RequestContext
from kraft_wire.broker.transactions.coordinator import TransactionCoordinator
from kraft_wire.wire.message import Message

__all__ = ["DeferredResponse"]

_Response = TypeVar("_Response", bound=Message)


class DeferredResponse(Generic[_Response]):
    """One response, given during the handler's call or after it."""

    __slots__ = ("_context", "_coordinator", "_is_parked", "_response")

    def __init__(self, coordinator: TransactionCoordinator, context: RequestContext) -> None:
        self._coordinator = coordinator
        self._context = context
        self._is_parked = False
        self._response: _Response | None = None

    def send(self, response: _Response) -> None:
        """Give the response, once."""
        assert self._response is None, response
        self._response = response
        if self._is_parked:
            self._coordinator.complete(self._context.reply_to, response)

    def result(self) -> _Response | Parked:
        """Return the handler's result."""
        if self._response is not None:
            return self._response
        self._is_parked = True
        return PARKED
