"""Answers to requests whose records did not, or may not, become part of the metadata.

Every part that would have succeeded gets the error; parts that were refused anyway keep their own.
On a full disk nothing was written: KAFKA_STORAGE_ERROR, which clients may retry. If the leadership
ended before the records were committed, the result is unknown: NOT_CONTROLLER, as in Kafka.
"""

from typing import Final

from kraft_wire.controller.requests import nobody_active
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message, Struct

__all__ = ["not_controller", "uncommitted"]

_DISK_FULL: Final = "The disk of the metadata log is full"


def uncommitted(response: Message) -> Message:
    """Turn each success in an answer into KAFKA_STORAGE_ERROR; returns the same answer."""
    _refuse(response, ErrorCode.KAFKA_STORAGE_ERROR, _DISK_FULL)
    return response


def not_controller(response: Message) -> Message:
    """Turn each success in an answer into NOT_CONTROLLER; returns the same answer."""
    _refuse(response, ErrorCode.NOT_CONTROLLER, nobody_active())
    return response


def _refuse(part: Struct, error: ErrorCode, reason: str) -> None:
    names = part.field_names
    if "error_code" in names and getattr(part, "error_code") == ErrorCode.NONE:  # noqa: B009  # not every class has it
        setattr(part, "error_code", error)  # noqa: B010  # as above
        if "error_message" in names:
            setattr(part, "error_message", reason)  # noqa: B010  # as above
    for name in names:
        value = getattr(part, name)
        if isinstance(value, list):
            for each in value:
                if isinstance(each, Struct):
                    _refuse(each, error, reason)
