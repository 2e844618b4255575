"""Requests about the metadata quorum: one partition, `__cluster_metadata-0`, on a controller.

The cases never win a vote or end an epoch: their requests are refused, or change nothing.
"""

from dataclasses import dataclass
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.subject import Subject
from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.wire.generated import describe_quorum, fetch, fetch_snapshot, vote

__all__ = [
    "DIRECTORY_ID",
    "METADATA_TOPIC",
    "METADATA_TOPIC_ID",
    "NO_VOTER",
    "OTHER_CLUSTER",
    "QuorumFacts",
    "metadata_fetch",
    "quorum_facts",
    "snapshot_request",
    "vote_request",
]

METADATA_TOPIC: Final = "__cluster_metadata"
OTHER_CLUSTER: Final = "anotherClusterAAAAAAAA"
NO_VOTER: Final = 9_999_999
"""The id of no node."""

DIRECTORY_ID: Final = Uuid(b"conformancesuite")
METADATA_TOPIC_ID: Final = Uuid(bytes(15) + b"\x01")


@dataclass(frozen=True, slots=True)
class QuorumFacts:
    """The controller's description of its quorum."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    listener: str
    """The name of the leader's first listener."""
    is_static: bool
    """Whether the voters are configured statically, without directory ids (kraft.version 0)."""
    observers: tuple[int, ...]
    """The ids of nodes that fetch the metadata log, but are not voters or of this suite."""


def quorum_facts(controller: Subject) -> QuorumFacts:
    """Describe the quorum. Errors: Mismatch if that fails."""
    topics = [
        describe_quorum.TopicData(
            topic_name=METADATA_TOPIC, partitions=[describe_quorum.PartitionData(partition_index=0)]
        )
    ]
    request = describe_quorum.DescribeQuorumRequest(topics=topics)
    answer = controller.prepare(request, describe_quorum.DescribeQuorumResponse)
    expect.equal(answer, "error_code", 0)
    expect.equal(answer, "topics[0].partitions[0].error_code", 0)
    found = answer.topics[0].partitions[0]
    nodes = [each for each in answer.nodes if each.node_id == found.leader_id]
    return QuorumFacts(
        found.leader_id,
        found.leader_epoch,
        found.high_watermark,
        listener=nodes[0].listeners[0].name if nodes and nodes[0].listeners else "CONTROLLER",
        is_static=found.current_voters[0].replica_directory_id == ZERO_UUID,
        observers=tuple(
            each.replica_id for each in found.observers if each.replica_directory_id != DIRECTORY_ID
        ),
    )


def vote_request(
    facts: QuorumFacts,
    *,
    epoch: int,
    cluster_id: str | None = None,
    partition: int = 0,
    pre_vote: bool = False,
    topic: str = METADATA_TOPIC,
) -> vote.VoteRequest:
    """Return a Vote of a candidate that is not a voter, with an empty log."""
    wanted = vote.PartitionData(
        partition_index=partition,
        replica_epoch=epoch,
        replica_id=NO_VOTER,
        replica_directory_id=ZERO_UUID,
        last_offset_epoch=0,
        last_offset=0,
        pre_vote=pre_vote,
    )
    topics = [vote.TopicData(topic_name=topic, partitions=[wanted])]
    return vote.VoteRequest(cluster_id=cluster_id, voter_id=facts.leader_id, topics=topics)


def metadata_fetch(
    version: int,
    *,
    offset: int,
    epoch: int,
    last_fetched_epoch: int,
    cluster_id: str | None = None,
) -> fetch.FetchRequest:
    """Return an observer's fetch of the metadata log."""
    wanted = fetch.FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_fetched_epoch,
        log_start_offset=-1,
        partition_max_bytes=0,
    )
    topic = fetch.FetchTopic(partitions=[wanted])
    if version >= 13:
        topic.topic_id = METADATA_TOPIC_ID
    else:
        topic.topic = METADATA_TOPIC
    request = fetch.FetchRequest(
        cluster_id=cluster_id,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        topics=[topic],
        forgotten_topics_data=[],
    )
    if version >= 15:
        request.replica_state = fetch.ReplicaState(replica_id=-1)
    return request


def snapshot_request(
    facts: QuorumFacts,
    *,
    epoch: int | None = None,
    end_offset: int = 1,
    snapshot_epoch: int = 0,
    position: int = 0,
    cluster_id: str | None = None,
    topic: str = METADATA_TOPIC,
) -> fetch_snapshot.FetchSnapshotRequest:
    """Return a FetchSnapshot, by default of a snapshot that does not exist."""
    wanted = fetch_snapshot.PartitionSnapshot(
        partition=0,
        current_leader_epoch=facts.leader_epoch if epoch is None else epoch,
        snapshot_id=fetch_snapshot.SnapshotId(end_offset=end_offset, epoch=snapshot_epoch),
        position=position,
    )
    topics = [fetch_snapshot.TopicSnapshot(name=topic, partitions=[wanted])]
    return fetch_snapshot.FetchSnapshotRequest(
        cluster_id=cluster_id, max_bytes=1 << 20, topics=topics
    )
