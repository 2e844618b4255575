"""`python -m tests.node.quotas.record_answers` records what Apache's managers answer to stories."""

from __future__ import annotations

import json
from pathlib import Path

from tests.apache.java_process import run_java
from tests.node.quotas.stories import is_answered, story

RECORDED = Path(__file__).parent / "observed" / "client_quotas.json"
SEEDS = range(60)


def judged(lines: list[str]) -> list[str]:
    """Return the answers of Apache's own managers."""
    outcome = run_java("judge.ClientQuotas", stdin="".join(f"{line}\n" for line in lines))
    assert outcome.exit_code == 0, outcome.stderr
    return outcome.stdout.splitlines()


def main() -> None:
    """Write the answers, a row of them for each story."""
    stories = {str(seed): list(story(seed)) for seed in SEEDS}
    answers = iter(judged([line for lines in stories.values() for line in lines]))
    rows = {
        seed: [next(answers) for line in lines if is_answered(line)]
        for seed, lines in stories.items()
    }
    texts = [f" {json.dumps(seed)}: {json.dumps(row)}" for seed, row in rows.items()]
    RECORDED.write_text("{\n" + ",\n".join(texts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
