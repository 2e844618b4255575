"""Requests of impossible shape to every role: an error code, never an exception (CVE-2026-83525).

One topic with one partition is the only shape that the quorum knows. Everything else gets
INVALID_REQUEST at the top, whoever is asked and whatever else the request says.
"""

from collections.abc import Callable

import pytest

from kraft_wire.wire.generated import begin_quorum_epoch as begin
from kraft_wire.wire.generated import end_quorum_epoch as end
from kraft_wire.wire.generated import fetch, fetch_snapshot, vote
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message
from tests.raft.cluster import CLUSTER_ID
from tests.raft.small import TOPIC, TOPIC_ID, Small

Topics = Callable[[int, int], Message]


def vote_of(topics: int, partitions: int) -> Message:
    topic = vote.TopicData(topic_name=TOPIC, partitions=[vote.PartitionData()] * partitions)
    return vote.VoteRequest(cluster_id=CLUSTER_ID, topics=[topic] * topics)


def begin_of(topics: int, partitions: int) -> Message:
    topic = begin.TopicData(topic_name=TOPIC, partitions=[begin.PartitionData()] * partitions)
    return begin.BeginQuorumEpochRequest(cluster_id=CLUSTER_ID, topics=[topic] * topics)


def end_of(topics: int, partitions: int) -> Message:
    topic = end.TopicData(topic_name=TOPIC, partitions=[end.PartitionData()] * partitions)
    return end.EndQuorumEpochRequest(cluster_id=CLUSTER_ID, topics=[topic] * topics)


def fetch_of(topics: int, partitions: int) -> Message:
    topic = fetch.FetchTopic(topic_id=TOPIC_ID, partitions=[fetch.FetchPartition()] * partitions)  # type: ignore[arg-type]  # bytes will do
    return fetch.FetchRequest(cluster_id=CLUSTER_ID, topics=[topic] * topics)


def fetch_snapshot_of(topics: int, partitions: int) -> Message:
    partition = fetch_snapshot.PartitionSnapshot()
    topic = fetch_snapshot.TopicSnapshot(name=TOPIC, partitions=[partition] * partitions)
    return fetch_snapshot.FetchSnapshotRequest(cluster_id=CLUSTER_ID, topics=[topic] * topics)


MAKERS = (vote_of, begin_of, end_of, fetch_of, fetch_snapshot_of)
ROLES = (lambda small: small, Small.follower, Small.candidate, Small.leader, Small.resigned)


@pytest.mark.parametrize("enter", ROLES, ids=["unattached", "follower", "candidate", "leader", "x"])
@pytest.mark.parametrize("topics", [0, 1, 2])
@pytest.mark.parametrize("partitions", [0, 1, 2])
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_any_other_shape_than_one_partition_is_an_invalid_request(
    make: Topics, partitions: int, topics: int, enter: Callable[[Small], Small]
) -> None:
    small = enter(Small((1, 2)))
    if (topics, partitions) == (1, 1):
        return
    response = small.reply(make(topics, partitions))
    assert response.error_code == ErrorCode.INVALID_REQUEST
