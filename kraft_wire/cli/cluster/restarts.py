"""`cluster up --restart`: which nodes that exited start again, and when.

A node that fails at once is not started in a busy loop: the pause doubles from one failure to the
next, and begins again after the node has run for a while.
"""

import signal
from enum import StrEnum
from typing import Final

__all__ = ["RestartPolicy", "Restarts"]

_PAUSE_S: Final = 1.0
_PAUSE_S_MAX: Final = 30.0
_STEADY_S: Final = 60.0
"""A node that ran this long did not fail at its start."""
_ASKED_TO_STOP: Final = frozenset({0, -signal.SIGTERM, 128 + signal.SIGTERM})
"""Exit codes of a node that was asked to stop, or that stopped by itself without an error."""


class RestartPolicy(StrEnum):
    """The values of --restart, in Docker's words."""

    NO = "no"
    ON_FAILURE = "on-failure"


class Restarts:
    """The nodes that wait for their restart."""

    def __init__(self, policy: RestartPolicy = RestartPolicy.NO) -> None:
        self._policy = policy
        self._due_s: dict[int, float] = {}
        self._started_s: dict[int, float] = {}
        self._pause_s: dict[int, float] = {}

    def started(self, node_id: int, now_s: float) -> None:
        """Note that a node was started, by whomever."""
        self._due_s.pop(node_id, None)
        self._started_s[node_id] = now_s

    def exited(self, node_id: int, code: int, now_s: float) -> float | None:
        """Return the seconds until a node that exited restarts, None if it stays down."""
        if self._policy is RestartPolicy.NO or code in _ASKED_TO_STOP:
            return None
        is_steady = now_s - self._started_s.get(node_id, now_s) >= _STEADY_S
        pause_s = _PAUSE_S if is_steady else self._pause_s.get(node_id, _PAUSE_S)
        self._pause_s[node_id] = min(2 * pause_s, _PAUSE_S_MAX)
        self._due_s[node_id] = now_s + pause_s
        return pause_s

    def cancelled(self, node_id: int) -> None:
        """Record that a node stays down by a command's request."""
        self._due_s.pop(node_id, None)

    def due(self, now_s: float) -> list[int]:
        """Return the nodes to start now."""
        return [node_id for node_id, due_s in self._due_s.items() if due_s <= now_s]
