"""The answer to a request that depends on calls which may be answered at once, or later."""

from collections.abc import Callable
from typing import Generic, TypeVar

from kraft_wire.broker.context import PARKED, Parked, ReplyTo
from kraft_wire.wire.message import Message

__all__ = ["LateAnswer"]


_Answer = TypeVar("_Answer", bound=Message)


class LateAnswer(Generic[_Answer]):
    """Gives an answer to the handler while it runs, and to the connection after that."""

    __slots__ = ("_complete", "_given", "_is_parked", "_reply_to")

    def __init__(self, complete: Callable[[ReplyTo, Message], None], reply_to: ReplyTo) -> None:
        self._complete = complete
        self._reply_to = reply_to
        self._given: _Answer | None = None
        self._is_parked = False

    def give(self, answer: _Answer) -> None:
        """Answer the request, once."""
        if self._is_parked:
            self._complete(self._reply_to, answer)
        else:
            self._given = answer

    def now_or_parked(self) -> _Answer | Parked:
        """Return the answer if it was given, else park the request; the last thing to do."""
        if self._given is not None:
            return self._given
        self._is_parked = True
        return PARKED
