"""An observer that is to join by itself asks for it only where the quorum can change (KIP-1186)."""

import pytest

from kraft_wire.raft.roles import Follower
from kraft_wire.wire.generated.add_raft_voter import AddRaftVoterRequest
from tests.raft.small import TIMING, Small, begin_request


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_nobody_asks_to_join_a_quorum_of_kraft_version_0(kraft_version: int) -> None:
    """`KafkaRaftClient.shouldSendAddOrRemoveVoterRequest`: its leader could only refuse."""
    small = Small((1, 5), node_id=4, is_dynamic=kraft_version == 1, joins_by_itself=True)
    small.ask(begin_request(3, 2, voter_id=4))
    assert isinstance(small.role, Follower)
    assert len(small.sent(AddRaftVoterRequest)) == kraft_version
    small.pass_ms(TIMING.fetch_timeout_ms - 1)
    small.ask(begin_request(4, 2, voter_id=4))
    assert len(small.sent(AddRaftVoterRequest)) == kraft_version, "each new leader is asked"
