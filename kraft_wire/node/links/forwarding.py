"""Requests to the active controller on any node: KIP-590, KIP-919.

A node whose own controller is not active, or that has none, puts its clients' requests into
envelopes; requests of the node itself (producer ids, its registration) are sent as they are. A
request waits while no controller is known. It is sent again if the controller is not active or
cannot be reached, until its time is over (by default Kafka's 60 seconds). A request that was sent
twice may be applied twice, as in Kafka, and the second answer shows it (TOPIC_ALREADY_EXISTS and
the like). The node's own requests are safe to repeat: they are sent to a new leader at once,
although the previous one may only be slow.

Memory is bounded by the requests that clients may park. Not here: the links (`peer_channels`),
what is forwarded (`controller_apis`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from kraft_wire.apis.registry import APIS
from kraft_wire.broker.context import ReplyTo, RequestContext
from kraft_wire.model import ReportEvent, sooner
from kraft_wire.node.links.envelopes import mentions, open_answer, pack
from kraft_wire.node.links.peer_channels import ChannelEvent, ChannelLimits, PeerChannels
from kraft_wire.node.outputs import Output
from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.events import RequestFailed
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.voters import Address
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.envelope import EnvelopeResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.header import RequestHeader
from kraft_wire.wire.message import Buffer, DecodeLimits, Message

__all__ = ["AskedBy", "Forwarder", "active_controller"]

AskedBy: TypeAlias = ReplyTo | str
"""The receiver of the answer: a client's connection, or a tag of the node."""

Refuse: TypeAlias = Callable[[Message, ErrorCode, str | None], Message]

_PATIENCE_MS: Final = 60_000
_AGAIN_AFTER_MS: Final = 100
_REQUEST_TIMEOUT_MS: Final = 30_000
"""`controller.socket.timeout.ms` of Kafka."""
_LINE_EVERY_MS: Final = 1_000


@dataclass(slots=True, eq=False)
class _Question:
    """A request and its state; request id 0: it waits to be sent."""

    requester: RequestContext | str
    """The client's request, or the tag of a request of the node."""
    request: Message
    sent: Message
    """The request, or the envelope around it."""
    header: RequestHeader | None
    """The client's header if the request is in an envelope."""
    until_ms: int
    request_id: int = 0
    asked_of: int = -1
    """The node that the request was last sent to."""


def active_controller(quorum: Quorum) -> tuple[int, Address] | None:
    """Return the address of the quorum's leader, None if unknown."""
    address = quorum.endpoints_of_leader().get(quorum.config.listener)
    return None if quorum.leader_id < 0 or address is None else (quorum.leader_id, address)


