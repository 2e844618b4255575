"""Requests that a broker sends to itself: no link, the same handlers, responses in order."""

from collections.abc import Callable

from kraft_wire.broker.inter_broker import InterBrokerClient
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated.describe_cluster import DescribeClusterRequest
from kraft_wire.wire.generated.init_producer_id import InitProducerIdRequest
from kraft_wire.wire.message import Message
from tests.broker.groups.node_door import NodeDoor


class Asking:
    """`BrokerRequests` over a list of requests; at most one is in flight."""

    def __init__(self, *requests: Message) -> None:
        self.to_send = list(requests)
        self.responses: list[Message] = []
        self.epochs: list[int] = []
        self.in_flight = False
        self.on_response: Callable[[], None] = lambda: None

    def request(self, broker_epoch: int, now_ms: int) -> Message | None:
        if self.in_flight or not self.to_send:
            return None
        self.in_flight = True
        self.epochs.append(broker_epoch)
        return self.to_send.pop(0)

    def answered(self, response: Message, now_ms: int, wall_ms: int) -> None:
        assert self.in_flight
        self.in_flight = False
        self.responses.append(response)
        self.on_response()

    def failed(self, now_ms: int) -> None:
        raise AssertionError("a broker reaches itself")

    def deadline_ms(self) -> int | None:
        return None


def with_clients(*parts: Asking) -> NodeDoor:
    door = NodeDoor(SimFileSystem())
    for number, part in enumerate(parts):
        by_broker = {door.node.broker.node_id: part}
        client = InterBrokerClient(f"client-{number}", 1_000, lambda each=by_broker: each)  # type: ignore[misc]  # bound now
        door.node.broker.inter_broker_clients.append(client)
    return door


def init_producer_id() -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)


def test_a_response_that_brings_another_request_is_followed_in_the_same_call() -> None:
    """Also one of another client, and of a client that was pumped before."""
    first, second = Asking(), Asking(DescribeClusterRequest(), DescribeClusterRequest())
    second.on_response = lambda: first.to_send.append(DescribeClusterRequest())
    door = with_clients(first, second)
    door.node.tick(door.now_ms, door.wall_ms)
    assert len(second.responses) == len(first.responses) == 2
    assert first.epochs == [door.node.broker_epoch] * 2
    assert door.node.outputs == []


def test_a_request_that_the_handler_parks_is_answered_when_it_is_completed() -> None:
    """It waits for a block of producer ids, which the metadata log has to commit."""
    asking = Asking(init_producer_id(), init_producer_id())
    door = with_clients(asking)
    door.keeps_flushes_back = True
    door.node.tick(door.now_ms, door.wall_ms)
    door._drain()
    assert asking.in_flight
    assert asking.responses == []
    door.flush()
    door.settle()
    ids = [response.producer_id for response in asking.responses]  # type: ignore[attr-defined]  # asked for
    assert len(ids) == 2
    assert ids[0] != ids[1]


def test_requests_of_the_broker_and_of_a_client_wait_beside_each_other() -> None:
    asking = Asking(init_producer_id())
    door = with_clients(asking)
    door.keeps_flushes_back = True
    reply = door.send(init_producer_id(), 5)
    assert asking.in_flight
    door.flush()
    door.settle()
    assert reply.response.error_code == 0
    (response,) = asking.responses
    assert response.producer_id != reply.response.producer_id  # type: ignore[attr-defined]  # asked for
