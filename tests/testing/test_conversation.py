"""One connection through the proxy as bytes in and out: pass-through, order, pauses, addresses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.model import Uuid
from kraft_wire.server.clock import wall_ms
from kraft_wire.testing.exchanges import Client, Recorder
from kraft_wire.testing.faults.injecting import Faults
from kraft_wire.testing.faults.rule import once
from kraft_wire.testing.faults.rules import FaultRules
from kraft_wire.testing.proxy.addresses import address_holders, carries_addresses
from kraft_wire.testing.proxy.conversation import Address, Conversation
from kraft_wire.wire.frame import FrameReader, MalformedFrame, frame_prefix
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.fetch import FetchResponse, NodeEndpoint
from kraft_wire.wire.generated.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from kraft_wire.wire.generated.produce import ProduceRequest, ProduceResponse
from kraft_wire.wire.generated.registry import RESPONSES
from kraft_wire.wire.header import (
    RequestHeader,
    encode_request_header,
    encode_response_header,
    parse_response_header,
)
from kraft_wire.wire.message import Message

UPSTREAM = ("broker.example", 9092)


class World:
    """What a proxy gives its conversations."""

    def __init__(self) -> None:
        self.topic_names: dict[Uuid, str] = {}
        self.node_ids: dict[Address, int] = {}
        self.rules = FaultRules(self.topic_names.get)
        self.recorder = Recorder(wall_ms, keeps=False)
        self.faults = Faults(self.rules)
        self.misunderstood: list[tuple[int, int]] = []

    def local_address(self, upstream: Address) -> Address:
        return "127.0.0.1", upstream[1] + 10_000

    def not_understood(self, api_key: int, version: int) -> None:
        self.misunderstood.append((api_key, version))


@pytest.fixture
def world() -> World:
    return World()


def conversation(world: World) -> Conversation:
    return Conversation(world, Client("127.0.0.1:1"), UPSTREAM)


def request(message: Message, version: int, correlation_id: int) -> bytes:
    header = RequestHeader(message.API_KEY, version, correlation_id, "shop")
    frame = encode_request_header(header) + message.encode(version)
    return frame_prefix(len(frame)) + frame


def response(message: Message, version: int, correlation_id: int) -> bytes:
    head = encode_response_header(message.API_KEY, version, correlation_id)
    frame = head + message.encode(version)
    return frame_prefix(len(frame)) + frame


def taken(parts: list) -> bytes:
    """What is to be written, which is then written."""
    data = b"".join(parts)
    parts.clear()
    return data


def chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    ends = sorted({min(each, len(data)) for each in cuts} | {len(data)})
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@given(st.lists(st.integers(0, 400), max_size=12), st.lists(st.integers(0, 400), max_size=12))
def test_bytes_pass_unchanged_in_any_chunks(cuts: list[int], other_cuts: list[int]) -> None:
    talk = conversation(World())
    asked = [request(HeartbeatRequest(group_id="g"), 4, number) for number in range(3)]
    asked.append(request(FindCoordinatorRequest(coordinator_keys=["g"]), 6, 3))
    asked.append(request(ApiVersionsRequest(client_software_name="n" * 60), 3, 4))
    for chunk in chunks(b"".join(asked), cuts):
        talk.client_data(chunk)
    assert taken(talk.to_upstream) == b"".join(asked)
    none = Coordinator(key="g", host="", port=-1, error_code=15)
    answered = [response(HeartbeatResponse(), 4, number) for number in range(3)]
    answered.append(response(FindCoordinatorResponse(coordinators=[none]), 6, 3))
    answered.append(response(ApiVersionsResponse(), 3, 4))
    for chunk in chunks(b"".join(answered), other_cuts):
        talk.upstream_data(chunk)
    assert taken(talk.to_client) == b"".join(answered)


def test_addresses_of_brokers_are_replaced_and_nothing_else(world: World) -> None:
    talk = conversation(world)
    brokers = [
        MetadataResponseBroker(node_id=7, host="a.example", port=9092, rack="r"),
        MetadataResponseBroker(node_id=8, host="b.example", port=9093),
    ]
    topic = MetadataResponseTopic(name="orders", topic_id=bytes(15) + b"\x07")
    answer = MetadataResponse(brokers=brokers, cluster_id="c", topics=[topic])
    talk.client_data(request(MetadataRequest(), 12, 1))
    talk.upstream_data(response(answer, 12, 1))
    (frame,) = FrameReader(1 << 20).feed(taken(talk.to_client))
    _, body_at = parse_response_header(frame, MetadataRequest.API_KEY, 12)
    found, end = MetadataResponse.decode(frame, 12, body_at)
    assert end == len(frame)
    assert [(each.host, each.port) for each in found.brokers] == [
        ("127.0.0.1", 19_092),
        ("127.0.0.1", 19_093),
    ]
    for each, original in zip(found.brokers, brokers, strict=True):
        each.host, each.port = original.host, original.port
    assert found == answer
    assert world.node_ids == {("a.example", 9092): 7, ("b.example", 9093): 8}
    assert world.topic_names == {Uuid(bytes(15) + b"\x07"): "orders"}


def test_addresses_of_new_leaders_in_a_fetch_response_are_replaced(world: World) -> None:
    answer = FetchResponse(node_endpoints=[NodeEndpoint(node_id=2, host="h", port=9)])
    (holder,) = address_holders(answer, 16)
    assert (holder.host, holder.port) == ("h", 9)
    assert list(address_holders(answer, 15)) == []


def test_every_response_with_a_host_and_a_port_is_looked_at() -> None:
    found = {
        RESPONSES[key].name.removesuffix("Response")
        for key in RESPONSES
        if carries_addresses(key, RESPONSES[key].max_version)
    }
    assert found == {
        "BeginQuorumEpoch",
        "DescribeCluster",
        "DescribeQuorum",
        "EndQuorumEpoch",
        "Fetch",
        "FetchSnapshot",
        "FindCoordinator",
        "Metadata",
        "Produce",
        "ShareAcknowledge",
        "ShareFetch",
        "UpdateRaftVoter",
        "Vote",
    }


def test_response_of_a_rule_waits_for_those_before_it(world: World) -> None:
    talk = conversation(world)
    talk.client_data(request(HeartbeatRequest(group_id="g"), 4, 1))
    world.faults.inject_error("UNKNOWN_MEMBER_ID", api="Heartbeat", when=once())
    talk.client_data(request(HeartbeatRequest(group_id="g"), 4, 2))
    talk.client_data(request(HeartbeatRequest(group_id="g"), 4, 3))
    assert taken(talk.to_client) == b""
    first = response(HeartbeatResponse(), 4, 1)
    talk.upstream_data(first[:6])
    talk.upstream_data(first[6:])
    refused = response(HeartbeatResponse(error_code=25), 4, 2)
    assert taken(talk.to_client) == first + refused
    talk.upstream_data(response(HeartbeatResponse(), 4, 3))
    assert taken(talk.to_client) == response(HeartbeatResponse(), 4, 3)


def test_response_of_a_rule_is_not_sent_inside_another_one(world: World) -> None:
    talk = conversation(world)
    talk.client_data(request(MetadataRequest(), 12, 1) + request(HeartbeatRequest(), 4, 2))
    first = response(MetadataResponse(), 12, 1)
    second = response(HeartbeatResponse(), 4, 2)
    talk.upstream_data(first + second[:9])
    world.faults.inject_error("UNKNOWN_MEMBER_ID", api="Heartbeat")
    talk.client_data(request(HeartbeatRequest(), 4, 3))
    talk.upstream_data(second[9:])
    refused = response(HeartbeatResponse(error_code=25), 4, 3)
    assert taken(talk.to_client) == first + second + refused


def test_produce_without_response_holds_nothing_back(world: World) -> None:
    talk = conversation(world)
    world.faults.inject_error("UNKNOWN_MEMBER_ID", api="Heartbeat")
    silent = request(ProduceRequest(acks=0), 9, 1)
    talk.client_data(silent + request(HeartbeatRequest(), 4, 2))
    assert taken(talk.to_upstream) == silent
    assert taken(talk.to_client) == response(HeartbeatResponse(error_code=25), 4, 2)


def test_produce_without_response_is_forgotten_when_a_later_one_is_answered(world: World) -> None:
    talk = conversation(world)
    asked = [request(ProduceRequest(acks=0), 9, 1), request(ProduceRequest(acks=1), 9, 2)]
    talk.client_data(b"".join(asked))
    answer = response(ProduceResponse(), 9, 2)
    talk.upstream_data(answer)
    assert taken(talk.to_client) == answer
    assert not talk._pending


def test_delay_holds_what_follows_in_the_same_direction(world: World) -> None:
    talk = conversation(world)
    world.faults.delay(0.25, api="Heartbeat", when=once())
    both = request(HeartbeatRequest(), 4, 1) + request(HeartbeatRequest(), 4, 2)
    talk.client_data(both)
    talk.client_data(request(HeartbeatRequest(), 4, 3))
    assert talk.requests.pause_ms == 250
    assert taken(talk.to_upstream) == b""
    talk.resume(talk.requests)
    assert taken(talk.to_upstream) == both + request(HeartbeatRequest(), 4, 3)


def test_black_hole_swallows_all_that_follows(world: World) -> None:
    talk = conversation(world)
    talk.client_data(request(HeartbeatRequest(), 4, 1))
    taken(talk.to_upstream)
    world.faults.blackhole(api="Heartbeat", when=once())
    talk.client_data(request(HeartbeatRequest(), 4, 2))
    talk.client_data(request(HeartbeatRequest(), 4, 3))
    assert taken(talk.to_upstream) == b""
    talk.upstream_data(response(HeartbeatResponse(), 4, 1))
    assert taken(talk.to_client) == response(HeartbeatResponse(), 4, 1)
    assert not talk.is_over


def test_truncated_response_ends_the_conversation(world: World) -> None:
    talk = conversation(world)
    world.faults.truncate_response(6, api="Heartbeat", when=once())
    talk.client_data(request(HeartbeatRequest(), 4, 1))
    talk.upstream_data(response(HeartbeatResponse(), 4, 1))
    assert taken(talk.to_client) == response(HeartbeatResponse(), 4, 1)[:10]
    assert talk.is_over


def test_what_is_no_frame_is_refused(world: World) -> None:
    with pytest.raises(MalformedFrame):
        conversation(world).client_data(b"GET / HTTP/1.1\r\n\r\n")


def test_response_of_a_version_that_is_not_known_passes_and_is_reported(world: World) -> None:
    talk = conversation(world)
    header = encode_request_header(RequestHeader(MetadataRequest.API_KEY, 12, 1, None))
    talk.client_data(frame_prefix(len(header)) + header)
    answer = response(SimpleNamespace(API_KEY=3, encode=lambda _: b"\xff\xff"), 12, 1)
    talk.upstream_data(answer)
    assert taken(talk.to_client) == answer
    assert world.misunderstood == [(3, 12)]
