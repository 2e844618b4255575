"""Apache Kafka 4.3.1 and this node take turns on one data directory, watched by a real client.

Twenty topics in every codec, a compacted one, topic settings, committed offsets and, where Apache
wrote, transactions: whoever comes next has to show exactly what the one before showed, records with
keys, headers, times and offsets, and go on from there. Apache formats with all its features.

`KRAFT_WIRE_DROP_IN_RECORDS=1000000` (or `make dropin`) writes that many records in the first round.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, NewTopic, ResourceType

from tests.apache.node import ApacheNode
from tests.clients.python.adapter import wait_until
from tests.clients.python.scenarios import CODECS
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.java, pytest.mark.client, pytest.mark.slow, pytest.mark.timeout(1800)]

SECONDS = 300.0
PARTITIONS = 2
TOPICS = 4 * len(CODECS) + 2
RECORDS = -(-int(os.environ.get("KRAFT_WIRE_DROP_IN_RECORDS", "880")) // TOPICS)
"""In a topic after the first round."""
MORE = min(RECORDS, 2_000)
"""What each later round adds to a topic."""
CONSUMED_AT_ONCE = 10_000
BATCH_BYTES = "500000"
ROLLING = {"segment.bytes": "1048576", "retention.ms": "-1"}
OWN = {"retention.ms": "8640000000001", "max.message.bytes": "777777", "min.insync.replicas": "1"}
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "3600001", "delete.retention.ms": "1"}
OFFSETS_TOPIC = {"offsets.topic.num.partitions": "4"}
PASSING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
)

Found = tuple[int, int, int, bytes | None, bytes | None, tuple[Any, ...]]


class State(NamedTuple):
    """All that a client can see."""

    records: dict[str, list[Found]]
    committed: dict[str, dict[tuple[str, int], tuple[int, str | None]]]
    configs: dict[str, dict[str, str]]
    committed_records: dict[str, list[Found]]
    """Of transactional topics, as a read_committed consumer gets them."""


def topics_of(prefix: str) -> dict[str, dict[str, str]]:
    """Four topics per codec, one of them with its own settings, and a compacted one."""
    topics = {f"{prefix}-{codec}-{n}": ROLLING for codec in CODECS for n in range(4)}
    return {**topics, f"{prefix}-own": OWN, f"{prefix}-compacted": COMPACTED}


def create(bootstrap: str, topics: dict[str, dict[str, str]]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = [NewTopic(name, PARTITIONS, 1, config=config) for name, config in topics.items()]
    for future in admin.create_topics(new).values():
        future.result(SECONDS)


def produce(bootstrap: str, topics: Iterable[str], tag: str, count: int = MORE) -> None:
    """Write keys, headers, nulls and times to every topic, in the codec of its name."""
    for topic in topics:
        codec = next((codec for codec in CODECS if f"-{codec}-" in topic), "none")
        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec,
                "enable.idempotence": topic.endswith("-1"),
                "linger.ms": 5,
                "batch.size": BATCH_BYTES,
            }
        )
        for n in range(count):
            producer.poll(0)
            producer.produce(
                topic,
                None if n % 13 == 5 else b"%s %d " % (tag.encode(), n) * (n % 7),
                b"key %d" % (n % 9) if "compacted" in topic or n % 3 == 0 else None,
                n % PARTITIONS,
                headers=[("h", b"%d" % n), ("null", None)] if n % 5 == 0 else [],
                timestamp=1_600_000_000_000 + n,
            )
        assert producer.flush(SECONDS) == 0


def produce_in_transactions(bootstrap: str, topic: str) -> None:
    """Leave committed and aborted records behind."""
    for name, is_committed in (("a", True), ("b", False), ("c", True)):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-{name}"})
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        for n in range(10):
            producer.produce(topic, b"%s %d" % (name.encode(), n), partition=n % PARTITIONS)
        assert producer.flush(SECONDS) == 0
        if is_committed:
            producer.commit_transaction(SECONDS)
        else:
            producer.abort_transaction(SECONDS)


def commit(bootstrap: str, groups: Iterable[str], topics: Iterable[str], offset: int) -> None:
    """Commit offsets with metadata."""
    for group in groups:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        places = [
            TopicPartition(topic, partition, offset + partition, f"by {group}")
            for topic in topics
            for partition in range(PARTITIONS)
        ]
        wait_until(partial(has_committed, consumer, places), f"the commit of {group}")
        consumer.close()


def has_committed(consumer: Consumer, places: list[TopicPartition]) -> bool:
    """Commit; False where the broker does not coordinate the group yet, or no more.

    librdkafka hands that on.
    """
    try:
        done = consumer.commit(offsets=places, asynchronous=False)
    except KafkaException as refused:
        if refused.args[0].code() not in PASSING:
            raise
        return False
    assert [place.error for place in done] == [None] * len(places), done
    return True


def read(bootstrap: str, topics: Iterable[str], isolation: str) -> dict[str, list[Found]]:
    """Read every partition of the topics to its end."""
    found: dict[str, list[Found]] = {topic: [] for topic in topics}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "check.crcs": True,
        }
    )
    left = {(topic, partition) for topic in found for partition in range(PARTITIONS)}
    consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in sorted(left)])

    def poll() -> bool:
        for message in consumer.consume(CONSUMED_AT_ONCE, 1.0):
            error = message.error()
            place = (message.topic(), message.partition())
            if error is None:
                headers = tuple(message.headers() or ())
                time_ms = message.timestamp()[1]
                found[place[0]].append(
                    (place[1], message.offset(), time_ms, message.key(), message.value(), headers)
                )
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                left.discard(place)
        return not left

    wait_until(poll, "the end of every partition", SECONDS)
    consumer.close()
    return {topic: sorted(records, key=lambda each: each[:2]) for topic, records in found.items()}


def own_configs(bootstrap: str, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """What topics set themselves."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    found: dict[str, dict[str, str]] = {}
    for resource, future in admin.describe_configs(resources).items():
        found[resource.name] = {
            entry.name: entry.value
            for entry in future.result(SECONDS).values()
            if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        }
    return found


