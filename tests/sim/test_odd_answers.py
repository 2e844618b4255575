"""Responses between nodes that are odd in their shape: what changes, and that nodes refuse them."""

from collections import Counter
from random import Random

import pytest

from kraft_wire.raft.rpc import fetch_snapshot
from kraft_wire.sim.odd_answers import OddAnswers
from kraft_wire.sim.runs.campaign import drawn
from kraft_wire.sim.runs.run import Result, run_plan
from kraft_wire.wire.frame import frame_prefix
from kraft_wire.wire.generated.api_versions import ApiVersion, ApiVersionsResponse
from kraft_wire.wire.generated.vote import ResponsePartitionData, ResponseTopicData, VoteResponse
from kraft_wire.wire.header import encode_response_header, parse_response_header
from kraft_wire.wire.message import Message
from tests.seeds import kept_seeds

NODE, OTHER = 3, 4
ODD_SNAPSHOT = 56
"""A FetchSnapshot response without a partition."""
VOTE, API_VERSIONS = VoteResponse.API_KEY, ApiVersionsResponse.API_KEY


def frame_of(response: Message, version: int) -> bytes:
    body = encode_response_header(response.API_KEY, version, 77) + response.encode(version)
    return frame_prefix(len(body)) + body


def vote_of(frame: bytes) -> VoteResponse:
    data = memoryview(frame)[4:]
    assert int.from_bytes(frame[:4], "big") == len(data)
    number, at = parse_response_header(data, VOTE, 2)
    response, end = VoteResponse.decode(data, 2, at)
    assert (number, end) == (77, len(data))
    return response


def granted(topic: str = "__cluster_metadata") -> VoteResponse:
    vote = ResponsePartitionData(partition_index=0, leader_id=5, leader_epoch=9, vote_granted=True)
    return VoteResponse(topics=[ResponseTopicData(topic_name=topic, partitions=[vote])])


def run_of(seed: int, *, brokers: int | None, events: int) -> Result:
    return run_plan(drawn(seed, events=events, nodes=None, brokers=brokers, focus="odd-answers"))


def test_answers_are_odd_for_a_while_and_those_of_one_node() -> None:
    odd = OddAnswers(Random(1))
    odd.begin(NODE, 1_000)
    frame = frame_of(granted(), 2)
    assert all(odd.changed(OTHER, 0, frame, VOTE, 2) is frame for _ in range(100))
    assert all(odd.changed(NODE, 1_000, frame, VOTE, 2) is frame for _ in range(100))
    changed = [odd.changed(NODE, 999, frame, VOTE, 2) for _ in range(400)]
    assert 100 < sum(one is not frame for one in changed) < 220
    odd.end()
    assert all(odd.changed(NODE, 0, frame, VOTE, 2) is frame for _ in range(100))


def test_an_odd_answer_lacks_elements_or_has_them_twice_or_has_an_error() -> None:
    odd = OddAnswers(Random(2))
    odd.begin(NODE, 1)
    shapes: Counter[tuple[int, ...]] = Counter()
    codes = set()
    for _ in range(2_000):
        response = vote_of(odd.changed(NODE, 0, frame_of(granted(), 2), VOTE, 2))
        shapes[tuple(len(one.partitions) for one in response.topics)] += 1
        codes.add(response.error_code)
        for each in (one for topic in response.topics for one in topic.partitions):
            codes.add(each.error_code)
            assert (each.leader_id, each.leader_epoch, each.vote_granted) == (5, 9, True)
    assert shapes.keys() == {(), (0,), (1,), (2,), (1, 1)}
    assert codes == {0, -1, 6, 7, 14, 41, 9_999}


def test_equal_seeds_change_answers_alike() -> None:
    frame = frame_of(granted(), 2)
    found = []
    for _ in range(2):
        odd = OddAnswers(Random(3))
        odd.begin(NODE, 1)
        found.append([odd.changed(NODE, 0, frame, VOTE, 2) for _ in range(50)])
    assert found[0] == found[1]


def test_versions_of_a_peer_are_left_alone() -> None:
    odd = OddAnswers(Random(4))
    odd.begin(NODE, 1)
    versions = ApiVersionsResponse(api_keys=[ApiVersion(api_key=1, min_version=4, max_version=17)])
    frame = frame_of(versions, 3)
    assert all(odd.changed(NODE, 0, frame, API_VERSIONS, 3) is frame for _ in range(100))


@pytest.mark.parametrize("seed", [4, 7, 11, 16])
def test_quorums_hold_every_invariant_with_odd_answers(seed: int) -> None:
    result = run_of(seed, brokers=None, events=2_000)
    assert result.failure is None, result.failure
    assert result.marks["settled"] == 1
    assert result.marks["odd FetchResponse"] > 0


@pytest.mark.parametrize("seed", kept_seeds(__file__, "cluster_odd_seeds.txt"))
def test_cluster_seed_with_odd_answers_that_once_failed_holds_every_invariant(seed: int) -> None:
    result = run_of(seed, brokers=0, events=4_000)
    assert result.failure is None, result.failure
    assert result.marks["odd FetchResponse"] > 0


def test_a_node_that_expects_a_partition_in_each_answer_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A judge that sees nothing is worse than none."""
    monkeypatch.setattr(
        fetch_snapshot, "_sole_answer", lambda response: response.topics[0].partitions[0]
    )
    failure = run_of(ODD_SNAPSHOT, brokers=None, events=2_000).failure
    assert failure is not None
    assert failure.invariant.startswith("S28"), failure
