"""Fetchers' requests on their way to leaders: addresses, versions, broken links, memory."""

import subprocess
import sys
from itertools import count
from typing import Any

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.node.links.broker_links import BrokerLinks
from kraft_wire.node.outputs import Connect, SendBytes
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchableTopicResponse, FetchRequest, FetchResponse
from kraft_wire.wire.message import DecodeLimits
from tests.broker.replication.followers import data
from tests.broker.small_broker import (
    LISTENER,
    broker_image,
    id_of,
    image_of,
    partition_image,
    small_broker,
)
from tests.node.far_side import answer, offer, requests_of

BACKOFF_MS = 1_000
VERSIONS = {"1": [4, 18], "2": [1, 11], "18": [0, 4]}


class Side:
    """Broker 1, which follows a partition of broker 2, and the links of its node."""

    def __init__(self, listener: str = LISTENER, versions: dict[str, list[int]] = VERSIONS) -> None:
        followed = partition_image(0, leader=2, leader_epoch=3, replicas=(1, 2))
        image = image_of({"t": [followed]}, [broker_image(1), broker_image(2)])
        self.broker: Broker = small_broker(image, source=NodeSettings({}))
        self.epoch = 11
        self.lines: list[str] = []
        self.versions = versions
        self.now_ms = 5_000
        self.links = BrokerLinks(
            self.broker,
            self.broker.inter_broker_clients[0],
            listener,
            lambda: self.epoch,
            count(1),
            DecodeLimits(),
            lambda name, **fields: self.lines.append(name),
        )

    def pump(self) -> list[Any]:
        self.links.pump(self.now_ms, 0)
        return self.links.take_outputs()

    def requests(self) -> list[Any]:
        """The requests that leave now, connecting and telling versions on the way."""
        found: list[Any] = []
        outputs = self.pump()
        while outputs:
            first, outputs = outputs[0], outputs[1:]
            if isinstance(first, Connect):
                self.link = first.link_id
                self.links.link_up(self.link, self.now_ms, 0)
            elif isinstance(first, SendBytes):
                ((header, request),) = requests_of([first])
                if isinstance(request, ApiVersionsRequest):
                    self.links.link_frame(self.link, answer(header, offer(self.versions)), 5_000, 0)
                else:
                    self.header = header
                    found.append(request)
            outputs += self.links.take_outputs()
        return found

    def answer(self, response: FetchResponse) -> None:
        self.links.link_frame(self.link, answer(self.header, response), self.now_ms, 0)


def test_a_fetch_goes_to_the_listener_that_brokers_use() -> None:
    side = Side()
    (connect,) = side.pump()
    assert (connect.host, connect.port) == ("host2", 9_002)
    (request,) = Side().requests()
    assert isinstance(request, FetchRequest)
    assert request.replica_state.replica_epoch == 11
    assert request.topics[0].topic_id == id_of("t")


def test_nothing_is_sent_before_the_broker_has_an_epoch() -> None:
    side = Side()
    side.epoch = -1
    assert side.pump() == []
    assert side.links.deadline_ms() is None
    side.epoch = 11
    assert len(side.requests()) == 1


def test_a_leader_without_that_listener_is_looked_for_after_a_rest() -> None:
    side = Side(listener="INTERNAL")
    assert side.pump() == []
    assert side.links.deadline_ms() == side.now_ms + BACKOFF_MS


def test_a_link_that_is_refused_costs_a_rest() -> None:
    side = Side()
    (connect,) = side.pump()
    side.links.link_down(connect.link_id, side.now_ms, 0)
    assert side.pump() == []
    assert side.links.deadline_ms() == side.now_ms + BACKOFF_MS
    side.now_ms += BACKOFF_MS
    assert len(side.requests()) == 1


def test_an_answer_that_does_not_come_ends_the_link() -> None:
    side = Side()
    side.requests()
    assert side.links.deadline_ms() == 5_000 + 30_000
    side.now_ms = 35_000
    side.links.tick(side.now_ms, 0)
    assert side.lines == ["peer_link_closed"]
    side.now_ms += BACKOFF_MS
    (request,) = side.requests()
    assert request.session_epoch == 0


@pytest.mark.parametrize("missing", ["1", "2"])
def test_a_leader_that_lacks_a_request_is_asked_again_after_a_rest(missing: str) -> None:
    """Its mistake is data: a broker of any make serves Fetch and ListOffsets."""
    versions = {key: each for key, each in VERSIONS.items() if key != missing}
    side = Side(versions=versions)
    requests = side.requests()
    if missing == "2":
        assert len(requests) == 1
        refused = data(error=ErrorCode.OFFSET_OUT_OF_RANGE)
        response = FetchResponse(session_id=9)
        response.responses = [answered(refused)]
        side.answer(response)
        requests = side.requests()
    assert requests == []
    assert side.links.deadline_ms() == side.now_ms + BACKOFF_MS


def answered(partition: Any) -> Any:
    return FetchableTopicResponse(topic_id=id_of("t"), partitions=[partition])


def test_a_node_that_follows_nobody_loads_nothing_of_this() -> None:
    """Most of a start is imports."""
    code = """
import sys
from tests.node.quorum import NodeQuorum
from tests.node.test_combined_quorum import COMBINED, all_run, create, produce
quorum = NodeQuorum(voters=(1,), settings=COMBINED)
all_run(quorum)
assert create(quorum, 1, "t") == 0
assert produce(quorum, 1, "t") == 0
print([name for name in sys.modules if "broker_links" in name or "broker.replication" in name])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_stop_needs_no_more_calls_for_a_leader_that_is_to_be_asked_later() -> None:
    side = Side(listener="INTERNAL")
    side.pump()
    assert side.links.deadline_ms() == side.now_ms + BACKOFF_MS
    side.broker.is_stopping = True
    side.pump()
    assert side.links.deadline_ms() is None


def test_a_stop_closes_the_links() -> None:
    side = Side()
    side.requests()
    assert side.links.owns(side.link)
    side.broker.stop(side.now_ms)
    side.pump()
    assert not side.links.owns(side.link)
    assert side.links.deadline_ms() is None
