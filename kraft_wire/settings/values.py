"""Converts text to typed values and back, with Kafka's rules and error texts.

A value is trimmed before it is parsed; a list is split at commas; numbers have no underscores and
stay inside their Java type. The text form is the one that DescribeConfigs shows. Reading files and
layering sources is `node_settings.py`, not this module.
"""

import re
from decimal import Decimal
from math import isinf
from typing import Final

from kraft_wire.settings.definition import (
    CONTROLS_AND_BLANK,
    REQUIRED,
    ConfigKey,
    ConfigKind,
    ConfigValue,
    ListOf,
    Required,
)

__all__ = [
    "HOST",
    "InvalidConfigValue",
    "comma_entries",
    "default_text",
    "default_value",
    "format_value",
    "parse_value",
]

HOST: Final = r"[0-9a-zA-Z\-%._:]*"
"""A host as Kafka's `Utils.validHostPattern` takes it, without brackets."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DOUBLE: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")
_PLAIN_FROM: Final = 1e-3
_PLAIN_TO: Final = 1e7
_COMMA: Final = re.compile(r"\s*,\s*", re.ASCII)
_BITS: Final = {ConfigKind.SHORT: 16, ConfigKind.INT: 32, ConfigKind.LONG: 64}


class InvalidConfigValue(ValueError):
    """A value that a key does not take; the text names value, key and reason as Kafka does."""

    def __init__(self, name: str, value: object, reason: str, words: str | None = None) -> None:
        """`words` is the whole text, where Kafka's does not show the value."""
        super().__init__(words or f"Invalid value {value} for configuration {name}: {reason}")
        self.name = name
        self.value = value
        self.reason = reason


def parse_value(key: ConfigKey, text: str | None) -> ConfigValue:
    """Parse and check a text; InvalidConfigValue has the reason."""
    value = None if text is None else _parse_text(key, text)
    if isinstance(value, tuple) and isinstance(key.valid, ListOf):
        value = tuple(dict.fromkeys(value))  # Kafka drops duplicates instead of refusing them
    problem = key.valid.problem(key.name, value) if key.valid is not None else None
    if problem is not None:
        raise _refusal(key, text, value, problem)
    return value


def _refusal(
    key: ConfigKey, text: str | None, value: ConfigValue, problem: str
) -> InvalidConfigValue:
    """Return the refusal of a value by its limit: lists have words of their own."""
    assert problem, key.name
    if not isinstance(value, tuple):
        return InvalidConfigValue(key.name, format_value(value), problem)
    if not isinstance(key.valid, ListOf):
        return InvalidConfigValue(key.name, f"[{', '.join(value)}]", problem)
    choices = key.valid.choices
    unknown = next((each for each in value if each and choices and each not in choices), None)
    if all(value) and unknown is not None:
        return InvalidConfigValue(key.name, unknown, problem)
    words = f"Configuration '{key.name}' values must not be empty."
    if not value:
        meant = str(key.valid) or "any non-empty value"
        words = f"Configuration '{key.name}' must not be empty. Valid values include: {meant}"
    return InvalidConfigValue(key.name, text, problem, words)


def comma_entries(text: str) -> list[str]:
    """Split as Java's `split` at commas and the blanks around them; drop empty texts at the end."""
    entries = _COMMA.split(text)
    while entries and not entries[-1]:
        entries.pop()
    return entries


def default_value(key: ConfigKey) -> ConfigValue:
    """Return the default; a required key has none and asking is a programming error."""
    assert not isinstance(key.default, Required), key.name
    return key.default


def default_text(key: ConfigKey) -> str | None:
    """Return the default as answers show it; null for a required key."""
    return None if key.default is REQUIRED else format_value(default_value(key))


def format_value(value: ConfigValue) -> str | None:
    """Return the text form: lists joined by commas, doubles as Java prints them."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return _format_double(value)
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def _format_double(value: float) -> str:
    """`Double.toString`: with an exponent from 10^7 on, and below 10^-3."""
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_TO:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), value
    first, *others = map(str, digits)
    mantissa = f"{first}.{''.join(others) or 0}"
    return f"{'-' if sign else ''}{mantissa}E{exponent + len(others)}"


def _parse_text(key: ConfigKey, untrimmed: str) -> ConfigValue:
    """Parse a text without the blanks around it; a refusal shows them."""
    text = untrimmed.strip(CONTROLS_AND_BLANK)
    match key.kind:
        case ConfigKind.BOOLEAN:
            lowered = text.lower()
            if lowered not in ("true", "false"):
                reason = "Expected value to be either true or false"
                raise InvalidConfigValue(key.name, untrimmed, reason)
            return lowered == "true"
        case ConfigKind.INT | ConfigKind.SHORT | ConfigKind.LONG:
            number = _integer(key.kind, text)
            if number is None:
                reason = f"Not a number of type {key.kind.name}"
                raise InvalidConfigValue(key.name, untrimmed, reason)
            return number
        case ConfigKind.DOUBLE:
            if not _DOUBLE.fullmatch(text):
                raise InvalidConfigValue(key.name, untrimmed, "Not a number of type DOUBLE")
            return float(text.rstrip("dDfF"))
        case ConfigKind.LIST:
            return tuple(_COMMA.split(text)) if text else ()
        case _:
            return text


def _integer(kind: ConfigKind, text: str) -> int | None:
    """Return a number of a Java type, None for another text."""
    # The length is checked first: converting a megabyte of digits would take seconds.
    if len(text) > 24 or not _INTEGER.fullmatch(text):
        return None
    number, limit = int(text), 1 << (_BITS[kind] - 1)
    return number if -limit <= number < limit else None
