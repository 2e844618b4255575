"""Errors of the message codecs: bytes that cannot be decoded, values that cannot be encoded."""

from enum import StrEnum

__all__ = ["Malformation", "MalformedMessage", "UnencodableMessage"]


class Malformation(StrEnum):
    """The kind of an error in bytes, a fixed word in log lines and counters."""

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
        """`declared` and `allowed` are the numbers of an exceeded limit."""
        super().__init__(f"{field} at byte {byte}: {reason}")
        self.field = field
        self.byte = byte
        self.reason = reason
        self.kind = kind
        self.declared = declared
        self.allowed = allowed


class UnencodableMessage(ValueError):
    """A value that the version has no field for, or that is not of the field's type."""

    def __init__(self, field: str, version: int, reason: str) -> None:
        super().__init__(f"{field} in version {version}: {reason}")
        self.field = field
        self.version = version
        self.reason = reason
