"""Rates, throttle times, buckets and precedence equal those of Apache Kafka's own classes."""

import json

import pytest

from kraft_wire.node.quotas.windows import rounded
from tests.node.quotas.record_answers import RECORDED, judged
from tests.node.quotas.stories import is_answered, ours, story

ANSWERS: dict[str, list[str]] = json.loads(RECORDED.read_text(encoding="utf-8"))


def compare(lines: list[str], answers: list[str]) -> None:
    """Fail with the first line that is answered in another way."""
    asked = [line for line in lines if is_answered(line)]
    mine = ours(lines)
    assert len(asked) == len(answers) == len(mine)
    for line, expected, answer in zip(asked, answers, mine, strict=True):
        if line.startswith("most"):
            assert float(answer) == float(expected), line
        else:
            assert answer == expected, line


@pytest.mark.parametrize("seed", ANSWERS)
def test_stories_have_the_answers_that_apaches_managers_gave(seed: str) -> None:
    """SEC-QUOTA-01, SEC-QUOTA-02, SEC-QUOTA-03, SEC-QUOTA-06, SEC-QUOTA-07: as recorded."""
    compare(list(story(int(seed))), ANSWERS[seed])


@pytest.mark.java
def test_new_stories_have_the_answers_of_apaches_managers() -> None:
    """SEC-QUOTA-06, SEC-QUOTA-07, SEC-QUOTA-15: 600 stories, told to both now."""
    lines = [line for seed in range(1_000, 1_600) for line in story(seed)]
    compare(lines, judged(lines))


def test_stories_throttle_refuse_and_reach_the_cap_of_request_time() -> None:
    times = [int(each) for row in ANSWERS.values() for each in row if each.isdigit()]
    assert sum(time > 0 for time in times) > 200
    assert max(times) > 100_000
    assert sum("x" in each for row in ANSWERS.values() for each in row) > 20


@pytest.mark.parametrize(
    ("value", "expected"), [(0.5, 1), (1.5, 2), (-0.5, 0), (-1.5, -1), (0.49999999999999994, 0)]
)
def test_rounding_is_javas(value: float, expected: int) -> None:
    assert rounded(value) == expected
