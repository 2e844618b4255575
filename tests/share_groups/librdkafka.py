"""A story of two share consumers of librdkafka, in one group, against one broker."""

from __future__ import annotations

from confluent_kafka import Producer, ShareConsumer, cimpl
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.waiting import until

__all__ = ["RECORDS", "read_from_start", "share_topic", "story"]

RECORDS = 30
NAME = "share-librdkafka"
POLL_S = 0.2


def story(bootstrap: str) -> dict[int, int]:
    """Return the first delivery count of each record, by its number, of those that came again.

    The first member releases what can be divided by three and accepts the rest, then leaves. The
    second one accepts what is left.
    """
    share_topic(bootstrap, NAME, partitions=2)
    _produce(bootstrap)
    seen: dict[int, list[int]] = {number: [] for number in range(RECORDS)}
    first = _member(bootstrap)
    until(lambda: (_read(first, seen, releases=True), all(seen.values()))[1])
    first.close()
    second = _member(bootstrap)
    until(lambda: (_read(second, seen), all(len(seen[n]) > 1 for n in range(0, RECORDS, 3)))[1])
    second.close()
    assert all(counts == list(range(1, len(counts) + 1)) for counts in seen.values()), seen
    return {number: counts[0] for number, counts in seen.items() if len(counts) > 1}


def share_topic(bootstrap: str, name: str, partitions: int) -> None:
    """Create a topic, and let a group of the same name read it from its start."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        created.result()
    read_from_start(admin, name)


def read_from_start(admin: AdminClient, group: str) -> None:
    """Let a share group begin at the start of the logs; by default it begins at their ends."""
    entry = ConfigEntry(
        "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result()


def _produce(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for number in range(RECORDS):
        producer.produce(NAME, b"%d" % number, partition=number % 2)
    assert producer.flush(60) == 0


def _member(bootstrap: str) -> ShareConsumer:
    consumer = ShareConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": NAME,
            "share.acknowledgement.mode": "explicit",
        }
    )
    consumer.subscribe([NAME])
    return consumer


def _read(consumer: ShareConsumer, seen: dict[int, list[int]], *, releases: bool = False) -> None:
    for message in consumer.poll(POLL_S):
        assert message.error() is None, message.error()
        number = int(message.value())
        seen[number].append(message.delivery_count())
        released = releases and number % 3 == 0
        consumer.acknowledge(
            message,
            cimpl.SHARE_ACKNOWLEDGE_TYPE_RELEASE
            if released
            else cimpl.SHARE_ACKNOWLEDGE_TYPE_ACCEPT,
        )
    consumer.commit_sync()
