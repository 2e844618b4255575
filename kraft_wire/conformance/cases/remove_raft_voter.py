"""RemoveRaftVoter, API key 81: removals that a controller refuses (KIP-853)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import Listener, case
from kraft_wire.conformance.quorum import DIRECTORY_ID, NO_VOTER, OTHER_CLUSTER, quorum_facts
from kraft_wire.conformance.subject import Subject
from kraft_wire.model import ZERO_UUID
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)

_SOURCE: Final = "KIP-853, RemoveRaftVoter"


@case("RemoveRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def other_cluster(controller: Subject, version: int) -> None:
    """A removal from another cluster is refused with INCONSISTENT_CLUSTER_ID.

    Remove a voter that does not exist, with another cluster id.
    """
    request = RemoveRaftVoterRequest(
        cluster_id=OTHER_CLUSTER, voter_id=NO_VOTER, voter_directory_id=DIRECTORY_ID
    )
    answer = controller.ask(request, version, RemoveRaftVoterResponse)
    expect.error(answer, "error_code", ErrorCode.INCONSISTENT_CLUSTER_ID)


@case("RemoveRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def negative_id(controller: Subject, version: int) -> None:
    """A voter with a negative id is refused with INVALID_REQUEST.

    Remove voter -1.
    """
    request = RemoveRaftVoterRequest(cluster_id=None, voter_id=-1, voter_directory_id=DIRECTORY_ID)
    answer = controller.ask(request, version, RemoveRaftVoterResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)


@case("RemoveRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def no_directory_id(controller: Subject, version: int) -> None:
    """A voter without a directory id is refused with INVALID_REQUEST.

    Remove a voter that does not exist, with the zero directory id.
    """
    request = RemoveRaftVoterRequest(
        cluster_id=None, voter_id=NO_VOTER, voter_directory_id=ZERO_UUID
    )
    answer = controller.ask(request, version, RemoveRaftVoterResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)


@case("RemoveRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def absent_voter(controller: Subject, version: int) -> None:
    """A voter that does not exist is refused with VOTER_NOT_FOUND.

    Remove a voter that does not exist. A static quorum removes no voters: UNSUPPORTED_VERSION.
    """
    facts = quorum_facts(controller)
    request = RemoveRaftVoterRequest(
        cluster_id=None, voter_id=NO_VOTER, voter_directory_id=DIRECTORY_ID
    )
    answer = controller.ask(request, version, RemoveRaftVoterResponse)
    refusal = ErrorCode.UNSUPPORTED_VERSION if facts.is_static else ErrorCode.VOTER_NOT_FOUND
    expect.error(answer, "error_code", refusal)
