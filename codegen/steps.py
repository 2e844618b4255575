"""A struct in one version as a flat list of steps: fixed-size reads, and what lies between them.

Encoders and decoders both walk this list. A variable field is two steps: its length, which is
fixed in size and so joins the run before it, and its payload.
"""

from dataclasses import dataclass

from codegen.formats import FIXED_CODES
from codegen.layout import FieldLayout, StructLayout

__all__ = ["Fixed", "Payload", "Step", "local_name", "steps_of"]

RESERVED = {
    "count", "data", "end", "fields", "item", "items", "n", "new", "out", "parts", "pos", "put",
    "raw", "size", "tag", "tags", "text", "unknown", "value", "values", "varint",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fixed:
    """A value of fixed size; `field` is None for lengths, markers and tag counts."""

    code: str
    local: str
    field: FieldLayout | None = None


@dataclass(frozen=True, slots=True)
class Payload:
    """What follows a length or marker: text, texts, numbers, blob, structs, or one struct."""

    kind: str
    local: str
    field: FieldLayout
    code: str = ""

    @property
    def length(self) -> str:
        """Return the local variable of the length or marker in front."""
        return f"n_{self.field.name}"


Step = Fixed | Payload


def local_name(field: FieldLayout) -> str:
    """Return the local variable that holds a field."""
    return f"{field.name}_" if field.name in RESERVED else field.name


def steps_of(layout: StructLayout) -> list[Step]:
    """List the steps of a struct, the tag count at the end included."""
    steps: list[Step] = []
    for field in layout.present:
        steps += field_steps(field)
    if layout.is_flexible:
        steps.append(Fixed("B", "tags"))
    return steps


def field_steps(field: FieldLayout, is_tagged: bool = False) -> list[Step]:
    """List the steps of one field; a nullable struct has another marker inside a tag."""
    local = local_name(field)
    length = f"n_{field.name}"
    if field.is_array:
        prefix = Fixed("B" if field.is_compact else "i", length)
        if field.struct is not None:
            return [prefix, Payload("structs", local, field)]
        if field.kind in FIXED_CODES:
            return [prefix, Payload("numbers", local, field, FIXED_CODES[field.kind])]
        assert field.kind == "string", field
        return [prefix, Payload("texts", local, field)]
    if field.struct is not None:
        one = Payload("struct", local, field)
        if not field.is_nullable:
            return [one]
        return [Fixed("B" if is_tagged else "b", length), one]
    if field.kind in FIXED_CODES:
        return [Fixed(FIXED_CODES[field.kind], local, field)]
    if field.kind == "string":
        return [Fixed("B" if field.is_compact else "h", length), Payload("text", local, field, "s")]
    return [Fixed("B" if field.is_compact else "i", length), Payload("blob", local, field)]
