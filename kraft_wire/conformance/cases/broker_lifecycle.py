"""What a controller refuses brokers: API keys 62, 63, 67 and 73."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import Listener, case
from kraft_wire.conformance.quorum import DIRECTORY_ID, NO_VOTER, OTHER_CLUSTER
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
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
from kraft_wire.wire.generated.error_code import ErrorCode

_CLUSTER: Final = "org.apache.kafka.controller.ClusterControlManager"
_EPOCH: Final = 5


@case("BrokerHeartbeat", _CLUSTER, listener=Listener.CONTROLLER)
def unknown_broker(controller: Subject, version: int) -> None:
    """A heartbeat of a broker that is not registered is BROKER_ID_NOT_REGISTERED.

    Send a heartbeat of a broker that does not exist.
    """
    request = BrokerHeartbeatRequest(broker_id=NO_VOTER, broker_epoch=_EPOCH)
    answer = controller.ask(request, version, BrokerHeartbeatResponse)
    expect.one_of(
        answer,
        "error_code",
        int(ErrorCode.BROKER_ID_NOT_REGISTERED),
        int(ErrorCode.STALE_BROKER_EPOCH),
    )


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
