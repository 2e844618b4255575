"""`ssl.principal.mapping.rules` (KIP-371): from the name in a certificate to a principal's name.

The first rule whose pattern matches the whole name wins; its replacement takes the place of every
match, as Java's `replaceAll` does. Java patterns that mean the same in Python are supported; others
are refused when the node starts.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from kraft_wire.foreign_text import compiled

__all__ = ["InvalidPrincipalRule", "PrincipalRules", "parse_principal_rules"]

_RULE: Final = re.compile(
    r"\s*(?:(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<replacement>(?:\\.|[^\\/])*)/(?P<case>[LU]?))"
    r"\s*(?:,|$)"
)
_JAVA_ONLY: Final = re.compile(r"\\[pPQEGXRhHkzZ]|\[[^\]]*(?:\[|&&)|\(\?<[^=!>]+>")
_DIGITS: Final = frozenset("0123456789")
_NAME_CHARACTERS_MAX: Final = 16_384
"""Clients choose their names, and patterns may be slow."""


class InvalidPrincipalRule(Exception):
    """Invalid rules; the reason is one line."""


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    replacement: tuple[str | int, ...]
    """Literal texts and group numbers, in order."""
    fold: Callable[[str], str]

    def applied(self, name: str) -> str | None:
        if self.pattern.fullmatch(name) is None:
            return None
        return self.fold(self.pattern.sub(self._expanded, name))

    def _expanded(self, match: re.Match[str]) -> str:
        return "".join(
            part if isinstance(part, str) else match[part] or "" for part in self.replacement
        )


class PrincipalRules(NamedTuple):
    """The rules of one listener; None is DEFAULT, which leaves a name as it is."""

    rules: tuple[_Rule | None, ...]

    def name_of(self, subject: str) -> str | None:
        """Return the principal's name for a certificate's; None: no rule matches."""
        if len(subject) > _NAME_CHARACTERS_MAX:
            return None
        for rule in self.rules:
            found = subject if rule is None else rule.applied(subject)
            if found is not None:
                return found
        return None


def parse_principal_rules(text: str) -> PrincipalRules:
    """Read a list of rules; an empty one matches nothing. Errors: InvalidPrincipalRule."""
    rules: list[_Rule | None] = []
    position = 0
    while text[position:].strip():
        match = _RULE.match(text, position)
        if match is None:
            shown = text[position:].strip()
            raise InvalidPrincipalRule(f"{shown!r} is neither DEFAULT nor RULE:pattern/name/[LU]")
        position = match.end()
        rules.append(None if match["default"] else _rule(match))
    return PrincipalRules(tuple(rules))


def _rule(match: re.Match[str]) -> _Rule:
    source = match["pattern"].replace(r"\/", "/")
    if found := _JAVA_ONLY.search(source):
        raise InvalidPrincipalRule(f"{found[0]!r} of {source!r} is not supported in a pattern")
    try:
        pattern = compiled(source)
    except re.error as error:
        raise InvalidPrincipalRule(f"{source!r} is not a pattern: {error}") from error
    fold: Callable[[str], str] = {"L": str.lower, "U": str.upper}.get(match["case"], str)
    return _Rule(pattern, _replacement(match["replacement"].replace(r"\/", "/"), pattern), fold)


def _replacement(text: str, pattern: re.Pattern[str]) -> tuple[str | int, ...]:
    """Split a replacement of Java's form: `$1` is a group, a backslash escapes a character."""
    parts: list[str | int] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\" and position < len(text):
            parts.append(text[position])
            position += 1
        elif character == "$":
            number, position = _group(text, position, pattern)
            parts.append(number)
        else:
            parts.append(character)
    return tuple(parts)


def _group(text: str, position: int, pattern: re.Pattern[str]) -> tuple[int, int]:
    """Return the longest existing group number, and its end."""
    number, end = 0, position
    while text[end : end + 1] in _DIGITS and number * 10 + int(text[end]) <= pattern.groups:
        number, end = number * 10 + int(text[end]), end + 1
    if end == position:
        raise InvalidPrincipalRule(f"{text!r} names a group that its pattern does not have")
    return number, end
