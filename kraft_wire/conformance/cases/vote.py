"""Vote, API key 52: votes that a controller refuses (KIP-595, KIP-996)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import Listener, case
from kraft_wire.conformance.quorum import quorum_facts, vote_request
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.verdict import NotSupported
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.vote import VoteResponse

_PARTITION: Final = "topics[0].partitions[0]"
_SOURCE: Final = "KIP-595, Vote"


@case("Vote", _SOURCE, listener=Listener.CONTROLLER)
def older_epoch(controller: Subject, version: int) -> None:
    """A candidate of an older epoch gets FENCED_LEADER_EPOCH and the leader's id.

    Ask for a vote in the epoch before the leader's. A candidate's last epoch is below the one that
    it campaigns in, so the leader's epoch must be 2 or more.
    """
    facts = quorum_facts(controller)
    if facts.leader_epoch < 2:
        raise NotSupported(f"the quorum is in epoch {facts.leader_epoch}")
    request = vote_request(facts, epoch=facts.leader_epoch - 1)
    answer = controller.ask(request, version, VoteResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.error(answer, f"{_PARTITION}.error_code", ErrorCode.FENCED_LEADER_EPOCH)
    expect.equal(answer, f"{_PARTITION}.vote_granted", False)
    expect.equal(answer, f"{_PARTITION}.leader_id", facts.leader_id)
    expect.equal(answer, f"{_PARTITION}.leader_epoch", facts.leader_epoch)


@case("Vote", _SOURCE, listener=Listener.CONTROLLER)
def same_epoch(controller: Subject, version: int) -> None:
    """A candidate of the leader's own epoch gets no vote.

    Ask for a vote in the leader's epoch.
    """
    facts = quorum_facts(controller)
    request = vote_request(facts, epoch=facts.leader_epoch)
    answer = controller.ask(request, version, VoteResponse)
    expect.error(answer, f"{_PARTITION}.error_code", ErrorCode.NONE)
    expect.equal(answer, f"{_PARTITION}.vote_granted", False)
    expect.equal(answer, f"{_PARTITION}.leader_id", facts.leader_id)


@case("Vote", "KIP-996, Pre-Vote", since=2, listener=Listener.CONTROLLER)
def pre_vote_against_a_leader(controller: Subject, version: int) -> None:
    """A leader refuses a pre-vote, and its epoch does not change.

    Ask the leader for a pre-vote in its epoch.
    """
    facts = quorum_facts(controller)
    request = vote_request(facts, epoch=facts.leader_epoch, pre_vote=True)
    answer = controller.ask(request, version, VoteResponse)
    expect.error(answer, f"{_PARTITION}.error_code", ErrorCode.NONE)
    expect.equal(answer, f"{_PARTITION}.vote_granted", False)
    after = quorum_facts(controller).leader_epoch
    expect.true(after == facts.leader_epoch, f"epoch {facts.leader_epoch}", after)


@case("Vote", _SOURCE, listener=Listener.CONTROLLER)
def other_cluster(controller: Subject, version: int) -> None:
    """A candidate of another cluster is refused with INCONSISTENT_CLUSTER_ID.

    Ask for a vote with another cluster id.
    """
    facts = quorum_facts(controller)
    request = vote_request(facts, epoch=facts.leader_epoch, cluster_id="anotherClusterAAAAAAAA")
    answer = controller.ask(request, version, VoteResponse)
    expect.error(answer, "error_code", ErrorCode.INCONSISTENT_CLUSTER_ID)


@case("Vote", _SOURCE, listener=Listener.CONTROLLER)
def other_topic(controller: Subject, version: int) -> None:
    """A vote about another topic is refused.

    Ask for a vote about another topic: INVALID_REQUEST.
    """
    facts = quorum_facts(controller)
    request = vote_request(facts, epoch=facts.leader_epoch, topic="conform")
    answer = controller.ask(request, version, VoteResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)
