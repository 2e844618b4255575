"""The names of the server assignors that brokers may list, for consumer and share groups.

KIP-848: `group.consumer.assignors`; KIP-932: `group.share.assignors`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

__all__ = [
    "RANGE",
    "SIMPLE",
    "UNIFORM",
    "UnknownAssignor",
    "assignor_names",
    "check_share_assignors",
]

UNIFORM: Final = "uniform"
RANGE: Final = "range"
SIMPLE: Final = "simple"

_PACKAGE: Final = "org.apache.kafka.coordinator.group.assignor."
_OF_CLASSES: Final[Mapping[str, str]] = {
    _PACKAGE + "UniformAssignor": UNIFORM,
    _PACKAGE + "RangeAssignor": RANGE,
}
"""Kafka's classes, which may be listed instead of the names."""
_OF_SHARE_GROUPS: Final = (SIMPLE, _PACKAGE + "SimpleAssignor")


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


def check_share_assignors(listed: Sequence[str]) -> None:
    """Check that the only assignor of share groups is listed; UnknownAssignor."""
    for each in listed:
        if each not in _OF_SHARE_GROUPS:
            raise UnknownAssignor(f"Class {each} cannot be found")
    if len(listed) != 1:
        raise UnknownAssignor(
            f"group.share.assignors must contain exactly one assignor, but found {len(listed)}"
        )
