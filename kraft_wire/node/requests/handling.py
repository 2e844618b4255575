"""Decoded requests: each to its handler, by the broker or the controller, and then its answer.

The guards of a configured authorizer stand in the place of the broker's handlers. The controller
decides what its own listeners receive, and clients' requests that need it (`controller.apis`). A
client that changes settings of this broker is first checked here (`own_settings`).

Not here: frames (`decoding`), waiting requests (`answers`), and what follows a call (`node`).
"""

from collections import defaultdict
from collections.abc import Callable, Set
from typing import TYPE_CHECKING, Final

from kraft_wire.apis.registry import key_of
from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import PARKED, ReplyTo, RequestContext, Silence, Withheld
from kraft_wire.broker.dispatch import Handle, handler
from kraft_wire.frozen import maker
from kraft_wire.node.outputs import Close, Output, Peer
from kraft_wire.node.quorum_node import QuorumNode
from kraft_wire.node.requests.answers import Answers
from kraft_wire.node.requests.decoding import Decoded, unencodable
from kraft_wire.wire.message import Message, UnencodableMessage

if TYPE_CHECKING:
    from kraft_wire.node.authorization.guards import Guards
    from kraft_wire.node.quotas.client_quotas import ClientQuotas
    from kraft_wire.node.requests.own_settings import OwnSettings

__all__ = ["RequestHandling"]

_ALTERING: Final = frozenset({key_of("AlterConfigs"), key_of("IncrementalAlterConfigs")})
_new_context: Final = maker(RequestContext)


class RequestHandling:
    """Handles the requests of one node."""

    quotas: "ClientQuotas | None" = None
    """The quotas of clients; None until the first one is set."""

    def __init__(
        self,
        answers: Answers,
        broker: Broker | None,
        quorum: QuorumNode,
        controller_listeners: Set[str],
        guards: "Guards | None",
        new_own_settings: Callable[[], "OwnSettings"],
    ) -> None:
        """`broker` is None on a node that is a controller alone."""
        self.by_api: Final[defaultdict[int, int]] = defaultdict(int)
        """Numbers of requests by API key."""
        self._answers = answers
        self._broker = broker
        self._quorum = quorum
        self._controller_listeners = controller_listeners
        self._guards = guards
        self._new_own_settings = new_own_settings
        self._own_settings: OwnSettings | None = None
        """Made with the first change: most nodes see none."""
        self._handler: Callable[[int], Handle] = handler if guards is None else guards.__getitem__
        """Returns the handler of a broker's API; guarded if an authorizer is configured."""

    def handle(
        self,
        outputs: list[Output],
        peer: Peer,
        decoded: Decoded,
        size_bytes: int,
        of_broker_alone: bool,
        now_ms: int,
        wall_ms: int,
    ) -> None:
        """Answer or park a request; `size_bytes` is that of its frame without the length."""
        header, request, _ = decoded  # bytes after the body are tolerated
        api_key, connection_id = header.api_key, peer.connection_id
        peer.client_id = header.client_id
        self.by_api[api_key] += 1
        context = _new_context(
            connection_id,
            peer.requests_count,
            header.api_version,
            now_ms,
            wall_ms,
            header.client_id,
            peer.client_host,
            peer.listener,
            peer.principal,
        )
        if self.quotas is not None:
            peer.charge = self.quotas.charge(context, header, request, size_bytes)
        try:
            if of_broker_alone:
                assert self._broker is not None, "this node is not a broker"
                answer = self._handler(api_key)(self._broker, context, request)
            else:
                answer = self._ask_apis(context, request)
        except UnencodableMessage as problem:  # before anything was written
            outputs.append(Close(connection_id, unencodable(header, problem)))
            return
        if answer is PARKED:
            self._answers.park(outputs, context, header, peer.charge)
        else:
            self._answers.give(outputs, connection_id, header, answer, peer.charge, now_ms)

    def _ask_apis(self, context: RequestContext, request: Message) -> Message | Withheld:
        apis, guards = self._quorum.apis, self._guards
        if context.listener in self._controller_listeners:
            return apis.handle(context, request)
        if request.API_KEY not in _ALTERING:
            return apis.handle_client(context, request)
        if guards is not None and not guards.may_alter_brokers(context, request.API_KEY):
            return apis.handle_client(context, request)  # refused there, without a look at files
        if self._own_settings is None:
            self._own_settings = self._new_own_settings()
        image = self._quorum.raft.committed.image
        return self._own_settings.handle(context, request, image, apis.handle_client)

    def finished(self, to: ReplyTo, answer: Message) -> Message | Silence:
        """Return a controller's late answer together with what was refused here."""
        own = self._own_settings
        return answer if own is None else own.finished(to, answer)

    def connection_closed(self, connection_id: int) -> None:
        """Drop the parked request of a closed connection."""
        if self._own_settings is not None:
            self._own_settings.forget(connection_id)
