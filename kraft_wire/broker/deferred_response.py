"""The response of a handler that may have to wait: for a commit, or for calls to other brokers."""

from collections.abc import Callable
from typing import Generic, TypeVar

from kraft_wire.broker.context import PARKED, Parked, ReplyTo
from kraft_wire.wire.message import Message

__all__ = ["DeferredResponse"]

_Response = TypeVar("_Response", bound=Message)


class DeferredResponse(Generic[_Response]):
    """One response, given during the handler's call or after it."""

    __slots__ = ("_complete", "_is_parked", "_reply_to", "_response")

    def __init__(self, complete: Callable[[ReplyTo, Message], None], reply_to: ReplyTo) -> None:
        """`complete` sends a response to a parked request."""
        self._complete = complete
        self._reply_to = reply_to
        self._is_parked = False
        self._response: _Response | None = None

    def send(self, response: _Response) -> None:
        """Give the response, once."""
        assert self._response is None, response
        self._response = response
        if self._is_parked:
            self._complete(self._reply_to, response)

    def result(self) -> _Response | Parked:
        """Return the handler's result; the last thing that the handler does."""
        if self._response is not None:
            return self._response
        self._is_parked = True
        return PARKED
