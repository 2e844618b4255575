"""Bytes between brokers, as the kernel counts them for each connection (`ss -i`, of iproute2).

Nothing stands in the way of the bytes, and nobody is asked but the kernel: the same for both sides.
Counted is what TCP carries, without its heads.
"""

import re
import subprocess
import time
from collections.abc import Collection, Mapping

__all__ = ["bytes_a_second"]

_PID = re.compile(r"pid=(\d+)")
_PORT = re.compile(r":(\d+)$")
_COUNTED = re.compile(r"\bbytes_(?:sent|received):(\d+)")
_COMMAND = ("ss", "-tinpHO", "state", "established")

Connection = tuple[str, str]


def bytes_a_second(pids: Collection[int], ports: Collection[int], seconds: float) -> float:
    """What goes both ways over the connections that these processes opened to these ports."""
    begun, before = time.perf_counter(), _counted(pids, ports)
    time.sleep(seconds)
    after = _counted(pids, ports)
    grown = sum(count - before.get(connection, 0) for connection, count in after.items())
    return grown / (time.perf_counter() - begun)


def _counted(pids: Collection[int], ports: Collection[int]) -> Mapping[Connection, int]:
    """Bytes so far of each connection, at the end that opened it."""
    told = subprocess.run(_COMMAND, capture_output=True, text=True, check=True).stdout
    found = {}
    for line in told.splitlines():
        _, _, local, peer, *_ = line.split()
        owners = {int(pid) for pid in _PID.findall(line)}
        port = _PORT.search(peer)
        if port is not None and int(port[1]) in ports and owners & set(pids):
            found[local, peer] = sum(map(int, _COUNTED.findall(line)))
    return found
