"""AddRaftVoter, API key 80: new voters that a controller refuses (KIP-853)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import Listener, case
from kraft_wire.conformance.quorum import DIRECTORY_ID, NO_VOTER, OTHER_CLUSTER, quorum_facts
from kraft_wire.conformance.subject import Subject
from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.wire.generated import add_raft_voter
from kraft_wire.wire.generated.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kraft_wire.wire.generated.error_code import ErrorCode

_SOURCE: Final = "KIP-853, AddRaftVoter"


def _request(
    listener: str,
    voter_id: int = NO_VOTER,
    directory_id: Uuid = DIRECTORY_ID,
    *,
    cluster_id: str | None = None,
) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=1000,
        voter_id=voter_id,
        voter_directory_id=directory_id,
        listeners=[add_raft_voter.Listener(name=listener, host="127.0.0.1", port=1)],
    )


@case("AddRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def other_cluster(controller: Subject, version: int) -> None:
    """A voter of another cluster is refused with INCONSISTENT_CLUSTER_ID.

    Add a voter with another cluster id.
    """
    request = _request("CONTROLLER", cluster_id=OTHER_CLUSTER)
    answer = controller.ask(request, version, AddRaftVoterResponse)
    expect.error(answer, "error_code", ErrorCode.INCONSISTENT_CLUSTER_ID)


@case("AddRaftVoter", _SOURCE)
def other_cluster_through_a_broker(broker: Subject, version: int) -> None:
    """A broker forwards the request to the controller, and returns its refusal.

    Ask a broker to add a voter with another cluster id: INCONSISTENT_CLUSTER_ID.
    """
    request = _request("CONTROLLER", cluster_id=OTHER_CLUSTER)
    answer = broker.ask(request, version, AddRaftVoterResponse)
    expect.error(answer, "error_code", ErrorCode.INCONSISTENT_CLUSTER_ID)


@case("AddRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def negative_id(controller: Subject, version: int) -> None:
    """A voter with a negative id is refused with INVALID_REQUEST.

    Add voter -1.
    """
    request = _request(quorum_facts(controller).listener, -1)
    answer = controller.ask(request, version, AddRaftVoterResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)


@case("AddRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def no_directory_id(controller: Subject, version: int) -> None:
    """A voter without a directory id is refused with INVALID_REQUEST.

    Add a voter with the zero directory id.
    """
    request = _request(quorum_facts(controller).listener, directory_id=ZERO_UUID)
    answer = controller.ask(request, version, AddRaftVoterResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)


@case("AddRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def no_controller_listener(controller: Subject, version: int) -> None:
    """A voter without an endpoint of the leader's listener is refused with INVALID_REQUEST.

    Add a voter that has an endpoint of another listener only.
    """
    answer = controller.ask(_request("NO_SUCH_LISTENER"), version, AddRaftVoterResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)


@case("AddRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def present_voter(controller: Subject, version: int) -> None:
    """A voter that exists is refused with DUPLICATE_VOTER.

    Add the leader's id with another directory id. A static quorum accepts no voters:
    UNSUPPORTED_VERSION.
    """
    facts = quorum_facts(controller)
    answer = controller.ask(
        _request(facts.listener, facts.leader_id), version, AddRaftVoterResponse
    )
    refusal = ErrorCode.UNSUPPORTED_VERSION if facts.is_static else ErrorCode.DUPLICATE_VOTER
    expect.error(answer, "error_code", refusal)
