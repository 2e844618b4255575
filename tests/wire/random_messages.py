"""Random values for every field that a version has, made from the field tables."""

from random import Random

from kraft_wire.model import Uuid
from kraft_wire.wire.defaults import default_value
from kraft_wire.wire.generated.registry import message_class, struct_class
from kraft_wire.wire.message import Message, Struct
from kraft_wire.wire.schema import FieldTable, MessageTable, StructTable, includes

INTEGERS = {
    "int8": (-128, 127),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
LETTERS = "abcdefgh-._ äßλ漢𝄞"


def random_message(table: MessageTable, version: int, random: Random) -> Message:
    """Return a message whose fields, as far as the version has them, are random."""
    message = random_struct(table, table.struct, version, random)
    assert isinstance(message, message_class(table.name))
    return message


def random_struct(
    table: MessageTable, struct: StructTable, version: int, random: Random, depth: int = 0
) -> Struct:
    """Return a struct with random fields; its tagged fields are often left at their defaults."""
    values = {}
    for field in struct.fields:
        absent = not includes(field.versions, version)
        skipped = includes(field.tagged, version) and random.random() < 0.4
        if absent or skipped:
            values[field.name] = default_value(field, table)
        else:
            values[field.name] = random_field(table, field, version, random, depth)
    return struct_class(table, struct)(**values)


def random_field(
    table: MessageTable, field: FieldTable, version: int, random: Random, depth: int
) -> object:
    """Return a random value, null now and then where that is allowed."""
    if includes(field.nullable, version) and random.random() < 0.25:
        return None
    if not field.is_array:
        return random_value(table, field, version, random, depth)
    count = random.choice([0, 1, 1, 2, 3])
    if (depth == 0 or field.struct is None) and random.random() < 0.1:
        count = random.choice([126, 127, 128, 130])
    return [random_value(table, field, version, random, depth) for _ in range(count)]


def random_value(
    table: MessageTable, field: FieldTable, version: int, random: Random, depth: int
) -> object:
    """Return a random value that is not null."""
    if field.struct is not None:
        return random_struct(table, field.struct, version, random, depth + 1)
    if field.kind in INTEGERS:
        return random.choice([random.randint(*INTEGERS[field.kind]), random.randint(0, 100)])
    if field.kind == "bool":
        return random.random() < 0.5
    if field.kind == "float64":
        return random.uniform(-1e9, 1e9)
    if field.kind == "uuid":
        return Uuid(random.randbytes(16))
    size = random.choice([0, 1, 5, 20, 20, 126, 127, 128, 300] if depth < 3 else [0, 1, 5, 20])
    if field.kind == "string":
        return "".join(random.choices(LETTERS, k=size))
    return random.randbytes(size)
