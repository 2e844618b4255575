"""The exception of judges for an invariant that does not hold."""

from __future__ import annotations

__all__ = ["Violation"]


class Violation(Exception):
    """An invariant does not hold."""

    def __init__(self, invariant: str, node_id: int, *facts: object) -> None:
        super().__init__(f"{invariant} node {node_id}: {' '.join(map(str, facts))}")
        self.invariant = invariant
        self.node_id = node_id
