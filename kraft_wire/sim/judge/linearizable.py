"""Searches for an order of calls on one register that explains all results.

After Wing and Gong, with Lowe's cache of states without a solution. Shares no code with the judged
code. A write whose outcome is unknown (`end` is None) may take effect at any time after its
beginning, or never.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Call", "find_order"]


class Call(NamedTuple):
    """A read or a write with its time; `end` is None if its result is unknown."""

    begin: int
    end: int | None
    is_write: bool
    value: str | None


def find_order(calls: Sequence[Call], initial: str | None = None) -> list[Call] | None:
    """Return an order in which the register behaves, None if no order does."""
    ordered = sorted(calls, key=lambda call: call.begin)
    needed = 0
    for at, call in enumerate(ordered):
        if call.end is not None:
            assert call.end >= call.begin, call
            needed |= 1 << at
    dead: dict[tuple[int, str | None], bool] = {}
    path: list[int] = []
    stack = [(0, initial, iter(_candidates(ordered, 0, initial)))]
    while stack:
        done, value, choices = stack[-1]
        if done & needed == needed:
            return [ordered[at] for at in path]
        for at in choices:
            call = ordered[at]
            after = call.value if call.is_write else value
            state = (done | 1 << at, after)
            if state not in dead:
                dead[state] = True
                path.append(at)
                stack.append((*state, iter(_candidates(ordered, *state))))
                break
        else:
            stack.pop()
            if path:
                path.pop()
    return None


def _candidates(ordered: Sequence[Call], done: int, value: str | None) -> list[int]:
    """Return the possible next calls: no other remaining call had ended before they began."""
    first_end: int | None = None
    found = []
    first = (~done & (done + 1)).bit_length() - 1  # the lowest bit that is not set
    for at in range(first, len(ordered)):
        if done >> at & 1:
            continue
        begin, end, is_write, written = ordered[at]
        if first_end is not None and begin > first_end:
            break  # as all behind it: they are in the order of their beginnings
        if end is not None and (first_end is None or end < first_end):
            first_end = end
        if is_write or written == value:
            found.append(at)
    return found
