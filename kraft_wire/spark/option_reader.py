"""Options as a user gave them, by any spelling of upper and lower case; mistakes name the option.

For every format of this package. An unknown name is refused, because a mistyped option that is
ignored would read other data than requested.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Final, TypeVar

from kraft_wire.foreign_text import compiled
from kraft_wire.spark.failure import PipelineError

__all__ = ["OptionReader", "parse_list", "parse_not_negative", "parse_pattern", "parse_positive"]

_Value = TypeVar("_Value")
_NUMBER_MAX: Final = (1 << 63) - 1


class OptionReader:
    """The options of one format, by lower-case name."""

    def __init__(self, raw_options: Mapping[str, str], format_name: str) -> None:
        self._raw_options = {name.lower(): value for name, value in raw_options.items()}
        self._format_name = format_name

    def refuse_unknown(self, names: Sequence[str], *, but: str | None = None) -> None:
        """Refuse the first name that is not in `names` and does not begin with `but`."""
        known = {name.lower(): name for name in names}
        for name in self._raw_options:
            if name in known or (but is not None and name.startswith(but)):
                continue
            close = get_close_matches(name, known, 1)
            hint = f"did you mean {known[close[0]]}?" if close else f"known: {', '.join(names)}"
            raise PipelineError(f"option {name!r} does not exist in {self._format_name}; {hint}")

    def refuse_several(self, names: Sequence[str]) -> None:
        """Refuse more than one of options that exclude one another."""
        chosen = [name for name in names if name.lower() in self._raw_options]
        if len(chosen) > 1:
            raise PipelineError(f"options {' and '.join(chosen)} exclude one another: give one")

    def has(self, name: str) -> bool:
        """Return whether an option was given."""
        return name.lower() in self._raw_options

    def beginning(self, prefix: str) -> dict[str, str]:
        """Return the options whose names begin with `prefix`, without it."""
        return {
            name.removeprefix(prefix): value
            for name, value in self._raw_options.items()
            if name.startswith(prefix)
        }

    def get(self, name: str, parse: Callable[[str], _Value]) -> _Value | None:
        """Return the parsed value, None if the option was not given."""
        text = self._raw_options.get(name.lower())
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            raise PipelineError(f"option {name}: {text!r} {error}") from None

    def one_of(self, name: str, choices: tuple[_Value, ...], default: _Value) -> _Value:
        """Return the choice with the given name, in any case."""
        by_name = {str(choice): choice for choice in choices}
        text = self._raw_options.get(name.lower(), str(default)).strip().lower()
        if text not in by_name:
            raise PipelineError(f"option {name}: {text!r} is none of {', '.join(by_name)}")
        return by_name[text]

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return whether an option is true."""
        return self.one_of(name, ("true", "false"), str(default).lower()) == "true"


def parse_list(text: str) -> tuple[str, ...]:
    """Return names with commas between."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ValueError("names no topic")
    return names


def parse_pattern(text: str) -> str:
    """Return a regular expression."""
    try:
        compiled(text)
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from None
    return text


def parse_not_negative(text: str) -> int:
    """Return a whole number from 0 on."""
    if not text.strip().isdecimal():
        raise ValueError("is not a number of 0 or more")
    return _of_64_bits(int(text))


def parse_positive(text: str) -> int:
    """Return a whole number from 1 on."""
    if not text.strip().isdecimal() or not int(text):
        raise ValueError("is not a number of 1 or more")
    return _of_64_bits(int(text))


def _of_64_bits(number: int) -> int:
    if number > _NUMBER_MAX:
        raise ValueError(f"is more than {_NUMBER_MAX}")
    return number
