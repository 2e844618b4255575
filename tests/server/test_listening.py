"""Sockets of listeners, as the system sees them."""

import socket

from kraft_wire.node.config.node_config import Listener
from kraft_wire.server.listening import bound_sockets
from tests.waiting import HANG_S


def test_accepted_connections_send_small_answers_at_once() -> None:
    """They inherit it: a call on each could fail, where its client is gone already (macOS)."""
    listener = Listener("PLAINTEXT", "127.0.0.1", 0, "127.0.0.1", 0)
    with bound_sockets((listener,)) as [(_, bound)]:
        bound.listen(1)
        bound.settimeout(HANG_S)
        with socket.create_connection(bound.getsockname(), timeout=HANG_S):
            accepted, _ = bound.accept()
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            accepted.close()
