"""Links to peers, driven by bytes: what real releases offer, and everything that can go wrong."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from kraft_wire.model import NO_REPLICA
from kraft_wire.node.links.peer_channels import ChannelLimits, PeerChannels
from kraft_wire.node.links.peer_versions import common_version
from kraft_wire.node.outputs import Connect, Disconnect, Output
from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.events import RequestFailed, ResponseReceived
from kraft_wire.raft.voters import Address
from kraft_wire.settings.broker import BROKER_KEYS
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.begin_quorum_epoch import BeginQuorumEpochRequest
from kraft_wire.wire.generated.describe_quorum import DescribeQuorumRequest
from kraft_wire.wire.generated.end_quorum_epoch import EndQuorumEpochRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from kraft_wire.wire.generated.fetch import (
    PartitionData as FetchedPartition,
)
from kraft_wire.wire.generated.fetch_snapshot import FetchSnapshotRequest
from kraft_wire.wire.generated.init_producer_id import InitProducerIdRequest
from kraft_wire.wire.generated.messages import RELEASE
from kraft_wire.wire.generated.registry import request_class
from kraft_wire.wire.generated.update_raft_voter import UpdateRaftVoterRequest
from kraft_wire.wire.generated.vote import PartitionData, TopicData, VoteRequest, VoteResponse
from kraft_wire.wire.header import RequestHeader
from kraft_wire.wire.message import Message
from tests.node.far_side import RELEASES, framed, offer, requests_of

ADDRESS = Address("127.0.0.1", 9093)


class World:
    """One set of channels, and the far side of its links."""

    def __init__(self, limits: ChannelLimits | None = None) -> None:
        self.lines: list[tuple[str, dict[str, object]]] = []
        self.channels = PeerChannels("raft-client-1", count(1), self._report, limits)

    def _report(self, name: str, **fields: object) -> None:
        self.lines.append((name, fields))

    @property
    def reasons(self) -> list[object]:
        return [fields["reason"] for _, fields in self.lines if "reason" in fields]

    def outputs(self) -> list[Output]:
        taken, self.channels.outputs = self.channels.outputs, []
        return taken

    def requests(self) -> list[tuple[RequestHeader, Message]]:
        """Take the outputs, all of which must be requests, and decode them."""
        return requests_of(self.outputs())

    def connect(self, request: Message | None = None, request_id: int = 1, now_ms: int = 0) -> int:
        """Ask something of a peer that is not connected, and connect it."""
        sent = SendRequest(request_id, 2, ADDRESS, request or VoteRequest())
        assert self.channels.send(sent, now_ms) == []
        (opened,) = self.outputs()
        assert isinstance(opened, Connect)
        assert (opened.host, opened.port) == ("127.0.0.1", 9093)
        assert self.channels.link_up(opened.link_id, now_ms) == []
        return opened.link_id

    def shake_hands(
        self, link: int, versions: dict[str, list[int]], now_ms: int = 0
    ) -> list[object]:
        ((header, request),) = self.requests()
        assert isinstance(request, ApiVersionsRequest)
        answer = offer(versions).encode(header.api_version)
        return list(self.channels.link_frame(link, framed(header, answer), now_ms))


def ready(limits: ChannelLimits | None = None, request: Message | None = None) -> tuple[World, int]:
    """Channels with one link to a 4.3.1 peer that was asked one thing, request 1."""
    world = World(limits)
    link = world.connect(request)
    assert world.shake_hands(link, RELEASES[RELEASE]) == []
    return world, link


def pre_vote() -> VoteRequest:
    partition = PartitionData(replica_id=1, replica_epoch=3, pre_vote=True)
    return VoteRequest(topics=[TopicData(topic_name="x", partitions=[partition])])


def raft_fetch() -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=0, last_fetched_epoch=0, high_watermark=-1)
    return FetchRequest(
        cluster_id="c",
        replica_state=ReplicaState(replica_id=1),
        topics=[FetchTopic(topic_id=bytes(15) + b"\1", partitions=[partition])],
    )


# -- versions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("3.9.1", {1: 17, 52: 1, 53: 1, 54: 1, 55: 2, 59: 1, 80: 0, 81: 0, 82: 0}),
        ("4.0.0", {1: 17, 52: 2, 53: 1, 54: 1, 55: 2, 59: 1, 80: 0, 81: 0, 82: 0}),
        (RELEASE, {1: 18, 52: 2, 53: 1, 54: 1, 55: 2, 59: 1, 80: 1, 81: 0, 82: 0}),
    ],
)
def test_a_request_goes_out_in_the_newest_version_that_both_have(
    release: str, expected: dict[int, int]
) -> None:
    world = World()
    link = world.connect(raft_fetch())
    assert world.shake_hands(link, RELEASES[release]) == []
    ((fetch, _),) = world.requests()
    spoken = {fetch.api_key: fetch.api_version}
    for number, key in enumerate(sorted(expected.keys() - {1})):
        request = request_class(key)()
        assert world.channels.send(SendRequest(10 + number, 2, ADDRESS, request), 0) == []
        ((header, _),) = world.requests()
        assert header.client_id == "raft-client-1"
        spoken[header.api_key] = header.api_version
    assert spoken == expected


def test_a_pre_vote_to_a_release_without_it_is_answered_unsupported() -> None:
    world = World()
    link = world.connect(pre_vote())
    (event,) = world.shake_hands(link, RELEASES["3.9.1"])
    assert isinstance(event, ResponseReceived)
    assert event.request_id == 1
    assert isinstance(event.response, VoteResponse)
    assert event.response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert world.outputs() == []


@pytest.mark.parametrize(
    "request_",
    [
        BeginQuorumEpochRequest(),
        EndQuorumEpochRequest(),
        FetchSnapshotRequest(),
        UpdateRaftVoterRequest(),
        DescribeQuorumRequest(),
    ],
    ids=lambda each: each.NAME,
)
def test_an_api_that_the_peer_does_not_have_is_answered_unsupported(request_: Message) -> None:
    world = World()
    link = world.connect(request_)
    (event,) = world.shake_hands(link, {"18": [0, 4], "1": [4, 18]})
    assert isinstance(event, ResponseReceived)
    assert event.response.error_code == ErrorCode.UNSUPPORTED_VERSION  # type: ignore[attr-defined]  # it has one


def test_the_handshake_names_the_software_and_falls_back_to_what_the_peer_knows() -> None:
    world = World()
    link = world.connect()
    ((header, request),) = world.requests()
    assert header == RequestHeader(18, 4, 0, "raft-client-1")
    assert isinstance(request, ApiVersionsRequest)
    assert request.client_software_name == "kraft-wire"
    refusal = offer({"18": [0, 2]})
    refusal.error_code = ErrorCode.UNSUPPORTED_VERSION
    assert world.channels.link_frame(link, framed(header, refusal.encode(0)), 1) == []
    assert world.shake_hands(link, RELEASES[RELEASE]) == []
    ((vote, _),) = world.requests()
    assert vote.api_key == VoteRequest.API_KEY


def test_a_peer_that_refuses_every_version_is_left() -> None:
    world = World()
    link = world.connect()
    for _ in range(2):
        ((header, _),) = world.requests()
        refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION).encode(0)
        events = world.channels.link_frame(link, framed(header, refusal), 1)
    assert header.api_version == 0
    assert events == [RequestFailed(1)]
    assert world.outputs() == [Disconnect(link)]
    assert "versions_refused" in world.reasons


def test_a_peer_that_refuses_versions_that_it_names_is_asked_in_older_ones_and_left() -> None:
    """KIP-511: the next version is lower each time, so that the handshake ends."""
    world = World()
    link = world.connect()
    refusal = offer({"18": [0, 4]})
    refusal.error_code = ErrorCode.UNSUPPORTED_VERSION
    versions, events = [], []
    for _ in range(5):
        ((header, _),) = world.requests()
        versions.append(header.api_version)
        events = world.channels.link_frame(link, framed(header, refusal.encode(0)), 1)
    assert versions == [4, 3, 2, 1, 0]
    assert events == [RequestFailed(1)]


def test_the_version_is_the_newest_of_those_that_both_sides_have() -> None:
    """KIP-35: the intersection of two ranges, which may be empty on either side."""
    ours = range(VoteRequest.MIN_VERSION, VoteRequest.MAX_VERSION + 1)
    assert len(ours) > 1
    for low in range(ours.stop + 2):
        for high in range(low, ours.stop + 2):
            both = {*ours} & {*range(low, high + 1)}
            newest = max(both, default=None)
            assert common_version(VoteRequest(), {VoteRequest.API_KEY: (low, high)}) == newest
    assert common_version(VoteRequest(), {}) is None
    newest = InitProducerIdRequest.MAX_VERSION - 1
    offered = {InitProducerIdRequest.API_KEY: (0, newest + 3)}
    assert common_version(InitProducerIdRequest(), offered) == newest, "the last one is unstable"


# -- answers -----------------------------------------------------------------------------------


def test_several_requests_are_under_way_and_answered_in_any_order() -> None:
    world, link = ready()
    world.channels.send(SendRequest(2, 2, ADDRESS, VoteRequest(cluster_id="b")), 0)
    headers = [header for header, _ in world.requests()]
    answers = [VoteResponse(error_code=code).encode(2) for code in (1, 2)]
    second = world.channels.link_frame(link, framed(headers[1], answers[1]), 1)
    first = world.channels.link_frame(link, framed(headers[0], answers[0]), 1)
    answers = [(e.request_id, e.response.error_code) for e in second + first]  # type: ignore[union-attr]  # they are answers
    assert answers == [(2, 2), (1, 1)]


def test_fetched_records_stay_slices_of_the_frame() -> None:
    world, link = ready(request=raft_fetch())
    ((header, _),) = world.requests()
    data = FetchedPartition(partition_index=0, high_watermark=5, records=b"r" * 1000)
    topic = FetchableTopicResponse(topic_id=bytes(15) + b"\1", partitions=[data])
    frame = framed(header, FetchResponse(responses=[topic]).encode(header.api_version))
    (event,) = world.channels.link_frame(link, frame, 1)
    assert isinstance(event, ResponseReceived)
    assert isinstance(event.response, FetchResponse)
    records = event.response.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame


def good_vote(header: RequestHeader) -> bytes:
    return framed(header, VoteResponse().encode(header.api_version))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda header: good_vote(replace(header, correlation_id=99)), "unexpected_answer"),
        (lambda header: b"", "unexpected_answer"),
        (lambda header: b"\0\0", "unexpected_answer"),
        (lambda header: good_vote(header)[:6], "truncated"),
        (lambda header: good_vote(header)[:7] + b"\xff\xff\x7f", "array_count_exceeds_remaining"),
        (lambda header: b"\xff" * 40, "unexpected_answer"),
    ],
    ids=["unknown", "empty", "short", "cut", "absurd", "garbage"],
)
def test_an_answer_that_cannot_be_read_closes_the_link_and_fails_what_was_asked(
    spoil: Callable[[RequestHeader], bytes], reason: str
) -> None:
    world, link = ready()
    ((header, _),) = world.requests()
    events = world.channels.link_frame(link, spoil(header), 5)
    assert events == [RequestFailed(1)]
    assert world.outputs() == [Disconnect(link)]
    assert reason in world.reasons
    assert not world.channels.owns(link)


def test_an_answer_given_twice_closes_the_link() -> None:
    world, link = ready()
    ((header, _),) = world.requests()
    assert len(world.channels.link_frame(link, good_vote(header), 1)) == 1
    assert world.channels.link_frame(link, good_vote(header), 2) == []
    assert world.outputs() == [Disconnect(link)]
    assert world.reasons == ["unexpected_answer"]


def test_bytes_behind_an_answer_are_passed_over_as_java_clients_do() -> None:
    world, link = ready()
    ((header, _),) = world.requests()
    (event,) = world.channels.link_frame(link, good_vote(header) + b"tail", 1)
    assert isinstance(event, ResponseReceived)


def test_what_comes_of_a_closed_link_is_nothing() -> None:
    world, link = ready()
    ((header, _),) = world.requests()
    assert world.channels.link_down(link, 1) == [RequestFailed(1)]
    assert world.channels.link_frame(link, good_vote(header), 2) == []
    assert world.channels.link_down(link, 2) == []
    assert world.channels.link_up(link, 2) == []
    assert world.outputs() == []


def test_one_peer_fills_no_log_with_its_mistakes() -> None:
    world = World()
    for at_ms in range(0, 1_000, 100):
        link = world.connect(now_ms=at_ms)
        world.outputs()
        world.channels.link_frame(link, b"garbage!", at_ms)
        assert world.outputs() == [Disconnect(link)]
        assert world.channels.deadline_ms() is None
        world.channels._peers[(2, ADDRESS)].rests_until_ms = 0
    assert len(world.lines) == 2, world.lines
    for at_ms, lines in ((999, 2), (1_000, 3), (1_001, 3), (2_000, 4)):
        link = world.connect(now_ms=at_ms)
        world.outputs()
        world.channels.link_frame(link, b"garbage!", at_ms)
        world.outputs()
        assert len(world.lines) == lines, at_ms
        world.channels._peers[(2, ADDRESS)].rests_until_ms = 0


# -- time --------------------------------------------------------------------------------------


def test_peer_of_another_cluster_is_named_once_a_second_and_its_answers_are_passed_on() -> None:
    """KIP-595: its INCONSISTENT_CLUSTER_ID is all that a node ever gets from it."""
    world, link = ready()
    for request_id, now_ms in ((1, 0), (2, 999), (3, 1_000)):
        if request_id > 1:
            world.channels.send(SendRequest(request_id, 2, ADDRESS, VoteRequest()), now_ms)
        ((header, _),) = world.requests()
        refused = VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        frame = framed(header, refused.encode(header.api_version))
        (event,) = world.channels.link_frame(link, frame, now_ms)
        assert isinstance(event, ResponseReceived)
        assert event.request_id == request_id
    named = ("peer_of_another_cluster", {"peer": 2, "address": "127.0.0.1:9093"})
    assert world.lines == [named] * 2


def test_a_request_that_is_never_answered_closes_its_link() -> None:
    world, link = ready()
    world.outputs()
    assert world.channels.deadline_ms() == 2_000
    assert world.channels.tick(1_999) == []
    assert world.channels.tick(2_000) == [RequestFailed(1)]
    assert world.outputs() == [Disconnect(link)]
    assert world.reasons == ["request_timeout"]


def test_a_peer_that_never_answers_a_connection_is_given_up() -> None:
    world = World(ChannelLimits(request_timeout_ms=60_000, setup_timeout_ms=500))
    world.channels.send(SendRequest(1, 2, ADDRESS, VoteRequest()), 0)
    (opened,) = world.outputs()
    assert isinstance(opened, Connect)
    assert world.channels.deadline_ms() == 500
    assert world.channels.tick(500) == [RequestFailed(1)]
    assert world.outputs() == [Disconnect(opened.link_id)]
    assert world.reasons == ["setup_timeout"]


def test_a_request_waits_for_versions_no_longer_than_for_an_answer() -> None:
    """The time limit of a request counts from its sending, whatever the link is doing."""
    for is_connected in (False, True):
        world = World()
        if is_connected:
            world.connect()
        else:
            world.channels.send(SendRequest(1, 2, ADDRESS, VoteRequest()), 0)
        world.outputs()
        assert world.channels.deadline_ms() == ChannelLimits().request_timeout_ms == 2_000
        assert world.channels.tick(1_999) == []
        assert world.channels.tick(2_000) == [RequestFailed(1)]


@pytest.mark.parametrize("late", [2, 3])
def test_a_late_link_is_closed_whichever_was_opened_first(late: int) -> None:
    world = World()
    links: dict[int, int] = {}
    for node_id in (2, 3):
        world.channels.send(SendRequest(node_id, node_id, ADDRESS, VoteRequest()), 0)
        (opened,) = world.outputs()
        assert isinstance(opened, Connect)
        world.channels.link_up(opened.link_id, 0)
        world.shake_hands(opened.link_id, RELEASES[RELEASE])
        ((header, _),) = world.requests()
        if node_id != late:
            world.channels.link_frame(opened.link_id, good_vote(header), 0)
        links[node_id] = opened.link_id
    assert world.channels.tick(2_000) == [RequestFailed(late)]
    assert world.outputs() == [Disconnect(links[late])]


def test_limits_of_time_are_those_of_kafkas_raft_client() -> None:
    """The timeouts of setup and of idle links have no key of the quorum: Kafka's defaults hold."""
    limits = ChannelLimits()
    asked = {
        "controller.quorum.request.timeout.ms": limits.request_timeout_ms,
        "socket.connection.setup.timeout.ms": limits.setup_timeout_ms,
        "connections.max.idle.ms": limits.idle_ms,
        "controller.quorum.retry.backoff.ms": limits.backoff_ms,
    }
    assert asked == {name: BROKER_KEYS[name].default for name in asked}


