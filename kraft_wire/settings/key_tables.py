"""Reads the key tables: one JSON object per key and line, beside this module.

The tables are data because 430 keys as code would bury what little code there is. Members that have
their usual value are left out: `scope` read-only, no `valid`, no `synonyms`, not `internal`.
`valid` is the text that Kafka's own definition prints for its limit; `list` states whether a list
may be empty and whether it may be null. tests/settings compares every table with the release.
"""

import json
import pkgutil
import re
from typing import Final, TypedDict

from kraft_wire.settings.definition import (
    REQUIRED,
    AtLeast,
    Between,
    ConfigKey,
    ConfigKind,
    ConfigValue,
    Importance,
    ListOf,
    NonEmpty,
    OffsetReset,
    OneOf,
    Required,
    Synonym,
    ThrottledReplicas,
    UpdateMode,
    Validator,
)
from kraft_wire.settings.values import parse_value

__all__ = ["load_keys"]

_RANGE: Final = re.compile(r"\[(-?[\d.]+),\.\.\.(?:,(-?[\d.]+))?\](?: or (-?\d+))?")
_CHOICES: Final = re.compile(r"(\(case insensitive\) )?\[(.+)\]")
_NAMED: Final[dict[str, Validator]] = {
    str(validator): validator
    for validator in (
        NonEmpty("non-empty string"),
        NonEmpty("non-null string"),
        NonEmpty("non-empty list"),
        OffsetReset(),
        ThrottledReplicas(),
    )
}
"""Limits that are neither a range nor a choice, by their text form."""


class _OptionalMembers(TypedDict, total=False):
    valid: str
    list: tuple[bool, bool]
    scope: str
    synonyms: list[tuple[str, int]]
    internal: bool


class _Row(_OptionalMembers):
    name: str
    kind: str
    default: str | None
    importance: Importance
    documentation: str


def load_keys(file_name: str) -> dict[str, ConfigKey]:
    """Return the keys of one table, in name order."""
    data = pkgutil.get_data("kraft_wire.settings", file_name)
    assert data is not None, file_name
    rows: list[_Row] = json.loads(data)
    keys = {row["name"]: _key(row) for row in rows}
    assert len(keys) == len(rows), f"{file_name} lists a key twice"
    return keys


def _key(row: _Row) -> ConfigKey:
    unlimited = ConfigKey(
        name=row["name"],
        kind=ConfigKind[row["kind"].upper()],
        default=None,
        importance=row["importance"],
        documentation=row["documentation"],
    )
    return ConfigKey(
        name=unlimited.name,
        kind=unlimited.kind,
        default=_default(unlimited, row["default"]),
        importance=unlimited.importance,
        documentation=unlimited.documentation,
        valid=_validator(row),
        scope=UpdateMode(row.get("scope", "read-only")),
        synonyms=tuple(Synonym(name, factor) for name, factor in row.get("synonyms", ())),
        internal=row.get("internal", False),
    )


def _default(key: ConfigKey, text: str | None) -> ConfigValue | Required:
    return REQUIRED if text == REQUIRED.value else parse_value(key, text)


def _validator(row: _Row) -> Validator | None:
    text = row.get("valid", "")
    if "list" in row:
        may_be_empty, may_be_null = row["list"]
        choices = tuple(text[1:-1].split(", ")) if text else ()
        return ListOf(choices, may_be_empty, may_be_null)
    if not text:
        return None
    if text in _NAMED:
        return _NAMED[text]
    if match := _RANGE.fullmatch(text):
        return _range(*match.groups())
    choices_match = _CHOICES.fullmatch(text)
    assert choices_match is not None, f"{row['name']} has an unknown limit {text!r}"
    return OneOf(tuple(choices_match[2].split(", ")), ignore_case=bool(choices_match[1]))


def _range(low: str, high: str | None, exception: str | None) -> Validator:
    if high is None:
        return AtLeast(int(low))
    exceptions = () if exception is None else (int(exception),)
    return Between(_number(low), _number(high), exceptions)


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)
