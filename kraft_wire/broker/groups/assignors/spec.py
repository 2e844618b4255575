"""What a server assignor is given, and what it returns.

The order of everything counts: Apache's assignors walk hash tables, and the result depends on it.
Members come in the order of a `JavaHashMap`, topics of a member in the order of its names.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from typing import TypeAlias

from kraft_wire.broker.groups.java_collections import JavaHashMap, java_hash_set
from kraft_wire.frozen import frozen
from kraft_wire.model import Uuid

__all__ = [
    "AssignmentFailed",
    "Assignor",
    "Given",
    "GroupSpec",
    "MemberSpec",
    "Target",
    "copy_of",
    "given",
    "same_target",
    "target_of",
]

Target: TypeAlias = Mapping[Uuid, tuple[int, ...]]
"""Topic id to partitions, in the order in which a record lists them."""

Given: TypeAlias = JavaHashMap[Uuid, JavaHashMap[int, None]]
"""A target while it is made: topic id to a set of partitions."""


class AssignmentFailed(Exception):
    """The former targets name partitions that do not exist, or one partition twice.

    A classic group may have had such assignments, which its leader made.
    """


@frozen
class MemberSpec:
    """A member, as an assignor sees it."""

    instance_id: str | None
    topic_ids: tuple[Uuid, ...]
    """The subscribed topics that exist."""
    names_count: int
    """How many topics are subscribed, whether they exist or not."""
    target: Target
    """What the member was to have before."""


@frozen
class GroupSpec:
    """A group, as an assignor sees it."""

    members: JavaHashMap[str, MemberSpec]
    is_homogeneous: bool
    """Whether all members subscribe to the same topics."""
    partition_counts: Mapping[Uuid, int]
    """Of each subscribed topic."""
    assignable: Mapping[Uuid, Collection[int]] = field(default_factory=dict)
    """Share groups only: the partitions whose state is initialised."""


Assignor: TypeAlias = Callable[[GroupSpec], dict[str, Target]]
"""Returns the targets of members; one that is left out gets nothing. AssignmentFailed."""


def given(target: Target) -> Given:
    """Return a stored target as Apache reads it from its record."""
    found: Given = JavaHashMap()
    for topic_id, partitions in target.items():
        capacity = max(int(len(partitions) / 0.75) + 1, 16)
        found[topic_id] = java_hash_set(partitions, capacity)
    return found


def copy_of(target: Given) -> Given:
    """Return a copy to change."""
    copied: Given = JavaHashMap(len(target))
    for topic_id, partitions in target.items():
        capacity = max(int(len(partitions) / 0.75) + 1, 16)
        copied[topic_id] = java_hash_set(partitions, capacity)
    return copied


def target_of(made: Given) -> Target:
    """Return a made target, in its order."""
    return {topic_id: tuple(partitions) for topic_id, partitions in made.items()}


def same_target(first: Target, second: Target) -> bool:
    """Whether both have the same partitions, in any order."""
    return _sorted(first) == _sorted(second)


def _sorted(target: Target) -> dict[Uuid, list[int]]:
    return {topic_id: sorted(partitions) for topic_id, partitions in target.items()}