def test_an_unreachable_peer_rests_longer_each_time_and_fails_at_once_meanwhile() -> None:
    world, now_ms, rests = World(), 0, []
    for request_id in range(1, 7):
        link = world.connect(request_id=request_id, now_ms=now_ms)
        world.outputs()
        assert world.channels.link_down(link, now_ms) == [RequestFailed(request_id)]
        began_ms = now_ms
        sent = SendRequest(99, 2, ADDRESS, VoteRequest())
        while world.channels._peers[(2, ADDRESS)].rests_until_ms > now_ms:
            assert world.channels.send(sent, now_ms) == [RequestFailed(99)]
            now_ms += 10
        rests.append(now_ms - began_ms)
    assert rests == [20, 40, 80, 160, 200, 200]
    assert [name for name, _ in world.lines] == ["peer_unreachable"]


def test_a_peer_that_is_reached_again_is_said_once_and_forgiven() -> None:
    world = World()
    for at_ms in (0, 100):
        world.channels.link_down(world.connect(now_ms=at_ms), at_ms)
        world.outputs()
    link = world.connect(now_ms=200)
    world.shake_hands(link, RELEASES[RELEASE], 200)
    said = ["peer_unreachable", "peer_reached"]
    assert [name for name, _ in world.lines] == said
    world.channels.link_frame(link, good_vote(world.requests()[0][0]), 200)
    idle_ms = 200 + ChannelLimits().idle_ms
    assert world.channels.tick(idle_ms) == []
    world.outputs()
    world.shake_hands(world.connect(now_ms=idle_ms), RELEASES[RELEASE], idle_ms)
    assert [name for name, _ in world.lines] == said


