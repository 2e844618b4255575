"""Our coordinator and Apache's: the same answers to the same stories, the same bytes in the log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from kraft_wire.broker.transactions.records import read_key, read_value, transaction_record
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.records.record_batch import parse_batches
from tests.apache.node import ApacheNode
from tests.broker.groups.doors import SocketDoor
from tests.broker.transactions.coordinating import TOPIC, Coordinating, Producer, find_coordinator
from tests.broker.transactions.stories import STORIES, Story, done

pytestmark = pytest.mark.java

ATTEMPTS = 300


@contextmanager
def coordinating(bootstrap: str) -> Iterator[SocketDoor]:
    """A door to a broker of Apache's whose coordinator serves, and the topic of the stories."""
    with closing(SocketDoor(bootstrap)) as door:
        topic = CreatableTopic(name=TOPIC, num_partitions=4, replication_factor=1)
        created = door.send(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).response
        assert created.topics[0].error_code in (E.NONE, E.TOPIC_ALREADY_EXISTS)
        until(lambda: find_coordinator(door, "any").error_code == E.NONE)  # type: ignore[arg-type]  # sends alike
        until(lambda: Producer(door, "warm").init() == E.NONE)  # type: ignore[arg-type]  # as above
        yield door


@pytest.fixture
def apache(apache_node: ApacheNode) -> Iterator[SocketDoor]:
    with coordinating(apache_node.bootstrap) as door:
        yield door


def until(is_so: Any) -> None:
    for _ in range(ATTEMPTS):
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("it does not come")


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_answers_are_apache_s(story: Story, apache: SocketDoor) -> None:
    theirs = list(story(apache, story.__name__))
    ours = list(story(Coordinating(), story.__name__))
    assert ours == theirs


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_records_are_apache_s(story: Story, apache: SocketDoor, apache_node: ApacheNode) -> None:
    """Each is read and written again to the same bytes; the sequence is ours, times apart."""
    name = f"records-{story.__name__}"
    list(story(apache, name))
    done(lambda: Producer(apache, name).abort(5))  # type: ignore[arg-type]  # waits for the last markers
    node = Coordinating()
    list(story(node, name))
    theirs = raw_records(apache_node, name)
    ours = node.raw_records(name)
    for key, value in theirs:
        metadata = read_value(value)
        assert not isinstance(metadata, int)
        assert transaction_record(name, metadata, 2) == (key, value)
    assert comparable(ours) == comparable(theirs)


def raw_records(node: ApacheNode, name: str) -> list[tuple[bytes, bytes]]:
    """Key and value of the records of an id in Apache's log."""
    return [
        (bytes(record.key), bytes(record.value))
        for folder in sorted(node.data.glob("__transaction_state-*"))
        for batch in parse_batches((folder / "00000000000000000000.log").read_bytes())
        for record in batch.records()
        if record.key is not None and record.value is not None and read_key(record.key) == name
    ]


def comparable(records: Any) -> list[Any]:
    """States in order, producer ids by order of appearance, without times."""
    ids: dict[int, int] = {-1: -1}
    found = []
    for _, value in records:
        metadata = read_value(value)
        assert not isinstance(metadata, int)
        found.append(
            replace(
                metadata,
                producer_id=ids.setdefault(metadata.producer_id, len(ids)),
                previous_producer_id=ids.setdefault(metadata.previous_producer_id, len(ids)),
                next_producer_id=ids.setdefault(metadata.next_producer_id, len(ids)),
                partitions=dict.fromkeys(sorted(metadata.partitions)),
                start_ms=min(metadata.start_ms, 0),
                last_update_ms=0,
            )
        )
    return found
