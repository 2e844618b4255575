"""Default values of fields, and whether a value is the default.

A decoder sets fields that a version lacks; an encoder omits tagged fields with defaults, and
refuses to drop other values.
"""

from kraft_wire.wire.schema import NO_VERSIONS, FieldTable, MessageTable

__all__ = ["default_value", "is_default"]


def default_value(field: FieldTable, table: MessageTable) -> object:
    """Return a field's default: None, a value, a new list or struct.

    A tagged struct that is never null stays None, which means its default.
    """
    if field.default != ():
        return field.default
    if field.is_array:
        return []
    if none_is_default(field):
        return None
    from kraft_wire.wire.field_tables import struct_class

    assert field.struct is not None
    return struct_class(table, field.struct)()


def none_is_default(field: FieldTable) -> bool:
    """Whether None means a struct of defaults: tagged, and never null on the wire."""
    return field.tag >= 0 and field.nullable == NO_VERSIONS


def is_default(field: FieldTable, value: object) -> bool:
    """Whether a value is the field's default; a struct is if all its fields are."""
    if field.is_array:
        return value is None if field.default is None else value == []
    if field.kind == "struct":
        if value is None:
            return field.default is None or none_is_default(field)
        return field.default is not None and is_default_struct(field, value)
    return value == field.default and (value is None) == (field.default is None)


def is_default_struct(field: FieldTable, value: object) -> bool:
    """Whether all fields of a struct have their defaults, without unknown tagged fields."""
    assert field.struct is not None
    return getattr(value, "unknown_tagged_fields", None) is None and all(
        is_default(inner, getattr(value, inner.name)) for inner in field.struct.fields
    )
