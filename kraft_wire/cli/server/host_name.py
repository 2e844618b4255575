"""The machine's name, which a listener without a host advertises."""

import socket

from kraft_wire.node.config.listeners import loopback

__all__ = ["host_name"]


def host_name() -> str:
    """Return the name of this machine, as Kafka advertises it; 127.0.0.1 if it has no address."""
    name = socket.getfqdn()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return loopback()
    return name
