"""Converts text to typed values and back, with Kafka's rules and error texts.

A value is trimmed before it is parsed; a list is split at commas; numbers have no underscores and
stay inside their Java type. The text form is the one that DescribeConfigs shows. Reading files and
layering sources is `node_settings.py`, not this module.
"""

import re
from typing import Final

from kraft_wire.settings.definition import (
    REQUIRED,
    ConfigKey,
    ConfigKind,
    ConfigValue,
    ListOf,
    Required,
)

__all__ = [
    "InvalidConfigValue",
    "default_text",
    "default_value",
    "format_value",
    "parse_value",
]

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_DOUBLE: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")
_COMMA: Final = re.compile(r"\s*,\s*")
_BITS: Final = {ConfigKind.SHORT: 16, ConfigKind.INT: 32, ConfigKind.LONG: 64}


class InvalidConfigValue(ValueError):
    """A value that a key does not take; the text names value, key and reason as Kafka does."""

    def __init__(self, name: str, value: object, reason: str) -> None:
        super().__init__(f"Invalid value {value} for configuration {name}: {reason}")
        self.name = name
        self.value = value
        self.reason = reason


def parse_value(key: ConfigKey, text: str | None) -> ConfigValue:
    """Parse and check a text; InvalidConfigValue has the reason."""
    value = None if text is None else _parse_text(key, text.strip())
    if isinstance(value, tuple) and isinstance(key.valid, ListOf):
        value = tuple(dict.fromkeys(value))  # Kafka drops duplicates instead of refusing them
    problem = key.valid.problem(value) if key.valid is not None else None
    if problem is not None:
        shown = text if isinstance(value, tuple) or value is None else format_value(value)
        raise InvalidConfigValue(key.name, shown, problem)
    return value


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
    digits = repr(value)
    if "e" not in digits:
        return digits
    mantissa, exponent = digits.split("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent)}"


def _parse_text(key: ConfigKey, text: str) -> ConfigValue:
    match key.kind:
        case ConfigKind.BOOLEAN:
            lowered = text.lower()
            if lowered not in ("true", "false"):
                reason = "Expected value to be either true or false"
                raise InvalidConfigValue(key.name, text, reason)
            return lowered == "true"
        case ConfigKind.INT | ConfigKind.SHORT | ConfigKind.LONG:
            return _parse_integer(key, text)
        case ConfigKind.DOUBLE:
            if not _DOUBLE.fullmatch(text):
                raise InvalidConfigValue(key.name, text, "Not a number of type DOUBLE")
            return float(text.rstrip("dDfF"))
        case ConfigKind.LIST:
            return tuple(_COMMA.split(text)) if text else ()
        case _:
            return text


def _parse_integer(key: ConfigKey, text: str) -> int:
    # The length is checked first: converting a megabyte of digits would take seconds.
    if len(text) <= 24 and _INTEGER.fullmatch(text):
        number = int(text)
        limit = 1 << (_BITS[key.kind] - 1)
        if -limit <= number < limit:
            return number
    raise InvalidConfigValue(key.name, text, f"Not a number of type {key.kind.name}")
