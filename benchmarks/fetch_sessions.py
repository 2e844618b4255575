"""`python -m benchmarks.fetch_sessions [--quick]`: incremental fetches against full ones; a flood.

First table: 2,000 partitions of which 10 change between fetches. Each fetch is decoded from bytes,
served by the real Fetch handler and encoded again; the logs are in memory, so that nothing but the
fetch itself is measured. Processor time, medians over alternating rounds; a ratio is full / ours.

Second table: 10,000 clients open a session each, over and over, while one well-behaved client keeps
fetching in its own. The cache must stay within its slots, and the good client in its session.
"""

import argparse
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.fetching.fetch_sessions import DEFAULT_PARTITIONS, DEFAULT_SLOTS
from kraft_wire.broker.handlers.fetch import handle
from kraft_wire.broker.ports import LogReadView
from kraft_wire.model import Offset
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from tests.broker.small_broker import (
    NumbersLog,
    context,
    id_of,
    image_of,
    log_of,
    partition_image,
    small_broker,
)

VERSION = 17
TOPICS = 40
PARTITIONS_PER_TOPIC = 50
CHANGED = 10
RECORD_BYTES = 100
CLIENTS = 10_000
PARTITIONS_PER_CLIENT = 200

Name = tuple[str, int]
NAMES: list[Name] = [
    (f"topic-{number:04}", index)
    for number in range(TOPICS)
    for index in range(PARTITIONS_PER_TOPIC)
]


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a read returns."""

    records: bytes

    @property
    def size_bytes(self) -> int:
        """Length of the records."""
        return len(self.records)


class MemoryLog(NumbersLog):
    """A log whose records are one buffer of zeros, a hundred bytes each."""

    def read(
        self, offset: Offset, max_bytes: int, *, upper_bound: Offset, min_one_batch: bool
    ) -> LogReadView:
        """Return as many whole records as there is room for."""
        count = min(upper_bound - offset, max(max_bytes // RECORD_BYTES, int(min_one_batch)))
        return Stretch(bytes(count * RECORD_BYTES))


def make_broker(**settings: int) -> Broker:
    """A broker that leads all partitions, each with one record."""
    topics = {
        topic: [partition_image(index) for index in range(PARTITIONS_PER_TOPIC)]
        for topic in dict.fromkeys(topic for topic, _ in NAMES)
    }
    broker = small_broker(image_of(topics), **settings)
    for (topic, index), partition in broker.partitions.items():
        log = MemoryLog({}, [(0, 0)])
        log.grow(1)
        partition.log = log  # type: ignore[assignment]  # no append: nothing writes here
        assert log_of(broker, topic, index) is log
    return broker


def request_bytes(
    session_id: int, session_epoch: int, offsets: Mapping[Name, int], max_wait_ms: int = 0
) -> bytes:
    """A consumer's fetch as it arrives."""
    topics: dict[str, FetchTopic] = {}
    for (topic, index), offset in offsets.items():
        entry = topics.setdefault(topic, FetchTopic(topic_id=id_of(topic)))
        entry.partitions.append(
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=list(topics.values()),
    ).encode(VERSION)


def serve(broker: Broker, request: bytes, now_ms: int = 0) -> tuple[FetchResponse, int]:
    """Decode, handle, encode; return the response and the bytes of its encoding."""
    decoded, _ = FetchRequest.decode(request, VERSION)
    response = handle(broker, context(VERSION, now_ms=now_ms), decoded)
    assert isinstance(response, FetchResponse), response
    assert response.error_code == 0, response.error_code
    return response, len(response.encode(VERSION))


@dataclass(slots=True)
class Client:
    """A consumer of every partition that reads to the end in each fetch."""

    broker: Broker
    session_id: int = 0
    epoch: int = 0
    moved: dict[Name, int] | None = None

    def open(self) -> None:
        """Create the session, with all that there is already read."""
        offsets = {name: log_of(self.broker, *name).log_end_offset for name in NAMES}
        response, _ = serve(self.broker, request_bytes(0, 0, offsets))
        self.session_id, self.epoch, self.moved = response.session_id, 1, {}

    def next_request(self) -> bytes:
        """The next incremental request: it lists what the last answer moved."""
        request = request_bytes(self.session_id, self.epoch, self.moved or {})
        self.epoch, self.moved = self.epoch + 1, {}
        return request

    def append(self, step: int) -> dict[Name, int]:
        """Let a few partitions grow by a record, others in each step; return their ends."""
        ends: dict[Name, int] = {}
        for number in range(CHANGED):
            topic, index = NAMES[(step * CHANGED + number) % len(NAMES)]
            log = log_of(self.broker, topic, index)
            log.grow(1)
            ends[topic, index] = log.log_end_offset
        return ends


@dataclass(slots=True)
class Row:
    """One kind of fetch: sizes, processor time per fetch, partitions in the answer."""

    name: str
    request_bytes: int = 0
    response_bytes: int = 0
    partitions: int = 0
    micros: float = 0.0


