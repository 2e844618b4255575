"""The smallest request that still shows a difference."""

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final

from kraft_wire.wire.message import Message, UnencodableMessage
from kraft_wire.wire.structs import Struct

__all__ = ["shrunk"]

_TRIES: Final = 100

Change = Callable[[], None]


def shrunk(request: Message, still_differs: Callable[[Message], bool]) -> Message:
    """Return the request without the elements and values that the difference does not need."""
    tries, at = 0, 0
    while tries < _TRIES:
        candidate = copy.deepcopy(request)
        changes = list(_changes(candidate))
        if at >= len(changes):
            break
        changes[at]()
        tries += 1
        if _holds(candidate, still_differs):
            request = candidate
        else:
            at += 1
    return request


def _holds(request: Message, still_differs: Callable[[Message], bool]) -> bool:
    try:
        return still_differs(request)
    except UnencodableMessage:
        return False


def _changes(struct: Struct) -> Iterator[Change]:
    """Yield each way to make a message smaller: an element less, or a field with its default."""
    default = type(struct)()
    for name in struct.field_names:
        value = getattr(struct, name)
        if isinstance(value, list):
            for at in range(len(value)):
                yield _drop(value, at)
            for each in value:
                if isinstance(each, Struct):
                    yield from _changes(each)
        elif isinstance(value, Struct):
            yield from _changes(value)
        elif value != getattr(default, name):
            yield _reset(struct, name, getattr(default, name))


def _drop(values: list[Any], at: int) -> Change:
    return lambda: values.__delitem__(at)


def _reset(struct: Struct, name: str, value: object) -> Change:
    return lambda: setattr(struct, name, value)
