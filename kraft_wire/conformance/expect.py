"""A case's checks of a response: a field by its path, and its expected value."""

import re
from enum import IntEnum
from typing import Final

from kraft_wire.conformance.connection import Connection
from kraft_wire.conformance.verdict import Difference, Mismatch
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["as_release", "at", "closed", "equal", "error", "internal_error", "one_of", "true"]

_STEP: Final = re.compile(r"([a-z_0-9]+)|\[(\d+)\]")


def equal(answer: Message, path: str, wanted: object) -> None:
    """State that the field at `path` equals `wanted`; raises Mismatch."""
    seen = at(answer, path)
    if seen != wanted:
        raise Mismatch(_shown(wanted, path), _shown(seen, path), path)


def one_of(answer: Message, path: str, *wanted: object) -> None:
    """State that the field at `path` has one of some values; raises Mismatch."""
    seen = at(answer, path)
    if seen not in wanted:
        raise Mismatch(" or ".join(_shown(each, path) for each in wanted), _shown(seen, path), path)


def error(answer: Message, path: str, code: IntEnum) -> None:
    """State that the error code at `path` is `code`; raises Mismatch."""
    equal(answer, path, int(code))


def true(holds: bool, expected: str, seen: object, path: str = "") -> None:
    """Check any other condition, with the expectation in words and the value. Errors: Mismatch."""
    if not holds:
        raise Mismatch(expected, str(seen), path)


def closed(connection: Connection) -> None:
    """State that the broker closes a connection without another response; raises Mismatch."""
    frame = connection.next_frame()
    true(frame is None, "a closed connection", f"a frame of {len(frame or b'')} bytes")


def internal_error(answer: Message, path: str) -> None:
    """State that there is an error at `path`, by which Apache Kafka fails internally.

    Errors: Mismatch without an error, Difference if it is another one.
    """
    code = at(answer, path)
    true(code != ErrorCode.NONE, "an error", _shown(code, path), path)
    wanted = int(ErrorCode.UNKNOWN_SERVER_ERROR)
    as_release(code == wanted, _shown(wanted, path), _shown(code, path), path)


def as_release(holds: bool, expected: str, seen: object, path: str = "") -> None:
    """Check what Apache Kafka does and no KIP promises. Errors: Difference."""
    if not holds:
        raise Difference(expected, str(seen), path)


def at(answer: Message, path: str) -> object:
    """Return the field at a path such as `topics[0].error_code`; raises Mismatch without one."""
    value: object = answer
    for step in _STEP.finditer(path):
        name, index = step.groups()
        if value is None:
            raise Mismatch("a value", "null", path)
        if name:
            value = getattr(value, name)
        else:
            assert isinstance(value, list), path
            if int(index) >= len(value):
                wanted = f"at least {int(index) + 1} elements"
                raise Mismatch(wanted, str(len(value)), path[: step.start()])
            value = value[int(index)]
    return value


def _shown(value: object, path: str) -> str:
    if path.endswith("error_code") and isinstance(value, int):
        return f"{error_name(value)} ({value})"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
