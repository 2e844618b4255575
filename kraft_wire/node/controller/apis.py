"""The APIs of a node's controller: on its own listeners, and for the broker beside it.

KIP-595 (the quorum's RPCs), KIP-590 (envelopes), KIP-919 (clients of controllers). Each key has a
kind. The replica answers the quorum's RPCs; only the active controller answers the controller's
APIs; every node answers requests that describe metadata; an envelope is opened, and its content is
answered in an envelope. Requests of the broker's clients go to this node's controller if it is
active, else to the active one (`forwarding`).

Not here: decoding, encoding, connections (`node`); the records of a request (`controller`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from kraft_wire.apis.api import ListenerType, Owner, Versions
from kraft_wire.apis.registry import FORWARDABLE, FORWARDED, key_of, owned, served
from kraft_wire.broker.context import PARKED, Parked, ReplyTo, RequestContext, Withheld
from kraft_wire.broker.dispatch import handler
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.controller.requests import refuse
from kraft_wire.metadata.delegation_tokens import may_use_tokens
from kraft_wire.metadata.features import CONTROLLERS_FROM
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import NO_REPLICA, ReportEvent, sooner
from kraft_wire.node.controller.descriptions import (
    api_versions,
    describe_cluster,
)
from kraft_wire.node.controller.host import ControllerHost, OwnContext
from kraft_wire.node.controller.token_requests import (
    CHANGES_OF_TOKENS,
    refused_owner,
    refused_renewers,
    refused_tokens,
)
from kraft_wire.node.links.envelopes import Unpacked, seal_answer, unpack
from kraft_wire.node.links.forwarding import AskedBy, Forwarder, active_controller
from kraft_wire.node.links.peer_versions import PeerVersions
from kraft_wire.node.outputs import Output
from kraft_wire.node.quorum.raft_io import RaftIo
from kraft_wire.node.requests.decoding import RequestDecoder
from kraft_wire.raft.events import RequestReceived
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.controller_registration import (
    ControllerRegistrationRequest,
    Feature,
    Listener,
)
from kraft_wire.wire.generated.create_delegation_token import CreateDelegationTokenRequest
from kraft_wire.wire.generated.envelope import EnvelopeRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.register_controller_record import RegisterControllerRecord
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.header import RequestHeader
from kraft_wire.wire.message import DecodeLimits, Message, UnencodableMessage

if TYPE_CHECKING:
    from kraft_wire.node.authorization.guards import Guards

__all__ = ["ControllerApis"]

_HERE: Final = ListenerType.CONTROLLER
_RAFT: Final = frozenset(owned(Owner.RAFT, _HERE))
_DECIDED: Final = frozenset(owned(Owner.CONTROLLER, _HERE))
_DESCRIBED: Final = frozenset(owned(Owner.BROKER, _HERE))
"""Served by the broker's handlers, which only read metadata for them."""
_API_VERSIONS: Final = key_of("ApiVersions")
_ENVELOPE: Final = key_of("Envelope")
_CHECKED_BY_BROKERS: Final = frozenset({key_of("AlterConfigs"), key_of("IncrementalAlterConfigs")})
_REGISTRATION: Final = "controller registration"
"""The tag of a request whose answer is dropped."""


class _Described:
    """This node, for handlers that describe metadata (`broker.metadata_reader`)."""

    def __init__(
        self,
        node_id: int,
        image: Callable[[], MetadataImage],
        host: ControllerHost,
        listener_protocols: Mapping[str, str],
    ) -> None:
        self.node_id = node_id
        self.listener_protocols = listener_protocols
        self._image = image
        self._host = host
        self._made_of: NodeSettings | None = None
        self._settings = BrokerSettings()

    @property
    def image(self) -> MetadataImage:
        """The committed metadata."""
        return self._image()

    @property
    def settings(self) -> BrokerSettings:
        """The controller's settings, as handlers read them."""
        if self._made_of is not self._host.controller.settings:
            self._made_of = self._host.controller.settings
            self._settings = BrokerSettings.of(self._made_of)
        return self._settings


