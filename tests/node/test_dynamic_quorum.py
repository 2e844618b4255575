"""Dynamic voters (KIP-853) and observers as whole nodes, from formatting on."""

from kraft_wire.wire.generated.add_raft_voter import AddRaftVoterRequest, Listener
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.remove_raft_voter import RemoveRaftVoterRequest
from tests.node.quorum import CLUSTER_ID, HOST, Answer, NodeQuorum, directory_id
from tests.node.test_three_controllers import committed, configs


def voters_of(quorum: NodeQuorum, node_id: int) -> list[int]:
    return list(quorum.members[node_id].running.raft.replica.quorum.voters.latest.nodes)


def add_voter(quorum: NodeQuorum, node_id: int, generation: int = 0) -> Answer:
    request = AddRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        timeout_ms=10_000,
        voter_id=node_id,
        voter_directory_id=directory_id(node_id, generation),
        listeners=[Listener(name="CONTROLLER", host=HOST, port=9_000 + node_id)],
    )
    return answered(quorum, quorum.ask(quorum.elect(), request))


def remove_voter(quorum: NodeQuorum, node_id: int, generation: int = 0) -> Answer:
    request = RemoveRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        voter_id=node_id,
        voter_directory_id=directory_id(node_id, generation),
    )
    return answered(quorum, quorum.ask(quorum.elect(), request))


def answered(quorum: NodeQuorum, answer: Answer) -> Answer:
    quorum.until(lambda: answer.response is not None)
    return answer


def test_an_observer_has_everything_and_does_not_campaign() -> None:
    quorum = NodeQuorum((1, 2, 3), is_dynamic=True)
    quorum.add(4)
    committed(quorum, 1_000)
    assert configs(quorum) == ["1000"] * 4
    for node_id in (1, 2, 3):
        quorum.kill(node_id)
    epoch = quorum.members[4].running.raft.replica.quorum.epoch
    quorum.advance(20_000)
    assert quorum.members[4].running.raft.replica.quorum.epoch == epoch


def test_a_quorum_of_one_grows_to_three_and_shrinks_again() -> None:
    quorum = NodeQuorum((1,), is_dynamic=True)
    committed(quorum, 1)
    for node_id in (2, 3):
        quorum.add(node_id)
        quorum.level()
        assert add_voter(quorum, node_id).response.error_code == ErrorCode.NONE
    assert configs(quorum) == ["1"] * 3
    assert [voters_of(quorum, node_id) for node_id in (1, 2, 3)] == [[1, 2, 3]] * 3
    quorum.kill(1)
    committed(quorum, 2)
    quorum.start(1)
    quorum.level()
    assert remove_voter(quorum, quorum.elect()).response.error_code == ErrorCode.NONE
    committed(quorum, 3)
    assert configs(quorum) == ["3"] * 3
    assert len(voters_of(quorum, quorum.elect())) == 2


def test_voters_survive_restarts_snapshots_and_lost_disks() -> None:
    quorum = NodeQuorum(
        (1,),
        {
            "metadata.log.max.record.bytes.between.snapshots": "2000",
            "metadata.max.retention.bytes": "100",
        },
        is_dynamic=True,
    )
    for node_id in (2, 3):
        quorum.add(node_id)
        quorum.level()
        assert add_voter(quorum, node_id).response.error_code == ErrorCode.NONE
    for value in range(30):
        committed(quorum, value)
    quorum.advance(61_000)
    quorum.level()
    for node_id in (1, 2, 3):
        assert quorum.members[node_id].running.raft.log.log_start_offset > 0
        quorum.kill(node_id)
    for node_id in (1, 2, 3):
        quorum.start(node_id)
    committed(quorum, 31)
    victim = next(node_id for node_id in (1, 2, 3) if node_id != quorum.elect())
    quorum.wipe(victim, keeps_directory_id=False)
    quorum.start(victim)
    committed(quorum, 32)
    assert configs(quorum) == ["32"] * 3
    assert not quorum.members[victim].running.raft.replica.quorum.is_voter
    assert voters_of(quorum, victim) == [1, 2, 3], "it knows that the one it was is a voter"
    assert remove_voter(quorum, victim).response.error_code == ErrorCode.NONE
    quorum.advance(100)  # what the leader last asked the voter that it was is over
    assert add_voter(quorum, victim, 1).response.error_code == ErrorCode.NONE
    quorum.until(lambda: quorum.members[victim].running.raft.replica.quorum.is_voter)


def test_an_observer_joins_by_itself_where_it_is_told_to() -> None:
    quorum = NodeQuorum((1,), is_dynamic=True)
    quorum.add(2, controller_quorum_auto_join_enable="true")
    quorum.until(lambda: voters_of(quorum, 1) == [1, 2])
    committed(quorum, 5)
    assert configs(quorum) == ["5"] * 2
