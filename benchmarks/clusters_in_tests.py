"""`python -m benchmarks.clusters_in_tests [--rounds N] [--write]`: what a broker costs a test.

`kraft_wire.testing.Cluster` in this process and as a process, and Apache Kafka, in turn: started
with one topic, emptied, stopped. Each is ready when a client's Metadata response has the topic's
leader. Apache's node runs with the flags and the archive of classes that start it fastest; it is
emptied as tests do that without a restart: the topic is deleted and created again. `--write` puts
the table into docs/TESTING.md.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.node import resident_bytes
from kraft_wire.client.connection import BrokerConnection
from kraft_wire.testing import Cluster
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.apache.jars import RELEASE
from tests.apache.node import ApacheNode

__all__ = ["APART", "HERE", "PEER", "SECTION", "table", "written"]

PAGE = Path(__file__).parent.parent / "docs" / "TESTING.md"
SECTION = "## What it costs\n"
TOPIC = "orders"
HERE, APART, PEER = "in this process", "as a process", f"Apache Kafka {RELEASE}"
FIRST = (
    "from kraft_wire.testing import Cluster; import os; Cluster(topics=['orders']).start();"
    "print(open('/proc/self/statm').read(), flush=True); os._exit(0)"
)
Figures = dict[str, dict[str, list[float]]]
"""Seconds or bytes, by row and column."""


@contextmanager
def timed(found: list[float]) -> Iterator[None]:
    """Note the seconds that the block takes."""
    began = time.perf_counter()
    yield
    found.append(time.perf_counter() - began)


def await_leader(bootstrap: str) -> None:
    """Wait until the node names the topic's leader."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    with BrokerConnection(bootstrap) as connection:
        while True:
            (topic,) = connection.send(request, MetadataResponse).topics
            if topic.partitions and topic.partitions[0].leader_id >= 0:
                return
            time.sleep(0.001)


def create(bootstrap: str) -> None:
    """Create the topic, again and again until the node does it."""
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    with BrokerConnection(bootstrap) as connection:
        while connection.send(request, CreateTopicsResponse).topics[0].error_code:
            time.sleep(0.001)
    await_leader(bootstrap)


def delete(bootstrap: str) -> None:
    """Delete the topic."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)], timeout_ms=30_000)
    with BrokerConnection(bootstrap) as connection:
        connection.send(request, DeleteTopicsResponse)


def measure_ours(figures: Figures, column: str, *, in_process: bool) -> None:
    """Start, empty and stop a cluster of one node."""
    cluster = Cluster(topics=[TOPIC], in_process=in_process)
    with timed(figures["start with a topic"][column]):
        cluster.start()
        await_leader(cluster.bootstrap_servers)
    with timed(figures["empty it"][column]):
        if in_process:
            cluster.reset()
        else:
            delete(cluster.bootstrap_servers)
            create(cluster.bootstrap_servers)
        await_leader(cluster.bootstrap_servers)
    with timed(figures["stop"][column]):
        cluster.stop()


def measure_first(figures: Figures) -> None:
    """Start Python, import everything, and start the first cluster."""
    with timed(figures["the first one, with Python's start"][HERE]):
        done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, check=True)
    pages = int(done.stdout.split()[1])
    figures["memory"][HERE].append(pages * 4096 / 2**20)


def measure_process(figures: Figures) -> None:
    """Note the memory of a node as a process."""
    with TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.json"
        options = ["--listen", "127.0.0.1:0", "--ephemeral", "--ready-file", str(ready)]
        command = [sys.executable, "-m", "kraft_wire", "server", *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not ready.exists():
                time.sleep(0.01)
            figures["memory"][APART].append(resident_bytes(process.pid) / 2**20)
        finally:
            process.terminate()
            process.wait()


def measure_apache(figures: Figures, home: Path) -> None:
    """Format and start a node, empty and stop it."""
    home.mkdir()
    node = ApacheNode(home)
    with timed(figures["start with a topic"][PEER]):
        node.format()
        node.start()
        create(node.bootstrap)
    with timed(figures["empty it"][PEER]):
        delete(node.bootstrap)
        create(node.bootstrap)
    figures["memory"][PEER].append(resident_bytes(node.pid) / 2**20)
    with timed(figures["stop"][PEER]):
        node.stop()


def measured(rounds: int, home: Path) -> Figures:
    """Return what each round of each side took."""
    figures: Figures = defaultdict(lambda: defaultdict(list))
    with Cluster():
        pass  # imports
    for number in range(rounds):
        measure_ours(figures, HERE, in_process=True)
        measure_ours(figures, APART, in_process=False)
        measure_first(figures)
        measure_process(figures)
        measure_apache(figures, home / f"apache-{number}")
    return figures


def table(figures: Figures) -> str:
    """Return the medians, and in brackets how many times as much Apache's node takes."""
    lines = [f"| | {HERE} | {APART} | {PEER} |", "|---|---|---|---|"]
    for name, row in figures.items():
        shown = _mebibytes if name == "memory" else _seconds
        middle = {column: statistics.median(found) for column, found in row.items()}
        peer = middle.get(PEER, 0.0)
        cells = [
            _cell(shown, middle.get(column, 0.0), peer if column != PEER else 0.0)
            for column in (HERE, APART, PEER)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(shown: Callable[[float], str], found: float, peer: float) -> str:
    if not found:
        return ""
    ratio = peer / found
    return shown(found) + (f" ({ratio:.{0 if ratio >= 10 else 1}f}x)" if peer else "")


def _seconds(found: float) -> str:
    return f"{found * 1000:.3g} ms" if found < 1 else f"{found:.2f} s"


def _mebibytes(found: float) -> str:
    return f"{found:.0f} MiB"


def written(page: str, lines: str) -> str:
    """Return the page with the table of its section replaced."""
    before, section, rest = page.partition(SECTION)
    assert section, "the page has no such section"
    start = rest.index("| |")
    end = rest.index("\n\n", start)
    return before + section + rest[:start] + lines.rstrip("\n") + rest[end:]


def main() -> int:
    """Measure, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="into docs/TESTING.md")
    wanted = parser.parse_args()
    with TemporaryDirectory() as home:
        lines = table(measured(wanted.rounds, Path(home)))
    print(lines, end="")
    if wanted.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), lines), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
