"""The pattern of transactional ids in ListTransactions (KIP-1152): RE2's syntax, for whole ids.

A pattern comes from a client, so the time of a match must not explode: the pattern becomes a
program of which all threads advance together, one character at a time (Thompson's construction).
It supports alternatives, groups, classes, `.`, `^`, `$`, `* + ? {m,n}`, greedy or not, and the
usual escapes. Braces that are not counts are characters, as in RE2. Other syntax of RE2 (flags,
Unicode classes, word boundaries) counts as invalid.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

__all__ = ["id_matcher"]

_REPEATS_MAX: Final = 1_000
"""RE2's own limit."""
_PROGRAM_MAX: Final = 10_000
_DEPTH_MAX: Final = 50
_LAST: Final = chr(0x10FFFF)
_CLASSES: Final = {
    "d": [("0", "9")],
    "w": [("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")],
    "s": [("\t", "\n"), ("\f", "\r"), (" ", " ")],
}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}

_COUNTS: Final = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
"""`{m}`, `{m,}` or `{m,n}`, without leading zeros."""

_Ranges = list[tuple[str, str]]


class _Invalid(Exception):
    """The pattern is invalid."""


class _Step(NamedTuple):
    """One instruction: a character of some ranges, a place, or jumps to relative addresses."""

    ranges: _Ranges | None = None
    place: str = ""
    """`^` or `$`."""
    jumps: tuple[int, ...] = ()


_Program = list[_Step]


def id_matcher(pattern: str | None) -> Callable[[str], bool] | None:
    """Return a function that matches ids; an empty pattern matches all. None: invalid pattern."""
    if not pattern:
        return lambda name: True
    try:
        parser = _Parser(pattern)
        program = parser.alternatives()
        if not parser.is_at_end:
            raise _Invalid
    except _Invalid:
        return None
    return lambda name: _matches(program, name)


def _matches(program: _Program, text: str) -> bool:
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


def _closure(program: _Program, addresses: list[int], text: str, position: int) -> dict[int, None]:
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


class _Parser:
    """A pattern as it is read."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0

    @property
    def is_at_end(self) -> bool:
        """Whether everything has been read."""
        return self._at == len(self._pattern)

    def alternatives(self) -> _Program:
        """Read alternatives up to a closing parenthesis or the end."""
        program = self._sequence()
        while self._take("|"):
            other = self._sequence()
            split = _Step(jumps=(1, len(program) + 2))
            program = [split, *program, _Step(jumps=(len(other) + 1,)), *other]
        return program

    def _sequence(self) -> _Program:
        program: _Program = []
        while not self.is_at_end and self._peek() not in "|)":
            program += self._repeated(self._atom())
            if len(program) > _PROGRAM_MAX:
                raise _Invalid
        return program

    def _repeated(self, atom: _Program) -> _Program:
        """Read the repetition of an atom, if there is one."""
        counts = self._counts()
        if counts is None:
            return atom
        lowest, highest = counts
        self._take("?")  # not greedy: the same ids match
        if self._counts() is not None:
            raise _Invalid
        optional = highest - lowest if highest >= 0 else 1
        if len(atom) * (lowest + optional) > _PROGRAM_MAX:
            raise _Invalid
        if highest < 0:
            loop = [_Step(jumps=(1, len(atom) + 2)), *atom, _Step(jumps=(-len(atom) - 1,))]
            return atom * lowest + loop
        return atom * lowest + [_Step(jumps=(1, len(atom) + 1)), *atom] * optional

    def _counts(self) -> tuple[int, int] | None:
        """Read how often an atom is repeated; None without a repetition, -1 for no upper bound."""
        if self.is_at_end:
            return None
        signs = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}
        if self._peek() in signs:
            return signs[self._next()]
        found = _COUNTS.match(self._pattern, self._at)
        if found is None:
            return None
        self._at = found.end()
        low, comma, high = found.groups()
        lowest = int(low[:5])
        highest = lowest if not comma else int(high[:5]) if high else -1
        if max(lowest, highest) > _REPEATS_MAX or 0 <= highest < lowest:
            raise _Invalid
        return lowest, highest

    def _atom(self) -> _Program:
        if self._counts() is not None:
            raise _Invalid
        character = self._next()
        if character == "(":
            return self._group()
        if character in "^$":
            return [_Step(place=character)]
        if character == ".":
            return [_Step(_complement([("\n", "\n")]))]
        if character == "[":
            return [_Step(self._class())]
        if character == "\\":
            return [_Step(self._escaped())]
        return [_Step([(character, character)])]

    def _group(self) -> _Program:
        if self._take("?") and not self._take(":"):
            raise _Invalid
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise _Invalid
        program = self.alternatives()
        self._depth -= 1
        if not self._take(")"):
            raise _Invalid
        return program

    def _class(self) -> _Ranges:
        is_negated = self._take("^")
        ranges: _Ranges = []
        while not ranges or self._peek() != "]":
            ranges += self._class_item()
        self._next()
        return _complement(ranges) if is_negated else ranges

    def _class_item(self) -> _Ranges:
        first = self._next()
        low = self._escaped() if first == "\\" else [(first, first)]
        is_range = self._pattern[self._at : self._at + 1] == "-"
        if not is_range or self._pattern[self._at + 1 : self._at + 2] in ("", "]"):
            return low
        self._next()
        last = self._next()
        high = self._escaped() if last == "\\" else [(last, last)]
        if len(low) > 1 or len(high) > 1 or low[0][0] > high[0][1]:
            raise _Invalid
        return [(low[0][0], high[0][1])]

    def _escaped(self) -> _Ranges:
        character = self._next()
        if character.lower() in _CLASSES:
            ranges = _CLASSES[character.lower()]
            return list(ranges) if character.islower() else _complement(ranges)
        literal = _CONTROLS.get(character, character)
        if literal == character and character.isalnum():
            raise _Invalid
        return [(literal, literal)]

    def _peek(self) -> str:
        if self.is_at_end:
            raise _Invalid
        return self._pattern[self._at]

    def _next(self) -> str:
        character = self._peek()
        self._at += 1
        return character

    def _take(self, character: str) -> bool:
        is_there = not self.is_at_end and self._peek() == character
        self._at += is_there
        return is_there


def _complement(ranges: _Ranges) -> _Ranges:
    """Return all characters outside of some ranges."""
    found: _Ranges = []
    low = 0
    for first, last in sorted(ranges):
        if ord(first) > low:
            found.append((chr(low), chr(ord(first) - 1)))
        low = max(low, ord(last) + 1)
    if low <= ord(_LAST):
        found.append((chr(low), _LAST))
    return found
