"""Field tables and struct classes by name; their generated modules are imported on first use.

Separate from the registry, so that the reference codec does not need `Message`.
"""

from functools import cache
from importlib import import_module
from typing import Final

from kraft_wire.wire.generated.messages import MESSAGES
from kraft_wire.wire.schema import MessageTable, StructTable
from kraft_wire.wire.structs import Struct

__all__ = ["generated_class", "message_table", "struct_class"]

_GENERATED: Final = "kraft_wire.wire.generated"


@cache
def message_table(name: str) -> MessageTable:
    """Return the field table of a message by Kafka's name; KeyError for an unknown one."""
    module = import_module(f"{_GENERATED}.tables.{MESSAGES[name].module}")
    table = module.TABLES[name]
    assert isinstance(table, MessageTable)
    return table


def struct_class(table: MessageTable, struct: StructTable) -> type[Struct]:
    """Return the class of a struct inside a message."""
    return generated_class(table.module, struct.class_name)


@cache
def generated_class(module: str, name: str) -> type[Struct]:
    """Return a generated class by its module below `generated` and its name."""
    found = getattr(import_module(f"{_GENERATED}.{module}"), name)
    assert isinstance(found, type), found
    assert issubclass(found, Struct), found
    return found
