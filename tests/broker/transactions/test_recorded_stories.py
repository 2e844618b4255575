"""What Apache's broker answered to the stories, and wrote: ours does the same without a Java."""

from __future__ import annotations

import pytest

from tests.broker.transactions import partition_stories
from tests.broker.transactions.coordinating import Coordinating
from tests.broker.transactions.record_stories import OBSERVED
from tests.broker.transactions.stories import STORIES, Story
from tests.broker.transactions.test_against_apache import comparable


def observed(name: str) -> list[str]:
    lines = OBSERVED.read_text().splitlines()
    return [line.removeprefix(f"{name}: ") for line in lines if line.startswith(f"{name}: ")]


@pytest.mark.parametrize(
    "story", [*STORIES, *partition_stories.STORIES], ids=lambda one: one.__name__
)
def test_answers_are_those_that_were_observed(story: Story) -> None:
    found = [repr(answer) for answer in story(Coordinating(), story.__name__)]
    assert found == observed(story.__name__)


@pytest.mark.parametrize("story", STORIES, ids=lambda one: one.__name__)
def test_records_are_those_that_were_observed(story: Story) -> None:
    node, name = Coordinating(), f"records-{story.__name__}"
    list(story(node, name))
    assert [repr(each) for each in comparable(node.raw_records(name))] == observed(name)
