"""`python -m benchmarks.secured [--quick] [--only NAME] [--json]`: TLS and logins, beside Apache's.

Both nodes run at once with the same certificates and users, and take turns as in
`benchmarks.node`. Every connection is the standard library's; it has one request in flight, so that
rates include the client's own work, which is the same on both sides. CPU is the server's.
"""

import argparse
import json
import socket
import ssl
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from benchmarks.bytecode import require_bytecode
from benchmarks.node import APACHE_FLAGS, Case, Row, Side, prepare, print_table, run_case
from kraft_wire.login.client_config import Credentials
from kraft_wire.login.sasl import dialogue
from tests.apache.secured_node import ACCOUNTS
from tests.attack import frames
from tests.attack.target import read_frame
from tests.clients.secured.nodes import Node, started

_GOAL = 1.0
_MACHINE = {"heap_mb": 1024, "flags": APACHE_FLAGS}
_MECHANISM = "SCRAM-SHA-256"


class _Connecting:
    """Connections to either node, over TLS, and logged in where wanted."""

    def __init__(self, nodes: dict[str, Node]) -> None:
        """`nodes` are by their plain addresses, by which cases know them."""
        self._nodes = nodes
        self._contexts = {
            plain: ssl.create_default_context(cafile=str(node.listeners.authority.trusted))
            for plain, node in nodes.items()
        }

    @contextmanager
    def connected(self, plain: str, mechanism: str = "") -> Iterator[socket.socket]:
        """Connect to the TLS listener of a node, or log in at its SASL_SSL listener."""
        node = self._nodes[plain]
        address = node.secure if mechanism else node.listeners.address("SSL")
        host, _, port = address.rpartition(":")
        raw = socket.create_connection((host, int(port)))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._contexts[plain].wrap_socket(raw, server_hostname=host) as connection:
            if mechanism:
                _log_in(connection, mechanism)
            yield connection


def _log_in(connection: socket.socket, mechanism: str) -> None:
    connection.sendall(frames.request(17, 1, frames.string(mechanism)))
    _answer(connection)
    tokens = dialogue(Credentials(mechanism, "ann", ACCOUNTS["ann"]))
    token = next(tokens)
    while True:
        connection.sendall(frames.request(36, 1, struct.pack(">i", len(token)) + token))
        answer = _answer(connection)
        if answer[4:6] != b"\0\0":
            raise RuntimeError(f"the login fails: {answer!r}")
        size = int.from_bytes(answer[8:12], "big")  # behind the error and an absent text
        try:
            token = tokens.send(answer[12 : 12 + size])
        except StopIteration:
            return


def _answer(connection: socket.socket) -> bytes:
    answer = read_frame(connection)
    if answer is None:
        raise RuntimeError("the connection is closed")
    return answer


def _logins(connecting: _Connecting, mechanism: str) -> Callable[[str, float], float]:
    """Measure connections, each with a handshake, a login if wanted, and one answer."""

    def measure(plain: str, seconds: float) -> float:
        done, begun = 0, time.perf_counter()
        while time.perf_counter() - begun < seconds:
            with connecting.connected(plain, mechanism) as connection:
                connection.sendall(frames.metadata_v1(["bench"]))
                _answer(connection)
            done += 1
        return done / (time.perf_counter() - begun)

    return measure


def _asked(
    connecting: _Connecting, request: bytes, size_bytes: int, mechanism: str = ""
) -> Callable[[str, float], float]:
    """Measure one request again and again; every answer has the given size or more."""

    def measure(plain: str, seconds: float) -> float:
        with connecting.connected(plain, mechanism) as connection:
            done, begun = 0, time.perf_counter()
            while time.perf_counter() - begun < seconds:
                connection.sendall(request)
                answer = _answer(connection)
                if len(answer) < size_bytes:
                    raise RuntimeError(f"an answer of {len(answer)} bytes: {answer[:80]!r}")
                done += 1
            return done / (time.perf_counter() - begun)

    return measure


def _produce(value_bytes: int) -> bytes:
    return frames.produce_v3("bench", frames.batch(frames.one_record(b"v" * value_bytes), 1))


def _fetch(fetch_bytes: int) -> bytes:
    body = struct.pack(">iiiib", -1, 100, 1, fetch_bytes, 0)
    body += struct.pack(">i", 1) + frames.string("bench-fetch")
    return frames.request(1, 4, body + struct.pack(">iiqi", 1, 0, 0, fetch_bytes))


def cases(connecting: _Connecting) -> tuple[Case, ...]:
    """Return the rows."""

    def asked(name: str, request: bytes, size_bytes: int, mechanism: str = "") -> Case:
        return Case(name, "req/s", _GOAL, _asked(connecting, request, size_bytes, mechanism))

    return (
        Case("TLS handshake and a request", "conn/s", _GOAL, _logins(connecting, "")),
        Case("the same and PLAIN", "conn/s", _GOAL, _logins(connecting, "PLAIN")),
        Case(f"the same and {_MECHANISM}", "conn/s", _GOAL, _logins(connecting, _MECHANISM)),
        asked("TLS produce 100 B", _produce(100), 40),
        asked("TLS produce 16 KiB", _produce(16 << 10), 40),
        asked("TLS fetch 64 KiB", _fetch(64 << 10), 64 << 10),
        asked("TLS fetch 1 MiB", _fetch(1 << 20), 1 << 20),
        asked("SASL_SSL produce 100 B", _produce(100), 40, _MECHANISM),
        asked("SASL_SSL fetch 64 KiB", _fetch(64 << 10), 64 << 10, _MECHANISM),
    )


def measure_all(arguments: argparse.Namespace, folder: Path, console: Console) -> list[Row]:
    """Start both nodes and run the chosen cases."""
    rounds, seconds = (2, 1.0) if arguments.quick else (7, 2.0)
    more = {"num.partitions": "1"}
    rows = []
    with ExitStack() as stack:
        ours = stack.enter_context(started(folder / "a", is_apache=False, more=more))
        theirs = stack.enter_context(
            started(folder / "b", is_apache=True, more=more, machine=_MACHINE)
        )
        connecting = _Connecting({each.bootstrap: each for each in (ours, theirs)})
        sides = Side("ours", ours.bootstrap, ours.pid), Side("apache", theirs.bootstrap, theirs.pid)
        for side in sides:
            prepare(side)
        for case in cases(connecting):
            if arguments.only is None or arguments.only in case.name:
                rows.append(run_case(case, sides, rounds, seconds))
                print(rows[-1], file=sys.stderr, flush=True)
    print_table(rows, rounds, seconds, console)
    return rows


def main() -> int:
    """Print the table; return 0 also where a ratio is short of its goal: figures are not gates."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.secured")
    parser.add_argument("--quick", action="store_true", help="two short rounds")
    parser.add_argument("--only", help="cases whose name contains this text")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    arguments = parser.parse_args()
    require_bytecode()
    console = Console(width=140, stderr=arguments.json, markup=False, highlight=False)
    with tempfile.TemporaryDirectory(prefix="kraft-wire-bench-") as folder:
        rows = measure_all(arguments, Path(folder), console)
    if arguments.json:
        print(json.dumps({"rows": [asdict(row) for row in rows]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
