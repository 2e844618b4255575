"""Shared by both codecs: the base of the generated classes, buffer types, and decode limits."""

from collections.abc import Callable
from typing import NamedTuple

from kraft_wire.model import FileSlice

__all__ = ["Append", "Buffer", "DecodeLimits", "Part", "Struct"]

Buffer = bytes | bytearray | memoryview
Part = bytes | bytearray | memoryview | FileSlice
Append = Callable[[Part], None]


class DecodeLimits(NamedTuple):
    """Limits for decoding one message from a peer.

    A single section of unknown tagged fields is always checked against the two tag limits; sums
    over many sections only in messages of more bytes than `elements`.
    """

    elements: int = 200_000
    """Array elements and tagged fields, all together."""
    tagged_fields: int = 64
    """Unknown tagged fields, all together."""
    tagged_bytes: int = 65_536
    """Bytes of unknown tagged fields, all together."""
    text_bytes: int = 32_767
    """Bytes of a string when it is written again, with U+FFFD for invalid UTF-8."""


class Struct:
    """Base of the generated classes: equal if of the same class with equal fields."""

    __slots__: tuple[str, ...] = ()

    @property
    def field_names(self) -> tuple[str, ...]:
        """The fields, also of a class derived from a generated one."""
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
