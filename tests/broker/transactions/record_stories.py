"""Tell the stories to a fresh node of Apache's, and write its answers and records down.

    python -m tests.broker.transactions.record_stories

Only when the stories change or another release is to be followed: the answers are committed.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.apache.node import ApacheNode
from tests.broker.transactions import partition_stories
from tests.broker.transactions.coordinating import Producer
from tests.broker.transactions.stories import STORIES, done
from tests.broker.transactions.test_against_apache import comparable, coordinating, raw_records

OBSERVED = Path(__file__).parent / "observed" / "stories.txt"
"""A line for each answer and record: the story's name and what is compared."""


def _told(node: ApacheNode) -> Iterator[str]:
    with coordinating(node.bootstrap) as door:
        door.await_coordinator(*(story.__name__ for story in partition_stories.STORIES))
        for story in (*STORIES, *partition_stories.STORIES):
            yield from (f"{story.__name__}: {answer!r}" for answer in story(door, story.__name__))
        for story in STORIES:
            name = f"records-{story.__name__}"
            list(story(door, name))
            done(lambda: Producer(door, name).abort(5))  # type: ignore[arg-type]  # noqa: B023  # at once; waits for the last markers
            yield from (f"{name}: {each!r}" for each in comparable(raw_records(node, name)))


def main() -> None:
    """Record everything."""
    with tempfile.TemporaryDirectory() as scratch, ApacheNode(Path(scratch)) as node:
        lines = list(_told(node))
    OBSERVED.write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
