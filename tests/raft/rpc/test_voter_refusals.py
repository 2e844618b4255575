"""Messages beside the errors of AddRaftVoter and RemoveRaftVoter, and of DescribeQuorum.

From KafkaRaftClient, AddVoterHandler, RemoveVoterHandler and RaftUtil of release 4.3.1.
"""

import pytest

from kraft_wire.model import ReplicaId, ReplicaKey, Uuid
from kraft_wire.raft.effects import Reply, SendRequest
from kraft_wire.raft.events import RequestFailed, ResponseReceived
from kraft_wire.raft.rpc.voter_refusals import key_as_text, keys_as_text
from kraft_wire.raft.voters import VersionRange, VoterNode, VoterSet
from kraft_wire.wire.generated.add_raft_voter import AddRaftVoterRequest, Listener
from kraft_wire.wire.generated.api_versions import ApiVersionsResponse, SupportedFeatureKey
from kraft_wire.wire.generated.describe_quorum import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.remove_raft_voter import RemoveRaftVoterRequest
from kraft_wire.wire.message import Message
from tests.raft.cluster import directory_id
from tests.raft.small import TOPIC, Small


def told(response: Message) -> tuple[int, str | None]:
    error, words = getattr(response, "error_code", 0), getattr(response, "error_message", None)
    return error, words


def adding(voter: int = 9, *, name: str = "controller", whole: bool = True) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(
        cluster_id=None,
        voter_id=voter,
        voter_directory_id=directory_id(voter) if whole else Uuid(bytes(16)),
        listeners=[Listener(name=name, host="h", port=9)],
    )


def removing(voter: int, generation: int = 0) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(
        cluster_id=None, voter_id=voter, voter_directory_id=directory_id(voter, generation)
    )


def key(voter: int, generation: int = 0) -> str:
    return key_as_text(ReplicaKey(ReplicaId(voter), directory_id(voter, generation)))


@pytest.mark.parametrize("request_", [adding(), removing(2)], ids=["add", "remove"])
def test_who_does_not_lead_has_an_empty_message(request_: Message) -> None:
    assert told(Small().reply(request_)) == (E.NOT_LEADER_OR_FOLLOWER, "")


def test_a_voter_needs_a_key_and_an_address() -> None:
    leader = Small(is_dynamic=True).established()
    words = "Add voter request didn't include a valid voter"
    assert told(leader.reply(adding(whole=False))) == (E.INVALID_REQUEST, words)
    words = "Remove voter request didn't include a valid voter"
    request = RemoveRaftVoterRequest(cluster_id=None, voter_id=2)
    assert told(leader.reply(request)) == (E.INVALID_REQUEST, words)
    words = (
        "Add voter request didn't include the endpoint "
        "(Endpoints(endpoints={ListenerName(OTHER)=h/<unresolved>:9})) for the default listener "
        f"ListenerName({leader.quorum.config.listener})"
    )
    assert told(leader.reply(adding(name="other"))) == (E.INVALID_REQUEST, words)


def test_a_static_quorum_names_its_level() -> None:
    leader = Small((1, 2)).established()
    words = "Cluster doesn't support {} voter because the kraft.version feature is 0"
    assert told(leader.reply(adding())) == (E.UNSUPPORTED_VERSION, words.format("adding"))
    assert told(leader.reply(removing(2))) == (E.UNSUPPORTED_VERSION, words.format("removing"))


def test_voters_are_named_by_their_keys() -> None:
    leader = Small(is_dynamic=True).established()
    members = keys_as_text(leader.quorum.voters.latest)
    words = f"The voter id for {key(2)} is already part of the set of voters {members}."
    assert told(leader.reply(adding(2))) == (E.DUPLICATE_VOTER, words)
    words = f"Cannot remove voter {key(9)} from the set of voters {members}"
    assert told(leader.reply(removing(9))) == (E.VOTER_NOT_FOUND, words)
    words = f"Cannot remove voter {key(2, 1)} from the set of voters {members}"
    assert told(leader.reply(removing(2, 1))) == (E.VOTER_NOT_FOUND, words)


def test_a_second_change_waits_for_the_first() -> None:
    leader = Small(is_dynamic=True).established()
    leader.ask(removing(3))
    words = "Request timed out waiting for leader to handle previous voter change request"
    assert told(leader.reply(adding())) == (E.REQUEST_TIMED_OUT, words)
    assert told(leader.reply(removing(2))) == (E.REQUEST_TIMED_OUT, words)


