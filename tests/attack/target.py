"""The server under attack, watched from outside: memory, log lines, and a good client beside."""

import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.attack import frames
from tests.server_process import ServerProcess

__all__ = ["GoodClient", "Target", "running_target"]

ANSWER_DEADLINE_S = 15.0


@dataclass
class Target:
    """A server process of ours with its address and the file that takes its log."""

    pid: int
    host: str
    port: int
    log_path: Path
    peak_bytes: int = 0
    """The most memory that the present attack has seen the process hold."""

    def connect(self, timeout_s: float = ANSWER_DEADLINE_S) -> socket.socket:
        """Open a connection; reads on it fail after `timeout_s`."""
        connection = socket.create_connection((self.host, self.port), timeout=timeout_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def resident_bytes(self) -> int:
        """Return the resident set of the server process."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def note_memory(self) -> None:
        """Remember the resident set if it is the largest of this attack."""
        self.peak_bytes = max(self.peak_bytes, self.resident_bytes())

    def log_size(self) -> int:
        """Return how much the server has logged so far."""
        return self.log_path.stat().st_size

    def log_since(self, position: int) -> str:
        """Return what was logged after `position`."""
        with self.log_path.open("rb") as log:
            log.seek(position)
            return log.read().decode(errors="replace")

    def is_alive(self) -> bool:
        """Tell whether the process still runs."""
        stat = Path(f"/proc/{self.pid}/stat")
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def read_frame(connection: socket.socket) -> bytes | None:
    """Return one answer without its length, or None when the peer closed."""
    head = _read_exactly(connection, 4)
    if head is None:
        return None
    return _read_exactly(connection, int.from_bytes(head, "big"))


def _read_exactly(connection: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        try:
            chunk = connection.recv(size - len(data))
        except ConnectionError:
            return None
        if not chunk:
            return None
        data += chunk
    return bytes(data)


@dataclass
class GoodClient:
    """Produces one small record after another all the while, and keeps every latency."""

    target: Target
    topic: str = "good"
    latencies_s: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin on a thread of its own."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=60)

    def mark(self) -> int:
        """Return a position in the latencies, to ask for the share that came after it."""
        return len(self.latencies_s)

    def p99_since(self, mark: int) -> float:
        """Return the 99th percentile in seconds since `mark`, 0.0 when nothing was measured."""
        share = sorted(self.latencies_s[mark:])
        return share[min(len(share) - 1, int(len(share) * 0.99))] if share else 0.0

    def _run(self) -> None:
        record = frames.batch(frames.one_record(b"x" * 100), 1)
        try:
            with self.target.connect(timeout_s=60.0) as connection:
                while not self._stop.is_set():
                    self._produce(connection, record)
                    time.sleep(0.005)
        except OSError as error:
            self.failures.append(f"{type(error).__name__}: {error}")

    def _produce(self, connection: socket.socket, record: bytes) -> None:
        begun = time.perf_counter()
        connection.sendall(frames.produce_v3(self.topic, record))
        answer = read_frame(connection)
        self.latencies_s.append(time.perf_counter() - begun)
        if answer is None:
            self._stop.set()
            self.failures.append("the server closed the good client's connection")
            return
        # correlation 4, topic count 4, name 2 + n, partition count 4, index 4, then the error code
        error = int.from_bytes(answer[18 + len(self.topic) :][:2], "big", signed=True)
        if error != 0:
            self.failures.append(f"error code {error}")


@contextmanager
def running_target(**overrides: str) -> Iterator[Target]:
    """Start `kraft-wire server` on a free port with these settings; end it afterwards."""
    settings = {key.replace("_", "."): value for key, value in overrides.items()}
    with (
        tempfile.TemporaryDirectory(prefix="kraft-wire-attack-") as folder,
        ServerProcess(Path(folder), overrides=settings) as server,
    ):
        host, _, port = server.bootstrap.rpartition(":")
        yield Target(server.pid, host, int(port), server.log)
