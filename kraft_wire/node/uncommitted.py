"""The answer to a request whose records the full disk of the metadata log did not take.

Every part that would have succeeded says KAFKA_STORAGE_ERROR, which clients may retry; parts that
were refused anyway keep their own error.
"""

from typing import Final

from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message, Struct

__all__ = ["uncommitted"]

_REASON: Final = "The disk of the metadata log is full"


def uncommitted(response: Message) -> Message:
    """Turn each success in an answer into KAFKA_STORAGE_ERROR; returns the same answer."""
    _refuse(response)
    return response


def _refuse(part: Struct) -> None:
    names = part.__slots__
    if "error_code" in names and getattr(part, "error_code") == ErrorCode.NONE:  # noqa: B009  # not every class has it
        setattr(part, "error_code", ErrorCode.KAFKA_STORAGE_ERROR)  # noqa: B010  # as above
        if "error_message" in names:
            setattr(part, "error_message", _REASON)  # noqa: B010  # as above
    for name in names:
        value = getattr(part, name)
        if isinstance(value, list):
            for each in value:
                if isinstance(each, Struct):
                    _refuse(each)
