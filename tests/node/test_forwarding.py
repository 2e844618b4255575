"""Questions to the active controller: in envelopes or plain, asked again, given up, forgotten."""

from itertools import count
from types import SimpleNamespace
from typing import cast

import pytest

from kraft_wire.broker.context import ReplyTo, RequestContext
from kraft_wire.controller.handlers import elect_leaders
from kraft_wire.model import Principal
from kraft_wire.node.controller.apis import ControllerApis
from kraft_wire.node.controller.uncommitted import not_controller
from kraft_wire.node.links.envelopes import Unpacked, pack, seal_answer, unpack
from kraft_wire.node.links.forwarding import Forwarder
from kraft_wire.node.outputs import Connect, Disconnect, Output, SendBytes
from kraft_wire.node.requests.decoding import RequestDecoder
from kraft_wire.raft.voters import Address
from kraft_wire.wire.generated.add_raft_voter import AddRaftVoterRequest
from kraft_wire.wire.generated.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.elect_leaders import ElectLeadersRequest, TopicPartitions
from kraft_wire.wire.generated.envelope import EnvelopeRequest, EnvelopeResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.messages import RELEASE
from kraft_wire.wire.generated.remove_raft_voter import RemoveRaftVoterRequest
from kraft_wire.wire.header import RequestHeader
from kraft_wire.wire.message import DecodeLimits, Message
from tests.node.far_side import RELEASES, answer, offer, requests_of

CLIENT = ReplyTo(9, 1)
WALL_MS = 1_700_000_000_000
ALICE = Principal("User", "alice", token_authenticated=True)
HEADER = RequestHeader(19, 7, 1, "client")
TOPIC = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1)])
DONE = CreateTopicsResponse()
INNER = RequestDecoder({19: (2, 7)}, DecodeLimits())


def context(now_ms: int) -> RequestContext:
    return RequestContext(*CLIENT, 7, now_ms, WALL_MS, "client", "10.0.0.7", "EXTERNAL", ALICE)


def refuse(request: Message, error: ErrorCode, message: str | None) -> Message:
    return EnvelopeResponse(error_code=error)


class World:
    """A forwarder whose controllers answer when the test says so."""

    def __init__(self, patience_ms: int = 60_000) -> None:
        self.active: tuple[int, Address] | None = (2, Address("h", 2))
        self.events: list[tuple[str, dict[str, object]]] = []
        self.forwarder = Forwarder(
            5,
            count(1),
            lambda name, **fields: self.events.append((name, fields)),
            DecodeLimits(),
            active=lambda: self.active,
            refuse=refuse,
            patience_ms=patience_ms,
        )
        self.link = 0

    def connected(self, now_ms: int = 0) -> list[Output]:
        """Let the link that is asked for be made, and return what follows on it."""
        (opened,) = self.forwarder.take_outputs()
        assert isinstance(opened, Connect), opened
        self.link = opened.link_id
        self.forwarder.link_up(self.link, now_ms, 0)
        ((header, _),) = requests_of(self.forwarder.take_outputs())
        self.forwarder.link_frame(self.link, answer(header, offer(RELEASES[RELEASE])), now_ms, 0)
        return self.forwarder.take_outputs()

    def asked(self, now_ms: int = 0) -> tuple[RequestHeader, EnvelopeRequest]:
        """Forward a client's request; return the envelope that goes out on a new link."""
        self.forwarder.forward(context(now_ms), TOPIC)
        return one_envelope(self.connected(now_ms))

    def answered(self, header: RequestHeader, response: Message, now_ms: int = 1) -> None:
        self.forwarder.link_frame(self.link, answer(header, response), now_ms, 0)


def one_envelope(outputs: list[Output]) -> tuple[RequestHeader, EnvelopeRequest]:
    ((header, request),) = requests_of(outputs)
    assert isinstance(request, EnvelopeRequest), request
    return header, request


