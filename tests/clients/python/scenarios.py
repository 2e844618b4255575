"""The scenarios, each a few promises of Kafka as a client sees them.

Every scenario uses topics and groups of its own, so that any of them runs alone and against any
broker. ``restart-before`` and ``restart-after`` are one scenario with a restart of the broker
between them.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Sequence
from functools import partial

from tests.clients.python.adapter import (
    LEADERS_MOVE,
    Adapter,
    AdminAdapter,
    Consumed,
    Member,
    Produced,
    ScenarioFailed,
    wait_until,
)

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FILLER = b" kafka wire" * 10
BASE_TIMESTAMP_MS = 1_700_000_000_000
LARGE_BYTES = 1_000_000
PLACING_SECONDS = 20.0
TOO_FEW_BROKERS = ("INVALID_REPLICATION_FACTOR", "InvalidReplicationFactor", "error codes [38]")
RESTART_TOTAL = 100
RESTART_FIRST = 40

Scenario = Callable[[Adapter, str], None]


def expect(actual: object, expected: object, what: str) -> None:
    """Fail with both values unless they are equal."""
    if actual != expected:
        raise ScenarioFailed(f"{what}: got {str(actual)[:200]}, expected {str(expected)[:200]}")


def numbered(count: int, start: int = 0) -> list[Produced]:
    """Records of partition 0 that name their own place."""
    return [Produced(b"record %06d" % n + FILLER, partition=0) for n in range(start, start + count)]


def values(records: Sequence[Produced] | Sequence[Consumed]) -> list[bytes | None]:
    """The values alone, in order."""
    return [record.value for record in records]


def create(
    adapter: Adapter, topic: str, partitions: int, configs: dict[str, str] | None = None
) -> None:
    """Create a topic with REPLICAS replicas."""
    placed(lambda: adapter.create_topic(topic, partitions, configs or {}))


def placed(change: Callable[[], None]) -> None:
    """Make a change that places replicas; again while a broker is about to stop.

    Kafka places none on it, and refuses what needs all brokers with INVALID_REPLICATION_FACTOR,
    which no client tries again by itself.
    """
    deadline = time.monotonic() + PLACING_SECONDS
    while True:
        try:
            return change()
        except Exception as error:
            is_short = any(word in f"{error!r}" for word in TOO_FEW_BROKERS)
            if not (LEADERS_MOVE and is_short and time.monotonic() < deadline):
                raise
        time.sleep(0.1)


def received(members: Sequence[Member]) -> list[bytes]:
    """The values that members of a group were given; once each where they may rejoin."""
    found = sorted(record.value or b"" for member in members for record in member.received)
    return sorted(set(found)) if LEADERS_MOVE else found


def metadata(adapter: Adapter, topic: str) -> None:
    """Brokers have a host and a port; a topic has its partitions; an unknown one has none."""
    create(adapter, topic, 3)
    wait_until(lambda: adapter.partitions(topic) == 3, "the topic shows 3 partitions")
    all_brokers, found = adapter.bootstrap.split(","), adapter.brokers()
    expect(sorted(set(found) - set(all_brokers)), [], "strange brokers")
    enough = len(found) == len(all_brokers) or (LEADERS_MOVE and len(found) == len(all_brokers) - 1)
    expect(enough, True, f"all of {all_brokers} in {found}, but for one that restarts")


def connect(adapter: Adapter, _: str) -> None:
    """The client connects, and is told of brokers."""
    expect(bool(adapter.brokers()), True, "there are brokers")


def codec(name: str, adapter: Adapter, topic: str) -> None:
    """What goes in with a codec comes out identical and in order."""
    create(adapter, topic, 1)
    sent = numbered(300)
    adapter.produce(topic, sent, codec=name)
    got = adapter.consume(topic, [0], len(sent))
    expect(values(got), values(sent), "values")
    expect([record.offset for record in got], list(range(len(sent))), "offsets")


def keys(adapter: Adapter, topic: str) -> None:
    """Keys come back, and one key stays on one partition."""
    create(adapter, topic, 4)
    sent = [Produced(b"%d" % n, key=b"key-%d" % (n % 17)) for n in range(170)]
    adapter.produce(topic, sent)
    got = adapter.consume(topic, range(4), len(sent))
    expect(
        sorted((record.key, record.value) for record in got),
        sorted((record.key, record.value) for record in sent),
        "keys and values",
    )
    places: dict[bytes | None, set[int]] = {}
    for record in got:
        places.setdefault(record.key, set()).add(record.partition)
    expect({len(found) for found in places.values()}, {1}, "partitions per key")
    expect(len({record.partition for record in got}) > 1, True, "more than one partition used")


def headers(adapter: Adapter, topic: str) -> None:
    """Headers come back in order, with equal names and empty values."""
    create(adapter, topic, 1)
    given: list[tuple[str, bytes | None]] = [
        ("a", b"1"),
        ("b", b""),
        ("a", b"\x01\xff"),
        ("ü", b"x"),
    ]
    adapter.produce(topic, [Produced(b"with", headers=given), Produced(b"without")])
    got = adapter.consume(topic, [0], 2)
    expect(got[0].headers, given, "headers")
    expect(got[1].headers, [], "no headers")


def nulls(adapter: Adapter, topic: str) -> None:
    """A null value (a tombstone) is not an empty one, a null key not an empty one."""
    create(adapter, topic, 1)
    sent = [
        Produced(None, key=b"deleted", partition=0),
        Produced(b"", key=b"empty", partition=0),
        Produced(b"no key", partition=0),
    ]
    adapter.produce(topic, sent)
    got = adapter.consume(topic, [0], 3)
    pairs = [(record.key, record.value) for record in got]
    expect(pairs, [(record.key, record.value) for record in sent], "keys and values")


def large(adapter: Adapter, topic: str) -> None:
    """Records of a megabyte come back whole."""
    create(adapter, topic, 1)
    source = random.Random(7)
    sent = [Produced(source.randbytes(LARGE_BYTES), partition=0) for _ in range(5)]
    adapter.produce(topic, sent)
    got = adapter.consume(topic, [0], len(sent))
    digests = [[hashlib.sha256(r.value or b"").hexdigest() for r in side] for side in (got, sent)]
    expect(digests[0], digests[1], "digests")


def idempotent(adapter: Adapter, topic: str) -> None:
    """An idempotent producer's records are there once and in order."""
    create(adapter, topic, 2)
    sent = [Produced(b"%06d" % n, partition=n % 2) for n in range(1000)]
    adapter.produce(topic, sent, idempotent=True)
    got = adapter.consume(topic, [0, 1], len(sent))
    for partition in (0, 1):
        ours = [record.value for record in got if record.partition == partition]
        expect(ours, [r.value for r in sent if r.partition == partition], "values in order")


