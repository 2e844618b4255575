"""Waiting in tests: for a condition, and as long as a machine that is busy may need."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["HANG_S", "until"]

Answer = TypeVar("Answer")

HANG_S = float(os.environ.get("KRAFT_WIRE_HANG_S", "120"))
"""What has not happened by then does not happen; a machine that is only slow is not that slow.

The runner of mutants sets less, because it ends a test that hangs."""


def until(
    ask: Callable[[], Answer],
    problem: Callable[[], object] = lambda: "it does not happen",
    *,
    seconds_max: float = HANG_S,
    every_s: float = 0.01,
) -> Answer:
    """Ask until the answer is true, and return it; fail with `problem` when it takes too long."""
    deadline = time.monotonic() + seconds_max
    while not (answer := ask()):
        assert time.monotonic() < deadline, problem()
        time.sleep(every_s)
    return answer
