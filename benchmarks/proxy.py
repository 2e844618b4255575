"""`python -m benchmarks.proxy [--quick]`: `kraft-wire proxy` beside a bare TCP relay.

One client fetches the same megabytes, and produces others, through either in turn, from the same
server. The relay does nothing but write what it reads, on the same event loop as the proxy.
"""

import argparse
import asyncio
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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

TOPIC = "load"
BATCH_BYTES = 512 * 1024
UNDER_WAY = 4


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


def pipelined(address: str, count: int, request: object, response: type) -> float:
    """Send so many requests, several of them under way; return the seconds."""
    with BrokerConnection(address) as connection:
        began = time.perf_counter()
        for number in range(count + UNDER_WAY):
            if number < count:
                connection.post(request)
            if number >= UNDER_WAY:
                connection.answer(response)
        return time.perf_counter() - began


def loads(topic_id: bytes) -> dict[str, Callable[[str, int], float]]:
    """Return what is sent, by name: (address, count) -> seconds."""
    batch = build_batch([Record(None, bytes(BATCH_BYTES))], base_offset=0, partition_leader_epoch=0)
    data = PartitionProduceData(index=0, records=bytes(batch))
    produce = ProduceRequest(
        acks=1, topic_data=[TopicProduceData(topic_id=topic_id, partition_data=[data])]
    )
    partition = FetchPartition(partition=0, partition_max_bytes=BATCH_BYTES)
    fetch = FetchRequest(
        max_bytes=BATCH_BYTES, topics=[FetchTopic(topic_id=topic_id, partitions=[partition])]
    )
    return {
        "produce": lambda address, count: pipelined(address, count, produce, ProduceResponse),
        "fetch": lambda address, count: pipelined(address, count, fetch, FetchResponse),
    }


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
        cluster.create_topic(TOPIC, configs={"segment.bytes": 1 << 28})
        address = cluster.bootstrap_servers
        options = ["--upstream", address, "--listen", "127.0.0.1:0"]
        command = ["kraft_wire.cli.main", "proxy", *options, "--ready-file", str(directory / "p")]
        stack.enter_context(started(command, directory / "p"))
        sides = {"proxy": json.loads((directory / "p").read_text())["listen"]}
        port = address.rpartition(":")[2]
        bare = ["benchmarks.proxy", "--relay", port, str(directory / "r")]
        sides["relay"] = stack.enter_context(started(bare, directory / "r"))
        sides["direct"] = address
        _measure(sides, rounds, count, _topic_id(address))
    return 0


def _topic_id(address: str) -> bytes:
    with BrokerConnection(address) as connection:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
        return connection.send(request, MetadataResponse).topics[0].topic_id


def _measure(sides: dict[str, str], rounds: int, count: int, topic_id: bytes) -> None:
    for name, load in loads(topic_id).items():
        rates: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(rounds):
            for side, address in sides.items():
                seconds = load(address, count)
                rates[side].append(count * BATCH_BYTES / seconds / 1e6)
        middle = {side: statistics.median(each) for side, each in rates.items()}
        pairs = zip(rates["proxy"], rates["relay"], strict=True)
        ratio = statistics.median(proxy / relay for proxy, relay in pairs)
        shown = ", ".join(f"{side} {rate:,.0f} MB/s" for side, rate in middle.items())
        print(f"{name}: {shown}; proxy / relay {ratio:.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
