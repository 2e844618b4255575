"""The `simple` assignor of share groups (KIP-932): a partition may belong to several members.

Each partition gets about as many members as every other one, and each member about as many
partitions. Members keep what they were to have, where the balance allows it. With different
subscriptions each topic is balanced alone, among its subscribers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Generic, TypeVar

from kraft_wire.broker.groups.assignors.spec import (
    AssignmentFailed,
    Given,
    GroupSpec,
    MemberSpec,
    Target,
    copy_of,
    given,
    target_of,
)
from kraft_wire.broker.groups.java_collections import JavaHashMap, java_hash_set
from kraft_wire.model import Uuid

__all__ = ["assign"]

_Key = TypeVar("_Key", int, tuple[Uuid, int])
"""A partition of one topic, or of any."""

_MemberSet = JavaHashMap[int, None]
"""Members, by their places in the group."""


class _Parts:
    """The members' parts while they are made; one that is changed is a copy of the former one."""

    def __init__(self, members: Sequence[MemberSpec]) -> None:
        self.former = [given(member.target) for member in members]
        self._changed: dict[int, Given] = {}

    def changed(self, member: int) -> Given:
        """Return a member's part to change; the copy's order differs."""
        part = self._changed.get(member)
        if part is None:
            part = self._changed[member] = copy_of(self.former[member])
        return part

    def made(self, member: int) -> Target:
        """Return a member's part as it is now."""
        return target_of(self._changed.get(member, self.former[member]))


@dataclass(slots=True)
class _Pool(Generic[_Key]):
    """Partitions that are balanced together."""

    parts: _Parts
    subscribers: Sequence[int]
    wanted: Sequence[_Key]
    """The partitions that may be assigned."""
    place: Callable[[_Key], tuple[Uuid, int]]
    """Topic id and number of a partition."""
    holders: JavaHashMap[_Key, _MemberSet] = field(init=False)
    held: dict[int, JavaHashMap[_Key, None]] = field(default_factory=dict)
    """Member to partitions, as `holders`."""
    sharing: int = field(init=False)
    """How many members each partition is to have."""
    wishes: dict[int, int] = field(init=False)
    """Subscriber to the number of partitions that it is to have."""

    def __post_init__(self) -> None:
        self.holders = JavaHashMap(_capacity(len(self.wanted)))
        self.sharing = -(-len(self.subscribers) // len(self.wanted)) if self.wanted else 0
        each = self.sharing * len(self.wanted) / len(self.subscribers)
        self.wishes = {
            member: ceil(each * (number + 1)) - ceil(each * number)
            for number, member in enumerate(self.subscribers)
        }

    def keep(self, member: int, key: _Key) -> None:
        """Note what a member was to have before."""
        self.holders.compute_if_absent(key, JavaHashMap())[member] = None
        self._held_by(member)[key] = None

    def balance(self) -> None:
        """Take what is too much, then give what is missing; AssignmentFailed."""
        for member, keys in self.held.items():
            for key in list(keys)[: max(len(keys) - self.wishes.get(member, 0), 0)]:
                self._take(member, key)
        for key, members in self.holders.items():
            for member in list(members)[: max(len(members) - self.sharing, 0)]:
                self._take(member, key)
        for key in self.wanted:
            self.holders.compute_if_absent(key, JavaHashMap())
        self._give()

    def _give(self) -> None:
        """Give partitions to members that have too few, round and round."""
        unfilled = [each for each in sorted(self.subscribers) if self._lacks(each)]
        at, has_given = 0, False
        for key, members in self.holders.items():
            missing = self.sharing - len(members)
            while missing > 0:
                if at == len(unfilled):
                    if not has_given:
                        break
                    if not unfilled:
                        raise AssignmentFailed("no member lacks a partition")
                    at, has_given = 0, False
                member = unfilled[at]
                at += 1
                if member in members:
                    continue
                self._add(member, key)
                missing, has_given = missing - 1, True
                if not self._lacks(member):
                    at -= 1
                    del unfilled[at]
            if not unfilled:
                break

    def _lacks(self, member: int) -> bool:
        return len(self.held.get(member, ())) < self.wishes[member]

    def _held_by(self, member: int) -> JavaHashMap[_Key, None]:
        return self.held.setdefault(member, JavaHashMap())

    def _take(self, member: int, key: _Key) -> None:
        topic_id, partition = self.place(key)
        self.parts.changed(member)[topic_id].pop(partition)
        self.holders[key].pop(member)
        self.held[member].pop(key)

    def _add(self, member: int, key: _Key) -> None:
        topic_id, partition = self.place(key)
        self.parts.changed(member).compute_if_absent(topic_id, JavaHashMap())[partition] = None
        self._held_by(member)[key] = None


def assign(group: GroupSpec) -> dict[str, Target]:
    """Return the targets of all members; {} if they subscribe to nothing. AssignmentFailed."""
    members = list(group.members.values())
    if not any(each.names_count if group.is_homogeneous else each.topic_ids for each in members):
        return {}
    parts = _Parts(members)
    if group.is_homogeneous:
        _balance_together(group, members, parts)
    else:
        _balance_by_topic(group, members, parts)
    return {member_id: parts.made(number) for number, member_id in enumerate(group.members)}


def _balance_together(group: GroupSpec, members: Sequence[MemberSpec], parts: _Parts) -> None:
    topic_ids = members[0].topic_ids
    wanted = [
        (topic_id, partition) for topic_id in topic_ids for partition in _free(group, topic_id)
    ]
    pool: _Pool[tuple[Uuid, int]] = _Pool(parts, range(len(members)), wanted, lambda key: key)
    for member, former in enumerate(parts.former):
        for topic_id, partitions in former.items():
            if topic_id not in topic_ids:
                parts.changed(member).pop(topic_id)
                continue
            for partition in partitions:
                pool.keep(member, (topic_id, partition))
        if len(pool.held.get(member, ())) >= max(pool.wishes[member], 1):
            parts.changed(member)
    pool.balance()


def _balance_by_topic(group: GroupSpec, members: Sequence[MemberSpec], parts: _Parts) -> None:
    for topic_id in java_hash_set(each for member in members for each in member.topic_ids):
        subscribers = [n for n, member in enumerate(members) if topic_id in member.topic_ids]
        pool: _Pool[int] = _Pool(parts, subscribers, _free(group, topic_id), _within(topic_id))
        for member, former in enumerate(parts.former):
            for partition in former.get(topic_id) or ():
                pool.keep(member, partition)
        pool.balance()


def _within(topic_id: Uuid) -> Callable[[int], tuple[Uuid, int]]:
    return lambda partition: (topic_id, partition)


def _free(group: GroupSpec, topic_id: Uuid) -> list[int]:
    """Return the partitions of a topic that may be assigned."""
    ready = group.assignable.get(topic_id, ())
    return [each for each in range(group.partition_counts[topic_id]) if each in ready]


def _capacity(key_count: int) -> int:
    return int((key_count + 1) / 0.75 + 1)
