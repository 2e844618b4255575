"""UpdateRaftVoter, API key 82: reports of a voter that a controller refuses (KIP-853)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import Listener, case
from kraft_wire.conformance.quorum import (
    DIRECTORY_ID,
    NO_VOTER,
    OTHER_CLUSTER,
    QuorumFacts,
    quorum_facts,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.model import ZERO_UUID
from kraft_wire.wire.generated import update_raft_voter
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.update_raft_voter import (
    KRaftVersionFeature,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)

_SOURCE: Final = "KIP-853, UpdateRaftVoter"


def _request(facts: QuorumFacts, levels: tuple[int, int] = (0, 1)) -> UpdateRaftVoterRequest:
    """Return the report of a voter that does not exist, in the leader's epoch."""
    return UpdateRaftVoterRequest(
        cluster_id=None,
        current_leader_epoch=facts.leader_epoch,
        voter_id=NO_VOTER,
        voter_directory_id=DIRECTORY_ID,
        listeners=[update_raft_voter.Listener(name=facts.listener, host="127.0.0.1", port=1)],
        kraft_version_feature=KRaftVersionFeature(
            min_supported_version=levels[0], max_supported_version=levels[1]
        ),
    )


def _refused(
    controller: Subject, request: UpdateRaftVoterRequest, version: int, code: ErrorCode
) -> None:
    answer = controller.ask(request, version, UpdateRaftVoterResponse)
    expect.error(answer, "error_code", code)


@case("UpdateRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def other_cluster(controller: Subject, version: int) -> None:
    """A voter of another cluster is refused with INCONSISTENT_CLUSTER_ID.

    Report a voter with another cluster id.
    """
    request = _request(quorum_facts(controller))
    request.cluster_id = OTHER_CLUSTER
    _refused(controller, request, version, ErrorCode.INCONSISTENT_CLUSTER_ID)


@case("UpdateRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def older_leader_epoch(controller: Subject, version: int) -> None:
    """A leader epoch below the leader's gets FENCED_LEADER_EPOCH and the leader's id.

    Report a voter in the epoch before the leader's.
    """
    facts = quorum_facts(controller)
    request = _request(facts)
    request.current_leader_epoch -= 1
    answer = controller.ask(request, version, UpdateRaftVoterResponse)
    expect.error(answer, "error_code", ErrorCode.FENCED_LEADER_EPOCH)
    expect.equal(answer, "current_leader.leader_id", facts.leader_id)
    expect.equal(answer, "current_leader.leader_epoch", facts.leader_epoch)


@case("UpdateRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def newer_leader_epoch(controller: Subject, version: int) -> None:
    """A leader epoch above the leader's gets UNKNOWN_LEADER_EPOCH.

    Report a voter in a much larger epoch.
    """
    request = _request(quorum_facts(controller))
    request.current_leader_epoch += 1000
    _refused(controller, request, version, ErrorCode.UNKNOWN_LEADER_EPOCH)


@case("UpdateRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def negative_id(controller: Subject, version: int) -> None:
    """A voter with a negative id is refused with INVALID_REQUEST.

    Report voter -1.
    """
    request = _request(quorum_facts(controller))
    request.voter_id = -1
    _refused(controller, request, version, ErrorCode.INVALID_REQUEST)


@case("UpdateRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def no_directory_id(controller: Subject, version: int) -> None:
    """A voter without a directory id is refused with INVALID_REQUEST.

    Report a voter with the zero directory id.
    """
    request = _request(quorum_facts(controller))
    request.voter_directory_id = ZERO_UUID
    _refused(controller, request, version, ErrorCode.INVALID_REQUEST)


@case("UpdateRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def no_controller_listener(controller: Subject, version: int) -> None:
    """A voter without an endpoint of the leader's listener is refused with INVALID_REQUEST.

    Report a voter that has an endpoint of another listener only.
    """
    request = _request(quorum_facts(controller))
    request.listeners[0].name = "NO_SUCH_LISTENER"
    _refused(controller, request, version, ErrorCode.INVALID_REQUEST)


@case("UpdateRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def reversed_range(controller: Subject, version: int) -> None:
    """A range of kraft.version that ends before it begins is refused with INVALID_REQUEST.

    Report a voter that supports 1 to 0.
    """
    request = _request(quorum_facts(controller), (1, 0))
    _refused(controller, request, version, ErrorCode.INVALID_REQUEST)


@case("UpdateRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def negative_range(controller: Subject, version: int) -> None:
    """A negative level of kraft.version is refused with INVALID_REQUEST.

    Report a voter that supports -1 to 1.
    """
    request = _request(quorum_facts(controller), (-1, 1))
    _refused(controller, request, version, ErrorCode.INVALID_REQUEST)


@case("UpdateRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def unsupported_level(controller: Subject, version: int) -> None:
    """A range without the current level is refused with INVALID_REQUEST.

    Report a voter that supports 5 to 6.
    """
    request = _request(quorum_facts(controller), (5, 6))
    _refused(controller, request, version, ErrorCode.INVALID_REQUEST)


@case("UpdateRaftVoter", _SOURCE, listener=Listener.CONTROLLER)
def absent_voter(controller: Subject, version: int) -> None:
    """A voter that does not exist is refused with VOTER_NOT_FOUND.

    Report a voter that does not exist.
    """
    request = _request(quorum_facts(controller))
    _refused(controller, request, version, ErrorCode.VOTER_NOT_FOUND)