class ControllerApis:
    """The controller's side of one node; see the module."""

    def __init__(
        self,
        cluster_id: str,
        raft: RaftIo,
        host: ControllerHost,
        link_ids: Iterator[int],
        report: ReportEvent,
        limits: DecodeLimits,
        guards: "Guards | None" = None,
        protocols: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`guards` authorizes requests; None without an authorizer.

        `protocols` are the security protocols of the node's listeners, by name.
        """
        self._guards = guards
        self._protocols = protocols
        self.versions: dict[int, Versions] = served(_HERE)
        """The APIs of the controller's listeners."""
        self.decoder = RequestDecoder(self.versions, limits)
        """The decoder of requests on these listeners."""
        self._cluster_id = cluster_id
        self._raft = raft
        self._host = host
        quorum = raft.replica.quorum
        node_id = quorum.config.key.id
        self._described = _Described(node_id, lambda: raft.committed.image, host, protocols)
        self._enveloped: dict[int, tuple[int, RequestHeader]] = {}
        """By connection: number and header of a parked request from an envelope."""
        inner = {key: range_ for key, range_ in self.versions.items() if key in FORWARDABLE}
        self._inner_decoder = RequestDecoder(inner, limits)
        forwarder = partial(
            Forwarder,
            node_id,
            link_ids,
            report,
            limits,
            active=lambda: active_controller(quorum),
            refuse=self._refusal,
        )
        self.forwarder = forwarder()
        session_ms = host.controller.settings.integer("broker.session.timeout.ms")
        self.heartbeats = forwarder(patience_ms=max(1, session_ms // 2))
        """Registrations and heartbeats of the broker, on a separate link: no other request delays
        them, and a second attempt keeps the session alive (KAFKA-14392)."""

    # -- requests --------------------------------------------------------------------------------

    def handle(self, context: RequestContext, request: Message) -> Message | Withheld:
        """Answer a request on a controller's listener."""
        api_key = request.API_KEY
        assert api_key in self.versions, api_key
        if api_key in CHANGES_OF_TOKENS:
            refusal = refused_owner(request)
            if refusal is not None:
                return refusal
            if not self._may_use_tokens(context):
                return refused_tokens(context, request)
        if api_key in _CHECKED_BY_BROKERS:
            context = replace(context, is_direct=True)
        if api_key in _RAFT or api_key in _DECIDED:
            return self._ask_own(context, request)
        return self._guarded(context, request, self._answer)

    def _answer(self, context: RequestContext, request: Message) -> Message | Withheld:
        """Answer a request that only describes metadata."""
        api_key = request.API_KEY
        if api_key == _ENVELOPE:
            assert isinstance(request, EnvelopeRequest), request
            return self._open(context, request)
        if api_key in _DESCRIBED:
            return handler(api_key)(self._described, context, request)  # type: ignore[arg-type]  # these read only metadata
        image, quorum = self._raft.committed.image, self._raft.replica.quorum
        if api_key == _API_VERSIONS:
            version, level = context.api_version, quorum.voters.kraft_version
            return api_versions(version, request, self.versions, image, level)
        return describe_cluster(
            context, request, image, cluster_id=self._cluster_id, leader_id=quorum.leader_id
        )

    def handle_client(self, context: RequestContext, request: Message) -> Message | Withheld:
        """Answer a request of a broker's client that a controller must decide."""
        assert request.API_KEY in FORWARDED, request.NAME
        if request.API_KEY in CHANGES_OF_TOKENS:
            refusal = self._token_refusal(context, request)
            if refusal is not None:
                return refusal
        if self._host.is_active:
            return self._ask_own(context, request)
        self.forwarder.forward(context, request)
        return PARKED

    def _may_use_tokens(self, context: RequestContext) -> bool:
        protocol = self._protocols.get(context.listener, "PLAINTEXT")
        return may_use_tokens(context.principal, protocol)

    def _token_refusal(
        self, context: RequestContext, request: Message
    ) -> Message | Withheld | None:
        """Check a client's request about tokens as a broker does, before the controller does."""
        refusal = refused_owner(request)
        if refusal is not None:
            return refusal
        if not self._may_use_tokens(context):
            return refused_tokens(context, request)
        if not isinstance(request, CreateDelegationTokenRequest):
            return None
        if self._guards is not None:
            image, settings = self._host.controller.image, self._host.controller.settings
            verdict = self._guards.judge(ListenerType.BROKER, context, request, image, settings)
            if isinstance(verdict, Message | Withheld):
                return verdict
        return refused_renewers(context, request)

    def ask(self, tag: str, request: Message, now_ms: int, wall_ms: int) -> Message | Parked:
        """Send a request of the node itself; `take_answers` has a late answer under the tag."""
        if self._host.is_active:
            context = OwnContext(request.MAX_VERSION, now_ms, wall_ms)
            return self._host.handle(context, request, tag)
        self.forwarder.ask(tag, request, now_ms)
        return PARKED

    def register(self, registration: VersionedRecord, now_ms: int) -> None:
        """Ask the active controller to register this one, unless the metadata has it.

        To be called when the metadata or the leader change; after an error the next change asks
        again.
        """
        record = registration.record
        assert isinstance(record, RegisterControllerRecord), record
        image, leader_id = self._raft.committed.image, self._raft.replica.quorum.leader_id
        known = image.controllers.get(record.controller_id)
        if (
            leader_id in (NO_REPLICA, record.controller_id)
            or image.metadata_version < CONTROLLERS_FROM
            or (known is not None and known.incarnation_id == record.incarnation_id)
        ):
            return
        self.forwarder.ask(_REGISTRATION, _registration(record), now_ms)

    def _ask_own(self, context: RequestContext, request: Message) -> Message | Withheld:
        """Have this node's own replica or controller answer an authorized request."""
        return self._guarded(context, request, self._decide)

    def _guarded(
        self,
        context: RequestContext,
        request: Message,
        serve: Callable[[RequestContext, Message], Message | Withheld],
        not_loaded: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR,
    ) -> Message | Withheld:
        """Serve the authorized part of a request; `_late` completes a late answer.

        `not_loaded`: the error before this node has read the ACLs.
        """
        if self._guards is None:
            return serve(context, request)
        image, settings = self._host.controller.image, self._host.controller.settings
        verdict = self._guards.judge(_HERE, context, request, image, settings, not_loaded)
        if isinstance(verdict, Message | Withheld):
            return verdict
        return self._guards.after(context, verdict, serve(context, verdict.request))

    def _decide(self, context: RequestContext, request: Message) -> Message | Withheld:
        reply_to = context.reply_to
        if request.API_KEY not in _RAFT:
            return self._host.handle(context, request, reply_to)
        version, listener = context.api_version, context.listener
        received = RequestReceived(reply_to, request, version, listener, context.wall_ms)
        self._raft.take(received, context.now_ms, context.wall_ms)
        return PARKED

    def _open(self, context: RequestContext, envelope: EnvelopeRequest) -> Message | Withheld:
        """Answer the request in an envelope, in an envelope.

        Before this node has read the ACLs, the broker is told to ask an active controller again,
        so that its client waits instead of getting an error without a name.
        """
        inner = unpack(envelope, self._inner_decoder)
        if not isinstance(inner, Unpacked):
            return inner
        self._enveloped[context.connection_id] = (context.request_number, inner.header)
        within = RequestContext(
            context.connection_id,
            context.request_number,
            inner.header.api_version,
            context.now_ms,
            context.wall_ms,
            inner.header.client_id,
            inner.client_host,
            context.listener,
            inner.principal,
        )
        if inner.header.api_key in CHANGES_OF_TOKENS and inner.principal.token_authenticated:
            return self._sealed(context.reply_to, refused_tokens(within, inner.request))
        again = ErrorCode.NOT_CONTROLLER
        answer = self._guarded(within, inner.request, self._decide, again)
        return self._sealed(context.reply_to, answer) if isinstance(answer, Message) else answer

    def _sealed(self, reply_to: ReplyTo, answer: Message) -> Message:
        """Put an answer into an envelope if its request came in one."""
        number, header = self._enveloped.get(reply_to.connection_id, (-1, None))
        if header is None or number != reply_to.request_number:
            return answer
        del self._enveloped[reply_to.connection_id]
        return seal_answer(header, answer)

    def _refusal(self, request: Message, error: ErrorCode, message: str | None) -> Message:
        """Return an answer of only an error to a request, in Kafka's form (`getErrorResponse`)."""
        if request.API_KEY in _DECIDED:
            return refuse(request, error, message)
        answer = response_class(request.API_KEY)()
        assert request.API_KEY in _RAFT, request.NAME
        setattr(answer, "error_code", error)  # noqa: B010  # all of the quorum's answers have it
        if "error_message" in answer.field_names:
            setattr(answer, "error_message", error.message)  # noqa: B010  # as above
        return answer

    @property
    def active_versions(self) -> PeerVersions | None:
        """API versions of the active controller on another node, None if unknown."""
        target = active_controller(self._raft.replica.quorum)
        if target is None or self._host.is_active:
            return None
        return self.heartbeats.channels.versions_of(*target)

    # -- the ways to the active controller -------------------------------------------------------

    def tick(self, now_ms: int) -> None:
        """Do the forwarders' work that is due by time."""
        for each in (self.forwarder, self.heartbeats):
            each.tick(now_ms)

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next."""
        return sooner(self.forwarder.deadline_ms(), self.heartbeats.deadline_ms())

    def controller_changed(self, now_ms: int) -> None:
        """Handle a change of the active controller; perhaps none is active now."""
        for each in (self.forwarder, self.heartbeats):
            each.controller_changed(now_ms)

    def owner_of(self, link_id: int) -> Forwarder | None:
        """Return the forwarder that owns a link, None if neither does."""
        for each in (self.forwarder, self.heartbeats):
            if each.owns(link_id):
                return each
        return None

    def take_outputs(self) -> list[Output]:
        """Return what the host must do for the links."""
        return self.forwarder.take_outputs() + self.heartbeats.take_outputs()

    # -- late answers ----------------------------------------------------------------------------

    def take_answers(self) -> list[tuple[AskedBy, Message | None]]:
        """Return the answers to parked requests; None if the connection must be closed."""
        raft, host, forwarder = self._raft, self._host, self.forwarder
        if not (raft.answers or host.answers or forwarder.answers):
            return []
        late: list[tuple[AskedBy, Message]] = [*host.answers, *raft.answers]
        host.answers, raft.answers = [], []
        answers, forwarder.answers = forwarder.answers, []
        for to, answer in late:
            answers.append((to, self._late(to, answer)))
        return [(to, answer) for to, answer in answers if to != _REGISTRATION]

    def _late(self, to: AskedBy, answer: Message) -> Message | None:
        try:
            if isinstance(to, str):
                return answer
            if self._guards is not None:
                finished = self._guards.finished(to, answer)
                assert isinstance(finished, Message), "only Produce is answered by silence"
                answer = finished
            return self._sealed(to, answer)
        except UnencodableMessage:
            return None

    def answer_waiting(self, now_ms: int, wall_ms: int) -> None:
        """Decide waiting requests here if this node's controller is active."""
        if not self._host.is_active:
            return
        answer: Message | Withheld
        for requester, request in self.forwarder.take_waiting():
            if isinstance(requester, str):
                own = OwnContext(request.MAX_VERSION, now_ms, wall_ms)
                answer = self._host.handle(own, request, requester)
            else:
                answer = self._ask_own(requester.at(now_ms, wall_ms), request)
            if isinstance(answer, Message):
                to = requester if isinstance(requester, str) else requester.reply_to
                self.forwarder.answers.append((to, answer))

    def connection_closed(self, connection_id: int) -> None:
        """Drop the parked request of a closed connection."""
        self._enveloped.pop(connection_id, None)
        self.forwarder.connection_closed(connection_id)


def _registration(record: RegisterControllerRecord) -> ControllerRegistrationRequest:
    return ControllerRegistrationRequest(
        controller_id=record.controller_id,
        incarnation_id=record.incarnation_id,
        zk_migration_ready=record.zk_migration_ready,
        listeners=[
            Listener(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=each.security_protocol,
            )
            for each in record.end_points
        ],
        features=[
            Feature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in record.features
        ],
    )
