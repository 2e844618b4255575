"""What makes a node look at its quorum again: the calls that may leave something for it to do."""

from types import SimpleNamespace
from typing import Any, cast

from kraft_wire.model import Uuid
from kraft_wire.node.quorum_part import QuorumPart

FAILED = Uuid(b"f" * 16)


def test_failed_directory_is_told_without_waiting_for_another_call() -> None:
    told: list[tuple[Uuid, int]] = []
    lifecycle = SimpleNamespace(directory_failed=lambda *what: told.append(what))
    part: Any = SimpleNamespace(
        raft=SimpleNamespace(is_touched=False), own_broker=SimpleNamespace(lifecycle=lifecycle)
    )
    QuorumPart.directory_failed(cast(QuorumPart, part), FAILED, 7)
    assert part.raft.is_touched
    assert told == [(FAILED, 7)]


def test_link_of_a_peer_touches_the_quorum() -> None:
    raft, forwarder = SimpleNamespace(is_touched=False), object()
    part: Any = SimpleNamespace(raft=raft, _apis=None)
    assert QuorumPart.links_of(cast(QuorumPart, part), 3) is raft
    assert raft.is_touched
    owners = {3: forwarder}
    part._apis = SimpleNamespace(owner_of=owners.get)
    assert QuorumPart.links_of(cast(QuorumPart, part), 3) is forwarder
    assert QuorumPart.links_of(cast(QuorumPart, part), 4) is raft
