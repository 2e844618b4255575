"""The syntax of patterns of transactional ids: that of RE2, read into a program of steps.

It has alternatives, groups, also with a name, classes, also those of POSIX, `.`, `^`, `$`, `\\A`,
`\\z`, `* + ? {m,n}`, greedy or not, `\\Q…\\E`, and escapes, also by number. Braces that are not
counts are characters, as in RE2. Other syntax of RE2 (flags, Unicode classes, word boundaries)
counts as invalid.
"""

import re
from typing import Final, NamedTuple

__all__ = ["InvalidPattern", "PatternParser", "Program", "Step"]

_REPEATS_MAX: Final = 1_000
"""RE2's own limit."""
_PROGRAM_MAX: Final = 10_000
"""Characters of a pattern, and steps of its program: a client chooses the pattern."""
_DEPTH_MAX: Final = 50
_LAST: Final = chr(0x10FFFF)
_CLASSES: Final = {
    "d": [("0", "9")],
    "w": [("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")],
    "s": [("\t", "\n"), ("\f", "\r"), (" ", " ")],
}
_POSIX_CLASSES: Final = {
    "alnum": [("0", "9"), ("A", "Z"), ("a", "z")],
    "alpha": [("A", "Z"), ("a", "z")],
    "ascii": [("\0", "\x7f")],
    "blank": [("\t", "\t"), (" ", " ")],
    "cntrl": [("\0", "\x1f"), ("\x7f", "\x7f")],
    "digit": [("0", "9")],
    "graph": [("!", "~")],
    "lower": [("a", "z")],
    "print": [(" ", "~")],
    "punct": [("!", "/"), (":", "@"), ("[", "`"), ("{", "~")],
    "space": [("\t", "\r"), (" ", " ")],
    "upper": [("A", "Z")],
    "word": _CLASSES["w"],
    "xdigit": [("0", "9"), ("A", "F"), ("a", "f")],
}
_POSIX_END: Final = ":]"
_PLACES: Final = {"A": "^", "z": "$"}
"""Escapes of the beginning and the end of an id."""
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}

_COUNTS: Final = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
"""`{m}`, `{m,}` or `{m,n}`, without leading zeros."""
_NAME: Final = re.compile(r"P?<(\w+)>", re.ASCII)
"""The name of a group, behind its question mark."""
_NUMBER: Final = re.compile(
    r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,8})\}|(0[0-7]{0,2}|[1-7][0-7]{1,2})"
)
"""The number of a character, behind its backslash: hexadecimal or octal."""

_Ranges = list[tuple[str, str]]
"""In order, and apart from each other."""


class InvalidPattern(Exception):
    """The pattern is invalid."""


class Step(NamedTuple):
    """One instruction: a character of some ranges, a place, or jumps to relative addresses."""

    ranges: _Ranges | None = None
    place: str = ""
    """`^` or `$`."""
    jumps: tuple[int, ...] = ()


Program = list[Step]


