"""What we send, in every version that a controller of 3.9, 4.0 or 4.3 has (KIP-595, KIP-853).

The newest common versions are: Fetch 17 (3.9, 4.0) or 18, Vote 1 (3.9) or 2, BeginQuorumEpoch,
EndQuorumEpoch and FetchSnapshot 1. Version 0 of these is what releases before KIP-853 have.
"""

import pytest

from kraft_wire.raft.effects import SendRequest
from kraft_wire.raft.events import ResignRequested
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.roles import Candidate, Leader
from kraft_wire.wire.generated.begin_quorum_epoch import BeginQuorumEpochRequest
from kraft_wire.wire.generated.end_quorum_epoch import EndQuorumEpochRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchRequest, FetchResponse
from kraft_wire.wire.generated.fetch_snapshot import FetchSnapshotRequest
from kraft_wire.wire.generated.vote import VoteRequest, VoteResponse
from kraft_wire.wire.message import Message, UnencodableMessage
from tests.raft.cluster import address_of, directory_id
from tests.raft.rpc.test_responses import fetching, transferring
from tests.raft.small import CLUSTER_ID, TOPIC, TOPIC_ID, Small, fetch_request

NO_DIRECTORY = bytes(16)


def through(request: Message, version: int) -> Message:
    """The request as the peer reads it."""
    decoded, end = type(request).decode(request.encode(version), version)
    assert end == len(request.encode(version))
    return decoded


def dynamic() -> Small:
    return Small((1, 5), (2, 3), is_dynamic=True)


@pytest.mark.parametrize("version", [15, 16, 17, 18])
def test_fetch_says_the_same_in_every_version_that_names_a_replica(version: int) -> None:
    sent = fetching().sent(FetchRequest)[0].request
    seen = through(sent, version)
    assert isinstance(seen, FetchRequest)
    topic = seen.topics[0]
    asked = topic.partitions[0]
    assert (seen.cluster_id, seen.replica_state.replica_id) == (CLUSTER_ID, 1)
    assert (topic.topic_id, asked.partition) == (TOPIC_ID, 0)
    assert (asked.fetch_offset, asked.last_fetched_epoch, asked.current_leader_epoch) == (8, 2, 3)
    assert (seen.session_id, seen.session_epoch) == (0, -1)
    own = directory_id(1) if version >= 17 else NO_DIRECTORY
    assert asked.replica_directory_id == own
    assert asked.high_watermark == (-1 if version >= 18 else (1 << 63) - 1)


