"""Every view of a directory that Apache Kafka wrote is what Apache's own classes read there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kraft_wire.spark.kraftlog.options import parse_log_options
from kraft_wire.spark.kraftlog.views import metadata_log
from kraft_wire.spark.metadata.history_reading import parse_as_of, read_history
from kraft_wire.spark.metadata.metadata_tables import tables_of
from kraft_wire.spark.metadata.metadata_views import image_at
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.storage.snapshots.metadata_snapshot import list_snapshots
from tests.apache.java_process import run_java
from tests.apache.node import ApacheNode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ORACLE_SECONDS_MAX = 120
FLUSH_SECONDS = 60
OVERRIDES = {
    "log.segment.bytes": "1048576",
    "log.retention.ms": "-1",
    "metadata.log.max.record.bytes.between.snapshots": "3000",
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stopped node's log directory: all codecs, headers, nulls, transactions, DeleteRecords."""
    node = ApacheNode(tmp_path_factory.mktemp("apache"), overrides=OVERRIDES)
    with node:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        create(admin, [NewTopic(f"codec-{codec}", 2, 1) for codec in CODECS])
        create(admin, [NewTopic("money", 1, 1), NewTopic("empty", 1, 1), NewTopic("deleted", 1, 1)])
        for codec in CODECS:
            fill(node, f"codec-{codec}", 1500, {"compression.type": codec})
        fill(node, "deleted", 500, {})
        transact(node)
        create(admin, [NewTopic(f"later-{number}", 3, 1) for number in range(12)])
        for future in admin.delete_records([TopicPartition("deleted", 0, 200)]).values():
            future.result()
        for future in admin.delete_topics(["later-3", "later-5"]).values():
            future.result()
    return node.data


def create(admin: AdminClient, topics: list[NewTopic]) -> None:
    """Create topics and wait for the answers."""
    for future in admin.create_topics(topics).values():
        future.result()


def fill(node: ApacheNode, topic: str, count: int, settings: dict[str, str]) -> None:
    """Produce records with nulls and headers to all partitions of a topic."""
    producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 5, **settings})
    for number in range(count):
        producer.produce(
            topic,
            key=None if number % 5 == 0 else b"key-%d" % (number % 97),
            value=None if number % 13 == 0 else b"value %d " % number * (number % 30),
            headers=[("number", b"%d" % number), ("none", None)] if number % 3 == 0 else None,
            timestamp=1_700_000_000_000 + number,
        )
        producer.poll(0)
    assert producer.flush(FLUSH_SECONDS) == 0


def transact(node: ApacheNode) -> None:
    """Commit some transactions, abort others, leave one open, with plain records between."""
    settings = {"bootstrap.servers": node.bootstrap}
    producer = Producer({**settings, "transactional.id": "teller"})
    producer.init_transactions(FLUSH_SECONDS)
    for number in range(12):
        producer.begin_transaction()
        for each in range(20):
            producer.produce("money", b"%d" % number, b"%d" % each)
        if number % 3 == 1:
            assert producer.flush(FLUSH_SECONDS) == 0
            producer.abort_transaction(FLUSH_SECONDS)
        else:
            producer.commit_transaction(FLUSH_SECONDS)
        fill(node, "money", 7, {})
    producer.begin_transaction()
    producer.produce("money", b"open", b"open")
    assert producer.flush(FLUSH_SECONDS) == 0
    fill(node, "money", 5, {})


def oracle(*arguments: object) -> list[dict[str, Any]]:
    """What Apache's classes say, a row each."""
    done = run_java("judge.LogFiles", [*map(str, arguments)], timeout_s=ORACLE_SECONDS_MAX)
    assert done.exit_code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def logs_of(directory: Path, partition: str) -> list[Path]:
    """The segments of one partition, in order."""
    return sorted((directory / partition).glob("*.log"))


def load(spark: SparkSession, directory: Path, view: str, **options: object) -> DataFrame:
    """The frame over a view."""
    return spark.read.format("kraftlog").options(view=view, **options).load(str(directory))


