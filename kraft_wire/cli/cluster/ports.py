"""The ports of a new cluster's nodes: free ones, or those from a given one on."""

import socket
from pathlib import Path
from typing import Final

from kraft_wire.cli.random_source import SystemRandomSource

__all__ = ["PORT_MAX", "first_taken_port", "free_ports"]

PORT_MAX: Final = 65_535
_HOST: Final = "127.0.0.1"
_FIRST_PORT: Final = 20_000
_CONNECTION_PORTS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_CONNECTIONS_FROM: Final = 32_768
"""Linux's default for the first port of outgoing connections."""
_ROOM_MIN: Final = 1_000
"""Fewer ports than that may all be taken."""


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that are free now; all are held until all are chosen.

    A killed node needs its port again when it restarts, so no port should be one that the kernel
    gives to connections.
    """
    probes: list[socket.socket] = []
    try:
        while len(probes) < count:
            probe = socket.socket()
            probes.append(probe)
            try:
                probe.bind((_HOST, _drawn_port()))
            except OSError:  # taken
                probes.pop().close()
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def first_taken_port(ports: range) -> int | None:
    """Return the first port of 127.0.0.1 that is taken, None if all are free.

    A port with connections in TIME_WAIT only is free, as for a server.
    """
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((_HOST, port))
            except OSError:
                return port
    return None


def _drawn_port() -> int:
    """Draw a port below those of outgoing connections; 0, the kernel's choice, without room."""
    try:
        end = int(_CONNECTION_PORTS.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        end = _CONNECTIONS_FROM
    room = end - _FIRST_PORT
    return _FIRST_PORT + SystemRandomSource().below(room) if room >= _ROOM_MIN else 0
