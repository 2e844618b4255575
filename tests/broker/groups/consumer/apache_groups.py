"""Apache's consumer groups in a process of their own (`judge.ConsumerGroups`)."""

from __future__ import annotations

import json
import subprocess
from types import TracebackType
from typing import Any

from tests.apache.java_process import java_command

Step = dict[str, Any]
Answer = dict[str, Any]


class ApacheGroups:
    """Apache's group manager under a virtual clock."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java_command("judge.ConsumerGroups"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> ApacheGroups:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate(timeout=60)

    def ask(self, step: Step) -> Answer:
        """Take one step, and return Apache's answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(step) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, step
        answer: Answer = json.loads(line)
        return answer
