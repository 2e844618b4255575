"""Answers of parked requests that something is added to when they are ready.

Part of a request was refused before it was handed on; the refusals join the answer to the rest.
"""

from kraft_wire.broker.context import PARKED, ReplyTo, RequestContext, Silence, Withheld
from kraft_wire.node.authorization.asker import Finish, Passed
from kraft_wire.wire.message import Message

__all__ = ["LateAnswers"]


class LateAnswers:
    """The functions that complete the answers of parked requests, at most one for a connection."""

    def __init__(self) -> None:
        self._finishing: dict[int, tuple[int, Finish]] = {}
        """By connection: number of a parked request, and the function that makes its answer."""

    def after(
        self, context: RequestContext, passed: Passed, answer: Message | Withheld
    ) -> Message | Withheld:
        """Complete the answer to the served part, now or when it is ready."""
        if passed.finish is None:
            return answer
        if answer is PARKED:
            self._finishing[context.connection_id] = context.request_number, passed.finish
            return PARKED
        return passed.finish(answer)

    def finished(self, to: ReplyTo, answer: Message | Silence) -> Message | Silence:
        """Return a late answer together with the refused part of its request."""
        number, finish = self._finishing.get(to.connection_id, (-1, None))
        if finish is None or number != to.request_number:
            return answer
        del self._finishing[to.connection_id]
        return finish(answer)

    def forget(self, connection_id: int) -> None:
        """Drop the parked request of a closed connection."""
        self._finishing.pop(connection_id, None)
