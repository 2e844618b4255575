"""What every generated class is: a slotted struct that compares and prints itself, and codecs.

`Message.decode` and `Message.encode` try the straight-line function that was generated for the
version. It accepts what well-behaved peers send and gives up, by any exception, on everything
else. Only then does `walker`, the reference codec over the field tables, decide: it either
returns the value after all (invalid UTF-8, overlong varints and whatever else Apache's decoder
lets pass) or raises the error that names field and byte. So the rules are written once, and
the fast path pays nothing for them.
"""

import struct
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, Self

from kraft_wire.model import FileSlice

__all__ = [
    "FAILURES",
    "Append",
    "Buffer",
    "DecodeLimits",
    "Malformation",
    "MalformedMessage",
    "Message",
    "Part",
    "Struct",
    "UnencodableMessage",
]

Buffer = bytes | bytearray | memoryview
Part = bytes | bytearray | memoryview | FileSlice
Append = Callable[[Part], None]

FAILURES = (
    struct.error,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    AssertionError,
)
"""What a generated function may raise when the input is not what it was generated for."""


class Malformation(StrEnum):
    """What is wrong with bytes, as a fixed word that log lines carry and counters count."""

    OTHER = "malformed"
    ARRAY_COUNT = "array_count_exceeds_remaining"
    OBJECT_BUDGET = "object_budget_exceeded"
    TAG_COUNT = "tagged_fields_exceeded"
    TAG_SIZE = "tagged_field_size"
    LENGTH = "length_exceeds_remaining"
    STRING = "string_too_long"
    NULL = "null_not_allowed"
    CUT_OFF = "truncated"
    VARINT = "varint_malformed"


class MalformedMessage(ValueError):
    """Bytes that Apache's decoder refuses; `field` is the path, `byte` counts from the data."""

    def __init__(
        self,
        field: str,
        byte: int,
        reason: str,
        kind: Malformation = Malformation.OTHER,
        *,
        declared: int | None = None,
        allowed: int | None = None,
    ) -> None:
        """`declared` and `allowed` are the numbers behind a limit that was passed."""
        super().__init__(f"{field} at byte {byte}: {reason}")
        self.field = field
        self.byte = byte
        self.reason = reason
        self.kind = kind
        self.declared = declared
        self.allowed = allowed


class UnencodableMessage(ValueError):
    """A value that the version cannot carry, or that is not of the field's type."""

    def __init__(self, field: str, version: int, reason: str) -> None:
        super().__init__(f"{field} in version {version}: {reason}")
        self.field = field
        self.version = version
        self.reason = reason


class DecodeLimits(NamedTuple):
    """How much one message from a peer may make us build.

    A single section of unknown tagged fields is always held against the two tag limits; sums over
    many sections are, in messages of more bytes than `elements`.
    """

    elements: int = 200_000
    """Array elements and tagged fields, all together."""
    tagged_fields: int = 64
    """Unknown tagged fields, all together."""
    tagged_bytes: int = 65_536
    """Bytes of unknown tagged fields, all together."""
    text_bytes: int = 32_767
    """Bytes of a string as it would be written again, bad UTF-8 having grown to U+FFFD."""


class Struct:
    """Base of the generated classes: equal when of one class with equal fields."""

    __slots__: tuple[str, ...] = ()

    @property
    def field_names(self) -> tuple[str, ...]:
        """The fields, of a class derived from a generated one as well."""
        return next((each.__slots__ for each in type(self).__mro__[:-1] if each.__slots__), ())  # type: ignore[attr-defined]  # all but object have slots

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.field_names)

    __hash__ = None  # type: ignore[assignment]  # structs are mutable

    def __repr__(self) -> str:
        shown = (
            f"{name}={getattr(self, name)!r}"
            for name in self.field_names
            if name != "unknown_tagged_fields" or getattr(self, name) is not None
        )
        return f"{type(self).__name__}({', '.join(shown)})"


class Message(Struct):
    """Base of the generated top-level classes: the two codecs, and what the schema says of it."""

    __slots__ = ()

    NAME: ClassVar[str]
    API_KEY: ClassVar[int] = -1
    RECORD_TYPE: ClassVar[int] = -1
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_FROM: ClassVar[int]
    LATEST_VERSION_UNSTABLE: ClassVar[bool] = False

    _decoders: ClassVar[Mapping[int, Callable[[Buffer, int], tuple["Message", int]]]] = {}
    _encoders: ClassVar[Mapping[int, Callable[[Any, Append], None]]] = {}

    @classmethod
    def decode(
        cls, data: Buffer, version: int, offset: int = 0, limits: DecodeLimits | None = None
    ) -> tuple[Self, int]:
        """Read a message at `offset`; return it and the offset behind it.

        Records and zero-copy blobs are slices of `data`; other blobs are copied, so that keeping
        one does not keep the frame. Bytes behind the message are the caller's matter. Raises
        MalformedMessage, also for a version that does not exist.

        With `limits` the counted ways apply as soon as a message is big enough to exceed them:
        every element takes at least a byte, so a smaller one cannot.
        """
        if limits is None or len(data) - offset <= limits.elements:
            try:
                return cls._decoders[version](data, offset)  # type: ignore[return-value]  # own
            except FAILURES:  # the reference codec decides, and names field and byte
                pass
        from kraft_wire.wire.generated.registry import message_table
        from kraft_wire.wire.walker import decode_slowly

        message, end = decode_slowly(message_table(cls.NAME), data, version, offset, limits)
        assert isinstance(message, cls)
        return message, end

    def encode_parts(self, version: int) -> list[Part]:
        """Write the message as buffers and file slices to be sent in order, nothing copied.

        Raises UnencodableMessage, also for a version that does not exist.
        """
        parts: list[Part] = []
        try:
            self._encoders[version](self, parts.append)
        except FAILURES:  # the reference codec decides, and names the field
            return self._encode_slowly(version)
        return parts

    def encode(self, version: int) -> bytes:
        """Write the message as one buffer; raises UnencodableMessage."""
        parts: list[Part] = []
        try:
            self._encoders[version](self, parts.append)
            return b"".join(parts)  # type: ignore[arg-type]  # a FileSlice fails, see below
        except FAILURES:  # the reference codec decides, and names the field
            parts = self._encode_slowly(version)
        return b"".join([part.read() if isinstance(part, FileSlice) else part for part in parts])

    def _encode_slowly(self, version: int) -> list[Part]:
        from kraft_wire.wire.generated.registry import message_table
        from kraft_wire.wire.table_writer import encode_slowly

        return encode_slowly(self, message_table(self.NAME), version)