def test_a_clients_request_goes_out_in_an_envelope_with_its_header_and_address() -> None:
    world = World()
    header, envelope = world.asked()
    assert header.client_id == "5"
    inner = unpack(envelope, INNER)
    assert inner == Unpacked(HEADER, TOPIC, "10.0.0.7", ALICE)
    world.answered(header, seal_answer(HEADER, DONE))
    assert world.forwarder.answers == [(CLIENT, DONE)]
    assert world.forwarder.take_waiting() == []


def test_a_controller_that_is_not_active_is_asked_again_or_another_one_is() -> None:
    """SEC-ENV-14."""
    world = World()
    header, _ = world.asked()
    world.answered(header, EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER), 10)
    assert world.forwarder.deadline_ms() == 110
    world.forwarder.tick(109)
    assert world.forwarder.take_outputs() == []
    world.forwarder.tick(110)
    again, _ = one_envelope(world.forwarder.take_outputs())
    world.answered(again, EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER), 120)
    world.active = (3, Address("h", 3))
    world.forwarder.controller_changed(121)
    header, _ = one_envelope(world.connected(122))
    world.answered(header, seal_answer(HEADER, DONE), 123)
    assert world.forwarder.answers == [(CLIENT, DONE)]


def test_a_question_waits_until_a_controller_is_known() -> None:
    world = World()
    world.active = None
    world.forwarder.forward(context(0), TOPIC)
    assert world.forwarder.take_outputs() == []
    assert world.forwarder.deadline_ms() == 60_000
    world.active = (2, Address("h", 2))
    world.forwarder.controller_changed(5)
    one_envelope(world.connected(6))


def test_what_waits_can_be_taken_back_by_a_controller_that_became_active() -> None:
    world = World()
    world.active = None
    world.forwarder.forward(context(0), TOPIC)
    world.forwarder.ask("ids", AllocateProducerIdsRequest(), 0)
    assert world.forwarder.take_waiting() == [
        (context(0), TOPIC),
        ("ids", AllocateProducerIdsRequest()),
    ]
    assert world.forwarder.deadline_ms() is None


def test_a_question_is_given_up_after_a_minute() -> None:
    """SEC-ENV-14: REQUEST_TIMED_OUT."""
    world = World()
    world.active = None
    world.forwarder.forward(context(0), TOPIC)
    world.forwarder.tick(59_999)
    assert world.forwarder.answers == []
    world.forwarder.tick(60_000)
    timed_out = EnvelopeResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)
    assert world.forwarder.answers == [(CLIENT, timed_out)]
    assert world.forwarder.deadline_ms() is None


@pytest.mark.parametrize("request_", [AddRaftVoterRequest(), RemoveRaftVoterRequest()])
def test_a_change_of_the_voters_that_is_given_up_has_the_words_of_the_error(
    request_: Message,
) -> None:
    """AddRaftVoterRequest.getErrorResponse of 4.3.1; other answers have no message."""
    apis, error = cast("ControllerApis", None), ErrorCode.REQUEST_TIMED_OUT
    answer = ControllerApis._refusal(apis, request_, error, None)
    assert getattr(answer, "error_message", None) == error.message
    answer = ControllerApis._refusal(apis, TOPIC, error, None)
    assert isinstance(answer, CreateTopicsResponse)
    assert [each.error_message for each in answer.topics] == [None]


def test_a_controller_that_is_silent_for_half_a_minute_is_asked_on_a_new_link() -> None:
    """`controller.socket.timeout.ms` of Kafka, 30 s, is less than the client waits in all."""
    world = World()
    world.asked()
    world.forwarder.tick(29_999)
    assert world.forwarder.take_outputs() == []
    world.forwarder.tick(30_000)
    assert world.forwarder.answers == []
    world.forwarder.tick(30_100)
    kinds = [type(each) for each in world.forwarder.take_outputs()]
    assert Connect in kinds, kinds


def test_a_link_waits_no_longer_than_who_asks() -> None:
    """Heartbeats have half a session; the next one does not follow a request that hangs."""
    world = World(patience_ms=5_000)
    world.asked()
    silent = world.link
    world.forwarder.tick(5_000)
    ((_, refusal),) = world.forwarder.answers
    assert refusal == EnvelopeResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)
    assert not world.forwarder.owns(silent)
    assert world.forwarder.take_outputs() == [Disconnect(silent)]
    world.asked(5_100)