def test_a_link_that_nobody_needs_is_closed_without_a_rest() -> None:
    world, link = ready(ChannelLimits(idle_ms=5_000))
    world.channels.link_frame(link, good_vote(world.requests()[0][0]), 100)
    assert world.channels.deadline_ms() == 5_100
    assert world.channels.tick(5_100) == []
    assert world.outputs() == [Disconnect(link)]
    assert world.channels.deadline_ms() is None
    world.connect(request_id=2, now_ms=5_100)


def test_a_peer_that_drops_a_request_rests_and_one_that_owed_nothing_does_not() -> None:
    world, link = ready()
    world.outputs()
    assert world.channels.link_down(link, 100) == [RequestFailed(1)]
    again = SendRequest(2, 2, ADDRESS, VoteRequest())
    assert world.channels.send(again, 100 + ChannelLimits().backoff_ms - 1) == [RequestFailed(2)]
    idle, link = ready()
    idle.channels.link_frame(link, good_vote(idle.requests()[0][0]), 100)
    assert idle.channels.link_down(link, 200) == []
    idle.connect(request_id=2, now_ms=200)


# -- memory ------------------------------------------------------------------------------------


def test_more_requests_of_one_peer_than_allowed_fail_at_once() -> None:
    world = World(ChannelLimits(requests_max=3))
    world.connect()
    for request_id in (2, 3, 4):
        sent = SendRequest(request_id, 2, ADDRESS, VoteRequest())
        events = world.channels.send(sent, 0)
        assert events == ([] if request_id < 3 else [RequestFailed(request_id)])


def test_ever_new_addresses_are_forgotten_again() -> None:
    world = World(ChannelLimits(peers_max=4))
    failed = []
    for number in range(100):
        sent = SendRequest(number, number, Address("127.0.0.1", 10_000 + number), VoteRequest())
        failed += world.channels.send(sent, 0)
    assert failed == [RequestFailed(number) for number in range(96)]
    closed = [each for each in world.outputs() if isinstance(each, Disconnect)]
    assert len(closed) == 96
    assert len(world.channels._peers) == len(world.channels._by_link) == 4


def test_a_bootstrap_server_and_the_node_behind_it_have_links_of_their_own() -> None:
    world = World()
    for request_id, node_id in enumerate((-2, 2, NO_REPLICA), start=1):
        world.channels.send(SendRequest(request_id, node_id, ADDRESS, VoteRequest()), 0)
    opened = [each for each in world.outputs() if isinstance(each, Connect)]
    assert [each.link_id for each in opened] == [1, 2, 3]
    assert len(world.channels.close_all()) == 3
