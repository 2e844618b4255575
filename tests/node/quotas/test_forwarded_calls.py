"""Forwarded calls: the controller counts and tells, the broker throttles."""

from kraft_wire.broker.context import RequestContext
from kraft_wire.model import Principal
from kraft_wire.node.links.envelopes import open_answer, pack
from kraft_wire.node.outputs import Mute, Output, Peer
from kraft_wire.node.quotas.client_quotas import ClientQuotas
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.envelope import EnvelopeResponse
from kraft_wire.wire.header import RequestHeader
from kraft_wire.wire.message import DecodeLimits
from tests.node.quotas.throttled_node import ThrottledDoor

ALICE = Principal("User", "alice")
LINK = 40
HEADER = RequestHeader(19, 5, 3, "client")


def test_controller_tells_the_time_of_the_user_in_the_envelope_and_mutes_nobody() -> None:
    """SEC-QUOTA-14: the link belongs to a broker, with requests of all its clients."""
    listeners = "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    node = ThrottledDoor(listeners=listeners)
    node.set_quota("controller_mutation_rate", 1, user="alice", client="")
    topic = CreatableTopic(name="a", num_partitions=21, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=1)
    node._peers[LINK] = Peer(LINK, "127.0.0.1", 1, "CONTROLLER")
    envelope = pack(HEADER, request, "10.0.0.7", ALICE)
    answer = node.send(envelope, 0, connection=LINK).response
    assert isinstance(answer, EnvelopeResponse), answer
    inner = open_answer(HEADER, answer, DecodeLimits())
    assert isinstance(inner, CreateTopicsResponse), inner
    assert inner.throttle_time_ms == 10_000
    assert not node.muted


def test_broker_tells_the_larger_of_both_times_and_mutes_its_client() -> None:
    """SEC-QUOTA-14: the controller's is in the answer already."""
    quotas = ClientQuotas(NodeSettings(), frozenset({"CONTROLLER"}))
    quotas.follow({(("user", "alice"),): {"request_percentage": 10.0}})
    request = CreateTopicsRequest()
    for connection, named_ms, seconds, expected_ms in ((1, 700, 0, 700), (2, 700, 30, 1_000)):
        context = RequestContext(connection, 1, 5, 0, 0, "client", "10.0.0.7", "PLAINTEXT", ALICE)
        charge = quotas.charge(context, HEADER, request, 100)
        quotas.took(charge, seconds, 0)
        outputs: list[Output] = []
        given = CreateTopicsResponse(throttle_time_ms=named_ms)
        answer = quotas.answered(charge, given, outputs, 0)
        assert isinstance(answer, CreateTopicsResponse)
        assert answer.throttle_time_ms == expected_ms
        assert outputs == [Mute(connection, is_muted=True)]
        assert quotas.throttled.deadline_ms() == min(expected_ms, 700)
