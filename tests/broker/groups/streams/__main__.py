"""Compare tasks, topologies and endpoints with Apache's: `python -m tests.broker.groups.streams`.

`--questions N --seed S` takes N random questions. `--write` records those that the tests compare
without Java.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from itertools import islice

from tests.apache.java_process import java_command
from tests.broker.groups.streams.our_answers import our_answer
from tests.broker.groups.streams.questions import (
    RECORDED,
    Answer,
    Question,
    in_our_order,
    learn,
    questions,
    rare_questions,
)

RECORDED_OF_A_KIND = 12
RECORDED_OF = {"assign": 50}
LOOKED_AT = 10_000
LINE_LENGTH_MAX = 2_500


class ApacheStreams:
    """Apache's classes in a process of their own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java_command("judge.StreamsTasks"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, question: Question) -> Answer:
        """Return Apache's answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer: Answer = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=60)


def compared(apache: ApacheStreams, seed: int, count: int) -> Iterator[tuple[Question, Answer]]:
    """Yield random questions with Apache's answers, which are also ours."""
    for question in islice(questions(seed), count):
        answer = apache.ask(question)
        assert in_our_order(our_answer(question)) == in_our_order(answer), json.dumps(question)
        yield deepcopy(question), answer
        learn(question, answer)


def outcome(question: Question, answer: Answer) -> str:
    """Return a name for the kind of an answer."""
    kind = str(question["kind"])
    if "refused" in answer or "failed" in answer:
        return f"{kind} refused {answer.get('refused', [0])[0]}"
    if kind == "configure" and answer["failure"]:
        code, message = answer["failure"]
        return f"{kind} {code} {message.split()[0]}"
    if kind == "reconcile":
        return f"{kind} {question['member']['state']} to {answer['state']}"
    return kind


def recordable(pairs: Iterator[tuple[Question, Answer]]) -> Iterator[str]:
    """Yield lines of small questions, as many of each outcome."""
    taken: Counter[str] = Counter()
    for question, answer in pairs:
        line = json.dumps([question, answer]) + "\n"
        name = outcome(question, answer)
        if len(line) < LINE_LENGTH_MAX and taken[name] < RECORDED_OF.get(name, RECORDED_OF_A_KIND):
            taken[name] += 1
            yield line


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.broker.groups.streams")
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    apache = ApacheStreams()
    if arguments.write:
        rare = [json.dumps([each, apache.ask(each)]) + "\n" for each in rare_questions()]
        RECORDED.write_text("".join((*rare, *recordable(compared(apache, 0, LOOKED_AT)))))
    else:
        pairs = compared(apache, arguments.seed, arguments.questions)
        for name, count in sorted(Counter(outcome(*pair) for pair in pairs).items()):
            print(f"{count:6} {name}")
    apache.close()


if __name__ == "__main__":
    main()