def group(adapter: Adapter, topic: str) -> None:
    """Three members share six partitions; when one leaves, the others take over all of them."""
    create(adapter, topic, 6)
    members = [adapter.member(topic, topic) for _ in range(3)]
    shared = "3 members hold 2 partitions each, all 6 together"
    wait_until(lambda: sorted(len(m.assignment()) for m in members) == [2, 2, 2], shared)
    expect(set().union(*(m.assignment() for m in members)), set(range(6)), "partitions of all")
    leaving, *staying = members
    leaving.leave()
    taken = "the 2 others hold 3 partitions each"
    wait_until(lambda: [len(m.assignment()) for m in staying] == [3, 3], taken)
    sent = [Produced(b"%d" % n, partition=n % 6) for n in range(60)]
    adapter.produce(topic, sent)
    wait_until(lambda: len(received(staying)) >= 60, "all 60 records arrived")
    expect(received(staying), sorted(r.value or b"" for r in sent), "values")
    for member in staying:
        member.leave()


def restart_before(adapter: Adapter, topic: str) -> None:
    """A group reads a part and commits."""
    create(adapter, topic, 1)
    adapter.produce(topic, numbered(RESTART_TOTAL))
    got = adapter.consume_in_group(topic, topic, RESTART_FIRST)
    expect(values(got), values(numbered(RESTART_FIRST)), "the first values")


