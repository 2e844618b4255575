"""The reference decoder: reads any message by its field table, slowly, with detailed errors.

The generated functions are tested against it, and it runs when one of them fails: it accepts and
refuses exactly the same bytes as Apache's generated classes (KIP-482 for tagged fields), within
limits, and its errors name the field path and the byte. It calls `visit` with every primitive that
it reads, in wire order, for the dissector.

Not here: writing (`table_writer`), JSON (`json_form`).
"""

from collections.abc import Callable
from typing import cast

from kraft_wire.wire.codec_errors import Malformation, MalformedMessage
from kraft_wire.wire.defaults import default_value
from kraft_wire.wire.primitives import FIXED, STRING_BYTES_MAX
from kraft_wire.wire.schema import FieldTable, MessageTable, StructTable, includes
from kraft_wire.wire.structs import Buffer, DecodeLimits, Struct
from kraft_wire.wire.varint import text_from_utf8, wrap_int32

__all__ = ["Visit", "decode_slowly"]

Visit = Callable[[str, int, int, object], None]
"""Called with path, first byte, end, and value of everything that is read."""


def decode_slowly(
    table: MessageTable,
    data: Buffer,
    version: int,
    offset: int = 0,
    limits: DecodeLimits | None = None,
    visit: Visit | None = None,
) -> tuple[Struct, int]:
    """Read one message by its table; return it and the offset after it.

    A metadata record may have a version above the schema's if it has no nested struct (Apache's
    reader checks versions only there). Raises MalformedMessage.
    """
    # Apache's reader checks the version of nested structs only, and its metadata log relies on it.
    high = 32767 if table.kind == "metadata_record" else table.max_version
    if not table.min_version <= version <= high:
        known = f"{table.min_version} to {table.max_version}"
        raise MalformedMessage(table.name, offset, f"version {version} is outside {known}")
    walk = MessageWalker(table, memoryview(data), version, offset, limits, visit)
    return walk.struct(table.struct), walk.position