def test_a_lost_link_makes_it_ask_again() -> None:
    world = World()
    world.asked()
    world.forwarder.link_down(world.link, 10, 0)
    world.forwarder.tick(110)
    one_envelope(world.connected(111))


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION), None),
        (EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST), ErrorCode.UNKNOWN_SERVER_ERROR),
        (EnvelopeResponse(response_data=None), ErrorCode.UNKNOWN_SERVER_ERROR),
        (EnvelopeResponse(response_data=b""), ErrorCode.UNKNOWN_SERVER_ERROR),
        (EnvelopeResponse(response_data=b"\0\0\0\1\0\xff\xff"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
    ids=["unsupported", "refused", "null", "empty", "garbage"],
)
def test_an_envelope_without_an_answer_becomes_an_error_or_the_connections_end(
    response: EnvelopeResponse, expected: ErrorCode | None
) -> None:
    """SEC-ENV-14: 35 ends the connection, others are UNKNOWN_SERVER_ERROR in the answer's form."""
    world = World()
    header, _ = world.asked()
    world.answered(header, response)
    refusal = None if expected is None else EnvelopeResponse(error_code=expected)
    assert world.forwarder.answers == [(CLIENT, refusal)]


def test_a_failed_envelope_is_logged_once_a_second() -> None:
    world = World()
    header, _ = world.asked()
    world.answered(header, EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST), 1)
    for now_ms, reason in ((1_000, None), (1_001, "UNREADABLE")):
        world.forwarder.forward(context(now_ms), TOPIC)
        header, _ = one_envelope(world.forwarder.take_outputs())
        world.answered(header, EnvelopeResponse(response_data=None), now_ms)
        found = [fields["reason"] for name, fields in world.events if name == "forwarding_failed"]
        assert found == ["INVALID_REQUEST", reason][: 1 + (reason is not None)]
    last = {"controller": 2, "api": "CreateTopics", "reason": "UNREADABLE"}
    assert world.events[-1] == ("forwarding_failed", last)


def test_nobody_is_answered_whose_connection_is_gone() -> None:
    world = World()
    header, _ = world.asked()
    world.forwarder.connection_closed(CLIENT.connection_id)
    world.answered(header, seal_answer(HEADER, DONE))
    assert world.forwarder.answers == []
    world.forwarder.connection_closed(CLIENT.connection_id)


def test_the_nodes_own_question_goes_out_as_it_is_and_once() -> None:
    world = World()
    world.forwarder.ask("ids", AllocateProducerIdsRequest(broker_id=5), 0)
    world.forwarder.ask("ids", AllocateProducerIdsRequest(broker_id=6), 0)
    ((header, request),) = requests_of(world.connected())
    assert request == AllocateProducerIdsRequest(broker_id=5)
    response = AllocateProducerIdsResponse(producer_id_start=1_000)
    world.answered(header, response)
    assert world.forwarder.answers == [("ids", response)]
    world.forwarder.ask("ids", AllocateProducerIdsRequest(broker_id=7), 0)
    assert len(requests_of(world.forwarder.take_outputs())) == 1


def test_the_nodes_own_question_is_asked_again_of_whoever_is_active() -> None:
    world = World()
    world.forwarder.ask("ids", AllocateProducerIdsRequest(), 0)
    ((header, _),) = requests_of(world.connected())
    refusal = AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    world.answered(header, refusal, 10)
    assert world.forwarder.answers == []
    world.forwarder.tick(110)
    assert [type(each) for each in world.forwarder.take_outputs()] == [SendBytes]


def test_a_slow_controller_is_left_for_another_one_and_only_with_the_nodes_own_question() -> None:
    """The node's own requests are safe to repeat, a client's might be applied twice."""
    world = World()
    world.forwarder.forward(context(0), TOPIC)
    world.forwarder.ask("ids", AllocateProducerIdsRequest(), 0)
    assert len(requests_of(world.connected())) >= 1
    world.forwarder.controller_changed(5)
    assert world.forwarder.take_outputs() == [], "it is the same controller"
    world.active = (3, Address("h", 3))
    world.forwarder.controller_changed(6)
    sent = [type(request) for _, request in requests_of(world.connected(7))]
    assert sent == [AllocateProducerIdsRequest]