def restart_after(adapter: Adapter, topic: str) -> None:
    """After the broker's restart the group continues where it had committed."""
    got = adapter.consume_in_group(topic, topic, RESTART_TOTAL - RESTART_FIRST)
    rest = numbered(RESTART_TOTAL - RESTART_FIRST, RESTART_FIRST)
    expect(values(got), values(rest), "the remaining values")


def timestamps(adapter: Adapter, topic: str) -> None:
    """The offset of a time is that of the first record at or after it."""
    create(adapter, topic, 1)
    records = numbered(20)
    for n, record in enumerate(records):
        record.timestamp_ms = BASE_TIMESTAMP_MS + 1000 * n
    adapter.produce(topic, records)
    for after_ms, offset in ((0, 0), (5000, 5), (5001, 6), (19000, 19)):
        found = adapter.offset_for_timestamp(topic, BASE_TIMESTAMP_MS + after_ms)
        expect(found, offset, f"offset {after_ms} ms after the first")
    found = adapter.offset_for_timestamp(topic, BASE_TIMESTAMP_MS + 60_000)
    expect(found in (None, 20), True, "no record, or the end, after the last timestamp")


def seek(adapter: Adapter, topic: str) -> None:
    """Seek to the end sees what is produced next, seek to the beginning the first record."""
    create(adapter, topic, 1)
    adapter.produce(topic, numbered(30))
    reader = adapter.reader(topic)
    reader.seek_to_end()
    adapter.produce(topic, numbered(1, 30))
    expect(reader.next().offset, 30, "the offset after seek to end")
    reader.seek_to_beginning()
    first = reader.next()
    expect((first.offset, first.value), (0, numbered(1)[0].value), "after seek to beginning")
    reader.close()


def topics(adapter: Adapter, topic: str) -> None:
    """Create with a config, describe, grow, alter, describe again, delete."""
    if not isinstance(adapter, AdminAdapter):
        raise ScenarioFailed("this client has no admin commands; its cell is to be blank")
    create(adapter, topic, 3, {"retention.ms": "3600000"})
    wait_until(lambda: adapter.partitions(topic) == 3, "the topic shows 3 partitions")
    expect(adapter.describe_config(topic, "retention.ms"), "3600000", "retention.ms")
    placed(lambda: adapter.add_partitions(topic, 5))
    wait_until(lambda: adapter.partitions(topic) == 5, "the topic shows 5 partitions")
    adapter.alter_config(topic, "retention.ms", "7200000")
    altered = "retention.ms is 7200000"
    wait_until(lambda: adapter.describe_config(topic, "retention.ms") == "7200000", altered)
    adapter.delete_topic(topic)
    wait_until(lambda: adapter.partitions(topic) is None, "the topic is gone")


def auto_create(adapter: Adapter, topic: str) -> None:
    """Producing to a topic that does not exist creates it."""
    adapter.produce(topic, [Produced(b"first")])
    wait_until(lambda: bool(adapter.partitions(topic)), "the topic exists")
    count = adapter.partitions(topic) or 0
    expect(values(adapter.consume(topic, range(count), 1)), [b"first"], "values")


def partitions_200(adapter: Adapter, topic: str) -> None:
    """One consumer reads two hundred partitions."""
    create(adapter, topic, 200)
    wait_until(lambda: adapter.partitions(topic) == 200, "the topic shows 200 partitions")
    sent = [Produced(b"%d" % n, partition=n) for n in range(200)]
    adapter.produce(topic, sent)
    got = adapter.consume(topic, range(200), len(sent))
    expect(sorted(r.partition for r in got), list(range(200)), "one record of each partition")


SCENARIOS: dict[str, Scenario] = {
    "connect": connect,
    "metadata": metadata,
    **{f"codec-{name}": partial(codec, name) for name in CODECS},
    "keys": keys,
    "headers": headers,
    "nulls": nulls,
    "large": large,
    "idempotent": idempotent,
    "group": group,
    "timestamps": timestamps,
    "seek": seek,
    "topics": topics,
    "auto-create": auto_create,
    "partitions-200": partitions_200,
    "restart-before": restart_before,
    "restart-after": restart_after,
}
