"""Binds the sockets of a server first: a port in use is the most frequent mistake."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from kraft_wire.node.config.node_config import Listener
from kraft_wire.node.disks.opening import StartError

__all__ = ["bound_sockets", "starting"]


@contextmanager
def bound_sockets(
    listeners: tuple[Listener, ...],
) -> Iterator[list[tuple[Listener, socket.socket]]]:
    """Bind every listener, and close the sockets at the end; they do not listen yet.

    Errors: StartError for a port in use or an address of another host.
    """
    bound: list[tuple[Listener, socket.socket]] = []
    try:
        for listener in listeners:
            family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
            sock = socket.socket(family, socket.SOCK_STREAM)
            bound.append((listener, sock))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Accepted sockets inherit it.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setblocking(False)
            with starting(listener):
                sock.bind((listener.host, listener.port))
        yield bound
    finally:
        for _, sock in bound:
            sock.close()


@contextmanager
def starting(listener: Listener) -> Iterator[None]:
    """Raise StartError for an OSError of a socket that binds or listens.

    Two sockets may be bound to one port with SO_REUSEADDR; only the first of them can listen.
    """
    try:
        yield
    except OSError as error:
        place = f"{listener.name}://{listener.host}:{listener.port}"
        raise StartError(f"cannot listen on {place}: {error.strerror or error}") from error
