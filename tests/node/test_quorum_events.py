"""Log lines of the metadata quorum: leaders as each replica learns of them, active controllers."""

from kraft_wire.raft.roles import Leader
from tests.node.quorum import NodeQuorum

Lines = list[tuple[str, dict[str, object]]]
VOTERS = (4, 5, 6)
"""No id is an epoch of these tests."""
EVENTS = ("quorum_leader_elected", "controller_active", "controller_resigned")


def elected(leader: int, epoch: int, before: object) -> tuple[str, dict[str, object]]:
    return "quorum_leader_elected", {"leader": leader, "epoch": epoch, "before": before}


def lines(quorum: NodeQuorum) -> dict[int, Lines]:
    """Return the lines of each node about leaders and controllers since the last call."""
    found = {}
    for node_id, member in quorum.members.items():
        found[node_id] = [each for each in member.lines if each[0] in EVENTS]
        member.lines.clear()
    return found


def epoch_of(quorum: NodeQuorum, node_id: int) -> int:
    return int(quorum.members[node_id].running.raft.replica.quorum.epoch)


def test_each_replica_names_a_leader_once_and_the_leader_its_controller() -> None:
    quorum = NodeQuorum(VOTERS)
    leader = quorum.elect()
    quorum.advance(5_000)
    epoch = epoch_of(quorum, leader)
    named = elected(leader, epoch, "-")
    for node_id, found in lines(quorum).items():
        active = [("controller_active", {"epoch": epoch})] if node_id == leader else []
        assert found == [named, *active], node_id


def test_controller_that_is_cut_off_resigns_once_with_its_epoch() -> None:
    """It names the next leader once it can be reached again."""
    quorum = NodeQuorum(VOTERS)
    former = quorum.elect()
    quorum.advance(1_000)
    lines(quorum)
    epoch = epoch_of(quorum, former)
    quorum.cut = {former}
    replica = quorum.members[former].running.raft.replica
    quorum.until(lambda: not isinstance(replica.quorum.role, Leader))
    assert lines(quorum)[former] == [("controller_resigned", {"epoch": epoch})]
    successor = quorum.elect()
    quorum.cut = set()
    quorum.advance(5_000)
    assert quorum.leader == successor
    later = epoch_of(quorum, successor)
    assert later > epoch
    assert lines(quorum)[former] == [elected(successor, later, former)]


def test_next_leader_is_named_with_the_one_before_it() -> None:
    quorum = NodeQuorum(VOTERS)
    former = quorum.elect()
    quorum.advance(1_000)
    lines(quorum)
    quorum.kill(former)
    successor = quorum.elect()
    quorum.advance(1_000)
    later = epoch_of(quorum, successor)
    named = elected(successor, later, former)
    for node_id, found in lines(quorum).items():
        active = [("controller_active", {"epoch": later})] if node_id == successor else []
        assert found == ([] if node_id == former else [named, *active]), node_id


def test_follower_that_returns_to_the_leader_of_its_epoch_names_it_no_second_time() -> None:
    quorum = NodeQuorum(VOTERS)
    leader = quorum.elect()
    quorum.advance(1_000)
    follower = next(node_id for node_id in VOTERS if node_id != leader)
    lines(quorum)
    quorum.cut = {follower}
    quorum.advance(5_000)
    quorum.cut = set()
    quorum.advance(5_000)
    roles = [fields["role"] for name, fields in quorum.members[follower].lines if "role" in name]
    assert (roles[0], roles[-1], quorum.leader) == ("prospective-voted", "follower", leader)
    assert lines(quorum) == {node_id: [] for node_id in VOTERS}
