"""`python -m tests.node.quotas.record_answers` records what Apache's classes answer to stories."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.apache.java_process import run_java
from tests.node.quotas.connection_stories import connection_story
from tests.node.quotas.stories import is_answered, story
from tests.node.quotas.throttle_stories import is_question, throttle_story

OBSERVED = Path(__file__).parent / "observed"
RECORDED = OBSERVED / "client_quotas.json"
RECORDED_CONNECTIONS = OBSERVED / "connection_quotas.json"
RECORDED_THROTTLES = OBSERVED / "replication_throttles.json"
SEEDS = range(60)


def judged(lines: list[str], judge: str = "ClientQuotas") -> list[str]:
    """Return the answers of Apache's own classes."""
    outcome = run_java(f"judge.{judge}", stdin="".join(f"{line}\n" for line in lines))
    assert outcome.exit_code == 0, outcome.stderr
    return outcome.stdout.splitlines()


def is_arrival(line: str) -> bool:
    """Whether a line of a story of connections has an answer."""
    return line.startswith("arrive")


def record(
    path: Path,
    tell: Callable[[int], Iterable[str]],
    judge: str,
    has_answer: Callable[[str], bool],
) -> None:
    """Write the answers, a row of them for each story."""
    stories = {str(seed): list(tell(seed)) for seed in SEEDS}
    answers = iter(judged([line for lines in stories.values() for line in lines], judge))
    rows = {
        seed: [next(answers) for line in lines if has_answer(line)]
        for seed, lines in stories.items()
    }
    texts = [f" {json.dumps(seed)}: {json.dumps(row)}" for seed, row in rows.items()]
    path.write_text("{\n" + ",\n".join(texts) + "\n}\n", encoding="utf-8")


def main() -> None:
    """Write the answers to all kinds of stories."""
    record(RECORDED, story, "ClientQuotas", is_answered)
    record(RECORDED_CONNECTIONS, connection_story, "Connections", is_arrival)
    record(RECORDED_THROTTLES, throttle_story, "ReplicationThrottle", is_question)


if __name__ == "__main__":
    main()
