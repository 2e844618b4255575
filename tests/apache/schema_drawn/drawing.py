"""One request of an API in a version, drawn from the fields that its schema has."""

from random import Random
from typing import Any, Final

from kraft_wire.wire.field_tables import message_table, struct_class
from kraft_wire.wire.generated.registry import request_class
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.schema import FieldTable, MessageTable, StructTable, includes
from kraft_wire.wire.structs import Struct
from tests.apache.schema_drawn.pools import BY_NAME, BY_OWNER, BY_TYPE, IDS

__all__ = ["draw_request"]

_LIKELY: Final = 4
"""So many first values of a type's pool are drawn more often than the others."""
_RECORDS_MS: Final = 1_600_000_000_000
_MANY_ALIKE: Final = {
    "AclCreation",
    "DeleteAclsFilter",
    "EntryData",
    "WritableTxnMarker",
}
"""Structs of which a request may have several with the same first field."""


def draw_request(random: Random, api_key: int, version: int) -> Message:
    """Draw a request; its topic ids are those of `pools`, not those of a broker.

    Elements of a list differ in their first field: what a broker does with two that do not depends
    on the hash table that it puts them into.
    """
    table = message_table(request_class(api_key).NAME)
    request = _struct(random, table, table.struct, version)
    assert isinstance(request, Message), request
    return request


def _struct(random: Random, table: MessageTable, struct: StructTable, version: int) -> Struct:
    drawn = struct_class(table, struct)()
    for field in struct.fields:
        if not includes(field.versions, version):
            continue
        if includes(field.tagged, version) and random.random() < 0.7:
            continue
        if includes(field.nullable, version) and random.random() < 0.15:
            value: Any = None
        elif field.is_array:
            value = _list(random, table, field, struct.class_name, version)
        else:
            value = _value(random, table, field, struct.class_name, version)
        setattr(drawn, field.name, value)
    return drawn


def _list(
    random: Random, table: MessageTable, field: FieldTable, owner: str, version: int
) -> list[Any]:
    drawn = [
        _value(random, table, field, owner, version)
        for _ in range(random.choice((0, 1, 1, 1, 2, 3)))
    ]
    if field.struct is None:
        return list(dict.fromkeys(drawn))
    if field.struct.class_name in _MANY_ALIKE:
        return drawn
    key = next((each.name for each in field.struct.fields if includes(each.versions, version)), "")
    return list({str(getattr(each, key, None)): each for each in drawn}.values())


def _value(random: Random, table: MessageTable, field: FieldTable, owner: str, version: int) -> Any:
    if field.struct is not None:
        return _struct(random, table, field.struct, version)
    if field.kind == "uuid":
        return random.choice((IDS[0], *IDS))
    if field.kind == "records":
        return random.choice((_records(random), _records(random), b"", b"no batch"))
    listed = BY_OWNER.get((owner, field.name)) or BY_NAME.get(field.name)
    if listed is not None and type(listed[0]) is type(BY_TYPE[field.kind][0]):
        return random.choice(listed)
    pool = BY_TYPE[field.kind]
    if field.name.endswith("_ms"):
        return random.choice((0, 1_000, -1))
    return random.choice(pool[:_LIKELY] if random.random() < 0.75 else pool)


def _records(random: Random) -> bytes:
    records = [
        Record(None, random.choice((None, b"v", b"v" * 50)), timestamp=_RECORDS_MS, offset=offset)
        for offset in range(random.choice((1, 1, 2, 3)))
    ]
    return bytes(build_batch(records))