class Forwarder:
    """The requests of one node to the active controller."""

    def __init__(
        self,
        node_id: int,
        link_ids: Iterator[int],
        report: ReportEvent,
        decode_limits: DecodeLimits,
        *,
        active: Callable[[], tuple[int, Address] | None],
        refuse: Refuse,
        patience_ms: int = _PATIENCE_MS,
    ) -> None:
        """`active` returns the active controller; `refuse` makes an answer of only an error.

        `patience_ms`: time after which a request without an answer is refused here.
        """
        assert patience_ms > 0, patience_ms
        self.answers: list[tuple[AskedBy, Message | None]] = []
        """For the node to take; None if the client's connection must be closed."""
        link_limits = ChannelLimits(
            request_timeout_ms=min(_REQUEST_TIMEOUT_MS, patience_ms), requests_max=4_096
        )
        self.channels = PeerChannels(str(node_id), link_ids, report, link_limits, decode_limits)
        """The links, one for each controller that got requests."""
        self._patience_ms = patience_ms
        self._decode_limits = decode_limits
        self._active = active
        self._refuse = refuse
        self._questions: dict[int | str, _Question] = {}
        """By connection id or tag, the oldest first."""
        self._by_request: dict[int, _Question] = {}
        self._next_request_id = 1
        self._rests_until_ms = 0
        self._report = report
        self._next_line_ms = 0

    # -- the node's calls ------------------------------------------------------------------------

    def forward(self, context: RequestContext, request: Message) -> None:
        """Forward a client's request in an envelope; raises UnencodableMessage."""
        version, number = context.api_version, context.request_number
        header = RequestHeader(request.API_KEY, version, number, context.client_id)
        envelope = pack(header, request, context.client_host, context.principal)
        until_ms = context.now_ms + self._patience_ms
        self._ask(_Question(context, request, envelope, header, until_ms), context.now_ms)

    def ask(self, tag: str, request: Message, now_ms: int) -> None:
        """Send a request of the node itself, unless one with this tag is outstanding."""
        if tag in self._questions:
            return
        self._ask(_Question(tag, request, request, None, now_ms + self._patience_ms), now_ms)

    def controller_changed(self, now_ms: int) -> None:
        """Send waiting requests, and the node's own, to a controller that became active."""
        self._rests_until_ms = 0
        target = self._active()
        if target is not None:
            for question in self._questions.values():
                if question.request_id and not question.header and question.asked_of != target[0]:
                    del self._by_request[question.request_id]
                    question.request_id = 0
        self._send_waiting(now_ms)

    def take_waiting(self) -> list[tuple[RequestContext | str, Message]]:
        """Remove and return the requests that are not sent yet; the caller must handle them.

        Each has the context of its client, or the tag that the node gave it.
        """
        waiting = [each for each in self._questions.values() if not each.request_id]
        for question in waiting:
            self._forget(_key(question.requester))
        return [(each.requester, each.request) for each in waiting]

    def connection_closed(self, connection_id: int) -> None:
        """Drop the request of a closed connection."""
        self._forget(connection_id)

    def take_outputs(self) -> list[Output]:
        """Return what the host must do for the links."""
        outputs, self.channels.outputs = self.channels.outputs, []
        return outputs

    # -- links and time --------------------------------------------------------------------------

    def owns(self, link_id: int) -> bool:
        """Return whether a link belongs to a controller of these requests."""
        return self.channels.owns(link_id)

    def link_up(self, link_id: int, now_ms: int, wall_ms: int) -> None:
        """Handle a connected link."""
        self._take(self.channels.link_up(link_id, now_ms), now_ms)

    def link_frame(self, link_id: int, frame: Buffer, now_ms: int, wall_ms: int) -> None:
        """Handle a frame of a controller."""
        self._take(self.channels.link_frame(link_id, frame, now_ms), now_ms)

    def link_down(self, link_id: int, now_ms: int, wall_ms: int) -> None:
        """Handle a link that was refused, closed or broken."""
        self._take(self.channels.link_down(link_id, now_ms), now_ms)

    def tick(self, now_ms: int) -> None:
        """Refuse requests whose time is over, and send others again if permitted."""
        self._take(self.channels.tick(now_ms), now_ms)
        for question in list(self._questions.values()):
            if question.until_ms > now_ms:
                break
            self._finish(
                question,
                self._refuse(question.request, ErrorCode.REQUEST_TIMED_OUT, None),
            )
        self._send_waiting(now_ms)

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next."""
        soonest_ms = self.channels.deadline_ms()
        for oldest in self._questions.values():
            soonest_ms = sooner(soonest_ms, oldest.until_ms)
            break
        has_waiting = len(self._by_request) < len(self._questions)
        if has_waiting and self._active() is not None:
            soonest_ms = sooner(soonest_ms, self._rests_until_ms)
        return soonest_ms

    # -- questions -------------------------------------------------------------------------------

    def _ask(self, question: _Question, now_ms: int) -> None:
        key = _key(question.requester)
        assert key not in self._questions, "one request at a time"
        self._questions[key] = question
        self._send(question, now_ms)

    def _send_waiting(self, now_ms: int) -> None:
        for question in list(self._questions.values()):
            if not question.request_id:
                self._send(question, now_ms)

    def _send(self, question: _Question, now_ms: int) -> None:
        """Send a request if the active controller is known; otherwise it waits."""
        target = self._active()
        if target is None or now_ms < self._rests_until_ms:
            return
        node_id, address = target
        question.request_id, self._next_request_id = (
            self._next_request_id,
            self._next_request_id + 1,
        )
        question.asked_of = node_id
        self._by_request[question.request_id] = question
        order = SendRequest(question.request_id, node_id, address, question.sent)
        self._take(self.channels.send(order, now_ms), now_ms)

    def _take(self, events: Sequence[ChannelEvent], now_ms: int) -> None:
        for event in events:
            question = self._by_request.pop(event.request_id, None)
            if question is None:
                continue  # its requester no longer waits
            question.request_id = 0
            if isinstance(event, RequestFailed):
                self._rests_until_ms = now_ms + _AGAIN_AFTER_MS
                continue
            answer = self._answer(question, event.response)
            if answer is ErrorCode.NOT_CONTROLLER:
                self._rests_until_ms = now_ms + _AGAIN_AFTER_MS
            elif answer is ErrorCode.UNSUPPORTED_VERSION:
                self._finish(question, None)
            elif isinstance(answer, ErrorCode):
                self._tell_failed(question, event.response, now_ms)
                self._finish(question, self._refuse(question.request, answer, None))
            else:
                self._finish(question, answer)

    def _tell_failed(self, question: _Question, response: Message, now_ms: int) -> None:
        """Log an envelope that came back without an answer, at most one a second."""
        assert isinstance(response, EnvelopeResponse), response
        if now_ms < self._next_line_ms:
            return
        self._next_line_ms = now_ms + _LINE_EVERY_MS
        error = response.error_code
        reason = "UNREADABLE" if error == ErrorCode.NONE else error_name(error)
        asked_of, api = question.asked_of, APIS[question.request.API_KEY].name
        self._report("forwarding_failed", controller=asked_of, api=api, reason=reason)

    def _answer(self, question: _Question, response: Message) -> Message | ErrorCode:
        """Return the answer to a request, or NOT_CONTROLLER if it must be sent again."""
        if question.header is not None:
            assert isinstance(response, EnvelopeResponse), response
            return open_answer(question.header, response, self._decode_limits)
        if mentions(response, ErrorCode.NOT_CONTROLLER):
            return ErrorCode.NOT_CONTROLLER
        return response

    def _finish(self, question: _Question, answer: Message | None) -> None:
        requester = question.requester
        self._forget(_key(requester))
        self.answers.append(
            (requester if isinstance(requester, str) else requester.reply_to, answer)
        )

    def _forget(self, key: int | str) -> None:
        question = self._questions.pop(key, None)
        if question is not None and question.request_id:
            del self._by_request[question.request_id]


def _key(requester: RequestContext | str) -> int | str:
    return requester if isinstance(requester, str) else requester.connection_id
