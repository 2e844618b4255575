"""Requests of a broker to itself: the handler is called directly, without a link.

Kafka sends them over its own listener. Parked requests are completed under a connection id below 0,
which no connection has.
"""

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import PARKED, ReplyTo, RequestContext
from kraft_wire.broker.dispatch import handler
from kraft_wire.broker.inter_broker import BrokerRequests
from kraft_wire.model import ANONYMOUS
from kraft_wire.wire.message import Message

__all__ = ["LocalRequests"]

_LOCAL_HOST = "/127.0.0.1"


class LocalRequests:
    """The requests of one client to its own broker."""

    def __init__(self, broker: Broker, client_id: str, listener: str) -> None:
        self._broker = broker
        self._client_id = client_id
        self._listener = listener
        self._in_flight: dict[ReplyTo, BrokerRequests] = {}

    def send(self, request: Message, requests: BrokerRequests, now_ms: int, wall_ms: int) -> None:
        """Serve a request; its response is among the broker's completions, now or later."""
        context = RequestContext(
            self._broker.produce_purgatory.new_internal_id(),
            0,
            request.MAX_VERSION - request.LATEST_VERSION_UNSTABLE,
            now_ms,
            wall_ms,
            self._client_id,
            _LOCAL_HOST,
            self._listener,
            ANONYMOUS,
        )
        self._in_flight[context.reply_to] = requests
        answer = handler(request.API_KEY)(self._broker, context, request)
        if isinstance(answer, Message):
            self._broker.complete(context.reply_to, answer)
        else:
            assert answer is PARKED, (request, answer)

    def completed(self, reply_to: ReplyTo, response: Message, now_ms: int, wall_ms: int) -> bool:
        """Deliver a response to its sender; return False if it is not one of these."""
        requests = self._in_flight.pop(reply_to, None)
        if requests is None:
            return False
        requests.answered(response, now_ms, wall_ms)
        return True