@pytest.mark.parametrize("version", [4, 12, 13, 14])
def test_fetch_is_not_sent_to_a_peer_older_than_3_5(version: int) -> None:
    """No release that may be in our quorum (3.9 on) lacks version 17; the host answers for it."""
    small = fetching()
    sent = small.sent(FetchRequest)[0]
    with pytest.raises(UnencodableMessage, match="replica_state"):
        sent.request.encode(version)
    small.answer(sent, FetchResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    assert small.quorum.ignored[Ignored.TOP_LEVEL_ERROR] == 1
    assert small.quorum.epoch == 3


@pytest.mark.parametrize("version", [13, 14, 15, 16, 17, 18])
def test_fetch_of_a_peer_counts_in_every_version_with_topic_ids(version: int) -> None:
    small = Small((1, 5), (2, 3)).leader()
    end = small.disk.log.log_end_offset
    request = fetch_request(3, end)
    if version < 15:
        request.replica_id, request.replica_state.replica_id = 2, -1
    seen = through(request, version)
    small.reply(seen, version)
    assert isinstance(small.role, Leader)
    assert [key.id for key in small.role.progress] == [2]
    assert small.role.high_watermark == end


@pytest.mark.parametrize("version", [0, 1, 2])
def test_vote_says_the_same_in_every_version(version: int) -> None:
    sent = dynamic().candidate().sent(VoteRequest)[0].request
    seen = through(sent, version)
    assert isinstance(seen, VoteRequest)
    asked = seen.topics[0].partitions[0]
    assert (seen.cluster_id, seen.topics[0].topic_name) == (CLUSTER_ID, TOPIC)
    assert (asked.replica_epoch, asked.replica_id) == (3, 1)
    assert (asked.last_offset_epoch, asked.last_offset) == (2, 8)
    keys = (asked.replica_directory_id, seen.voter_id, asked.voter_directory_id)
    known = (directory_id(1), 2, directory_id(2))
    assert keys == (known if version >= 1 else (NO_DIRECTORY, -1, NO_DIRECTORY))


@pytest.mark.parametrize("version", [0, 1])
def test_pre_vote_goes_to_no_voter_that_would_take_it_for_a_vote(version: int) -> None:
    """KIP-996: the voter of 3.9 is asked for its vote at once, in the next epoch."""
    small = dynamic().prospective()
    sent = small.sent(VoteRequest)[0]
    with pytest.raises(UnencodableMessage, match="pre_vote"):
        sent.request.encode(version)
    small.answer(sent, VoteResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    assert isinstance(small.role, Candidate)
    assert small.quorum.epoch == 3


@pytest.mark.parametrize("version", [0, 1])
def test_begin_quorum_epoch_says_the_same_in_every_version(version: int) -> None:
    sent = dynamic().leader().sent(BeginQuorumEpochRequest)[0].request
    seen = through(sent, version)
    assert isinstance(seen, BeginQuorumEpochRequest)
    begun = seen.topics[0].partitions[0]
    assert (seen.cluster_id, begun.leader_id, begun.leader_epoch) == (CLUSTER_ID, 1, 3)
    listed = [(one.name, one.host, one.port) for one in seen.leader_endpoints]
    own = address_of(1)
    assert listed == ([("CONTROLLER", own.host, own.port)] if version >= 1 else [])
    assert seen.voter_id == (2 if version >= 1 else -1)


@pytest.mark.parametrize("version", [0, 1])
def test_end_quorum_epoch_names_the_successors_in_every_version(version: int) -> None:
    small = dynamic().leader()
    small.step(ResignRequested(3))
    seen = through(small.sent(EndQuorumEpochRequest)[0].request, version)
    assert isinstance(seen, EndQuorumEpochRequest)
    ended = seen.topics[0].partitions[0]
    assert (ended.leader_id, ended.leader_epoch) == (1, 3)
    by_key = [(one.candidate_id, one.candidate_directory_id) for one in ended.preferred_candidates]
    assert ended.preferred_successors == ([2, 3] if version == 0 else [])
    assert by_key == ([] if version == 0 else [(2, directory_id(2)), (3, directory_id(3))])


@pytest.mark.parametrize("version", [0, 1])
def test_fetch_snapshot_says_the_same_in_every_version(version: int) -> None:
    sent: SendRequest = transferring().sent(FetchSnapshotRequest)[0]
    seen = through(sent.request, version)
    assert isinstance(seen, FetchSnapshotRequest)
    asked = seen.topics[0].partitions[0]
    assert (seen.cluster_id, seen.replica_id, seen.topics[0].name) == (CLUSTER_ID, 1, TOPIC)
    assert (asked.snapshot_id.end_offset, asked.snapshot_id.epoch, asked.position) == (20, 2, 0)
    assert asked.replica_directory_id == (directory_id(1) if version >= 1 else NO_DIRECTORY)


@pytest.mark.parametrize("version", [0, 1])
def test_end_of_an_epoch_is_obeyed_in_every_version(version: int) -> None:
    """The place in the list decides how long a voter waits, whichever list it is."""
    leader = dynamic().leader()
    leader.step(ResignRequested(3))
    seen = through(leader.sent(EndQuorumEpochRequest)[0].request, version)
    waits = {}
    for node_id in (2, 3):
        small = Small((1, 5), (2, 3), is_dynamic=True, node_id=node_id).follower(3, 1)
        small.ask(seen, version)
        waits[node_id] = type(small.role).__name__
    assert waits == {2: "Prospective", 3: "Follower"}
