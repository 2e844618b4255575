"""The names of the server assignors that `group.consumer.assignors` may list (KIP-848)."""

from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["RANGE", "UNIFORM", "UnknownAssignor", "assignor_names"]

UNIFORM: Final = "uniform"
RANGE: Final = "range"

_PACKAGE: Final = "org.apache.kafka.coordinator.group.assignor."
_OF_CLASSES: Final[Mapping[str, str]] = {
    _PACKAGE + "UniformAssignor": UNIFORM,
    _PACKAGE + "RangeAssignor": RANGE,
}
"""Kafka's classes, which may be listed instead of the names."""


class UnknownAssignor(ValueError):
    """An assignor that is neither a name nor one of Kafka's classes; others cannot be loaded."""


def assignor_names(listed: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the listed assignors, the default first; UnknownAssignor."""
    names = []
    for each in listed:
        name = _OF_CLASSES.get(each, each)
        if name not in (UNIFORM, RANGE):
            raise UnknownAssignor(f"Class {each} cannot be found")
        names.append(name)
    return tuple(names)
