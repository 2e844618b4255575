"""The server assignors by the names that `group.consumer.assignors` may list."""

from collections.abc import Iterable, Mapping
from typing import Final

from kraft_wire.broker.groups.assignors import range as range_assignor
from kraft_wire.broker.groups.assignors import uniform
from kraft_wire.broker.groups.assignors.spec import Assignor

__all__ = ["ASSIGNORS", "UnknownAssignor", "assignor_names"]

ASSIGNORS: Final[Mapping[str, Assignor]] = {
    uniform.NAME: uniform.assign,
    range_assignor.NAME: range_assignor.assign,
}
"""Server assignors by name."""

_PACKAGE: Final = "org.apache.kafka.coordinator.group.assignor."
_OF_CLASSES: Final[Mapping[str, str]] = {
    _PACKAGE + "UniformAssignor": uniform.NAME,
    _PACKAGE + "RangeAssignor": range_assignor.NAME,
}
"""Kafka's classes, which may be listed instead of the names."""


class UnknownAssignor(ValueError):
    """An assignor that is neither a name nor one of Kafka's classes; others cannot be loaded."""


def assignor_names(listed: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the listed assignors, the default first; UnknownAssignor."""
    names = []
    for each in listed:
        name = _OF_CLASSES.get(each, each)
        if name not in ASSIGNORS:
            raise UnknownAssignor(f"Class {each} cannot be found")
        names.append(name)
    return tuple(names)