class MessageWalker:
    """One pass over the bytes of one message."""

    def __init__(
        self,
        table: MessageTable,
        view: memoryview,
        version: int,
        position: int,
        limits: DecodeLimits | None,
        visit: Visit | None,
    ) -> None:
        self.table = table
        self.view = view
        self.version = version
        self.position = position
        self.limits = limits
        self.visit = visit
        self.path: list[str] = []
        self.elements = 0
        self.unknown_tags = 0
        self.unknown_bytes = 0
        self.is_flexible = includes(table.flexible, version)

    def _where(self) -> str:
        """Return the path of the field being read."""
        return ".".join(self.path).replace(".[", "[") or self.table.name

    def _fail(
        self,
        reason: str,
        kind: Malformation = Malformation.OTHER,
        *,
        position: int | None = None,
        declared: int | None = None,
        allowed: int | None = None,
    ) -> MalformedMessage:
        """Build the error for the field being read."""
        byte = self.position if position is None else position
        where = self._where()
        return MalformedMessage(where, byte, reason, kind, declared=declared, allowed=allowed)

    def _tell(self, start: int, value: object, part: str = "") -> None:
        """Pass the value that was just read to the visitor."""
        if self.visit is not None:
            path = self._where() if self.path else ""
            self.visit(path + part, start, self.position, value)

    def _spend(self, count: int) -> None:
        """Count elements against the limit before they are built."""
        self.elements += count
        if self.limits is not None and self.elements > self.limits.elements:
            allowed = self.limits.elements
            reason = f"more than {allowed} elements in one message"
            raise self._fail(reason, Malformation.OBJECT_BUDGET, allowed=allowed)

    def struct(self, table: StructTable) -> Struct:
        """Read a struct: its fields in order, then its tagged fields."""
        from kraft_wire.wire.field_tables import struct_class

        value = object.__new__(struct_class(self.table, table))
        tagged: dict[int, FieldTable] = {}
        for field in table.fields:
            if field.tag >= 0:
                tagged[field.tag] = field
            if includes(field.versions, self.version) and not includes(field.tagged, self.version):
                self.path.append(field.name)
                setattr(value, field.name, self._field(field))
                self.path.pop()
            else:
                setattr(value, field.name, default_value(field, self.table))
        if "unknown_tagged_fields" in value.__slots__:
            unknown = self._tags(value, tagged) if self.is_flexible else None
            setattr(value, "unknown_tagged_fields", unknown)  # noqa: B010  # not on the base
        return value

    def _nested(self, table: StructTable) -> Struct:
        """Read a struct below the top, whose version Apache's reader checks."""
        if self.version > self.table.max_version:
            raise self._fail(f"version {self.version} of struct {table.name} is not known")
        return self.struct(table)

    def _tags(self, owner: Struct, tagged: dict[int, FieldTable]) -> list[tuple[int, bytes]] | None:
        """Read a tag section; the declared size of a known field is ignored, as by Apache."""
        unknown: list[tuple[int, bytes]] = []
        self.path.append("tagged_fields")
        start = self.position
        count = self._unsigned_varint()
        self._tell(start, count, ".count")
        self.path.pop()
        for _ in range(count):
            self._spend(1)
            start = self.position
            tag = self._unsigned_varint()
            self.path.append(tagged[tag].name if tag in tagged else f"tag[{tag}]")
            self._tell(start, tag, ".tag")
            start = self.position
            size = self._unsigned_varint()
            self._tell(start, size, ".size")
            if tag in tagged:
                setattr(owner, tagged[tag].name, self._tagged_field(tagged[tag]))
            else:
                unknown.append((tag, self._unknown_tag(size)))
            self.path.pop()
        return unknown or None

    def _tagged_field(self, field: FieldTable) -> object:
        """Read the value of a known tag."""
        if not includes(field.tagged, self.version):
            reason = f"tag {field.tag} is not valid for version {self.version}"
            raise self._fail(reason, Malformation.TAG_SIZE)
        if field.kind == "struct" and not field.is_array:
            assert field.struct is not None
            if includes(field.nullable, self.version):
                start = self.position
                marker = self._unsigned_varint()
                self._tell(start, marker, ".present")
                if marker <= 0:
                    return None
            return self._nested(field.struct)
        return self._field(field)

    def _unknown_tag(self, size: int) -> bytes:
        """Keep the bytes of an unknown tag, within the limits."""
        self.unknown_tags += 1
        self.unknown_bytes += max(size, 0)
        if self.limits is not None and (
            self.unknown_tags > self.limits.tagged_fields
            or self.unknown_bytes > self.limits.tagged_bytes
        ):
            raise self._fail(
                f"more than {self.limits.tagged_fields} unknown tagged fields or "
                f"{self.limits.tagged_bytes} bytes of them",
                Malformation.TAG_COUNT,
                declared=self.unknown_bytes,
                allowed=self.limits.tagged_bytes,
            )
        if size < 0:
            raise self._fail(f"negative size {size}", Malformation.TAG_SIZE, declared=size)
        start = self.position
        content = bytes(self._take(size))
        self._tell(start, content)
        return content

    def _field(self, field: FieldTable) -> object:
        """Read the value of a field that is in this version and not tagged."""
        compact = self.is_flexible and (
            field.flexible is None or includes(field.flexible, self.version)
        )
        if field.is_array:
            return self._array(field, compact)
        if field.kind == "struct":
            assert field.struct is not None
            if includes(field.nullable, self.version) and self._is_null():
                return None
            return self._nested(field.struct)
        return self._value(field, compact)

    def _is_null(self) -> bool:
        """Read the byte in front of a nullable struct: negative means null."""
        start = self.position
        marker = cast(int, self._fixed("int8"))
        self._tell(start, marker, ".present")
        return marker < 0

    def _array(self, field: FieldTable, compact: bool) -> object:
        """Read an array; its count is first checked against the remaining bytes."""
        count = self._length(compact, 4)
        if count < 0:
            self._refuse_null(field, count)
            return None
        if count > len(self.view) - self.position:
            left = len(self.view) - self.position
            reason = f"{count} elements are declared, {left} bytes remain"
            raise self._fail(reason, Malformation.ARRAY_COUNT, declared=count, allowed=left)
        self._spend(count)
        items: list[object] = []
        self.path.append("")
        for index in range(count):
            self.path[-1] = f"[{index}]"
            if field.struct is not None:
                items.append(self._nested(field.struct))
            else:
                items.append(self._value(field, compact, is_element=True))
        self.path.pop()
        return items

    def _value(self, field: FieldTable, compact: bool, is_element: bool = False) -> object:
        """Read a primitive, a string, bytes or records."""
        start = self.position
        if field.kind in FIXED:
            value = self._fixed(field.kind)
            self._tell(start, value)
            return value
        size = self._length(compact, 2 if field.kind == "string" else 4)
        if size < 0:
            if is_element:
                raise self._fail("null in an array", Malformation.NULL)
            self._refuse_null(field, size)
            return None
        if field.kind == "string" and size > STRING_BYTES_MAX:
            raise self._long_string(size, STRING_BYTES_MAX)
        start = self.position
        raw = self._take(size)
        value = self._text(bytes(raw), start) if field.kind == "string" else raw
        if field.kind == "bytes" and not field.zero_copy:
            value = bytes(raw)
        self._tell(start, value)
        return value

    def _refuse_null(self, field: FieldTable, size: int) -> None:
        """Raise for a negative length of a field that may not be null."""
        if not includes(field.nullable, self.version):
            reason = f"null (length {size}) in a field that is never null"
            raise self._fail(reason, Malformation.NULL)

    def _long_string(
        self, size: int, allowed: int, what: str = "", position: int | None = None
    ) -> MalformedMessage:
        """Build the error for a string that is too long."""
        return self._fail(
            f"string of {size} bytes, {allowed} are the maximum{what}",
            Malformation.STRING,
            position=position,
            declared=size,
            allowed=allowed,
        )

    def _length(self, compact: bool, width_bytes: int) -> int:
        """Read the length in front of a string, blob or array; negative means null."""
        start = self.position
        if compact:
            length = wrap_int32(self._unsigned_varint() - 1)
        else:
            length = cast(int, self._fixed("int16" if width_bytes == 2 else "int32"))
        self._tell(start, length, ".length")
        return length

    def _fixed(self, kind: str) -> object:
        """Read a value of fixed size."""
        codec = FIXED[kind]
        if len(self.view) - self.position < codec.size:
            reason = f"{kind} needs {codec.size} bytes, {self._left()} remain"
            raise self._fail(reason, Malformation.CUT_OFF)
        value: object = codec.unpack_from(self.view, self.position)[0]
        self.position += codec.size
        return value != 0 if kind == "bool" else value

    def _left(self) -> int:
        """Return the number of remaining bytes."""
        return max(len(self.view) - self.position, 0)

    def _take(self, size: int) -> memoryview:
        """Slice the next `size` bytes."""
        if size > self._left():
            left = self._left()
            reason = f"{size} bytes are declared, {left} remain"
            raise self._fail(reason, Malformation.LENGTH, declared=size, allowed=left)
        taken = self.view[self.position : self.position + size]
        self.position += size
        return taken

    def _text(self, raw: bytes, start: int) -> str:
        """Decode a string; from a peer, only one that can be written again.

        An invalid byte of UTF-8 is read as U+FFFD, which takes three bytes: such a string may be
        longer than the limit, and then no answer and no record could have it.
        """
        text = text_from_utf8(raw)
        if self.limits is not None:
            size = len(text.encode("utf-8", "replace"))
            if size > self.limits.text_bytes:
                raise self._long_string(size, self.limits.text_bytes, ", as UTF-8", start)
        return text

    def _unsigned_varint(self) -> int:
        """Read at most five groups of seven bits as an int32, as Java does: it may be negative."""
        value = 0
        for shift in range(0, 35, 7):
            if self.position >= len(self.view):
                raise self._fail("the varint is truncated", Malformation.CUT_OFF)
            byte = self.view[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return wrap_int32(value)
        start = self.position - 5
        raise self._fail("the varint is longer than 5 bytes", Malformation.VARINT, position=start)
