"""Random peers behind links: whatever they send or do, each request is answered or failed once."""

from itertools import count
from random import Random

import pytest

from kraft_wire.node.links.peer_channels import ChannelLimits, PeerChannels
from kraft_wire.node.outputs import Connect, Disconnect, SendBytes
from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.events import RequestFailed, ResponseReceived
from kraft_wire.raft.voters import Address
from kraft_wire.wire.generated.begin_quorum_epoch import BeginQuorumEpochRequest
from kraft_wire.wire.generated.envelope import EnvelopeRequest
from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.generated.fetch_snapshot import FetchSnapshotRequest
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.generated.vote import VoteRequest
from kraft_wire.wire.header import RequestHeader
from kraft_wire.wire.message import Message
from tests.node.far_side import RELEASES, answer, framed, offer, requests_of

REQUESTS = (VoteRequest, BeginQuorumEpochRequest, FetchSnapshotRequest, EnvelopeRequest)
STEPS = 600
PEERS = 6


class EvilWorld:
    """Channels, what was asked of them, and what peers may still answer."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines = 0
        limits = ChannelLimits(peers_max=4, requests_max=5, setup_timeout_ms=700)
        self.channels = PeerChannels("5", count(1), self._report, limits)
        self.now_ms = 0
        self.open: dict[int, list[RequestHeader]] = {}
        """By link that is not disconnected: the requests that came on it."""
        self.asked: dict[int, type[Message]] = {}
        self.ended = 0

    def _report(self, name: str, **fields: object) -> None:
        self.lines += 1

    def take(self, events: list[ResponseReceived | RequestFailed]) -> None:
        for event in events:
            kind = self.asked.pop(event.request_id)
            if isinstance(event, ResponseReceived):
                assert isinstance(event.response, response_class(kind.API_KEY))
            self.ended += 1
        outputs, self.channels.outputs = self.channels.outputs, []
        for output in outputs:
            if isinstance(output, Connect):
                assert output.link_id not in self.open
                self.open[output.link_id] = []
            elif isinstance(output, Disconnect):
                del self.open[output.link_id]
            else:
                assert isinstance(output, SendBytes)
                self.open[output.link_id] += [header for header, _ in requests_of([output])]
        assert {link for link in self.open if not self.channels.owns(link)} == set()

    def step(self) -> None:
        self.now_ms += self.random.choice((0, 0, 1, 5, 50, 900))
        choice = self.random.random()
        if choice < 0.35:
            self.ask()
        elif choice < 0.45 or not self.open:
            self.take(self.channels.tick(self.now_ms))
        else:
            link = self.random.choice(sorted(self.open))
            if choice < 0.55:
                self.take(self.channels.link_up(link, self.now_ms))
            elif choice < 0.6:
                self.open.pop(link)
                self.take(self.channels.link_down(link, self.now_ms))
            else:
                frame = self.frame(self.open[link])
                self.take(self.channels.link_frame(link, frame, self.now_ms))

    def ask(self) -> None:
        request_id = len(self.asked) + self.ended + 1
        kind = self.random.choice((*REQUESTS, FetchRequest))
        self.asked[request_id] = kind
        node_id = self.random.randrange(PEERS)
        sent = SendRequest(request_id, node_id, Address("h", node_id), kind())
        self.take(self.channels.send(sent, self.now_ms))

    def frame(self, headers: list[RequestHeader]) -> bytes:
        """Return an answer: proper, damaged, to another request, or noise."""
        random = self.random
        if not headers or random.random() < 0.1:
            return random.randbytes(random.randrange(40))
        header = headers.pop(random.randrange(len(headers)))
        if header.api_key == 18:
            release = RELEASES[random.choice(sorted(RELEASES))]
            good = answer(header, offer(release))
        else:
            good = answer(header, response_class(header.api_key)())
        if random.random() < 0.75:
            return good
        damaged = bytearray(good)
        for _ in range(random.randrange(1, 4)):
            damaged[random.randrange(4, len(damaged))] = random.randrange(256)
        return bytes(damaged[: random.randrange(4, len(damaged) + 1)])


@pytest.mark.parametrize("seed", range(40))
def test_each_request_ends_exactly_once_whatever_peers_do(seed: int) -> None:
    world = EvilWorld(seed)
    for _ in range(STEPS):
        world.step()
        deadline = world.channels.deadline_ms()
        assert (deadline is None) == (not world.open)
        assert len(world.channels._peers) <= 4
    while world.asked:
        deadline = world.channels.deadline_ms()
        assert deadline is not None, world.asked
        world.now_ms = max(world.now_ms, deadline)
        world.take(world.channels.tick(world.now_ms))
    world.take(world.channels.close_all())
    assert world.open == {}
    assert world.ended > 100


def test_a_peer_that_offers_nothing_or_nonsense_is_spoken_to_in_no_version() -> None:
    channels = PeerChannels("5", count(1), lambda name, **fields: None)
    channels.send(SendRequest(1, 2, Address("h", 1), VoteRequest()), 0)
    channels.link_up(1, 0)
    ((header, _),) = requests_of(channels.outputs[1:])
    nonsense = offer({"52": [3, 2], "1": [-5, 4], "54": [32_000, 32_767]})
    (event,) = channels.link_frame(1, framed(header, nonsense.encode(4)), 0)
    assert isinstance(event, ResponseReceived)
    assert event.response.error_code == 35  # type: ignore[attr-defined]  # every answer has it
