"""The order in which listeners open: controllers' at once, those for clients when they may come."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.node.authorization.guarded_node import AUTHORIZER
from tests.node.quorum import NodeQuorum
from tests.process import accepts
from tests.quorum_processes import QuorumProcesses
from tests.waiting import until

BROKEN = 70
"""Exit code after a fatal error."""
GUARDED = {
    "process.roles": "broker,controller",
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:ANONYMOUS",
}


def test_clients_may_come_when_the_entries_are_loaded() -> None:
    """SEC-ENV-05: from the first image at the high watermark, which needs a leader."""
    quorum = NodeQuorum(settings=GUARDED)
    seen: set[tuple[bool, bool]] = set()

    def all_serve() -> bool:
        for member in quorum.members.values():
            guards = member.running._guards
            assert guards is not None
            seen.add((guards._authorizer.is_loaded, member.serves_clients))
        return all(member.serves_clients for member in quorum.members.values())

    quorum.until(all_serve)
    assert seen >= {(False, False), (True, True)}
    assert (False, True) not in seen, "clients would be refused"


def test_a_controllers_listener_is_open_before_there_is_a_leader(tmp_path: Path) -> None:
    """SEC-ENV-05: the quorum must talk before it has metadata; clients are not accepted yet."""
    quorum = QuorumProcesses(tmp_path, 3, is_combined=True, overrides=GUARDED)
    quorum.format()
    alone, *others = quorum.nodes.values()
    try:
        alone.begin()
        until(lambda: accepts(quorum.controller_ports[1]), lambda: quorum.log(1))
        assert not accepts(quorum.client_ports[1])
        for each in others:
            each.begin()
        until(lambda: accepts(quorum.client_ports[1]), lambda: quorum.log(1))
    finally:
        for node in quorum.nodes.values():
            node.kill()


def test_a_port_that_another_process_listens_on_by_now_ends_the_process(tmp_path: Path) -> None:
    """Both were bound to it, which SO_REUSEADDR permits until one of them listens."""
    quorum = QuorumProcesses(tmp_path, 2, is_combined=True)
    quorum.format()
    first, second = quorum.nodes.values()
    try:
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", quorum.client_ports[1]))
            first.begin()
            until(lambda: accepts(quorum.controller_ports[1]), lambda: quorum.log(1))
            other.listen()
            second.begin()
            assert first.wait() == BROKEN
    finally:
        for node in quorum.nodes.values():
            node.kill()
    place = f"PLAINTEXT://{quorum.client(1)}"
    assert f"cannot listen on {place}: Address already in use" in quorum.log(1)
