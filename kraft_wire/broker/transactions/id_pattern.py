"""The pattern of transactional ids in ListTransactions (KIP-1152): RE2's syntax, for whole ids.

A pattern comes from a client, so its matches must not hold the node: the pattern becomes a program
of which all threads advance together (Thompson's construction). The sets of threads that were seen
are kept, and what leads from one to another, as RE2 does; the work of finding new ones is bounded
for all ids together. `id_pattern_syntax` says what a pattern may have.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Final

from kraft_wire.broker.transactions.id_pattern_syntax import (
    InvalidPattern,
    PatternParser,
    Program,
)
from kraft_wire.frozen import slotted

__all__ = ["PatternTooCostly", "id_matcher"]

_WORK_MAX: Final = 100_000
"""Steps of the program that are visited for all ids of a request: a tenth of a second."""
_LAST_CODE: Final = 0x10FFFF


class PatternTooCostly(Exception):
    """The ids lead a pattern through more sets of threads than a request may take."""


def id_matcher(pattern: str | None) -> Callable[[str], bool] | None:
    """Return a function that matches ids; an empty pattern matches all. None: invalid pattern.

    The function raises PatternTooCostly once its calls together have done the work of a request.
    """
    if not pattern:
        return lambda name: True
    try:
        parser = PatternParser(pattern)
        program = parser.alternatives()
        if not parser.is_at_end:
            raise InvalidPattern
    except InvalidPattern:
        return None
    return _Matcher(program).matches


@slotted(eq=False)
class _State:
    """Threads at the same place of an id."""

    addresses: frozenset[int]
    """Steps that wait for a character or a place, or the program's end."""
    is_first: bool = False
    """Whether it is the beginning of an id."""
    following: dict[int, "_State"] = field(default_factory=dict)
    """By group of characters."""
    is_match: bool | None = None
    """Whether an id that ends here matches; None: not asked yet."""


class _Matcher:
    """A program, and what is known of it from the ids so far."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._work = 0
        self._cuts = _cuts(program)
        """The first characters of groups of which a step takes either all or none."""
        self._states: dict[frozenset[int], _State] = {}
        self._first = _State(self._reached([0], is_first=True), is_first=True)

    def matches(self, text: str) -> bool:
        """Whether a whole text matches."""
        state = self._first
        for character in text:
            group = bisect_right(self._cuts, character)
            following = state.following.get(group)
            if following is None:
                following = state.following[group] = self._moved(state, character)
            if not following.addresses:
                return False
            state = following
        if state.is_match is None:
            reached = self._reached(state.addresses, is_first=state.is_first, is_last=True)
            state.is_match = len(self._program) in reached
        return state.is_match

    def _moved(self, state: _State, character: str) -> _State:
        """Return the threads behind a character."""
        self._count(len(state.addresses))
        moved = [address + 1 for address in state.addresses if self._takes(address, character)]
        reached = self._reached(moved)
        return self._states.setdefault(reached, _State(reached))

    def _takes(self, address: int, character: str) -> bool:
        if address == len(self._program):
            return False
        ranges = self._program[address].ranges or []
        index = bisect_right(ranges, character, key=_low) - 1
        return index >= 0 and character <= ranges[index][1]

    def _reached(
        self, addresses: Iterable[int], *, is_first: bool = False, is_last: bool = False
    ) -> frozenset[int]:
        """Follow jumps, and the places that are here."""
        places = ("^" if is_first else "") + ("$" if is_last else "")
        seen: set[int] = set()
        found: list[int] = []
        waiting = list(addresses)
        while waiting:
            address = waiting.pop()
            if address in seen:
                continue
            seen.add(address)
            if address == len(self._program):
                found.append(address)
                continue
            step = self._program[address]
            waiting += [address + each for each in step.jumps]
            if step.place and step.place in places:
                waiting.append(address + 1)
            elif not step.jumps:
                found.append(address)
        self._count(len(seen))
        return frozenset(found)

    def _count(self, steps: int) -> None:
        self._work += 1 + steps
        if self._work > _WORK_MAX:
            raise PatternTooCostly


def _low(characters: tuple[str, str]) -> str:
    return characters[0]


def _cuts(program: Program) -> list[str]:
    """Return where the ranges of a program begin, and what is behind their ends, in order."""
    lists = {id(step.ranges): step.ranges for step in program if step.ranges}
    cuts = {low for ranges in lists.values() for low, _ in ranges}
    ends = {ord(high) + 1 for ranges in lists.values() for _, high in ranges}
    return sorted(cuts | {chr(end) for end in ends if end <= _LAST_CODE})