def measured(row: Row, broker: Broker, prepare: Callable[[], bytes]) -> float:
    """Serve one request, note its sizes, return its processor time in microseconds."""
    request = prepare()
    started = time.process_time()
    response, row.response_bytes = serve(broker, request)
    elapsed = time.process_time() - started
    row.request_bytes = len(request)
    row.partitions = sum(len(topic.partitions) for topic in response.responses)
    return elapsed * 1e6


def compare(rounds: int) -> list[Row]:
    """Alternate full and incremental fetches over the same partitions."""
    broker = make_broker(max_incremental_fetch_session_cache_partitions=1_000 * len(NAMES))
    busy, idle = Client(broker), Client(broker)
    busy.open()
    positions = dict.fromkeys(NAMES, 1)
    kinds: dict[str, Callable[[], bytes]] = {
        "full, with a new session": lambda: request_bytes(0, 0, positions),
        "full, no session": lambda: request_bytes(0, -1, positions),
        f"incremental, {CHANGED} changed": busy.next_request,
        "incremental, nothing new": idle.next_request,
    }
    rows = {name: Row(name) for name in kinds}
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for step in range(rounds):
        grown = busy.append(step)
        for name, prepare in kinds.items():
            if prepare == idle.next_request:
                idle.open()
            times[name].append(measured(rows[name], broker, prepare))
        busy.moved = grown
        positions.update(grown)
    for name, row in rows.items():
        row.micros = statistics.median(times[name])
    return list(rows.values())


@dataclass(slots=True)
class Flood:
    """What the cache looked like under attack."""

    sessions_max: int
    partitions_max: int
    growth_bytes: int
    micros: float
    good_fetches: int
    good_lost: int
    refused: int


def flood(rounds: int) -> Flood:
    """Let every client open a session in each round; every hundredth step the good one fetches."""
    broker = make_broker()
    good = Client(broker)
    good.open()
    attack = request_bytes(0, 0, dict.fromkeys(NAMES[:PARTITIONS_PER_CLIENT], 1))
    seen = Flood(0, 0, 0, 0.0, 0, 0, 0)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    started = time.process_time()
    for step in range(rounds * CLIENTS):
        response, _ = serve(broker, attack, now_ms=step)
        seen.refused += response.session_id == 0
        if step % 100 == 0:
            good_is_served(broker, good, seen, now_ms=step)
            seen.sessions_max = max(seen.sessions_max, broker.fetch_sessions.sessions_count)
            seen.partitions_max = max(seen.partitions_max, broker.fetch_sessions.partitions_count)
    seen.micros = (time.process_time() - started) * 1e6 / (rounds * CLIENTS)
    seen.growth_bytes = cache_bytes(attack) - before
    return seen


def good_is_served(broker: Broker, good: Client, seen: Flood, now_ms: int) -> None:
    """Fetch in the good client's session, and open a new one where it was lost."""
    decoded, _ = FetchRequest.decode(good.next_request(), VERSION)
    response = handle(broker, context(VERSION, now_ms=now_ms), decoded)
    assert isinstance(response, FetchResponse), response
    seen.good_fetches += 1
    if response.error_code != 0:
        seen.good_lost += 1
        good.open()


def cache_bytes(attack: bytes) -> int:
    """Memory that a cache full of the attackers' sessions holds."""
    broker = make_broker()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for step in range(2_000):
        serve(broker, attack, now_ms=step)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return after - before


def main() -> int:
    """Print both tables; return 1 when the cache or the saving is out of bounds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fetch_sessions")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    quick = parser.parse_args().quick
    rows = compare(rounds=7 if quick else 31)
    full = rows[0]
    print(f"{len(NAMES):,} partitions, {CHANGED} change between fetches, Fetch v{VERSION}")
    print(
        f"{'':28}{'request B':>11}{'answer B':>11}{'partitions':>12}{'CPU us':>10}"
        f"{'bytes ratio':>13}{'CPU ratio':>11}"
    )
    for row in rows:
        size = row.request_bytes + row.response_bytes
        ratio = (full.request_bytes + full.response_bytes) / size
        print(
            f"{row.name:28}{row.request_bytes:>11,}{row.response_bytes:>11,}"
            f"{row.partitions:>12,}{row.micros:>10,.0f}{ratio:>12,.1f}x"
            f"{full.micros / row.micros:>10,.1f}x"
        )
    seen = flood(rounds=1 if quick else 2)
    print(
        f"\n{CLIENTS:,} clients, {PARTITIONS_PER_CLIENT} partitions each; "
        f"{DEFAULT_SLOTS:,} slots, {DEFAULT_PARTITIONS:,} partitions at most"
    )
    print(f"sessions at most            {seen.sessions_max:>10,}")
    print(f"partitions cached at most   {seen.partitions_max:>10,}")
    print(f"memory of a full cache      {seen.growth_bytes / 2**20:>10.1f} MiB")
    print(f"CPU per attacking fetch     {seen.micros:>10,.0f} us")
    print(f"refused a session           {seen.refused:>10,}")
    print(f"good client's fetches, lost {seen.good_fetches:>10,}, {seen.good_lost}")
    is_bounded = seen.sessions_max <= DEFAULT_SLOTS and seen.partitions_max <= DEFAULT_PARTITIONS
    return 0 if is_bounded and seen.good_lost == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
