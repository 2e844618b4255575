"""`python -m tests.spark.apache_dirs --output DIR --records N`: what three Apache nodes write.

Three Apache Kafka 4.3.1 nodes, replication factor 3 everywhere: five codecs, keys, headers, null
values; committed, aborted and open transactions; a compacted topic; DeleteRecords; log-append time;
large values; an empty topic; two leader epochs and more after `kill -9` of a node; a metadata log
with as many partitions as asked for and several snapshots. DIR then has `node-1/data` to
`node-3/data`, stopped cleanly (`--crash`: killed), and `acks.jsonl`, a ledger of what was
acknowledged to the plain producers.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.apache.three_nodes import ThreeNodes
from tests.spark.many_partitions import create_many_partitions
from tests.waiting import until

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS = 2
COMPACTED = "compacted"
PLAIN_SHARE = 0.8
"""Of all records; the rest goes to the other topics."""

LARGE_BYTES = 900_000
OPEN_MS = 6 * 3_600_000
"""How long the open transaction may stay open: longer than whoever reads the directories needs."""

TRANSACTION_RECORDS = 25
SECONDS_MAX = 120
_FOREVER = {"retention.ms": "-1", "retention.bytes": "-1"}


def topics(segment_bytes: int) -> dict[str, dict[str, str]]:
    """The settings of each topic."""
    plain = {**_FOREVER, "segment.bytes": str(segment_bytes)}
    return {
        **{f"codec-{codec}": plain for codec in CODECS},
        "transactions": plain,
        "trimmed": plain,
        "appended": {**plain, "message.timestamp.type": "LogAppendTime"},
        "large": {**plain, "max.message.bytes": str(2 << 20)},
        "empty": plain,
        COMPACTED: {
            **plain,
            "cleanup.policy": "compact",
            "segment.bytes": str(1 << 20),
            "min.cleanable.dirty.ratio": "0.01",
            "max.compaction.lag.ms": "1000",
        },
    }


class Writer:
    """Producers of one cluster, and the ledger of what was acknowledged."""

    def __init__(self, bootstrap: str, ledger: Path, seed: int) -> None:
        self._bootstrap = bootstrap
        self._random_source = random.Random(seed)
        self._ledger = ledger.open("w", encoding="utf-8")
        self._written = 0

    def producer(self, **settings: object) -> Producer:
        """A producer that waits for all replicas and never reorders."""
        return Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "queue.buffering.max.messages": 1_000_000,
                "message.timeout.ms": SECONDS_MAX * 1000,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )

    def write(self, topic: str, count: int, *, value_bytes: int = 140, **settings: object) -> None:
        """Produce records over the topic's partitions, and wait until all are acknowledged."""
        producer = self.producer(**settings)
        for key, value, headers in self._records(topic, count, value_bytes):
            partition = self._written % PARTITIONS
            self._written += 1
            stamp = 1_700_000_000_000 + self._written
            while True:
                try:
                    producer.produce(
                        topic,
                        value,
                        key,
                        partition,
                        timestamp=stamp,
                        headers=headers,
                        on_delivery=self._acknowledged,
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        left = producer.flush(SECONDS_MAX)
        assert left == 0, f"{left} records of {topic} were not acknowledged"

    def transact(self, topic: str, transactions: int) -> Producer:
        """Commit some transactions, abort others, and return the producer of an open one."""
        producer = self.producer(
            transactional_id="writer", transaction_timeout_ms=SECONDS_MAX * 1000
        )
        producer.init_transactions(SECONDS_MAX)
        for number in range(transactions):
            producer.begin_transaction()
            self._produce_some(producer, topic, b"%d" % number)
            producer.flush(SECONDS_MAX)
            if number % 3 == 1:
                producer.abort_transaction(SECONDS_MAX)
            else:
                producer.commit_transaction(SECONDS_MAX)
        waiting = self.producer(transactional_id="open", transaction_timeout_ms=OPEN_MS)
        waiting.init_transactions(SECONDS_MAX)
        waiting.begin_transaction()
        self._produce_some(waiting, topic, b"open")
        waiting.flush(SECONDS_MAX)
        return waiting

    def close(self) -> None:
        """Finish the ledger."""
        self._ledger.close()

    def _produce_some(self, producer: Producer, topic: str, key: bytes) -> None:
        for number in range(TRANSACTION_RECORDS):
            producer.produce(topic, b"value-%d" % number, key, number % PARTITIONS)

    def _records(
        self, topic: str, count: int, value_bytes: int
    ) -> Iterator[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]]:
        """Records of which some have no key, no value, or headers with and without a value.

        A compacted topic takes none without a key.
        """
        filling = self._random_source.randbytes(4 * value_bytes)
        for number in range(count):
            key: bytes | None = b"key-%09d" % self._random_source.randrange(50_000)
            if number % 11 == 3 and topic != COMPACTED:
                key = None
            at = self._random_source.randrange(3 * value_bytes)
            text = b'{"n": %d, "x": "' % number + filling[at : at + value_bytes // 3].hex().encode()
            value = None if number % 17 == 5 else text[:value_bytes]
            headers: list[tuple[str, bytes | None]] | None = None
            if number % 5 < 2:
                headers = [("trace", b"%016x" % number), ("empty", b""), ("none", None)]
            yield key, value, headers

    def _acknowledged(self, error: object, message: object) -> None:
        assert error is None, error
        line = {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "crc32": zlib.crc32(message.value() or b""),
        }
        self._ledger.write(json.dumps(line) + "\n")


def write_everything(
    output: Path,
    records: int,
    *,
    partitions: int = 0,
    segment_bytes: int | None = None,
    snapshot_bytes: int = 2_000_000,
    crash: bool = False,
    seed: int = 5,
) -> ThreeNodes:
    """Run the cluster once through everything and leave its directories; returns it stopped."""
    size = segment_bytes or min(max(records * 20, 1 << 20), 64 << 20)
    overrides = {
        "log.segment.bytes": str(size),
        "log.cleaner.backoff.ms": "500",
        "log.retention.check.interval.ms": "2000",
        "replica.lag.time.max.ms": "5000",
        "metadata.log.max.record.bytes.between.snapshots": str(snapshot_bytes),
        "metadata.log.segment.bytes": str(8 << 20),
        "controller.quorum.election.timeout.ms": "2000",
        "controller.quorum.fetch.timeout.ms": "4000",
        "broker.session.timeout.ms": "6000",
        "transaction.max.timeout.ms": str(OPEN_MS),
    }
    cluster = ThreeNodes(output, overrides)
    with cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        _create(admin, size)
        writer = Writer(cluster.bootstrap, output / "acks.jsonl", seed)
        waiting = _write(cluster, admin, writer, records)
        writer.close()
        if partitions:
            controllers = [node.controller_bootstrap for node in cluster.nodes.values()]
            create_many_partitions(controllers, partitions)
        until(
            lambda: _are_checkpointed(cluster),
            lambda: "a node writes no high watermarks",
            every_s=1,
        )
        if crash:
            cluster.kill()
        del waiting
    return cluster


def _create(admin: AdminClient, segment_bytes: int) -> None:
    wanted = [
        NewTopic(name, PARTITIONS, 3, config={**settings, "min.insync.replicas": "2"})
        for name, settings in topics(segment_bytes).items()
    ]
    for created in admin.create_topics(wanted, operation_timeout=30).values():
        created.result(SECONDS_MAX)
    wait_for(admin, 3)


def _write(cluster: ThreeNodes, admin: AdminClient, writer: Writer, records: int) -> Producer:
    """Write everything, with a node killed in the middle."""
    plain = int(records * PLAIN_SHARE) // len(CODECS)
    rest = records - plain * len(CODECS)
    for codec in CODECS:
        writer.write(f"codec-{codec}", plain // 2, compression_type=codec)
    writer.write(COMPACTED, rest // 3)
    cluster.nodes[1].kill()
    for codec in CODECS:
        writer.write(f"codec-{codec}", plain - plain // 2, compression_type=codec)
    cluster.nodes[1].start()
    wait_for(admin, 3)
    writer.write(COMPACTED, rest // 3, compression_type="lz4")
    writer.write("appended", rest // 6)
    writer.write("trimmed", rest // 6)
    writer.write("large", 6, value_bytes=LARGE_BYTES, message_max_bytes=2 << 20)
    waiting = writer.transact("transactions", max(min(records // 5_000, 60), 6))
    _trim(admin, max(rest // 40, 1))
    return waiting


def _are_checkpointed(cluster: ThreeNodes) -> bool:
    """Whether each node has written down that all records of a transaction are replicated.

    Nodes write their high watermarks every five seconds, later if the machine is busy.
    """
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    asked = {
        TopicPartition("transactions", each): OffsetSpec.latest() for each in range(PARTITIONS)
    }
    ends = {
        (place.topic, place.partition): answer.result(SECONDS_MAX).offset
        for place, answer in admin.list_offsets(asked).items()
    }
    return all(
        checkpointed.get(name, -1) >= end
        for checkpointed in map(_checkpoint, cluster.data)
        for name, end in ends.items()
    )


def _checkpoint(directory: Path) -> dict[tuple[str, int], int]:
    """The high watermarks in Kafka's file of them: version, number of lines, lines."""
    lines = (directory / "replication-offset-checkpoint").read_text(encoding="utf-8").split("\n")
    rows = [line.split() for line in lines[2:] if line]
    return {(topic, int(partition)): int(offset) for topic, partition, offset in rows}


def _trim(admin: AdminClient, offset: int) -> None:
    places = [TopicPartition("trimmed", number, offset) for number in range(PARTITIONS)]
    for done in admin.delete_records(places).values():
        done.result(SECONDS_MAX)


def wait_for(admin: AdminClient, replicas: int, names: Collection[str] = ()) -> None:
    """Wait until every partition, or those of some topics, has a leader and replicas in sync."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        try:
            listed = admin.list_topics(timeout=10).topics
            chosen = [topic for name, topic in listed.items() if not names or name in names]
            partitions = [each for topic in chosen for each in topic.partitions.values()]
            if partitions and all(
                len(each.isrs) >= replicas and each.leader >= 0 for each in partitions
            ):
                return
        except KafkaException:
            pass
        assert time.monotonic() < deadline, "the replicas do not come in sync"
        time.sleep(0.2)


def main() -> int:
    """Write the directories and say where they are."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.apache_dirs")
    parser.add_argument("--output", type=Path, required=True, help="an empty or new directory")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--partitions", type=int, default=0, help="further ones, in metadata only")
    parser.add_argument("--segment-bytes", type=int)
    parser.add_argument("--snapshot-bytes", type=int, default=2_000_000)
    parser.add_argument("--crash", action="store_true", help="end with SIGKILL, not cleanly")
    given = parser.parse_args()
    if given.output.exists() and any(given.output.iterdir()):
        parser.error(f"{given.output} is not empty")
    begin = time.monotonic()
    cluster = write_everything(
        given.output.absolute(),
        given.records,
        partitions=given.partitions,
        segment_bytes=given.segment_bytes,
        snapshot_bytes=given.snapshot_bytes,
        crash=given.crash,
    )
    print(f"written in {time.monotonic() - begin:.0f} s:", *cluster.data, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
