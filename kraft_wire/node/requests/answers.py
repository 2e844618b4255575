"""Answers to a node's requests: at once, late, or by silence; paid for where there are quotas.

A connection has one request at a time, so a parked request is found by its connection. A late
answer is given to the request that it is for: neither to a later one of the connection, nor to a
connection that was closed. Outputs go to the list of the current call, which the host takes.
"""

from typing import Final, NamedTuple

from kraft_wire.broker.context import CLOSE, NO_REPLY, ReplyTo, RequestContext, Silence
from kraft_wire.node.outputs import Close, NoReply, Output
from kraft_wire.node.quotas.charge import Charge
from kraft_wire.node.requests.decoding import refused
from kraft_wire.node.requests.replies import encoded_reply
from kraft_wire.wire.header import RequestHeader
from kraft_wire.wire.message import Message

__all__ = ["Answers", "ParkedRequest"]


class ParkedRequest(NamedTuple):
    """A request that is answered late, with the values that its answer needs."""

    request_number: int
    header: RequestHeader
    charge: Charge | None


class Answers:
    """Answers requests, and keeps those that wait."""

    def __init__(self, parked_max: int) -> None:
        """`parked_max` is the number of requests that may wait at a time."""
        self.parked: Final[dict[int, ParkedRequest]] = {}
        """By connection."""
        self._parked_max = parked_max

    def park(
        self,
        outputs: list[Output],
        context: RequestContext,
        header: RequestHeader,
        charge: Charge | None,
    ) -> None:
        """Keep a request until its answer, unless there are too many."""
        waiting = ParkedRequest(context.request_number, header, charge)
        self.parked[context.connection_id] = waiting
        if len(self.parked) > self._parked_max:
            refusal = refused(header, "too_many_parked_requests")
            outputs.append(Close(context.connection_id, refusal))

    def complete(
        self, outputs: list[Output], reply_to: ReplyTo, answer: Message | Silence, now_ms: int
    ) -> None:
        """Answer a parked request, unless its connection is closed."""
        connection_id = reply_to.connection_id
        parked = self.parked.get(connection_id)
        if parked is None or parked.request_number != reply_to.request_number:
            return
        del self.parked[connection_id]
        self.give(outputs, connection_id, parked.header, answer, parked.charge, now_ms)

    def give(
        self,
        outputs: list[Output],
        connection_id: int,
        header: RequestHeader,
        answer: Message | Silence,
        charge: Charge | None,
        now_ms: int,
    ) -> None:
        """Answer a request; one with a charge pays for it first."""
        if isinstance(answer, Message):
            if charge is not None:
                answer = charge.quotas.answered(charge, answer, outputs, now_ms)
            outputs.append(encoded_reply(connection_id, header, answer))
        elif answer is NO_REPLY:
            if charge is not None:
                charge.quotas.silent(charge, outputs, now_ms)
            outputs.append(NoReply(connection_id))
        else:
            assert answer is CLOSE, "a parked request is answered by its response"
            outputs.append(Close(connection_id, None))
