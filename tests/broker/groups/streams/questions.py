"""Random questions of every kind, and Apache's answers to those that are recorded."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from tests.broker.groups.streams.random_members import assign_questions, store
from tests.broker.groups.streams.random_steps import step_question
from tests.broker.groups.streams.random_topologies import configure_question

Question = dict[str, Any]
Answer = dict[str, Any]
ORDER_COUNTS = (12933, 19664, 9739, 9735, 5867)
"""Seeds of topologies in which counts depend on rounds, or on which subtopology comes last."""
RECORDED = Path(__file__).parent / "answers.jsonl"


def recorded() -> list[tuple[Question, Answer]]:
    """Return questions with the answers of Apache's classes."""
    return [
        (question, answer)
        for question, answer in map(json.loads, RECORDED.read_text().splitlines())
    ]


def questions(seed: int) -> Iterator[Question]:
    """Yield questions without end; the caller gives an answer to each group (`learn`)."""
    chance = random.Random(seed)
    while True:
        question = configure_question(chance)
        yield question
        yield endpoint_question(chance, question)
        yield from assign_questions(chance, 3)
        yield step_question(chance)


def rare_questions() -> list[Question]:
    """Return topologies that are too rare to meet by chance."""
    return [configure_question(random.Random(seed)) for seed in ORDER_COUNTS]


def learn(question: Question, answer: Answer) -> None:
    """Let a history of a group go on from an answer."""
    if question["kind"] == "assign":
        store(question, answer)


def endpoint_question(chance: random.Random, configured: Question) -> Question:
    """Return a question about tasks of a topology; topics may be gone since it was configured."""
    question = deepcopy(configured)
    ids = [each["subtopologyId"] for each in question["topology"]["subtopologies"]]
    if chance.random() < 0.05:
        ids.append("gone")
    question["kind"] = "endpoint"
    question["topicsThen"] = {
        name: count for name, count in question["topics"].items() if chance.random() < 0.99
    }
    for kind in ("active", "standby"):
        chosen = chance.sample(ids, chance.randint(0, min(3, len(ids))))
        question[kind] = {
            each: sorted(chance.sample(range(5), chance.randint(0, 5))) for each in chosen
        }
    return question


def in_our_order(answer: Answer) -> Answer:
    """Return an answer of the kind `endpoint` in an order: Java's immutable maps have none."""
    if not isinstance(answer.get("active"), list):
        return answer
    return {kind: sorted(listed) for kind, listed in answer.items()}
