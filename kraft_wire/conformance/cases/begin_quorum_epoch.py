"""BeginQuorumEpoch, API key 53: leaders that a controller refuses to follow (KIP-595)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import Listener, case
from kraft_wire.conformance.quorum import METADATA_TOPIC, OTHER_CLUSTER, quorum_facts
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    PartitionData,
    TopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_PARTITION: Final = "topics[0].partitions[0]"
_SOURCE: Final = "KIP-595, BeginQuorumEpoch"


def _request(
    leader_id: int,
    leader_epoch: int,
    *,
    cluster_id: str | None = None,
    topic: str = METADATA_TOPIC,
    partition: int = 0,
) -> BeginQuorumEpochRequest:
    data = PartitionData(partition_index=partition, leader_id=leader_id, leader_epoch=leader_epoch)
    topics = [TopicData(topic_name=topic, partitions=[data])]
    return BeginQuorumEpochRequest(cluster_id=cluster_id, topics=topics)


@case("BeginQuorumEpoch", _SOURCE, listener=Listener.CONTROLLER)
def older_epoch(controller: Subject, version: int) -> None:
    """A leader of an older epoch gets FENCED_LEADER_EPOCH and the leader's id.

    Begin the epoch before the leader's.
    """
    facts = quorum_facts(controller)
    request = _request(facts.leader_id, facts.leader_epoch - 1)
    answer = controller.ask(request, version, BeginQuorumEpochResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.error(answer, f"{_PARTITION}.error_code", ErrorCode.FENCED_LEADER_EPOCH)
    expect.equal(answer, f"{_PARTITION}.leader_id", facts.leader_id)
    expect.equal(answer, f"{_PARTITION}.leader_epoch", facts.leader_epoch)


@case("BeginQuorumEpoch", "KIP-853", since=1, listener=Listener.CONTROLLER)
def endpoint_of_the_leader(controller: Subject, version: int) -> None:
    """A refusal has the address of the leader, so that the sender can find it.

    Begin the epoch before the leader's.
    """
    facts = quorum_facts(controller)
    request = _request(facts.leader_id, facts.leader_epoch - 1)
    answer = controller.ask(request, version, BeginQuorumEpochResponse)
    expect.equal(answer, "node_endpoints[0].node_id", facts.leader_id)
    found = answer.node_endpoints[0]
    is_address = bool(found.host) and found.port > 0
    expect.true(is_address, "an address", (found.host, found.port), "node_endpoints[0]")


@case("BeginQuorumEpoch", _SOURCE, listener=Listener.CONTROLLER)
def negative_leader_id(controller: Subject, version: int) -> None:
    """A leader with a negative id is refused with INVALID_REQUEST, and the epoch does not change.

    Begin the leader's epoch as node -1.
    """
    facts = quorum_facts(controller)
    request = _request(-1, facts.leader_epoch)
    answer = controller.ask(request, version, BeginQuorumEpochResponse)
    expect.error(answer, f"{_PARTITION}.error_code", ErrorCode.INVALID_REQUEST)
    after = quorum_facts(controller).leader_epoch
    expect.true(after == facts.leader_epoch, f"epoch {facts.leader_epoch}", after)


@case("BeginQuorumEpoch", _SOURCE, listener=Listener.CONTROLLER)
def other_cluster(controller: Subject, version: int) -> None:
    """A leader of another cluster is refused with INCONSISTENT_CLUSTER_ID.

    Begin the leader's epoch with another cluster id.
    """
    facts = quorum_facts(controller)
    request = _request(facts.leader_id, facts.leader_epoch, cluster_id=OTHER_CLUSTER)
    answer = controller.ask(request, version, BeginQuorumEpochResponse)
    expect.error(answer, "error_code", ErrorCode.INCONSISTENT_CLUSTER_ID)
    expect.equal(answer, "topics", [])


@case("BeginQuorumEpoch", _SOURCE, listener=Listener.CONTROLLER)
def other_topic(controller: Subject, version: int) -> None:
    """An epoch of another topic is refused with INVALID_REQUEST.

    Begin an epoch of another topic.
    """
    request = _request(quorum_facts(controller).leader_id, 0, topic="conform")
    answer = controller.ask(request, version, BeginQuorumEpochResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)


@case("BeginQuorumEpoch", _SOURCE, listener=Listener.CONTROLLER)
def other_partition(controller: Subject, version: int) -> None:
    """An epoch of another partition is refused with INVALID_REQUEST.

    Begin an epoch of partition 1.
    """
    request = _request(quorum_facts(controller).leader_id, 0, partition=1)
    answer = controller.ask(request, version, BeginQuorumEpochResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)
