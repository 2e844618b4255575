"""A leader that is at another address than this replica's log has is followed there (KIP-853).

The replica finds it as a bootstrap server; fetches alone bring no snapshot (sim seed 6000538).
"""

from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.voters import Address
from kraft_wire.wire.generated.fetch import FetchRequest, FetchResponse, NodeEndpoint, SnapshotId
from kraft_wire.wire.generated.fetch_snapshot import FetchSnapshotRequest
from tests.raft.cluster import address_of
from tests.raft.rpc.test_responses import fetch_response, fetching
from tests.raft.small import TIMING, Small

MOVED = Address("elsewhere", 9002)
TRIES = 50
"""Draws of a node to fetch from, of which one of four is the moved leader."""


def named(**fields: object) -> FetchResponse:
    """An answer of leader 2, which names its address."""
    response = fetch_response(**fields)
    response.node_endpoints = [NodeEndpoint(node_id=2, host=MOVED.host, port=MOVED.port)]
    return response


def fetch_of_the_moved() -> tuple[Small, SendRequest]:
    """A follower whose leader is silent at its old address, with a fetch to the new one."""
    small = Small((1, 5), (2, 3), bootstrap=(MOVED,)).follower()
    for _ in range(TRIES):
        small.pass_ms(TIMING.request_timeout_ms)
        for sent in small.sent(FetchRequest):
            if sent.address == MOVED:
                return small, sent
            assert sent.address == address_of(sent.node_id)
    raise AssertionError("nobody fetched from the bootstrap server")


def test_a_snapshot_is_fetched_where_the_leader_is_now() -> None:
    small, sent = fetch_of_the_moved()
    snapshot = SnapshotId(end_offset=20, epoch=3)
    small.answer(sent, named(snapshot_id=snapshot))
    (fetch,) = small.sent(FetchSnapshotRequest)
    assert (fetch.node_id, fetch.address) == (2, MOVED)


def test_a_leader_that_answers_where_it_is_known_is_asked_there() -> None:
    """The address that it names may be out of this replica's reach."""
    small = fetching()
    small.answer(
        small.sent(FetchRequest)[-1], named(snapshot_id=SnapshotId(end_offset=20, epoch=3))
    )
    (fetch,) = small.sent(FetchSnapshotRequest)
    assert (fetch.node_id, fetch.address) == (2, address_of(2))


def test_a_leader_that_names_its_old_address_is_asked_as_before() -> None:
    small, sent = fetch_of_the_moved()
    response = named(snapshot_id=SnapshotId(end_offset=20, epoch=3))
    old = address_of(2)
    response.node_endpoints = [NodeEndpoint(node_id=2, host=old.host, port=old.port)]
    small.answer(sent, response)
    assert small.sent(FetchSnapshotRequest) == []
