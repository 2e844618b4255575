"""Controllers that come back on new addresses: the voter set in force names them (KIP-853).

A follower tells its leader (UpdateRaftVoter); a leader has nobody to tell and writes its own
address into the first batch of its epoch. Nodes are reachable on their old addresses too here, so
that only the voter set is at stake.
"""

from random import Random

import pytest

from kraft_wire.raft.voters import Address
from kraft_wire.sim.judge.log_watch import LogWatch, newest_voters
from tests.node.quorum import HOST, NodeQuorum
from tests.node.test_metadata_transactions import LOG
from tests.node.test_three_controllers import committed

BASES = (9_000, 8_000, 7_000, 6_000)


def restart_at(quorum: NodeQuorum, node_id: int, base: int) -> None:
    """Start a node that was killed; it listens on another port from now on."""
    quorum.start(node_id, listeners=f"CONTROLLER://{HOST}:{base + node_id}")


def written(quorum: NodeQuorum, node_id: int) -> dict[int, Address]:
    """Return where the voters listen, by the last voter set on a node's disk."""
    disk = LogWatch(LOG)
    disk.look(quorum.members[node_id].fs)
    found = newest_voters(disk)
    assert found is not None
    return {
        voter.voter_id: Address(endpoint.host, endpoint.port)
        for voter in found[0].voters
        for endpoint in voter.endpoints
    }


def test_lone_voter_that_wins_on_a_new_address_writes_it() -> None:
    quorum = NodeQuorum((1,), is_dynamic=True)
    committed(quorum, 1)
    for base in BASES[1:]:
        quorum.kill(1)
        restart_at(quorum, 1, base)
        committed(quorum, base)
        assert written(quorum, 1) == {1: Address(HOST, base + 1)}


@pytest.mark.parametrize("seed", range(4))
def test_whoever_wins_every_voter_that_moved_is_named_where_it_listens(seed: int) -> None:
    random = Random(seed)
    quorum = NodeQuorum((1, 2, 3), is_dynamic=True)
    committed(quorum, 0)
    bases = dict.fromkeys(quorum.voters, BASES[0])
    has_moved_as_leader = False
    for value in range(1, 6):
        moving = random.sample(quorum.voters, random.randrange(1, 4))
        for node_id in moving:
            quorum.kill(node_id)
        for node_id in random.sample(moving, len(moving)):
            bases[node_id] = random.choice([each for each in BASES if each != bases[node_id]])
            restart_at(quorum, node_id, bases[node_id])
        leader = quorum.elect()
        has_moved_as_leader = has_moved_as_leader or leader in moving
        assert written(quorum, leader)[leader] == Address(HOST, bases[leader] + leader)
        committed(quorum, value)
        quorum.advance(5_000)
        quorum.level()
        expected = {node_id: Address(HOST, base + node_id) for node_id, base in bases.items()}
        assert [written(quorum, node_id) for node_id in quorum.voters] == [expected] * 3
    assert has_moved_as_leader
