"""What a controller refuses brokers: API keys 56, 62, 63, 67 and 73."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import Listener, case
from kraft_wire.conformance.quorum import DIRECTORY_ID, NO_VOTER, OTHER_CLUSTER, quorum_facts
from kraft_wire.conformance.subject import Subject
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kraft_wire.wire.generated.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    TopicData,
)
from kraft_wire.wire.generated.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from kraft_wire.wire.generated.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from kraft_wire.wire.generated.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kraft_wire.wire.generated.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_CLUSTER: Final = "org.apache.kafka.controller.ClusterControlManager"
_EPOCH: Final = 5
_CONTROLLERS: Final = 2


@case("BrokerHeartbeat", _CLUSTER, listener=Listener.CONTROLLER)
def unknown_broker(controller: Subject, version: int) -> None:
    """A heartbeat of a broker that is not registered is STALE_BROKER_EPOCH.

    Send a heartbeat of a broker that does not exist.
    """
    request = BrokerHeartbeatRequest(broker_id=NO_VOTER, broker_epoch=_EPOCH)
    answer = controller.ask(request, version, BrokerHeartbeatResponse)
    expect.error(answer, "error_code", ErrorCode.STALE_BROKER_EPOCH)


@case("BrokerRegistration", _CLUSTER, listener=Listener.CONTROLLER)
def registration_in_another_cluster(controller: Subject, version: int) -> None:
    """A broker of another cluster is refused with INCONSISTENT_CLUSTER_ID.

    Register a broker under another cluster's id.
    """
    request = BrokerRegistrationRequest(
        broker_id=NO_VOTER, cluster_id=OTHER_CLUSTER, incarnation_id=DIRECTORY_ID
    )
    answer = controller.ask(request, version, BrokerRegistrationResponse)
    expect.error(answer, "error_code", ErrorCode.INCONSISTENT_CLUSTER_ID)
    expect.equal(answer, "broker_epoch", -1)


@case("AllocateProducerIds", _CLUSTER, listener=Listener.CONTROLLER)
def producer_ids_for_an_unknown_broker(controller: Subject, version: int) -> None:
    """A broker that is not registered gets no producer ids.

    Ask for a block as a broker that does not exist.
    """
    request = AllocateProducerIdsRequest(broker_id=NO_VOTER, broker_epoch=_EPOCH)
    answer = controller.ask(request, version, AllocateProducerIdsResponse)
    found = answer.error_code
    expect.true(found != ErrorCode.NONE, "an error", found, "error_code")


@case("AssignReplicasToDirs", _CLUSTER, listener=Listener.CONTROLLER)
def directories_of_an_unknown_broker(controller: Subject, version: int) -> None:
    """A broker that is not registered assigns no replicas.

    Send an assignment of a broker that does not exist.
    """
    request = AssignReplicasToDirsRequest(broker_id=NO_VOTER, broker_epoch=_EPOCH, directories=[])
    answer = controller.ask(request, version, AssignReplicasToDirsResponse)
    found = answer.error_code
    expect.true(found != ErrorCode.NONE, "an error", found, "error_code")


def _cluster_id(controller: Subject) -> str:
    request = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
    return controller.prepare(request, DescribeClusterResponse).cluster_id


def _migrating(controller: Subject, broker_id: int) -> BrokerRegistrationRequest:
    """Return a registration that no controller accepts: of a broker with ZooKeeper."""
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=_cluster_id(controller),
        incarnation_id=DIRECTORY_ID,
        is_migrating_zk_broker=True,
    )


@case("BrokerRegistration", _CLUSTER, since=1, listener=Listener.CONTROLLER)
def registration_of_a_broker_that_migrates(controller: Subject, version: int) -> None:
    """A broker of a cluster with ZooKeeper is refused with BROKER_ID_NOT_REGISTERED.

    Register a broker with is_migrating_zk_broker.
    """
    request = _migrating(controller, NO_VOTER)
    answer = controller.ask(request, version, BrokerRegistrationResponse)
    expect.error(answer, "error_code", ErrorCode.BROKER_ID_NOT_REGISTERED)
    expect.equal(answer, "broker_epoch", -1)


@case("BrokerRegistration", "KIP-858", since=2, listener=Listener.CONTROLLER)
def registration_with_wrong_directories(controller: Subject, version: int) -> None:
    """A broker without directories, with a reserved one or with one twice: INVALID_REGISTRATION.

    Register a broker with such directories, and without features, for which the controller would
    refuse it anyway.
    """
    cluster_id = _cluster_id(controller)
    reserved = Uuid((1).to_bytes(16, "big"))
    for directories in ([], [reserved], [DIRECTORY_ID, DIRECTORY_ID]):
        request = BrokerRegistrationRequest(
            broker_id=NO_VOTER,
            cluster_id=cluster_id,
            incarnation_id=DIRECTORY_ID,
            log_dirs=directories,
        )
        answer = controller.ask(request, version, BrokerRegistrationResponse)
        expect.error(answer, "error_code", ErrorCode.INVALID_REGISTRATION)
        expect.equal(answer, "broker_epoch", -1)


@case("BrokerRegistration", _CLUSTER, since=1, listener=Listener.CONTROLLER)
def registration_under_the_id_of_a_live_broker(controller: Subject, version: int) -> None:
    """Another process with the id of a live broker: DUPLICATE_BROKER_REGISTRATION.

    Register a broker under the id of one that lives, with is_migrating_zk_broker, so that the
    controller would refuse it anyway. A quorum without observers has brokers for voters.
    """
    facts = quorum_facts(controller)
    observers = [each for each in facts.observers if each != NO_VOTER]
    request = _migrating(controller, observers[0] if observers else facts.leader_id)
    answer = controller.ask(request, version, BrokerRegistrationResponse)
    expect.error(answer, "error_code", ErrorCode.DUPLICATE_BROKER_REGISTRATION)


@case(
    "AlterPartition",
    "org.apache.kafka.controller.ReplicationControlManager",
    since=2,
    listener=Listener.CONTROLLER,
)
def isr_of_an_unknown_broker(controller: Subject, version: int) -> None:
    """A broker that is not registered changes no ISR.

    Send an AlterPartition of a broker that does not exist.
    """
    topic = TopicData(topic_id=DIRECTORY_ID, partitions=[PartitionData(new_isr_with_epochs=[])])
    request = AlterPartitionRequest(broker_id=NO_VOTER, broker_epoch=_EPOCH, topics=[topic])
    answer = controller.ask(request, version, AlterPartitionResponse)
    found = answer.error_code
    expect.true(found != ErrorCode.NONE, "an error", found, "error_code")
