"""What makes a node look at its quorum again: the calls that may leave something for it to do."""

from types import SimpleNamespace
from typing import Any, cast

from kraft_wire.model import Uuid
from kraft_wire.node.quorum_node import QuorumNode

FAILED = Uuid(b"f" * 16)


def test_failed_directory_is_told_without_waiting_for_another_call() -> None:
    told: list[tuple[Uuid, int]] = []
    lifecycle = SimpleNamespace(directory_failed=lambda *what: told.append(what))
    part: Any = SimpleNamespace(
        raft=SimpleNamespace(is_touched=False), local_broker=SimpleNamespace(lifecycle=lifecycle)
    )
    QuorumNode.directory_failed(cast(QuorumNode, part), FAILED, 7)
    assert part.raft.is_touched
    assert told == [(FAILED, 7)]


def test_link_of_a_peer_touches_the_quorum() -> None:
    raft, forwarder = SimpleNamespace(is_touched=False), object()
    part: Any = SimpleNamespace(raft=raft, _apis=None)
    assert QuorumNode.links_of(cast(QuorumNode, part), 3) is raft
    assert raft.is_touched
    owners = {3: forwarder}
    part._apis = SimpleNamespace(owner_of=owners.get)
    assert QuorumNode.links_of(cast(QuorumNode, part), 3) is forwarder
    assert QuorumNode.links_of(cast(QuorumNode, part), 4) is raft
