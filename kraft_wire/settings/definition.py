"""Definitions of configuration keys: name, kind, default, limits, importance, scope, synonyms.

The tables of keys are `topic.py`, `broker.py` and `group.py`; text becomes a typed value in
`values.py`. Limits are values with a text form equal to the one that Kafka's own definition prints,
so that the tables can be compared with a release (tests/settings). Source of the model: KIP-226
(dynamic broker configuration), KIP-248 and KIP-569 (synonyms, types and documentation in answers).

This module does not parse and reads no file.
"""

import re
from collections.abc import Sequence
from enum import Enum, IntEnum
from typing import Final, Literal, Protocol, TypeAlias

from kraft_wire.frozen import frozen
from kraft_wire.settings.durations import duration_ms

__all__ = [
    "CONTROLS_AND_BLANK",
    "REQUIRED",
    "AtLeast",
    "Between",
    "ConfigKey",
    "ConfigKind",
    "ConfigSource",
    "ConfigValue",
    "Importance",
    "ListOf",
    "NonEmpty",
    "OffsetReset",
    "OneOf",
    "Required",
    "Synonym",
    "ThrottledReplicas",
    "UpdateMode",
    "Validator",
]

ConfigValue: TypeAlias = bool | int | float | str | tuple[str, ...] | None
"""A parsed value. A class or a password is its text; null means "not set"."""

Importance: TypeAlias = Literal["high", "medium", "low"]


_BY_DURATION: Final = "by_duration:"

_PAIR_OR_NOTHING: Final = re.compile(r"([0-9]+:[0-9]+)?")

CONTROLS_AND_BLANK: Final = "".join(map(chr, range(0x21)))
"""What Java's `trim` removes."""


class ConfigKind(IntEnum):
    """The type of a value; the numbers are DescribeConfigsResponse's `config_type` (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """Where a value comes from; the numbers are DescribeConfigsResponse's `config_source`."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class UpdateMode(Enum):
    """How a broker key may change while the broker runs (KIP-226)."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Required(Enum):
    """The default of a required key: leaving it out is an error."""

    REQUIRED = "<required>"


REQUIRED: Final = Required.REQUIRED


class Validator(Protocol):
    """A limit on a parsed value."""

    def problem(self, name: str, value: ConfigValue) -> str | None:
        """Return why the value of a key is refused, in Kafka's words, or None if it is valid."""
        ...


@frozen
class AtLeast:
    """A number with a lower limit, inclusive."""

    low: int

    def problem(self, name: str, value: ConfigValue) -> str | None:
        if value is None:
            return "Value must be non-null"
        assert isinstance(value, int | float), value
        return f"Value must be at least {self.low}" if value < self.low else None

    def __str__(self) -> str:
        return f"[{self.low},...]"


@frozen
class Between:
    """A number with both limits, inclusive, or one of the exceptions outside them."""

    low: float
    high: float
    exceptions: tuple[int, ...] = ()

    def problem(self, name: str, value: ConfigValue) -> str | None:
        if value is None:
            return "Value must be non-null"
        assert isinstance(value, int | float), value
        if value in self.exceptions:
            return None
        if self.exceptions and not self.low <= value <= self.high:
            also = " or ".join(str(number) for number in self.exceptions)
            return f"Value must be between {self.low} and {self.high} or equal to {also}"
        if value < self.low:
            return f"Value must be at least {self.low}"
        return f"Value must be no more than {self.high}" if value > self.high else None

    def __str__(self) -> str:
        also = "".join(f" or {number}" for number in self.exceptions)
        return f"[{self.low},...,{self.high}]{also}"


@frozen
class OneOf:
    """A string out of a fixed list."""

    choices: tuple[str, ...]
    ignore_case: bool = False

    def problem(self, name: str, value: ConfigValue) -> str | None:
        assert value is None or isinstance(value, str), value
        folded = value.upper() if self.ignore_case and value is not None else value
        if folded in self.choices:
            return None
        hint = " (case insensitive)" if self.ignore_case else ""
        return f"String must be one of{hint}: {', '.join(self.choices)}"

    def __str__(self) -> str:
        prefix = "(case insensitive) " if self.ignore_case else ""
        return f"{prefix}[{', '.join(self.choices)}]"


@frozen
class ListOf:
    """A list without empty members, out of `choices` when there are any."""

    choices: tuple[str, ...] = ()
    may_be_empty: bool = True
    may_be_null: bool = False

    def problem(self, name: str, value: ConfigValue) -> str | None:
        if value is None:
            return None if self.may_be_null else "Configuration must not be null."
        assert isinstance(value, tuple), value
        if not value:
            return None if self.may_be_empty else "Configuration must not be empty."
        assert len(set(value)) == len(value), "parsing drops duplicates"
        return self._member_problem(value)

    def _member_problem(self, members: Sequence[str]) -> str | None:
        for member in members:
            if not member:
                return "Configuration values must not be empty."
            if self.choices and member not in self.choices:
                return f"String must be one of: {', '.join(self.choices)}"
        return None

    def __str__(self) -> str:
        return f"[{', '.join(self.choices)}]" if self.choices else ""


@frozen
class NonEmpty:
    """A value that must not be empty or null."""

    what: Literal["non-empty string", "non-null string", "non-empty list"] = "non-empty string"

    def problem(self, name: str, value: ConfigValue) -> str | None:
        if self.what == "non-null string":
            return "Value must be non-null" if value is None else None
        if self.what == "non-empty list":
            has_gap = isinstance(value, tuple) and "" in value
            return "Configuration values must not be empty." if has_gap else None
        return "String must be non-empty" if value == "" else None

    def __str__(self) -> str:
        return self.what


@frozen
class OffsetReset:
    """Where a share group without state begins: a name, or a duration before now (KIP-932)."""

    def problem(self, name: str, value: ConfigValue) -> str | None:
        assert isinstance(value, str), value
        if value in ("latest", "earliest"):
            return None
        is_by_duration = value.startswith(_BY_DURATION)
        ago_ms = duration_ms(value.removeprefix(_BY_DURATION)) if is_by_duration else None
        if ago_ms is not None and ago_ms >= 0:
            return None
        return (
            f"Invalid value `{value}` for configuration {name}. The value must be either "
            "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        )

    def __str__(self) -> str:
        return "[latest, earliest, by_duration:PnDTnHnMn.nS]"


@frozen
class ThrottledReplicas:
    """`partition:broker` pairs, or `*` for all (KIP-73)."""

    def problem(self, name: str, value: ConfigValue) -> str | None:
        assert isinstance(value, tuple), value
        members = [member.strip(CONTROLS_AND_BLANK) for member in value]
        if "".join(members) == "*" or all(map(_PAIR_OR_NOTHING.fullmatch, members)):
            return None
        return (
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )

    def __str__(self) -> str:
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


@frozen
class Synonym:
    """A broker key that supplies a value where the key itself is not set."""

    name: str
    factor: int = 1
    """The factor of the broker key's number: hours or minutes become milliseconds."""


@frozen
class ConfigKey:
    """One configuration key, with all facts for answers and checks."""

    name: str
    kind: ConfigKind
    default: ConfigValue | Required
    importance: Importance
    documentation: str
    valid: Validator | None = None
    scope: UpdateMode = UpdateMode.READ_ONLY
    synonyms: tuple[Synonym, ...] = ()
    """In order of precedence, the key itself not included."""
    internal: bool = False
    """Not shown in answers unless it was set; for tests and emergencies."""

    @property
    def sensitive(self) -> bool:
        """Whether answers must hide the value."""
        return self.kind is ConfigKind.PASSWORD
