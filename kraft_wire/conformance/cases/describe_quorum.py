"""DescribeQuorum, API key 55: leader, epoch and replicas of the metadata quorum (KIP-836)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import Listener, case
from kraft_wire.conformance.quorum import (
    DIRECTORY_ID,
    METADATA_TOPIC,
    metadata_fetch,
    quorum_facts,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchResponse, ReplicaState

_PARTITION: Final = "topics[0].partitions[0]"
_FETCH_VERSION: Final = 17


def _ask(
    controller: Subject, version: int, topic: str = METADATA_TOPIC, partition: int = 0
) -> DescribeQuorumResponse:
    topics = [TopicData(topic_name=topic, partitions=[PartitionData(partition_index=partition)])]
    request = DescribeQuorumRequest(topics=topics)
    return controller.ask(request, version, DescribeQuorumResponse)


@case("DescribeQuorum", "KIP-595, DescribeQuorum", listener=Listener.CONTROLLER)
def leader_and_voters(controller: Subject, version: int) -> None:
    """The leader is among the voters, and its log reaches the high watermark.

    Describe the metadata quorum.
    """
    answer = _ask(controller, version)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.error(answer, f"{_PARTITION}.error_code", ErrorCode.NONE)
    found = answer.topics[0].partitions[0]
    voters = {each.replica_id: each for each in found.current_voters}
    known = found.leader_id in voters
    expect.true(known, "a voter", found.leader_id, f"{_PARTITION}.leader_id")
    end = voters[found.leader_id].log_end_offset
    reaches = end >= found.high_watermark
    expect.true(reaches, f"at most {end}", found.high_watermark, f"{_PARTITION}.high_watermark")


@case("DescribeQuorum", "KIP-853, DescribeQuorum", since=2, listener=Listener.CONTROLLER)
def addresses_of_the_voters(controller: Subject, version: int) -> None:
    """The response lists the listeners of every voter.

    Describe the metadata quorum.
    """
    answer = _ask(controller, version)
    voters = {each.replica_id for each in answer.topics[0].partitions[0].current_voters}
    listed = {each.node_id for each in answer.nodes if each.listeners}
    expect.true(voters <= listed, f"nodes {sorted(voters)}", sorted(listed), "nodes")


@case("DescribeQuorum", "KIP-595, DescribeQuorum", listener=Listener.CONTROLLER)
def other_partition(controller: Subject, version: int) -> None:
    """Another partition of the topic gets UNKNOWN_TOPIC_OR_PARTITION.

    Describe partition 1 of __cluster_metadata.
    """
    answer = _ask(controller, version, partition=1)
    expect.error(answer, f"{_PARTITION}.error_code", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("DescribeQuorum", "KIP-595, DescribeQuorum", listener=Listener.CONTROLLER)
def other_topic(controller: Subject, version: int) -> None:
    """Another topic gets UNKNOWN_TOPIC_OR_PARTITION.

    Describe partition 0 of another topic.
    """
    answer = _ask(controller, version, topic="conform")
    expect.error(answer, f"{_PARTITION}.error_code", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("DescribeQuorum", "KIP-595, DescribeQuorum", listener=Listener.CONTROLLER)
def observer_that_fetches(controller: Subject, version: int) -> None:
    """A node that fetches and is not a voter is described as an observer.

    Fetch the metadata log's end as node 0 with an unknown directory id, then describe.
    """
    for _ in controller.attempts("a fetch at the end of the metadata log"):
        facts = quorum_facts(controller)
        epoch = facts.leader_epoch
        request = metadata_fetch(
            _FETCH_VERSION, offset=facts.high_watermark, epoch=epoch, last_fetched_epoch=epoch
        )
        request.replica_state = ReplicaState(replica_id=0)
        request.topics[0].partitions[0].replica_directory_id = DIRECTORY_ID
        fetched = controller.prepare(request, FetchResponse, until=_FETCH_VERSION)
        if not fetched.responses[0].partitions[0].records:
            break  # else the log has grown meanwhile
    answer = _ask(controller, version)
    path = f"{_PARTITION}.observers"
    ids = [each.replica_id for each in answer.topics[0].partitions[0].observers]
    expect.true(0 in ids, "node 0 among them", ids, path)
