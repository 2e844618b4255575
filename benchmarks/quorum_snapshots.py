"""Snapshots of many records: how long loading, writing and transferring one takes on both sides.

One side at a time. Three controllers are given the same snapshot (`quorum_state`). *load* is from
the start of three processes to their first acknowledged change. Changes are made until everybody
writes a snapshot of its own: *write* is from the first sight of its unfinished file to the finished
one, *write cpu* the processor time of all three from the first file to the last, changes included.
*transfer* is from the start of a controller with an empty disk until it has everything, which
it has to fetch as a snapshot, because the others' logs begin behind one.

A controller that is busy with a snapshot must go on answering. *slowest change* is that of one
client while the three write theirs; *longest silence* that of any controller which is asked for its
ApiVersions all the time while it writes, and while it fetches, verifies and loads.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.quorum_load import latencies, rate
from benchmarks.quorum_sides import NODES, Side
from benchmarks.quorum_state import give, snapshots_of
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.mixed.log_bytes import PARTITION
from tests.server.wire_client import WireClient

__all__ = ["SnapshotTimes", "measure"]

_SETTINGS = {
    "metadata.log.max.record.bytes.between.snapshots": "100000",
    "metadata.log.max.snapshot.interval.ms": "0",
}
"""A snapshot once so many bytes were committed since the start, and never because of the time."""
_HEAP_MB = 4_096
"""Apache's: a million quotas take nearly 3 GiB; with 1 GiB it collects garbage all the time and
elects nobody."""
_LOOK_S = 0.005
_CHANGING = 8
_SECONDS_MAX = 1_200.0
_SILENCE_S = 60.0


@dataclass
class SnapshotTimes:
    """One side's figures."""

    load_s: float
    write_s: float
    write_cpu_s: float
    transfer_s: float
    size_bytes: int
    was_snapshot: bool
    """Whether the empty controller got a snapshot rather than the whole log."""
    resident_bytes: int
    slowest_change_s: float
    longest_silence_s: float
    epochs: int
    """Leader epochs that began while snapshots were written and fetched."""


class _Listener(threading.Thread):
    """Asks one controller all the time whether it is there."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.longest_s = 0.0
        self._address = address
        self._ends = threading.Event()
        self.start()

    def run(self) -> None:
        """Ask until the end; what is never answered counts up to there."""
        while not self._ends.is_set():
            with suppress(OSError, AssertionError), WireClient(self._address) as client:
                client.sock.settimeout(_SILENCE_S)
                self._ask(client)
            time.sleep(_LOOK_S)

    def _ask(self, client: WireClient) -> None:
        while not self._ends.is_set():
            begun = time.perf_counter()
            client.call(ApiVersionsRequest(), 0, ApiVersionsResponse)
            self.longest_s = max(self.longest_s, time.perf_counter() - begun)
            time.sleep(_LOOK_S)

    def finish(self) -> float:
        """Return the longest time that an answer took."""
        self._ends.set()
        self.join(_SILENCE_S)
        return self.longest_s


def measure(name: str, home: Path, state: Path, say: Callable[[str], None]) -> SnapshotTimes:
    """Run one side through everything; `say` is told what comes next."""
    side = Side(name, home, overrides=_SETTINGS, heap_mb=_HEAP_MB)
    for node in side.nodes.values():
        give(state, node.data)
    with side:
        say(f"{name}: load")
        begun = time.perf_counter()
        side.start()
        side.write_once()
        load_s = time.perf_counter() - begun
        side.whole()
        print(f"{name}: {side.command()}", flush=True)
        say(f"{name}: write")
        write_s, write_cpu_s, slowest_s, silence_s, epochs = _written(side, state)
        side.whole()
        resident = side.resident_bytes()
        size_bytes = max(each.stat().st_size for each in snapshots_of(side[NODES[0]].data))
        say(f"{name}: transfer")
        epoch = side.describe().leader_epoch
        empty = next(each for each in NODES if each != side.leader())
        side.again_empty(empty)
        side.write_once()  # the leader still knows how far the lost disk had come
        begun = time.perf_counter()
        side.start(empty)
        listener = _Listener(side[empty].address)
        side.has_caught_up(empty)
        transfer_s = time.perf_counter() - begun
        silence_s = max(silence_s, listener.finish())
        epochs += side.describe().leader_epoch - epoch
        was_snapshot = bool(snapshots_of(side[empty].data))
    return SnapshotTimes(
        load_s=load_s,
        write_s=write_s,
        write_cpu_s=write_cpu_s,
        transfer_s=transfer_s,
        size_bytes=size_bytes,
        was_snapshot=was_snapshot,
        resident_bytes=resident,
        slowest_change_s=slowest_s,
        longest_silence_s=silence_s,
        epochs=epochs,
    )


def _written(side: Side, state: Path) -> tuple[float, float, float, float, int]:
    """Have every controller write its first snapshot.

    Returns the median time, the processor time of all, the slowest change, the longest silence, and
    how many epochs began. Changes are made until all have begun.
    """
    took: dict[int, float] = {}
    slowest: list[float] = []
    have_begun, have_ended = threading.Event(), threading.Event()
    side.write_once()
    side.whole()
    epoch = side.describe().leader_epoch
    listeners = [_Listener(each.address) for each in side.nodes.values()]

    def change() -> None:
        while not have_begun.is_set():
            with suppress(RuntimeError, OSError):
                rate(side[side.leader()].address, _CHANGING, 0.2)

    def look() -> None:
        while not have_ended.is_set():
            with suppress(RuntimeError, OSError):
                slowest.append(max(latencies(side[side.leader()].address, 0.2)))

    threads = [threading.Thread(target=each, daemon=True) for each in (change, look)]
    for thread in threads:
        thread.start()
    cpu_s = _watch(side, state, took, have_begun)
    have_ended.set()
    for thread in threads:
        thread.join(_SILENCE_S)
    silence_s = max(each.finish() for each in listeners)
    epochs = side.describe().leader_epoch - epoch
    return sorted(took.values())[1], cpu_s, max(slowest, default=0.0), silence_s, epochs


def _watch(side: Side, state: Path, took: dict[int, float], have_begun: threading.Event) -> float:
    """Look at the directories until every controller has finished a snapshot of its own.

    Returns the processor time that all of them took meanwhile.
    """
    began: dict[int, float] = {}
    cpu_s = side.cpu_seconds()
    deadline = time.perf_counter() + _SECONDS_MAX
    while len(took) < len(NODES):
        now = time.perf_counter()
        assert now < deadline, side.logs()
        for node_id in NODES:
            data = side[node_id].data
            is_done = any(each.name != state.name for each in snapshots_of(data))
            if node_id not in began and (is_done or any((data / PARTITION).glob("*.part"))):
                began[node_id] = now
                cpu_s = cpu_s if len(began) > 1 else side.cpu_seconds()
            if node_id not in took and is_done:
                took[node_id] = max(now - began[node_id], _LOOK_S)
        if len(began) == len(NODES):
            have_begun.set()
        time.sleep(_LOOK_S)
    return side.cpu_seconds() - cpu_s
