"""The same stories told to our coordinator and to Apache Kafka's get the same answers."""

from __future__ import annotations

from contextlib import closing
from itertools import count

import pytest

from kraft_wire.broker.coordination.topic import key_partition
from kraft_wire.model import Uuid
from tests.apache.node import ApacheNode
from tests.broker.groups.doors import SocketDoor, VirtualDoor, answers_of
from tests.broker.groups.harness import Harness
from tests.broker.groups.stories import STORIES, TOPIC, Story

pytestmark = pytest.mark.java

OFFSETS_PARTITIONS = 50
"""Kafka's default."""


@pytest.fixture(scope="module")
def apache_topic(apache_node: ApacheNode) -> tuple[str, Uuid]:
    """Address and topic id of an Apache node whose coordinators are up."""
    with closing(SocketDoor(apache_node.bootstrap)) as door:
        topic_id = door.create_topic(TOPIC)
        door.await_coordinator(*_groups_of_all_partitions())
    return apache_node.bootstrap, topic_id


def _groups_of_all_partitions() -> list[str]:
    """A group for each partition of `__consumer_offsets`: they come up one after the other."""
    by_partition: dict[int, str] = {}
    names = (f"warm-{number}" for number in count())
    while len(by_partition) < OFFSETS_PARTITIONS:
        group_id = next(names)
        by_partition.setdefault(key_partition(group_id, OFFSETS_PARTITIONS), group_id)
    return list(by_partition.values())


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_our_answers_are_apache_s(story: Story, apache_topic: tuple[str, Uuid]) -> None:
    address, topic_id = apache_topic
    ours = VirtualDoor(Harness(offsets_partitions=4))
    our_answers = answers_of(story, ours, ours.create_topic(TOPIC))
    with closing(SocketDoor(address)) as theirs:
        their_answers = answers_of(story, theirs, topic_id)
    assert len(our_answers) == len(their_answers)
    for number, (our_answer, their_answer) in enumerate(
        zip(our_answers, their_answers, strict=True)
    ):
        assert our_answer == their_answer, f"answer {number} of {story.__name__}"
