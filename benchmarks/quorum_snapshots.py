"""Snapshots of many records: how long writing, transferring and loading one takes on both sides.

One side at a time. Three controllers are filled with quotas while no snapshot is due, then started
again so that one is: *write* is from the first sight of its unfinished file to the finished one,
*load* from the start of three processes to their first acknowledged change, *transfer* from the
start of a controller with an empty disk until it has everything, when the others' logs begin behind
a snapshot.

A controller that is busy with a snapshot must go on answering. *slowest change* is that of one
client while the three write theirs; *longest silence* that of any controller which is asked for its
ApiVersions all the time while it writes, and while it fetches, verifies and loads.
"""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.quorum_load import fill_quotas, latencies, rate
from benchmarks.quorum_sides import NODES, Side
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.mixed.log_bytes import PARTITION
from tests.server.wire_client import WireClient

__all__ = ["SnapshotTimes", "measure"]

_NEVER = {
    "metadata.log.max.record.bytes.between.snapshots": str(1 << 40),
    "metadata.log.max.snapshot.interval.ms": "0",
    "metadata.log.segment.bytes": str(8 << 20),
}
_SOON = {
    "metadata.log.max.record.bytes.between.snapshots": "250000",
    "metadata.max.retention.bytes": "50000",
}
_HEAP_MB = 1_024
_LOOK_S = 0.005
_CHANGING = 8
_SECONDS_MAX = 1_200.0
_SILENCE_S = 60.0


@dataclass
class SnapshotTimes:
    """One side's figures."""

    fill_s: float
    write_s: float
    load_s: float
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


def measure(name: str, home: Path, records: int) -> SnapshotTimes:
    """Run one side through everything."""
    side = Side(name, home, overrides=_NEVER, heap_mb=_HEAP_MB)
    with side:
        side.start()
        side.write_once()  # a new leader refuses until it has replayed what was before
        fill_s = fill_quotas(lambda: side[side.leader()].address, records)
        side.whole()
        side.stop()
        _change(side, _SOON)
        side.start()
        write_s, slowest_s, silence_s, epochs = _written(side)
        side.whole()
        resident = side.resident_bytes()
        print(f"{name}: {side.command()}", flush=True)
        side.stop()
        begun = time.perf_counter()
        side.start()
        side.write_once()
        load_s = time.perf_counter() - begun
        size_bytes = max(each.stat().st_size for each in _snapshots(side, NODES[0]))
        _let_logs_be_cleaned(side)
        epoch = side.describe().leader_epoch
        empty = next(each for each in NODES if each != side.leader())
        side.again_empty(empty)
        begun = time.perf_counter()
        side.start(empty)
        listener = _Listener(side[empty].address)
        side.has_caught_up(empty)
        transfer_s = time.perf_counter() - begun
        silence_s = max(silence_s, listener.finish())
        epochs += side.describe().leader_epoch - epoch
        was_snapshot = bool(_snapshots(side, empty))
    return SnapshotTimes(
        fill_s,
        write_s,
        load_s,
        transfer_s,
        size_bytes,
        was_snapshot,
        resident,
        slowest_s,
        silence_s,
        epochs,
    )


def _change(side: Side, properties: dict[str, str]) -> None:
    for node in side.nodes.values():
        node.properties.update(properties)
        node.write_properties()


def _snapshots(side: Side, node_id: int) -> list[Path]:
    """Finished snapshots with content, without that of the format tool."""
    found = (side[node_id].data / PARTITION).glob("*.checkpoint")
    return sorted(each for each in found if int(each.name.split("-")[0]) > 0)


def _written(side: Side) -> tuple[float, float, float, int]:
    """Have every controller write its first snapshot.

    Returns the median time, the slowest change, the longest silence, and how many epochs began.
    Apache's counts only what came since its start, so changes are made until all have begun.
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
    _watch(side, took, have_begun)
    have_ended.set()
    for thread in threads:
        thread.join(_SILENCE_S)
    silence_s = max(each.finish() for each in listeners)
    epochs = side.describe().leader_epoch - epoch
    return sorted(took.values())[1], max(slowest, default=0.0), silence_s, epochs


def _watch(side: Side, took: dict[int, float], have_begun: threading.Event) -> None:
    """Look at the directories until every controller has finished a snapshot."""
    began: dict[int, float] = {}
    deadline = time.perf_counter() + _SECONDS_MAX
    while len(took) < len(NODES):
        now = time.perf_counter()
        assert now < deadline, side.logs()
        for node_id in NODES:
            is_done = bool(_snapshots(side, node_id))
            if node_id not in began and (
                is_done or any((side[node_id].data / PARTITION).glob("*.part"))
            ):
                began[node_id] = now
            if node_id not in took and is_done:
                took[node_id] = max(now - began[node_id], _LOOK_S)
        if len(began) == len(NODES):
            have_begun.set()
        time.sleep(_LOOK_S)


def _let_logs_be_cleaned(side: Side) -> None:
    """Have a second snapshot taken, and wait until every controller has dropped its first."""
    first = {each: _snapshots(side, each)[0] for each in NODES}
    deadline = time.perf_counter() + _SECONDS_MAX
    while any(_snapshots(side, each)[-1] == first[each] for each in NODES):
        assert time.perf_counter() < deadline, side.logs()
        with suppress(RuntimeError, OSError):
            rate(side[side.leader()].address, _CHANGING, 0.2)
    while any(path.exists() for path in first.values()):
        assert time.perf_counter() < deadline, side.logs()
        time.sleep(0.2)
