"""The pattern of transactional ids in ListTransactions (KIP-1152): RE2's syntax, for whole ids.

A pattern comes from a client, so the time of a match must not explode: the pattern becomes a
program of which all threads advance together, one character at a time (Thompson's construction).
`id_pattern_syntax` says what a pattern may have.
"""

from collections.abc import Callable

from kraft_wire.broker.transactions.id_pattern_syntax import (
    InvalidPattern,
    PatternParser,
    Program,
)

__all__ = ["id_matcher"]


def id_matcher(pattern: str | None) -> Callable[[str], bool] | None:
    """Return a function that matches ids; an empty pattern matches all. None: invalid pattern."""
    if not pattern:
        return lambda name: True
    try:
        parser = PatternParser(pattern)
        program = parser.alternatives()
        if not parser.is_at_end:
            raise InvalidPattern
    except InvalidPattern:
        return None
    return lambda name: _matches(program, name)


def _matches(program: Program, text: str) -> bool:
    """Run all threads of a program over a text."""
    threads = _closure(program, [0], text, 0)
    for position, character in enumerate(text):
        moved = [
            address + 1
            for address in threads
            if address < len(program)
            and any(low <= character <= high for low, high in program[address].ranges or ())
        ]
        threads = _closure(program, moved, text, position + 1)
    return len(program) in threads


def _closure(program: Program, addresses: list[int], text: str, position: int) -> dict[int, None]:
    """Return the addresses that wait for a character, or are the end."""
    seen: dict[int, None] = {}
    waiting = list(reversed(addresses))
    while waiting:
        address = waiting.pop()
        if address in seen:
            continue
        seen[address] = None
        if address == len(program):
            continue
        step = program[address]
        waiting += [address + each for each in step.jumps]
        if step.place and position == (0 if step.place == "^" else len(text)):
            waiting.append(address + 1)
    return seen
