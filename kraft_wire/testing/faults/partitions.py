"""Which partitions a message names, found by the field tables of the schemas.

A topic is a field of the entity type `topicName` or a `topic_id`; below it, a partition is an int32
field or the element of an int32 array with one of the few names that the schemas use.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from kraft_wire.model import ZERO_UUID, Uuid
from kraft_wire.wire.generated.registry import message_table
from kraft_wire.wire.message import Message, Struct
from kraft_wire.wire.schema import FieldTable, StructTable, includes

__all__ = ["PARTITION_ARRAYS", "PARTITION_FIELDS", "Place", "TopicNames", "places", "without"]

PARTITION_FIELDS: Final = frozenset({"index", "partition", "partition_index", "partition_id"})
PARTITION_ARRAYS: Final = frozenset({"partitions", "partition_indexes", "partition_ids"})

TopicNames = Callable[[Uuid], str | None]
"""Returns the name of a topic id, None if it is unknown."""


class Place(NamedTuple):
    """The smallest part of a message that is about one partition, or one whole topic."""

    topic: str | None
    partition: int | None
    container: list[Any]
    element: Any


class _Scope(NamedTuple):
    version: int
    names: TopicNames
    topic: str | None = None
    has_topic: bool = False


def places(message: Message, version: int, names: TopicNames) -> Iterator[Place]:
    """Yield the parts of a message that name partitions or topics, in their order."""
    yield from _inside(message, message_table(message.NAME).struct, _Scope(version, names))


def _inside(value: Struct, table: StructTable, scope: _Scope) -> Iterator[Place]:
    """Yield the places in the arrays of a struct."""
    for field in table.fields:
        if not field.is_array or not includes(field.versions, scope.version):
            continue
        elements = getattr(value, field.name)
        for element in elements or ():
            if field.struct is not None:
                yield from _element(elements, element, field.struct, scope)
            elif field.kind == "int32" and field.name in PARTITION_ARRAYS and scope.has_topic:
                yield Place(scope.topic, element, elements, element)
            elif field.kind == "string" and field.entity_type == "topicName":
                yield Place(element, None, elements, element)


def _element(
    container: list[Any], value: Struct, table: StructTable, scope: _Scope
) -> Iterator[Place]:
    """Yield the places of one struct in an array: itself, or those below it."""
    begins_topic = False
    partition: int | None = None
    for field in table.fields:
        if field.is_array or not includes(field.versions, scope.version):
            continue
        if _is_topic(field):
            scope = scope._replace(topic=_topic_of(value, field, scope), has_topic=True)
            begins_topic = True
        elif field.kind == "int32" and field.name in PARTITION_FIELDS and scope.has_topic:
            partition = getattr(value, field.name)
    if partition is not None:
        yield Place(scope.topic, partition, container, value)
        return
    below = False
    for place in _inside(value, table, scope):
        below = True
        yield place
    if begins_topic and not below:
        yield Place(scope.topic, None, container, value)


def _is_topic(field: FieldTable) -> bool:
    is_name = field.kind == "string" and field.entity_type == "topicName"
    return is_name or (field.kind == "uuid" and field.name == "topic_id")


def _topic_of(value: Struct, field: FieldTable, scope: _Scope) -> str | None:
    """Return the topic's name; a name beats an id, and an unset one neither."""
    content = getattr(value, field.name)
    if field.kind == "string":
        return content or scope.topic
    return scope.topic if content == ZERO_UUID else scope.names(content) or scope.topic


def without(message: Message, taken: list[Place]) -> None:
    """Remove places from a message, and the topics that this leaves empty."""
    for place in taken:
        place.container[:] = [each for each in place.container if each is not place.element]
    _drop_empty(message, message_table(message.NAME).struct, {id(each.container) for each in taken})


def _drop_empty(value: Struct, table: StructTable, emptied: set[int]) -> bool:
    """Remove the elements whose partitions were all removed; return whether this element is one."""
    is_empty = False
    for field in table.fields:
        elements = getattr(value, field.name) if field.is_array else None
        if elements is None:
            continue
        if field.struct is not None:
            struct = field.struct
            elements[:] = [each for each in elements if not _drop_empty(each, struct, emptied)]
        is_empty |= id(elements) in emptied and not elements
    return is_empty
