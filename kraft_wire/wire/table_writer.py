"""The reference encoder: writes any message by its field table, with errors that name the field.

The counterpart of `walker`: the generated functions are tested against it, and it finds the error
when one of them fails.
"""

import struct

from kraft_wire.model import FileSlice
from kraft_wire.wire.codec_errors import UnencodableMessage
from kraft_wire.wire.defaults import is_default
from kraft_wire.wire.primitives import FIXED, STRING_BYTES_MAX, encode_unsigned_varint
from kraft_wire.wire.schema import FieldTable, MessageTable, StructTable, includes
from kraft_wire.wire.structs import Part, Struct

__all__ = ["encode_slowly"]


def encode_slowly(message: Struct, table: MessageTable, version: int) -> list[Part]:
    """Write a message by its table; UnencodableMessage names the field."""
    if not table.min_version <= version <= table.max_version:
        known = f"{table.min_version} to {table.max_version}"
        raise UnencodableMessage(table.name, version, f"the version is outside {known}")
    writer = Writer(table, version)
    writer.struct(message, table.struct)
    return writer.parts


class Writer:
    """Writes one message, or one tagged field of it, into a list of parts."""

    def __init__(self, table: MessageTable, version: int, path: list[str] | None = None) -> None:
        self.table = table
        self.version = version
        self.path: list[str] = path if path is not None else []
        self.parts: list[Part] = []
        self.is_flexible = includes(table.flexible, version)

    def _fail(self, reason: str) -> UnencodableMessage:
        """Build the error for the field being written."""
        where = ".".join(self.path).replace(".[", "[") or self.table.name
        return UnencodableMessage(where, self.version, reason)

    def struct(self, value: object, table: StructTable) -> None:
        """Write a struct: its fields in order, then its tagged fields."""
        if type(value).__name__ != table.class_name:
            raise self._fail(f"{type(value).__name__} is not a {table.class_name}")
        tagged: dict[int, FieldTable] = {}
        for field in table.fields:
            inner = getattr(value, field.name)
            self.path.append(field.name)
            if not includes(field.versions, self.version):
                if not field.ignorable and not is_default(field, inner):
                    raise self._fail("the version lacks this field, and it is not its default")
            elif includes(field.tagged, self.version):
                if not is_default(field, inner):
                    tagged[field.tag] = field
            else:
                self._field(field, inner)
            self.path.pop()
        self._tags(value, tagged)

    def _tags(self, value: object, tagged: dict[int, FieldTable]) -> None:
        """Write known and unknown tagged fields in tag order."""
        unknown: list[tuple[int, bytes]] = getattr(value, "unknown_tagged_fields", None) or []
        if not self.is_flexible:
            if unknown:
                raise self._fail("tagged fields in a version that is not flexible")
            return
        encoded: list[tuple[int, list[Part]]] = [(tag, [raw]) for tag, raw in unknown]
        for tag, field in tagged.items():
            if any(tag == other for other, _ in unknown):
                raise self._fail(f"tag {tag} is both known and unknown")
            encoded.append((tag, self._tagged_field(field, getattr(value, field.name))))
        self.parts.append(encode_unsigned_varint(len(encoded)))
        for tag, parts in sorted(encoded, key=lambda item: item[0] & 0xFFFFFFFF):
            size = sum(size_of(part) for part in parts)
            self.parts.append(encode_unsigned_varint(tag & 0xFFFFFFFF))
            self.parts.append(encode_unsigned_varint(size))
            self.parts.extend(parts)

    def _tagged_field(self, field: FieldTable, value: object) -> list[Part]:
        """Write the content of one tagged field separately, to know its size."""
        inside = Writer(self.table, self.version, [*self.path, field.name])
        if field.kind == "struct" and not field.is_array:
            assert field.struct is not None
            if includes(field.nullable, self.version):
                inside.parts.append(b"\x00" if value is None else b"\x01")
            if value is not None:
                inside.struct(value, field.struct)
        else:
            inside._field(field, value)
        return inside.parts

    def _field(self, field: FieldTable, value: object) -> None:
        """Write the value of a field that is in this version and not tagged."""
        compact = self.is_flexible and (
            field.flexible is None or includes(field.flexible, self.version)
        )
        if value is None and not includes(field.nullable, self.version):
            raise self._fail("null in a field that is never null")
        if field.is_array:
            self._array(field, value, compact)
        elif field.kind == "struct":
            assert field.struct is not None
            if includes(field.nullable, self.version):
                self.parts.append(b"\xff" if value is None else b"\x01")
            if value is not None:
                self.struct(value, field.struct)
        else:
            self._value(field, value, compact)

    def _array(self, field: FieldTable, value: object, compact: bool) -> None:
        """Write a count and the elements."""
        if value is None:
            self._length(-1, compact, 4)
            return
        if not isinstance(value, list | tuple):
            raise self._fail(f"{type(value).__name__} is not a list")
        self._length(len(value), compact, 4)
        self.path.append("")
        for index, item in enumerate(value):
            self.path[-1] = f"[{index}]"
            if item is None:
                raise self._fail("null in an array")
            if field.struct is not None:
                self.struct(item, field.struct)
            else:
                self._value(field, item, compact)
        self.path.pop()

    def _value(self, field: FieldTable, value: object, compact: bool) -> None:
        """Write a primitive, a string, bytes or records."""
        if field.kind in FIXED:
            self._fixed(field.kind, value)
            return
        width_bytes = 2 if field.kind == "string" else 4
        if value is None:
            self._length(-1, compact, width_bytes)
            return
        part = self._string(value) if field.kind == "string" else self._blob(value)
        self._length(size_of(part), compact, width_bytes)
        self.parts.append(part)

    def _string(self, value: object) -> bytes:
        """Encode text; an unpaired surrogate becomes a question mark, as in Java."""
        if not isinstance(value, str):
            raise self._fail(f"{type(value).__name__} is not a string")
        raw = value.encode("utf-8", "replace")
        if len(raw) > STRING_BYTES_MAX:
            raise self._fail(f"string of {len(raw)} bytes, {STRING_BYTES_MAX} are the maximum")
        return raw

    def _blob(self, value: object) -> Part:
        """Check that the server can send a value."""
        if not isinstance(value, bytes | bytearray | memoryview | FileSlice):
            raise self._fail(f"{type(value).__name__} is not bytes")
        return value

    def _fixed(self, kind: str, value: object) -> None:
        """Write a value of fixed size; its type and range are checked."""
        try:
            if kind == "bool":
                self.parts.append(b"\x01" if value else b"\x00")
            elif kind == "uuid" and (not isinstance(value, bytes) or len(value) != 16):
                raise self._fail("a uuid is 16 bytes")
            else:
                self.parts.append(FIXED[kind].pack(value))
        except (struct.error, OverflowError) as error:
            raise self._fail(f"{value!r} is not {kind}") from error

    def _length(self, length: int, compact: bool, width_bytes: int) -> None:
        """Write a length, -1 for null."""
        if compact:
            self.parts.append(encode_unsigned_varint(length + 1))
        else:
            self.parts.append(length.to_bytes(width_bytes, "big", signed=True))


def size_of(part: Part) -> int:
    """Return the size of a part in bytes."""
    if isinstance(part, FileSlice):
        return part.size_bytes
    return part.nbytes if isinstance(part, memoryview) else len(part)
