"""Types of the field tables under `generated/tables`: Kafka's schemas as plain tuples.

The slow reference codec (`walker`), the JSON form and the dissector read them; the fast codecs do
not. Version ranges are inclusive pairs; 32767 is the open end of "3+", and (0, -1) is an empty
range.
"""

from typing import NamedTuple

__all__ = [
    "NO_VERSIONS",
    "OPEN_END",
    "FieldTable",
    "MessageTable",
    "Range",
    "RegistryEntry",
    "StructTable",
    "includes",
]

Range = tuple[int, int]

OPEN_END = 32767
NO_VERSIONS: Range = (0, -1)


class FieldTable(NamedTuple):
    """One field of a struct; `kind` is that of the element when the field is an array."""

    name: str
    json_name: str
    kind: str
    is_array: bool
    struct: "StructTable | None"
    versions: Range
    nullable: Range
    tagged: Range
    tag: int
    flexible: Range | None
    default: object
    ignorable: bool
    map_key: bool
    entity_type: str
    zero_copy: bool


class StructTable(NamedTuple):
    """A message's top level or a struct inside it, fields in schema order.

    A struct that a field defines in place exists in the field's versions.
    """

    name: str
    class_name: str
    versions: Range
    fields: tuple[FieldTable, ...]


class MessageTable(NamedTuple):
    """One schema file."""

    name: str
    kind: str
    module: str
    api_key: int
    min_version: int
    max_version: int
    flexible: Range
    latest_version_unstable: bool
    struct: StructTable


class RegistryEntry(NamedTuple):
    """Facts about a message that need no import of its module."""

    name: str
    kind: str
    module: str
    class_name: str
    api_key: int
    min_version: int
    max_version: int
    flexible_from: int
    listeners: tuple[str, ...]
    latest_version_unstable: bool


def includes(versions: Range, version: int) -> bool:
    """Whether `version` is in the inclusive range."""
    return versions[0] <= version <= versions[1]
