"""A leading controller whose disk is full waits for room, and is not busy meanwhile."""

import pytest

from kraft_wire.node.node import Node
from tests.node.quorum import NodeQuorum
from tests.node.test_disk_errors import fill
from tests.node.test_three_controllers import committed, configs

TICKS_MAX = 2_000


@pytest.mark.parametrize("interval_ms", ["100", "500"])
def test_leader_with_a_full_disk_pauses_before_it_tries_another_noop(
    monkeypatch: pytest.MonkeyPatch, interval_ms: str
) -> None:
    quorum = NodeQuorum(settings={"metadata.max.idle.interval.ms": interval_ms})
    committed(quorum, 1)
    leader = quorum.members[quorum.elect()]
    tick, ticks = Node.tick, 0

    def counted(node: Node, now_ms: int, wall_ms: int) -> None:
        nonlocal ticks
        ticks += node is leader.node
        assert ticks < TICKS_MAX, "it is busy with nothing"
        tick(node, now_ms, wall_ms)

    fill(leader.fs, 0)
    monkeypatch.setattr(Node, "tick", counted)
    quorum.advance(3_000)
    monkeypatch.undo()
    leader.fs.capacity_bytes = None
    quorum.advance(3_000)
    committed(quorum, 2)
    assert configs(quorum) == ["2"] * 3


@pytest.mark.parametrize("left_bytes", [200, 300, 400, 500])
def test_new_leader_goes_on_once_when_room_and_a_commit_come_before_its_next_try(
    left_bytes: int,
) -> None:
    """One of the leader's first records finds no room; a client's write is committed meanwhile."""
    quorum = NodeQuorum()
    for member in quorum.members.values():
        fill(member.fs, left_bytes)
    quorum.until(lambda: any(_waits_for_room(each.node) for each in quorum.members.values()))
    for member in quorum.members.values():
        member.fs.capacity_bytes = None
    quorum.until(lambda: any(each.node.quorum.host.is_active for each in quorum.members.values()))
    committed(quorum, 1)
    quorum.advance(3_000)
    assert configs(quorum) == ["1"] * 3


def _waits_for_room(node: Node) -> bool:
    return node.quorum.host._again_at_ms is not None
