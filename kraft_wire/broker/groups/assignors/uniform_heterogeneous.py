"""The `uniform` assignor for members with different subscriptions.

Members keep the partitions that they were to have. Free ones go to the least loaded subscribers.
Then each topic moves partitions from its most to its least loaded subscribers, in rounds, until one
changes nothing.
"""

from struct import Struct
from typing import Final

from kraft_wire.broker.groups.assignors.member_balance import MemberBalance
from kraft_wire.broker.groups.assignors.spec import (
    AssignmentFailed,
    Given,
    GroupSpec,
    Target,
    copy_of,
    given,
    target_of,
)
from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.model import Uuid

__all__ = ["assign_heterogeneous"]

_ROUNDS_MAX: Final = 16
_SIGNED: Final = Struct(">qq")


def assign_heterogeneous(group: GroupSpec) -> dict[str, Target]:
    """Return the targets of all members; {} if no member subscribes to a topic.

    AssignmentFailed for a former partition that does not exist.
    """
    work = _Work(group)
    if not work.subscribers:
        return {}
    work.keep_former()
    work.assign_free()
    work.balance()
    return {
        member_id: target_of(made) for member_id, made in zip(group.members, work.made, strict=True)
    }


class _Work:
    """A new assignment while it is made; members are numbered in their order."""

    def __init__(self, group: GroupSpec) -> None:
        self._group = group
        self._counts = group.partition_counts
        self.subscribers: dict[Uuid, list[int]] = {}
        """The members of each topic, ascending."""
        for number, member in enumerate(group.members.values()):
            for topic_id in member.topic_ids:
                self.subscribers.setdefault(topic_id, []).append(number)
        self.made: list[Given] = []
        self._is_copied = [False] * len(group.members)
        self._sizes = [0] * len(group.members)
        """How many partitions each member has."""
        self._owners: dict[Uuid, list[int | None]] = {
            topic_id: [None] * self._counts[topic_id] for topic_id in self.subscribers
        }

    def keep_former(self) -> None:
        """Keep the former partitions of topics that a member still subscribes to."""
        for number, member in enumerate(self._group.members.values()):
            former = given(member.target)
            self.made.append(former)
            for topic_id, partitions in former.items():
                if topic_id not in member.topic_ids:
                    self._changed(number).pop(topic_id)
                    continue
                self._sizes[number] += len(partitions)
                for partition in partitions:
                    if not 0 <= partition < self._counts[topic_id]:
                        raise AssignmentFailed(f"there is no partition {partition}")
                    self._owners[topic_id][partition] = number

    def assign_free(self) -> None:
        """Give the partitions without an owner to the least loaded subscribers."""
        free = {
            topic_id: [partition for partition, owner in enumerate(owners) if owner is None]
            for topic_id, owners in self._owners.items()
        }
        for topic_id in self._sorted([each for each, partitions in free.items() if partitions]):
            balance = MemberBalance(self.subscribers[topic_id], self._sizes)
            for partition in free[topic_id]:
                self._move(topic_id, partition, balance.next_taker())

    def balance(self) -> None:
        """Balance topic after topic, until all topics since the last change were looked at."""
        topic_ids = self._sorted([each for each in self.subscribers if self._can_move(each)])
        last_changed: int | None = None
        for _ in range(_ROUNDS_MAX):
            for position, topic_id in enumerate(topic_ids):
                if position == last_changed:
                    return
                if self._balance_topic(topic_id) or last_changed is None:
                    last_changed = position

    def _can_move(self, topic_id: Uuid) -> bool:
        return len(self.subscribers[topic_id]) >= 2

    def _balance_topic(self, topic_id: Uuid) -> bool:
        """Move partitions to less loaded subscribers; whether any moved."""
        subscribers = self.subscribers[topic_id]
        sizes = [self._sizes[number] for number in subscribers]
        if max(sizes) - min(sizes) <= 1:
            return False
        owned: dict[int, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic_id]):
            assert owner is not None, (topic_id, partition)
            owned.setdefault(owner, []).append(partition)
        balance = MemberBalance(subscribers, self._sizes)
        has_moved = False
        while not balance.is_even():
            giver = balance.next_giver()
            while giver is not None and not owned.get(giver):
                balance.exclude_giver()
                giver = balance.next_giver()
            if giver is None:
                break
            partition = owned[giver].pop()
            taker = balance.next_taker()
            if balance.is_even():
                break
            self._move(topic_id, partition, taker)
            has_moved = True
        return has_moved

    def _move(self, topic_id: Uuid, partition: int, taker: int) -> None:
        owners = self._owners[topic_id]
        former = owners[partition]
        if former is not None:
            made = self._changed(former)
            made[topic_id].pop(partition)
            if not len(made[topic_id]):
                made.pop(topic_id)
            self._sizes[former] -= 1
        share = -(-self._counts[topic_id] // len(self.subscribers[topic_id]))
        fresh: JavaHashMap[int, None] = JavaHashMap(int(share / 0.75 + 1))
        self._changed(taker).compute_if_absent(topic_id, fresh)[partition] = None
        owners[partition] = taker
        self._sizes[taker] += 1

    def _changed(self, number: int) -> Given:
        """Return a member's part to change: copied once, as the copy's order differs."""
        if not self._is_copied[number]:
            self.made[number], self._is_copied[number] = copy_of(self.made[number]), True
        return self.made[number]

    def _sorted(self, topic_ids: list[Uuid]) -> list[Uuid]:
        return sorted(topic_ids, key=self._topic_order)

    def _topic_order(self, topic_id: Uuid) -> tuple[float, int, tuple[int, ...]]:
        """Topics with the most partitions for each subscriber come first."""
        subscriber_count = len(self.subscribers[topic_id])
        density = self._counts[topic_id] / subscriber_count
        return -density, subscriber_count, _SIGNED.unpack(topic_id)
