"""`python -m benchmarks.proxy [--quick]`: `kraft-wire proxy` beside a bare TCP relay.

One client fetches the same megabytes, and produces others, through either in turn, from the same
server; then it does both with a kilobyte a request, where the proxy has a frame to find for each.
The relay does nothing but write what it reads, on the same event loop as the proxy.
"""

import argparse
import asyncio
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kraft_wire.client.connection import BrokerConnection
from kraft_wire.testing import Cluster
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kraft_wire.wire.records.batch_builder import Record, build_batch

TOPICS = ("large", "small")
BATCH_BYTES = 512 * 1024
SMALL_BYTES = 1024


class End(asyncio.Protocol):
    """One end of a connection that writes to the other what it reads."""

    other: "End"
    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # a transport of a stream

    def data_received(self, data: bytes) -> None:
        self.other.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.other.transport.close()


async def relay(port: int, ready: Path) -> None:
    """Relay until the process is ended."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        ready.write_text(f"127.0.0.1:{server.getsockname()[1]}")
        while True:
            accepted, _ = await loop.sock_accept(server)
            near, far = End(), End()
            near.other, far.other = far, near
            await loop.create_connection(lambda end=far: end, "127.0.0.1", port)
            await loop.connect_accepted_socket(lambda end=near: end, accepted)


@contextmanager
def started(command: list[str], ready: Path) -> Iterator[str]:
    """Start a process, and yield what its ready file says."""
    process = subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.DEVNULL)
    try:
        while not ready.exists() or not ready.read_text():
            time.sleep(0.01)
        yield ready.read_text()
    finally:
        process.terminate()
        process.wait()


@dataclass(frozen=True, slots=True)
class Load:
    """Requests of one size, sent with several under way."""

    request: object
    response: type
    batch_bytes: int
    under_way: int
    per_round: int = 1
    """Requests for each request of the longest load."""

    def rate(self, address: str, count: int) -> float:
        """Send the requests of a round; return the megabytes a second."""
        count *= self.per_round
        with BrokerConnection(address) as connection:
            began = time.perf_counter()
            for number in range(count + self.under_way):
                if number < count:
                    connection.post(self.request)
                if number >= self.under_way:
                    connection.answer(self.response)
            seconds = time.perf_counter() - began
        return count * self.batch_bytes / seconds / 1e6


def loads(topic_ids: dict[str, bytes]) -> dict[str, Load]:
    """Return what is sent, by name."""
    large, small = (topic_ids[each] for each in TOPICS)
    return {
        "produce": Load(_produce(large, BATCH_BYTES), ProduceResponse, BATCH_BYTES, 4),
        "fetch": Load(_fetch(large, BATCH_BYTES), FetchResponse, BATCH_BYTES, 4),
        "produce of 1 kB": Load(_produce(small, SMALL_BYTES), ProduceResponse, SMALL_BYTES, 64, 25),
        "fetch of 1 kB": Load(_fetch(small, SMALL_BYTES), FetchResponse, SMALL_BYTES, 64, 25),
    }


def _produce(topic_id: bytes, size_bytes: int) -> ProduceRequest:
    batch = build_batch([Record(None, bytes(size_bytes))], base_offset=0, partition_leader_epoch=0)
    data = PartitionProduceData(index=0, records=bytes(batch))
    topic = TopicProduceData(topic_id=topic_id, partition_data=[data])
    return ProduceRequest(acks=1, topic_data=[topic])


def _fetch(topic_id: bytes, size_bytes: int) -> FetchRequest:
    partition = FetchPartition(partition=0, partition_max_bytes=size_bytes)
    topic = FetchTopic(topic_id=topic_id, partitions=[partition])
    return FetchRequest(max_bytes=size_bytes, topics=[topic])


def main() -> int:
    """Print megabytes a second through both, and the median ratio of neighboring rounds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--relay", nargs=2, metavar=("PORT", "FILE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.relay:
        import uvloop

        uvloop.run(relay(int(arguments.relay[0]), Path(arguments.relay[1])))
        return 0
    rounds, count = (20, 40) if arguments.quick else (60, 80)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory()))
        cluster = stack.enter_context(Cluster(in_process=False, directory=directory / "data"))
        for topic in TOPICS:
            cluster.create_topic(topic, configs={"segment.bytes": 1 << 28})
        address = cluster.bootstrap_servers
        options = ["--upstream", address, "--listen", "127.0.0.1:0"]
        command = ["kraft_wire.cli.main", "proxy", *options, "--ready-file", str(directory / "p")]
        stack.enter_context(started(command, directory / "p"))
        sides = {"proxy": json.loads((directory / "p").read_text())["listen"]}
        port = address.rpartition(":")[2]
        bare = ["benchmarks.proxy", "--relay", port, str(directory / "r")]
        sides["relay"] = stack.enter_context(started(bare, directory / "r"))
        sides["direct"] = address
        _measure(sides, rounds, count, _topic_ids(address))
    return 0


def _topic_ids(address: str) -> dict[str, bytes]:
    with BrokerConnection(address) as connection:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=each) for each in TOPICS])
        answer = connection.send(request, MetadataResponse)
    return {each.name or "": each.topic_id for each in answer.topics}


def _measure(sides: dict[str, str], rounds: int, count: int, topic_ids: dict[str, bytes]) -> None:
    for name, load in loads(topic_ids).items():
        rates: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(rounds):
            for side, address in sides.items():
                rates[side].append(load.rate(address, count))
        middle = {side: statistics.median(each) for side, each in rates.items()}
        pairs = zip(rates["proxy"], rates["relay"], strict=True)
        ratio = statistics.median(proxy / relay for proxy, relay in pairs)
        shown = ", ".join(f"{side} {rate:,.1f} MB/s" for side, rate in middle.items())
        print(f"{name}: {shown}; proxy / relay {ratio:.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
