"""One share partition gives, writes and keeps what Apache Kafka's own SharePartition does."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.broker.share_fetch.stories import Told, story
from tests.node.quotas.record_answers import judged

RECORDED = Path(__file__).parent / "share_partition_answers.json"
SEEDS = range(8)
THROWS = (
    "java.lang.IllegalArgumentException: inconsistent range",
    "java.lang.IllegalStateException: Batch record not found.",
    'java.lang.NullPointerException: Cannot invoke "java.util.Map$Entry.getKey()" because',
)
"""Where Apache's class fails and the whole answer is -1: what is available was compacted away while
there is no room, an aborted batch begins below the start, nothing is in flight at the start."""


def compare(lines: list[str], answers: list[str]) -> int:
    """Fail at the first line that is answered in another way; return the number of equal ones."""
    told = Told()
    for number, (line, expected) in enumerate(zip(lines, answers, strict=True)):
        told.tell(line)
        answer = told.answers[-1]
        if expected.startswith("threw "):
            assert expected.removeprefix("threw ").startswith(THROWS), expected
            if expected.partition(" | ")[2] != answer.partition(" | ")[2]:
                return number
        else:
            assert answer == expected, line
    return len(lines)


@pytest.mark.parametrize("seed", SEEDS)
def test_stories_have_the_answers_that_apaches_class_gave(seed: int) -> None:
    """932-REC-01, 932-REC-02, 932-REC-03, 932-REC-05, 932-REC-06, 932-REC-07, 932-REC-12,
    932-REC-13, 932-REC-15, 932-ACK-04, 932-ACK-05, 932-ACK-07, 932-ACK-11: states, counts, owners,
    starts, errors and writes after each line."""
    recorded: dict[str, list[str]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert compare(list(story(seed)), recorded[str(seed)]) > 0


@pytest.mark.java
def test_new_stories_have_the_answers_of_apaches_class() -> None:
    """932-REC-09, 932-REC-10, 932-REC-11: 80 stories, told to both now."""
    stories = [list(story(seed)) for seed in range(10_000, 10_080)]
    answers = iter(judged([line for lines in stories for line in lines], "SharePartitions"))
    equal = sum(compare(lines, [next(answers) for _ in lines]) for lines in stories)
    assert equal > 0.95 * sum(map(len, stories))


def test_stories_reach_what_they_are_about() -> None:
    found: Counter[str] = Counter()
    for seed in range(200):
        told = Told()
        for line in story(seed):
            told.tell(line)
        for answer in told.answers:
            for part in (" 121 ", " 42 ", " 15 ", " 6 ", "; write", "x2a", "*", " [ ", " full "):
                found[part] += part in answer
    assert all(count > 20 for count in found.values()), found


def record() -> None:
    """Write the answers of Apache's class."""
    stories = {str(seed): list(story(seed)) for seed in SEEDS}
    lines = [line for each in stories.values() for line in each]
    answers = iter(judged(lines, "SharePartitions"))
    rows = {seed: [next(answers) for _ in each] for seed, each in stories.items()}
    RECORDED.write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
    sys.exit(0)
