"""Defaults as Python expressions, and the tests whether a value is its default."""

import json

from codegen.layout import FieldLayout

__all__ = ["default_literal", "is_default_test", "not_default_test", "spell_literal"]


def spell_literal(value: object) -> str:
    """Return the Python source of a schema value, strings in double quotes."""
    if isinstance(value, str):
        return json.dumps(value)
    if value == bytes(16):
        return "bytes(16)"
    if isinstance(value, tuple):
        items = ", ".join(map(spell_literal, value))
        return f"({items},)" if len(value) == 1 else f"({items})"
    return 'b""' if value == b"" else repr(value)


def default_literal(field: FieldLayout) -> str:
    """Return the expression of what a field holds when the wire does not say."""
    if field.default == ():
        if field.is_array:
            return "[]"
        if field.tag >= 0 and not field.is_optional:
            return "None"
        assert field.struct is not None
        return f"{field.struct.class_name}()"
    if field.kind == "uuid" and not field.is_array:
        return "ZERO_UUID"
    return spell_literal(field.default)


def is_default_test(field: FieldLayout, value: str) -> str:
    """Return a cheap test that a field is its default; a struct may be without passing it."""
    literal = default_literal(field)
    if literal == "None":
        return f"{value} is None"
    if field.kind == "bool" and not field.is_array:
        return value if field.default else f"not {value}"
    return f"{value} == {literal}"


def not_default_test(field: FieldLayout, value: str) -> str:
    """Return the exact test that a field is not its default."""
    literal = default_literal(field)
    if literal == "None":
        if field.struct is not None and field.default == ():
            return f"{value} is not None and {value} != {field.struct.class_name}()"
        return f"{value} is not None"
    if field.kind == "bool" and not field.is_array:
        return f"not {value}" if field.default else value
    if literal == "[]" and not field.is_optional:
        return f"len({value})"  # a list to compare with would be made first
    return f"{value} != {literal}"