def test_an_addition_ends_with_the_connection_to_the_new_voter() -> None:
    """KafkaRaftClient.handleResponse: a broken link counts as an answer of BROKER_NOT_AVAILABLE."""
    leader = Small(is_dynamic=True).established()
    (sent,) = (each for each in leader.ask(adding()) if isinstance(each, SendRequest))
    effects = leader.step(RequestFailed(sent.request_id))
    (reply,) = (each for each in effects if isinstance(each, Reply))
    aborted = "Aborted add voter operation for since API_VERSIONS returned an error"
    assert told(reply.response) == (E.REQUEST_TIMED_OUT, f"{aborted} BROKER_NOT_AVAILABLE")
    words = f"New voter {key(9)} is not ready to receive requests"
    assert told(leader.reply(adding())) == (E.REQUEST_TIMED_OUT, words)


@pytest.mark.parametrize(
    ("response", "error", "words"),
    [
        (
            ApiVersionsResponse(error_code=E.UNSUPPORTED_VERSION),
            E.REQUEST_TIMED_OUT,
            "for since API_VERSIONS returned an error UNSUPPORTED_VERSION",
        ),
        (
            ApiVersionsResponse(),
            E.INVALID_REQUEST,
            f"for {key(9)} since the kraft.version range (min: 0, max: 0) doesn't support the "
            "finalized version 1",
        ),
        (
            ApiVersionsResponse(
                supported_features=[
                    SupportedFeatureKey(name="kraft.version", min_version=0, max_version=0)
                ]
            ),
            E.INVALID_REQUEST,
            f"for {key(9)} since the kraft.version range (min: 0, max: 0 doesn't support the "
            "finalized version 1",
        ),
        (
            ApiVersionsResponse(
                supported_features=[
                    SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
                ]
            ),
            E.REQUEST_TIMED_OUT,
            f"for {key(9)} since it is lagging behind",
        ),
    ],
)
def test_a_new_voter_that_cannot_be_one_ends_its_addition(
    response: ApiVersionsResponse, error: E, words: str
) -> None:
    """AddVoterHandler.handleApiVersionsResponse, which forgets a bracket."""
    leader = Small(is_dynamic=True).established()
    (sent,) = (each for each in leader.ask(adding()) if isinstance(each, SendRequest))
    effects = leader.step(ResponseReceived(sent.request_id, response))
    (reply,) = (each for each in effects if isinstance(each, Reply))
    assert told(reply.response) == (error, f"Aborted add voter operation {words}")


def test_keys_are_listed_as_java_lists_them() -> None:
    """Printed by Java 17 for a HashSet of five `ReplicaKey`s."""
    nodes = []
    for number in range(1, 6):
        directory = (1_000_003 * number).to_bytes(8) + (77 * number * number).to_bytes(8)
        voter = ReplicaKey(ReplicaId(number), Uuid(directory))
        nodes.append(VoterNode(voter, {}, VersionRange(0, 1)))
    assert keys_as_text(VoterSet.of(nodes)) == (
        "[ReplicaKey(id=1, directoryId=AAAAAAAPQkMAAAAAAAAATQ), "
        "ReplicaKey(id=4, directoryId=AAAAAAA9CQwAAAAAAAAE0A), "
        "ReplicaKey(id=3, directoryId=AAAAAAAtxskAAAAAAAACtQ), "
        "ReplicaKey(id=5, directoryId=AAAAAABMS08AAAAAAAAHhQ), "
        "ReplicaKey(id=2, directoryId=AAAAAAAehIYAAAAAAAABNA)]"
    )


def test_a_quorum_that_cannot_be_described_has_the_words_of_the_error() -> None:
    for name, error in (("x", E.UNKNOWN_TOPIC_OR_PARTITION), (TOPIC, E.NOT_LEADER_OR_FOLLOWER)):
        topics = [TopicData(topic_name=name, partitions=[PartitionData()])]
        response = Small().reply(DescribeQuorumRequest(topics=topics))
        partition = response.topics[0].partitions[0]
        assert (partition.error_code, partition.error_message) == (error, error.message)
