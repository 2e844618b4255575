"""Addresses in responses, found by the schemas: every struct with a `host` and a `port`.

Except that of an application: members of a streams group name where they answer queries themselves.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from kraft_wire.wire.generated.registry import RESPONSES, message_table
from kraft_wire.wire.message import Message
from kraft_wire.wire.schema import StructTable, includes

__all__ = ["address_holders", "carries_addresses", "node_id_of"]

_NODE_IDS: Final = ("node_id", "broker_id")
_OF_APPLICATIONS: Final = "user_endpoint"


class _Struct(NamedTuple):
    """Where addresses are in a struct in one version; worked out once, not per response."""

    is_holder: bool
    ways: "tuple[tuple[str, bool, _Struct], ...]"
    """Fields that lead to addresses: name, whether it is an array, what each of it holds."""


def carries_addresses(api_key: int, version: int) -> bool:
    """Whether responses of an API may name addresses in this version."""
    return _response(api_key, version) is not None


def address_holders(message: Message, version: int) -> Iterator[Any]:
    """Yield every struct of a response that has a host and a port, and names a place by them."""
    struct = _response(message.API_KEY, version)
    if struct is not None:
        yield from _holders(message, struct)


@cache
def _response(api_key: int, version: int) -> _Struct | None:
    """Return where addresses are in the responses of an API, None if nowhere."""
    if api_key not in RESPONSES:
        return None
    return _struct(message_table(RESPONSES[api_key].name).struct, version)


def _struct(table: StructTable, version: int) -> _Struct | None:
    fields = [each for each in table.fields if includes(each.versions, version)]
    inner = [
        (each.name, each.is_array, _struct(each.struct, version))
        for each in fields
        if each.struct is not None and each.name != _OF_APPLICATIONS
    ]
    ways = tuple((name, is_array, way) for name, is_array, way in inner if way is not None)
    is_holder = {"host", "port"} <= {each.name for each in fields}
    return _Struct(is_holder, ways) if is_holder or ways else None


def _holders(value: Any, struct: _Struct) -> Iterator[Any]:
    if struct.is_holder and _names_place(value):
        yield value
    for name, is_array, way in struct.ways:
        inner = getattr(value, name)
        if inner:
            for each in inner if is_array else (inner,):
                yield from _holders(each, way)


def _names_place(value: Any) -> bool:
    """Whether the address is valid: without a coordinator, it is empty and -1."""
    return bool(value.host) and value.port > 0


def node_id_of(holder: Any) -> int | None:
    """Return the id of the node whose address a struct holds, or None."""
    found: list[int] = [getattr(holder, name) for name in _NODE_IDS if hasattr(holder, name)]
    return found[0] if found else None