def test_who_asked_is_not_forgotten_while_the_request_waits_for_a_controller() -> None:
    """Decided by this node in the end, it is judged by what it was when it came."""
    world = World()
    world.active = None
    world.forwarder.forward(context(5), TOPIC)
    seen: list[RequestContext] = []
    apis = SimpleNamespace(
        forwarder=world.forwarder,
        _host=SimpleNamespace(is_active=True),
        _ask_own=lambda asked, request: seen.append(asked) or DONE,
    )
    ControllerApis.answer_waiting(cast(ControllerApis, apis), 900, 77)
    (asked,) = seen
    assert (asked.client_id, asked.client_host) == ("client", "10.0.0.7")
    assert (asked.listener, asked.principal) == ("EXTERNAL", ALICE)
    assert (asked.reply_to, asked.api_version) == (CLIENT, 7)
    assert (asked.now_ms, asked.wall_ms) == (900, 77)
    assert world.forwarder.answers == [(CLIENT, DONE)]


@pytest.mark.parametrize("refused", [{0}, {1}, {2}, {0, 2}])
def test_an_answer_in_which_any_part_needs_another_controller_is_asked_again(
    refused: set[int],
) -> None:
    """SEC-ENV-14: of several topics, only a late one may have been decided too late."""
    errors = [ErrorCode.NOT_CONTROLLER if at in refused else ErrorCode.NONE for at in range(3)]
    topics = [CreatableTopicResult(name=f"t{error}", error_code=error) for error in errors]
    sealed = seal_answer(HEADER, CreateTopicsResponse(topics=topics))
    assert sealed == EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("asked", [None, [TopicPartitions(topic="t", partitions=[0])]])
def test_elections_that_a_former_controller_decided_are_asked_again(
    version: int, asked: list[TopicPartitions] | None
) -> None:
    header = RequestHeader(ElectLeadersRequest.API_KEY, version, 7, "c")
    request = ElectLeadersRequest(topic_partitions=asked)
    decided = elect_leaders.refuse(request, ErrorCode.ELECTION_NOT_NEEDED, None)
    decided.error_code = ErrorCode.NONE
    for each in (
        elect_leaders.refuse(request, ErrorCode.NOT_CONTROLLER, None),
        not_controller(decided),
    ):
        assert seal_answer(header, each).error_code == ErrorCode.NOT_CONTROLLER
        assert each.encode(version)


def test_a_client_whose_host_is_no_address_is_forwarded_as_of_no_host() -> None:
    """A host of the node may name its clients as it likes; an envelope takes addresses alone."""
    header = RequestHeader(CreateTopicsRequest.API_KEY, 5, 3, "client")
    envelope = pack(header, CreateTopicsRequest(), "in-process", Principal("User", "alice"))
    unpacked = unpack(envelope, INNER)
    assert isinstance(unpacked, Unpacked), unpacked
    assert unpacked.client_host == "0.0.0.0"


def test_an_answer_to_a_request_of_the_node_that_was_given_up_is_not_taken() -> None:
    """It was sent again after 30 s, so its link waits for an answer longer than the node does."""
    world = World()
    world.forwarder.ask("ids", AllocateProducerIdsRequest(), 0)
    world.connected()
    world.forwarder.tick(30_000)
    world.forwarder.tick(30_100)
    disconnected, opened = world.forwarder.take_outputs()
    assert isinstance(disconnected, Disconnect)
    world.forwarder.channels.outputs = [opened]
    ((header, _),) = requests_of(world.connected(30_100))
    world.forwarder.tick(60_000)
    assert [tag for tag, _ in world.forwarder.answers] == ["ids"]
    world.answered(header, AllocateProducerIdsResponse(producer_id_start=1_000), 60_050)
    assert [tag for tag, _ in world.forwarder.answers] == ["ids"]
