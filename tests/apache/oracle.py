"""Ask Apache's own classes what they make of bytes, many questions in one process.

Questions and answers are lines of the wire command's contract, so that the same question can be put
to both sides. Fuzzers and fixtures use it; ``tests/golden`` compares with it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from typing import Any

from tests.apache.java_process import JavaFailed, java_command

ORACLE_SECONDS_MAX = 900


def ask_apache(questions: Iterable[str]) -> list[dict[str, Any]]:
    """Apache's answer to every question line, in order."""
    asked = "\n".join(questions)
    done = subprocess.run(
        java_command("judge.Oracle", heap_mb=512),
        input=asked.encode() + b"\n",
        capture_output=True,
        check=False,
        timeout=ORACLE_SECONDS_MAX,
    )
    if done.returncode != 0:
        raise JavaFailed(done.stderr.decode(errors="replace")[-4000:])
    return [json.loads(line) for line in done.stdout.splitlines()]