class PatternParser:
    """A pattern as it is read."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > _PROGRAM_MAX:
            raise InvalidPattern
        self._pattern = pattern
        self._at = 0
        self._depth = 0
        self._names: set[str] = set()
        self._last_posix_end = pattern.rfind(_POSIX_END)
        """Looked for once: a class may have many beginnings without an end."""

    @property
    def is_at_end(self) -> bool:
        """Whether everything has been read."""
        return self._at == len(self._pattern)

    def alternatives(self) -> Program:
        """Read alternatives up to a closing parenthesis or the end."""
        program = self._sequence()
        while self._take("|"):
            other = self._sequence()
            split = Step(jumps=(1, len(program) + 2))
            program = [split, *program, Step(jumps=(len(other) + 1,)), *other]
            if len(program) > _PROGRAM_MAX:
                raise InvalidPattern
        return program

    def _sequence(self) -> Program:
        program: Program = []
        last: Program | None = None
        while not self.is_at_end and self._peek() not in "|)":
            # An empty quote is no atom: a repetition behind it is one of the atom before it.
            atoms = self._quoted() if self._take("\\Q") else [self._atom()]
            for atom in atoms:
                program += last or []
                last = atom
            if last is not None:
                last = self._repeated(last)
            if len(program) + len(last or []) > _PROGRAM_MAX:
                raise InvalidPattern
        return program + (last or [])

    def _quoted(self) -> list[Program]:
        """Read characters that stand for themselves, each as an atom."""
        end = self._pattern.find("\\E", self._at)
        text = self._pattern[self._at : end if end >= 0 else len(self._pattern)]
        self._at = end + 2 if end >= 0 else len(self._pattern)
        return [[Step([(each, each)])] for each in text]

    def _repeated(self, atom: Program) -> Program:
        """Read the repetition of an atom, if there is one."""
        counts = self._counts()
        if counts is None:
            return atom
        lowest, highest = counts
        self._take("?")  # not greedy: the same ids match
        if self._counts() is not None:
            raise InvalidPattern
        optional = highest - lowest if highest >= 0 else 1
        if len(atom) * (lowest + optional) > _PROGRAM_MAX:
            raise InvalidPattern
        if highest < 0:
            loop = [Step(jumps=(1, len(atom) + 2)), *atom, Step(jumps=(-len(atom) - 1,))]
            return atom * lowest + loop
        program = atom * lowest
        for left in range(optional, 0, -1):
            program += [Step(jumps=(1, left * (len(atom) + 1))), *atom]
        return program

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
            raise InvalidPattern
        return lowest, highest

    def _atom(self) -> Program:
        if self._counts() is not None:
            raise InvalidPattern
        character = self._next()
        if character == "(":
            return self._group()
        if character in "^$":
            return [Step(place=character)]
        if character == ".":
            return [Step(_complement([("\n", "\n")]))]
        if character == "[":
            return [Step(self._class())]
        if character == "\\":
            if not self.is_at_end and self._peek() in _PLACES:
                return [Step(place=_PLACES[self._next()])]
            return [Step(self._escaped())]
        return [Step([(character, character)])]

    def _group(self) -> Program:
        if self._take("?") and not self._take(":"):
            self._name()
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise InvalidPattern
        program = self.alternatives()
        self._depth -= 1
        if not self._take(")"):
            raise InvalidPattern
        return program

    def _name(self) -> None:
        """Read the name of a group, which no other one has."""
        found = _NAME.match(self._pattern, self._at)
        if found is None or found[1] in self._names:
            raise InvalidPattern
        self._names.add(found[1])
        self._at = found.end()

    def _class(self) -> _Ranges:
        is_negated = self._take("^")
        ranges: _Ranges = []
        while not ranges or self._peek() != "]":
            ranges += self._posix_class() or self._class_item()
        self._next()
        others = _complement(ranges)
        return others if is_negated else _complement(others)

    def _posix_class(self) -> _Ranges | None:
        """Read `[:name:]` or `[:^name:]`, None where neither begins."""
        begins = self._pattern.startswith("[:", self._at)
        if not begins or self._last_posix_end < self._at + 2:
            return None
        end = self._pattern.find(_POSIX_END, self._at + 2)
        name = self._pattern[self._at + 2 : end]
        ranges = _POSIX_CLASSES.get(name.removeprefix("^"))
        if ranges is None:
            raise InvalidPattern
        self._at = end + len(_POSIX_END)
        return _complement(ranges) if name.startswith("^") else list(ranges)

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
            raise InvalidPattern
        return [(low[0][0], high[0][1])]

    def _escaped(self) -> _Ranges:
        number = _NUMBER.match(self._pattern, self._at)
        if number is not None:
            self._at = number.end()
            code = int(number[3], 8) if number[3] else int(number[1] or number[2], 16)
            if code > ord(_LAST):
                raise InvalidPattern
            return [(chr(code), chr(code))]
        character = self._next()
        if character.lower() in _CLASSES:
            ranges = _CLASSES[character.lower()]
            return list(ranges) if character.islower() else _complement(ranges)
        literal = _CONTROLS.get(character, character)
        if literal == character and character.isalnum():
            raise InvalidPattern
        return [(literal, literal)]

    def _peek(self) -> str:
        if self.is_at_end:
            raise InvalidPattern
        return self._pattern[self._at]

    def _next(self) -> str:
        character = self._peek()
        self._at += 1
        return character

    def _take(self, text: str) -> bool:
        is_there = self._pattern.startswith(text, self._at)
        self._at += len(text) if is_there else 0
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
