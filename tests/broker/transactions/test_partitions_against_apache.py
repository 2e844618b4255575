"""Our partitions and Apache's: the same answers to the same stories of transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import zip_longest

import pytest

from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.apache.node import ApacheNode
from tests.broker.groups.doors import SocketDoor
from tests.broker.transactions.coordinating import Coordinating, Producer, find_coordinator
from tests.broker.transactions.partition_stories import STORIES
from tests.broker.transactions.stories import Story
from tests.broker.transactions.test_against_apache import until

pytestmark = pytest.mark.java


@pytest.fixture
def apache(apache_node: ApacheNode) -> Iterator[SocketDoor]:
    with closing(SocketDoor(apache_node.bootstrap)) as door:
        door.await_coordinator(*(story.__name__ for story in STORIES))
        until(lambda: find_coordinator(door, "any").error_code == E.NONE)  # type: ignore[arg-type]  # sends alike
        until(lambda: Producer(door, "warm").init() == E.NONE)  # type: ignore[arg-type]  # sends alike
        yield door


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_answers_are_apache_s(story: Story, apache: SocketDoor) -> None:
    ours = list(story(Coordinating(), story.__name__))
    theirs = list(story(apache, story.__name__))
    for number, (our_answer, their_answer) in enumerate(zip_longest(ours, theirs)):
        assert our_answer == their_answer, f"answer {number}"
