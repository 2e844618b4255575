"""Apache's share coordinator in a process of its own (`judge.ShareStates`)."""

from __future__ import annotations

import json
import subprocess
from types import TracebackType
from typing import Any

from tests.apache.java_process import java_command


class ApacheStates:
    """Apache's shard of share partitions, and its merging of batches."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java_command("judge.ShareStates"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> ApacheStates:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate(timeout=60)

    def ask(self, step: dict[str, Any]) -> dict[str, Any]:
        """Take one step, and return Apache's answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(step) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, step
        answer: dict[str, Any] = json.loads(line)
        return answer