def committed_offsets(
    bootstrap: str, groups: Iterable[str]
) -> dict[str, dict[tuple[str, int], tuple[int, str | None]]]:
    """Every offset of the groups, with its metadata."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found = {}
    for group in groups:
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        places = asked[group].result(SECONDS).topic_partitions
        found[group] = {
            (each.topic, each.partition): (each.offset, each.metadata) for each in places
        }
    return found


def seen(bootstrap: str, topics: list[str], groups: list[str], transactional: list[str]) -> State:
    """Look at everything as a client does."""
    return State(
        read(bootstrap, topics + transactional, "read_uncommitted"),
        committed_offsets(bootstrap, groups),
        own_configs(bootstrap, topics),
        read(bootstrap, transactional, "read_committed"),
    )


def counts(state: State) -> dict[str, int]:
    """Records per topic."""
    return {topic: len(records) for topic, records in state.records.items()}


def said(what: str, state: State, began: float) -> None:
    """Say what was seen (pytest shows it with -s)."""
    total = sum(counts(state).values())
    print(f"\n{what}: {total} records in {len(state.records)} topics, ", end="")
    print(f"{sum(map(len, state.committed.values()))} offsets, {time.monotonic() - began:.0f} s")


def kept(old: list[Found], new: list[Found]) -> bool:
    """Whether everything old is still there: appends come behind it in each partition."""
    return set(old) <= set(new) and len(new) > len(old)


def the_same(before: State, after: State) -> None:
    """Compare piece by piece, so that a failure shows the piece."""
    assert counts(after) == counts(before)
    for topic, records in before.records.items():
        assert after.records[topic] == records, topic
    assert after.committed == before.committed
    assert after.configs == before.configs
    for topic, records in before.committed_records.items():
        assert after.committed_records[topic] == records, topic


def test_apache_serves_what_we_wrote_and_we_what_apache_added(tmp_path: Path) -> None:
    began = time.monotonic()
    ours = ServerProcess(tmp_path, overrides=OFFSETS_TOPIC)
    apache = ApacheNode(tmp_path, overrides=OFFSETS_TOPIC)
    names, groups = list(topics_of("ours")), ["g-1", "g-2"]
    with ours:
        create(ours.bootstrap, topics_of("ours"))
        produce(ours.bootstrap, names, "first", RECORDS)
        commit(ours.bootstrap, groups, names[:6], 3)
        before = seen(ours.bootstrap, names, groups, [])
    said("ours wrote", before, began)
    assert len(names) > 20
    assert set(counts(before).values()) == {RECORDS}
    apache.configure()
    apache.start()
    try:
        the_same(before, seen(apache.bootstrap, names, groups, []))
        create(apache.bootstrap, {"theirs": ROLLING, "transactional": {}})
        names.append("theirs")
        produce(apache.bootstrap, names, "second")
        produce_in_transactions(apache.bootstrap, "transactional")
        commit(apache.bootstrap, [*groups, "g-3"], names[4:9], 11)
        groups.append("g-3")
        before = seen(apache.bootstrap, names, groups, ["transactional"])
    finally:
        apache.stop()
    said("Apache served the same and wrote", before, began)
    assert len(before.committed_records["transactional"]) == 20
    with ours:
        the_same(before, seen(ours.bootstrap, names, groups, ["transactional"]))
        produce(ours.bootstrap, names, "third")
        commit(ours.bootstrap, groups, ["theirs"], 5)
        after = seen(ours.bootstrap, names, groups, ["transactional"])
    said("and after we wrote again", after, began)
    for topic in names:
        assert kept(before.records[topic], after.records[topic]), topic


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_we_serve_what_apache_formatted_and_wrote_and_apache_what_we_added(
    tmp_path: Path, end: str
) -> None:
    began = time.monotonic()
    apache = ApacheNode(tmp_path, overrides=OFFSETS_TOPIC)
    ours = ServerProcess(tmp_path, overrides=OFFSETS_TOPIC)
    names, groups, transactional = list(topics_of("theirs")), ["g-1", "g-2"], ["transactional"]
    apache.format()
    apache.start()
    try:
        create(apache.bootstrap, {**topics_of("theirs"), "transactional": {}})
        produce(apache.bootstrap, names, "first", RECORDS)
        produce_in_transactions(apache.bootstrap, "transactional")
        commit(apache.bootstrap, groups, names[:6], 3)
        before = seen(apache.bootstrap, names, groups, transactional)
    finally:
        if end == "stopped":
            apache.stop()
        else:
            apache.kill()
    said(f"Apache wrote and was {end}", before, began)
    assert set(map(len, before.records.values())) == {RECORDS, 30}
    with ours:
        the_same(before, seen(ours.bootstrap, names, groups, transactional))
        produce(ours.bootstrap, names, "second")
        commit(ours.bootstrap, groups, names[4:9], 17)
        before = seen(ours.bootstrap, names, groups, transactional)
        if end == "killed":
            ours.kill()
    said("we served the same and wrote", before, began)
    assert counts(before)["theirs-none-0"] == RECORDS + MORE
    apache.start()
    try:
        the_same(before, seen(apache.bootstrap, names, groups, transactional))
        produce(apache.bootstrap, names, "third")
        after = seen(apache.bootstrap, names, groups, transactional)
        for topic in names:
            assert kept(before.records[topic], after.records[topic]), topic
    finally:
        apache.stop()
