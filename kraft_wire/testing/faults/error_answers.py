"""Makes an error answer to any request from the two schemas, without a list of APIs.

Every field of the response that ends in `error_code` gets the code. An array of the response with
such fields gets one element for each element of the matching array of the request: with equal field
names, equal entity types, or both by partition.
"""

from typing import Any, Final

from kraft_wire.testing.faults.partitions import PARTITION_ARRAYS, PARTITION_FIELDS
from kraft_wire.wire.defaults import default_value
from kraft_wire.wire.generated.registry import (
    RESPONSES,
    message_table,
    response_class,
    struct_class,
)
from kraft_wire.wire.message import Message, Struct
from kraft_wire.wire.schema import FieldTable, MessageTable, StructTable, includes

__all__ = ["error_answer", "set_errors"]

_ERROR: Final = "error_code"
_Asked = StructTable | FieldTable
"""The form of a part of a request: a struct, or an array of plain values."""


def error_answer(request: Message, version: int, code: int) -> Message | None:
    """Return the answer that refuses a whole request; None if its API has no field for it."""
    table = message_table(RESPONSES[request.API_KEY].name)
    maker = _Maker(table, version, code)
    answer = maker.struct(table.struct, request, message_table(request.NAME).struct)
    assert isinstance(answer, response_class(request.API_KEY))
    return answer if maker.codes_count else None


def set_errors(value: Struct, code: int) -> bool:
    """Put the code into a part of a response and drop its records; return whether it has one."""
    names = [name for name in value.field_names if name.endswith(_ERROR)]
    for name in names:
        setattr(value, name, code)
    if names and getattr(value, "records", None) is not None:
        setattr(value, "records", b"")  # noqa: B010  # not every struct has the field
    return bool(names)


class _Maker:
    """One answer in the making."""

    def __init__(self, table: MessageTable, version: int, code: int) -> None:
        self._table = table
        self._version = version
        self._code = code
        self.codes_count = 0

    def struct(self, table: StructTable, source: object, asked: _Asked) -> Struct:
        """Return a struct of the response for the part of the request that it answers."""
        values: dict[str, Any] = {}
        key = None if isinstance(asked, StructTable) else self._key(table, asked)
        for field in table.fields:
            values[field.name] = self._default(field)
            if not includes(field.versions, self._version):
                continue
            if field is key:
                values[field.name] = source
                continue
            if field.name.endswith(_ERROR) and not field.is_array:
                values[field.name] = self._code
                self.codes_count += 1
            elif field.is_array:
                values[field.name] = self._array(field, source, asked)
            else:
                values[field.name] = self._copied(field, source, asked, values[field.name])
        return struct_class(self._table, table)(**values)

    def _copied(self, field: FieldTable, source: object, asked: _Asked, default: object) -> object:
        """Return the value of the field in the request, or the default."""
        found = self._like(field, asked) if isinstance(asked, StructTable) else None
        value = None if found is None else getattr(source, found.name)
        return default if value is None else value

    def _key(self, table: StructTable, named: FieldTable) -> FieldTable | None:
        """Return the field that holds the element of an array of plain values."""
        same_kind = [each for each in self._keys(table) if each.kind == named.kind]
        if named.kind == "int32":
            is_partitions = named.name in PARTITION_ARRAYS
            same_kind = [each for each in same_kind if each.name in PARTITION_FIELDS]
            return same_kind[0] if is_partitions and same_kind else None
        alike = [each for each in same_kind if each.entity_type == named.entity_type]
        return next(iter(alike + same_kind), None)

    def _default(self, field: FieldTable) -> object:
        """Return a field's default of the schema, but no null if the field cannot be null."""
        value = default_value(field, self._table)
        if value is None and not includes(field.nullable, self._version):
            return b"" if field.kind in ("bytes", "records") else value
        return value

    def _keys(self, table: StructTable) -> list[FieldTable]:
        """Return the plain fields of a struct of the response that may be its key."""
        return [
            each
            for each in table.fields
            if not each.is_array
            and each.struct is None
            and includes(each.versions, self._version)
            and not each.name.startswith("error_")
        ]

    def _array(self, field: FieldTable, source: object, asked: _Asked) -> list[Any]:
        """Return the elements that refuse those of the request's array."""
        if field.struct is None or not isinstance(asked, StructTable):
            return []
        if not _has_error(field.struct, self._version):
            return []
        arrays = [
            (self._likeness(field.struct, each), each)
            for each in asked.fields
            if each.is_array and includes(each.versions, self._version)
        ]
        likeness, named = max(arrays, key=lambda each: each[0], default=(0, None))
        if not likeness or named is None:
            return []
        elements = getattr(source, named.name) or ()
        return [self.struct(field.struct, each, named.struct or named) for each in elements]

    def _likeness(self, answer: StructTable, named: FieldTable) -> int:
        """Return how well an array of the request matches the keys of the answer's elements."""
        if named.struct is None:
            return int(self._key(answer, named) is not None)
        keys = self._keys(answer)
        return 2 * sum(self._like(each, named.struct) is not None for each in keys) if keys else 1

    def _like(self, field: FieldTable, asked: StructTable) -> FieldTable | None:
        """Return the field of the request that means the same."""
        plain = [
            each
            for each in asked.fields
            if each.kind == field.kind
            and not each.is_array
            and each.struct is None
            and includes(each.versions, self._version)
        ]
        by_name = [each for each in plain if each.name == field.name]
        entity = field.entity_type
        by_type = [each for each in plain if entity and each.entity_type == entity]
        by_partition = [each for each in plain if {each.name, field.name} <= PARTITION_FIELDS]
        return next(iter(by_name + by_type + by_partition), None)


def _has_error(table: StructTable, version: int) -> bool:
    """Whether a struct of the response has a place for an error, itself or below."""
    return any(
        includes(field.versions, version)
        and (
            (field.name.endswith(_ERROR) and not field.is_array)
            or (field.is_array and field.struct is not None and _has_error(field.struct, version))
        )
        for field in table.fields
    )
