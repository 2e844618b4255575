"""Addresses in responses, found by the schemas: every struct with a `host` and a `port`.

Except that of an application: members of a streams group name where they answer queries themselves.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from kraft_wire.wire.generated.registry import RESPONSES, message_table
from kraft_wire.wire.message import Message, Struct
from kraft_wire.wire.schema import FieldTable, StructTable, includes

__all__ = ["address_holders", "carries_addresses", "node_id_of"]

_NODE_IDS: Final = ("node_id", "broker_id")
_OF_APPLICATIONS: Final = "user_endpoint"


@cache
def carries_addresses(api_key: int, version: int) -> bool:
    """Whether responses of an API may name addresses in this version."""
    if api_key not in RESPONSES:
        return False
    return _has_addresses(message_table(RESPONSES[api_key].name).struct, version)


def _has_addresses(table: StructTable, version: int) -> bool:
    return _is_holder(table, version) or any(
        _leads_to_addresses(each, version) for each in table.fields
    )


def _leads_to_addresses(field: FieldTable, version: int) -> bool:
    return (
        field.struct is not None
        and field.name != _OF_APPLICATIONS
        and includes(field.versions, version)
        and _has_addresses(field.struct, version)
    )


@cache
def _is_holder(table: StructTable, version: int) -> bool:
    names = {field.name for field in table.fields if includes(field.versions, version)}
    return {"host", "port"} <= names


def address_holders(message: Message, version: int) -> Iterator[Any]:
    """Yield every struct of a response that has a host and a port, and names a place by them."""
    yield from _holders(message, message_table(message.NAME).struct, version)


def _holders(value: Struct, table: StructTable, version: int) -> Iterator[Any]:
    if _is_holder(table, version) and _names_place(value):
        yield value
    for field in table.fields:
        if field.struct is None or not _leads_to_addresses(field, version):
            continue
        inner = getattr(value, field.name)
        for each in (inner or ()) if field.is_array else ([] if inner is None else [inner]):
            yield from _holders(each, field.struct, version)


def _names_place(value: Any) -> bool:
    """Whether the address is valid: without a coordinator, it is empty and -1."""
    return bool(value.host) and value.port > 0


def node_id_of(holder: Any) -> int | None:
    """Return the id of the node whose address a struct holds, or None."""
    found: list[int] = [getattr(holder, name) for name in _NODE_IDS if hasattr(holder, name)]
    return found[0] if found else None
