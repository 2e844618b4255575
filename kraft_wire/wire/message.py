"""Base of the generated classes: a slotted struct that compares and prints itself, and codecs.

`Message.decode` and `Message.encode` first call the straight-line function that was generated for
the version. It accepts what well-behaved peers send and raises any exception for everything else.
Only then does `walker`, the reference codec over the field tables, decide: it either returns the
value (with invalid UTF-8, overlong varints and other bytes that Apache's decoder accepts) or raises
the error that names field and byte. So the rules are written once, and the fast path has no cost
for them.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from kraft_wire.model import FileSlice
from kraft_wire.wire.codec_errors import Malformation, MalformedMessage, UnencodableMessage
from kraft_wire.wire.structs import Append, Buffer, DecodeLimits, Part, Struct

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

FAILURES = (
    struct.error,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    AssertionError,
)
"""Errors of a generated function for input that it was not generated for."""


class Message(Struct):
    """Base of the generated top-level classes: the two codecs, and values of the schema."""

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
        """Read a message at `offset`; return it and the offset after it.

        Records and zero-copy blobs are slices of `data`; other blobs are copied, so that a kept one
        does not keep the frame. The caller handles bytes after the message. Raises
        MalformedMessage, also for an unknown version.

        With `limits` elements are counted only if the message is large enough to exceed them:
        every element takes at least a byte.
        """
        if limits is None or len(data) - offset <= limits.elements:
            try:
                return cls._decoders[version](data, offset)  # type: ignore[return-value]  # own
            except FAILURES:  # the reference codec decides, and names field and byte
                pass
        from kraft_wire.wire.field_tables import message_table
        from kraft_wire.wire.walker import decode_slowly

        message, end = decode_slowly(message_table(cls.NAME), data, version, offset, limits)
        assert isinstance(message, cls)
        return message, end

    def encode_parts(self, version: int) -> list[Part]:
        """Write the message as buffers and file slices to be sent in order, without copies.

        Raises UnencodableMessage, also for an unknown version.
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
        from kraft_wire.wire.field_tables import message_table
        from kraft_wire.wire.table_writer import encode_slowly

        return encode_slowly(self, message_table(self.NAME), version)
