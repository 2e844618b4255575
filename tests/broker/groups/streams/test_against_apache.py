"""Tasks, steps, topologies and endpoints are those that Apache's classes make of the same input."""

from __future__ import annotations

import pytest

from tests.broker.groups.streams.__main__ import ApacheStreams, compared, outcome
from tests.broker.groups.streams.our_answers import our_answer
from tests.broker.groups.streams.questions import in_our_order, recorded

QUESTIONS = recorded()


@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_answers_are_those_of_apache(number: int) -> None:
    question, answer = QUESTIONS[number]
    assert in_our_order(our_answer(question)) == in_our_order(answer)


def test_the_recorded_answers_have_every_outcome() -> None:
    outcomes = {outcome(question, answer) for question, answer in QUESTIONS}
    assert outcomes >= {
        "assign",
        "assign refused 0",
        "configure",
        "configure 1 Source",
        "configure 2 Existing",
        "configure 2 Following",
        "configure 2 Number",
        "configure 3 Internal",
        "configure refused -1",
        "configure refused 17",
        "configure refused 130",
        "endpoint",
        "endpoint refused -1",
        "reconcile refused 110",
        *(f"reconcile {before} to {after}" for before in (1, 2, 3) for after in (1, 2, 3)),
    }


@pytest.mark.java
def test_answers_to_fresh_questions_are_those_of_apache() -> None:
    apache = ApacheStreams()
    assert sum(1 for _ in compared(apache, 77, 1_200)) == 1_200
    apache.close()
