"""What `benchmarks.spark` reads: topics of a live Apache Kafka node, and a long metadata log.

Records are like those of an application: keys of 13 bytes, JSON values of about 140, two of five
with headers, some without key or value, in batches of 16 KiB, which is the default of Kafka's
producer. One topic a codec, two partitions each, nothing of it ever deleted.
"""

import random
import time
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.node import APACHE_FLAGS
from tests.apache.node import ApacheNode
from tests.spark.many_partitions import LoglessBroker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS = 2
BATCH_BYTES = 16 << 10
FILLING_BYTES = 1 << 16
SECONDS_MAX = 300
CREATED_AT_ONCE = 4_000
SEED = 5
_OVERRIDES = {
    "log.retention.ms": "-1",
    "log.segment.bytes": str(64 << 20),
    "auto.create.topics.enable": "false",
    "broker.session.timeout.ms": "30000",
    "max.request.partition.size.limit": "10000",
}

Headers = list[tuple[str, bytes | None]] | None


def apache_node(directory: Path) -> ApacheNode:
    """A node with the memory and the collector of Apache's own script, not started."""
    return ApacheNode(directory, overrides=_OVERRIDES, heap_mb=1024, flags=APACHE_FLAGS)


def topic_names() -> list[str]:
    """The topics, one a codec."""
    return [f"bench-{codec}" for codec in CODECS]


def write_topics(bootstrap: str, records: int) -> int:
    """Create and fill the topics; return how many records they hold together."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [NewTopic(name, PARTITIONS, 1) for name in topic_names()]
    for created in admin.create_topics(wanted).values():
        created.result(SECONDS_MAX)
    each = records // len(CODECS)
    for codec in CODECS:
        _fill(bootstrap, codec, each)
    return each * len(CODECS)


def _fill(bootstrap: str, codec: str, count: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            "batch.size": BATCH_BYTES,
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
            "message.timeout.ms": SECONDS_MAX * 1000,
        }
    )
    for number, (key, value, headers) in enumerate(_contents(count)):
        while True:
            try:
                producer.produce(
                    f"bench-{codec}",
                    value,
                    key,
                    number % PARTITIONS,
                    timestamp=1_700_000_000_000 + number,
                    headers=headers,
                )
                break
            except BufferError:
                producer.poll(0.05)
    left = producer.flush(SECONDS_MAX)
    assert left == 0, f"{left} records were not acknowledged"


def _contents(count: int) -> Iterator[tuple[bytes | None, bytes | None, Headers]]:
    random_source = random.Random(SEED)
    filling = random_source.randbytes(FILLING_BYTES).hex().encode()
    for number in range(count):
        key = None if number % 11 == 3 else b"key-%09d" % (number * 7919 % 50_000)
        at = number * 7919 % FILLING_BYTES
        text = b'{"n": %d, "x": "' % number + filling[at : at + 64] + b'", "y": "'
        value = None if number % 17 == 5 else text + filling[at : at + 38] + b'"}'
        headers: Headers = None
        if number % 5 < 2:
            headers = [("trace", b"%016x" % number), ("empty", b""), ("none", None)]
        yield key, value, headers


def write_metadata_log(directory: Path, records: int) -> Path:
    """Have a controller of Apache's write a metadata log; return the stopped node's log directory.

    A quarter of the records creates partitions of a broker that keeps no log; it is fenced and
    unfenced until there are enough, and each time every partition changes its leader.
    """
    node = apache_node(directory)
    with node:
        broker = LoglessBroker([node.controller_bootstrap])
        broker.unfence()
        partitions = records // 4
        for number, first in enumerate(range(0, partitions, CREATED_AT_ONCE)):
            broker.create(f"many-{number}", min(CREATED_AT_ONCE, partitions - first))
            broker.heartbeat()
        for fenced in (True, False, True):
            _until(broker, fenced=fenced)
        broker.close()
    return node.data


def _until(broker: LoglessBroker, *, fenced: bool) -> None:
    """Ask to be fenced or unfenced, and wait until it is so."""
    deadline = time.monotonic() + SECONDS_MAX
    while broker.heartbeat(fenced=fenced) == fenced:
        assert time.monotonic() < deadline, "the controller does not do what it is asked"
        time.sleep(0.1)