def by_directory(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows of an oracle or of ours, apart by the partition's directory."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row.pop("directory"), []).append(row)
    return found


def test_records_are_those_of_apaches_record_classes(spark: SparkSession, directory: Path) -> None:
    topics = [f"codec-{codec}" for codec in CODECS] + ["money", "deleted"]
    frame = load(
        spark,
        directory,
        "records",
        topics=",".join(topics),
        includeHeaders=True,
        startingOffsets="physical",
    )
    found = [
        {
            "directory": f"{row.topic}-{row.partition}",
            "offset": row.offset,
            "timestamp": int(row.timestamp.timestamp() * 1000),
            "timestampType": row.timestampType,
            "key": None if row.key is None else row.key.hex(),
            "value": None if row.value is None else row.value.hex(),
            "headers": [[each.key, each.value and each.value.hex()] for each in row.headers or []],
        }
        for row in frame.orderBy("topic", "partition", "offset").collect()
    ]
    files = [log for topic in topics for log in sorted(directory.glob(f"{topic}-*/*.log"))]
    assert by_directory(found) == by_directory(oracle("records", *files))


def test_batches_are_those_of_apaches_record_classes(spark: SparkSession, directory: Path) -> None:
    frame = load(spark, directory, "batches").orderBy("topic", "partition", "segment", "position")
    rows = [row.asDict() for row in frame.collect()]
    assert {(row.pop("node"), row.pop("status")) for row in rows} == {("1", "ok")}
    for row in rows:
        row["directory"] = f"{row.pop('topic')}-{row.pop('partition')}"
    files = [log for log in sorted(directory.glob("*/*.log")) if is_live(log)]
    assert by_directory(rows) == by_directory(oracle("batches", *files))


def is_live(log: Path) -> bool:
    """Whether a segment is that of a partition that was not deleted."""
    return not log.parent.name.endswith("-delete")


def test_segments_have_the_offsets_of_apaches_checkpoints(
    spark: SparkSession, directory: Path
) -> None:
    rows = load(spark, directory, "segments").collect()
    assert sorted((f"{r.topic}-{r.partition}", r.file, r.logBytes) for r in rows) == sorted(
        (log.parent.name, log.name, log.stat().st_size)
        for log in directory.glob("*/*.log")
        if is_live(log)
    )
    watermarks = (directory / "replication-offset-checkpoint").read_text().splitlines()[2:]
    told = {f"{topic}-{number}": int(at) for topic, number, at in map(str.split, watermarks)}
    for row in rows:
        name = f"{row.topic}-{row.partition}"
        assert row.highWatermark == told.get(name, -1)
        if name in told:
            assert row.logEndOffset == told[name]
    (deleted,) = {r.logStartOffset for r in rows if r.topic == "deleted"}
    assert deleted == 200


def test_earliest_is_the_checkpointed_log_start(spark: SparkSession, directory: Path) -> None:
    physical = load(spark, directory, "records", topics="deleted", startingOffsets="physical")
    assert physical.count() == 500
    rows = load(spark, directory, "records", topics="deleted").select("offset").collect()
    assert sorted(row.offset for row in rows) == list(range(200, 500))


def test_metadata_is_what_apaches_converters_write(spark: SparkSession, directory: Path) -> None:
    rows = load(spark, directory, "metadata").orderBy("offset").collect()
    wanted = oracle("metadata", *logs_of(directory, "__cluster_metadata-0"))
    assert len(rows) == len(wanted) > 80
    for row, told in zip(rows, wanted, strict=True):
        data = json.loads(row.json)
        assert (row.offset, row.epoch, row.isControl, row.type) == (
            told["offset"],
            told["epoch"],
            told["isControl"],
            told["type"],
        )
        if row.isControl:
            assert data["leaderId"] == told["leaderId"]
        else:
            assert (row.version, data) == (told["version"], told["json"])


def test_partitions_at_every_snapshot_and_between_are_apaches_image(
    spark: SparkSession, directory: Path
) -> None:
    log = directory / "__cluster_metadata-0"
    snapshots = load(spark, directory, "snapshots").orderBy("endOffset").collect()
    assert [row.file for row in snapshots] == sorted(p.name for p in log.glob("*.checkpoint"))
    assert {row.status for row in snapshots} == {"ok"}
    ends = [row.endOffset for row in snapshots if row.endOffset > 0]
    assert len(ends) >= 2
    for end, image in [
        (ends[0], "snapshot"),
        (ends[-1], "snapshot"),
        (ends[-1] - 1, "replay"),
        (None, "replay"),
    ]:
        given = {} if end is None else {"asOfOffset": end}
        rows = load(spark, directory, "partitions", image=image, **given).collect()
        command = "partitions" if image == "replay" else "snapshot"
        wanted = oracle(command, log, *([] if end is None else [end]))
        key = lambda row: (row["topic"], row["partition"])  # noqa: E731  # one use, two lists
        assert sorted((row.asDict() for row in rows), key=key) == sorted(wanted, key=key)
    assert {row["topic"] for row in wanted} >= {"money", "later-0"}
    assert "later-3" not in {row["topic"] for row in wanted}


def test_tables_at_every_snapshot_are_the_image_that_apache_wrote(directory: Path) -> None:
    fs = OsFileSystem()
    part = metadata_log(fs, parse_log_options({"path": str(directory), "view": "metadata"}))
    offsets = [each.offset for each in list_snapshots(fs, part.directory) if each.offset > 0]
    assert len(offsets) >= 2
    for offset in offsets:
        read = read_history(fs, part, parse_as_of(str(offset)))
        replayed = read.history.image(read.end, read.epoch)
        written = image_at(fs, part, as_of_offset=offset, only_snapshot=True)
        assert replayed.epoch == written.epoch
        assert replace(replayed, finalized_features_epoch=-1) == replace(
            written, finalized_features_epoch=-1
        )
        rows = tables_of(read, "one")["partitions"].to_pylist()
        told = oracle("snapshot", part.directory, offset)
        wanted = sorted(told, key=lambda row: (row["topic"], row["partition"]))
        assert [{name: row[name] for name in wanted[0]} for row in rows] == wanted


def test_read_committed_is_what_a_consumer_was_given(spark: SparkSession, directory: Path) -> None:
    rows = load(
        spark, directory, "records", topics="money", isolationLevel="read_committed"
    ).collect()
    aborted = {b"%d" % number for number in range(12) if number % 3 == 1}
    assert len(rows) == 8 * 20 + 12 * 7
    assert not aborted & {bytes(row.value) for row in rows if row.value is not None}
