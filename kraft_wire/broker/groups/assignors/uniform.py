"""The `uniform` assignor for members that all subscribe to the same topics.

Each member keeps what it was to have, up to its share; the rest goes to the members that have less,
in the order of the members. Shares differ by one partition at most. For different subscriptions see
`uniform_heterogeneous`.
"""

from dataclasses import dataclass

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
from kraft_wire.broker.groups.assignors.uniform_heterogeneous import assign_heterogeneous
from kraft_wire.broker.groups.java_collections import JavaHashMap, java_hash_set
from kraft_wire.model import Uuid

__all__ = ["assign"]


@dataclass(slots=True)
class _Share:
    """A member's part while it is made."""

    made: Given
    quota: int
    """How many partitions the member lacks."""
    is_copied: bool = False
    """Whether `made` is a copy of the former target already."""

    def copied(self) -> Given:
        """Return the part to change: copied once, as the copy's order differs."""
        if not self.is_copied:
            self.made, self.is_copied = copy_of(self.made), True
        return self.made


def assign(group: GroupSpec) -> dict[str, Target]:
    """Return the targets of all members; {} if there is nothing to give. AssignmentFailed."""
    if not len(group.members):
        return {}
    if not group.is_homogeneous:
        return assign_heterogeneous(group)
    first = group.members[next(iter(group.members))]
    if not first.topic_ids:
        return {}
    capacity = max(int(first.names_count / 0.75) + 1, 16)
    topic_ids = java_hash_set(first.topic_ids, capacity)
    free, total_count = _free_partitions(group, topic_ids)
    shares: dict[str, _Share] = {}
    quota, extra_count = divmod(total_count, len(group.members))
    for index, (member_id, member) in enumerate(group.members.items()):
        has_extra = extra_count > 0
        share = _kept(member, topic_ids, quota + has_extra, free)
        if share.quota and has_extra and len(group.members) - index > extra_count:
            share.quota, has_extra = share.quota - 1, False
        extra_count -= has_extra
        shares[member_id] = share
    _give(shares, free)
    return {member_id: target_of(share.made) for member_id, share in shares.items()}


def _free_partitions(
    group: GroupSpec, topic_ids: JavaHashMap[Uuid, None]
) -> tuple[list[tuple[Uuid, int]], int]:
    """Return the partitions that no member was to have, and the number of all partitions."""
    held = {
        (topic_id, partition): None
        for member in group.members.values()
        for topic_id, partitions in member.target.items()
        for partition in partitions
    }
    every = [
        (topic_id, partition)
        for topic_id in topic_ids
        for partition in range(group.partition_counts[topic_id])
    ]
    return [each for each in every if each not in held], len(every)


def _kept(
    member: MemberSpec,
    topic_ids: JavaHashMap[Uuid, None],
    quota: int,
    free: list[tuple[Uuid, int]],
) -> _Share:
    """Keep a member's former partitions up to its quota; the others are free."""
    former = given(member.target)
    share = _Share(former, quota)
    for topic_id, partitions in former.items():
        if topic_id not in topic_ids:
            share.copied().pop(topic_id)
        elif len(partitions) <= share.quota:
            share.quota -= len(partitions)
        else:
            for partition in list(partitions)[share.quota :]:
                _drop(share.copied(), topic_id, partition)
                free.append((topic_id, partition))
            share.quota = 0
    return share


def _drop(made: Given, topic_id: Uuid, partition: int) -> None:
    made[topic_id].pop(partition)
    if not len(made[topic_id]):
        made.pop(topic_id)


def _give(shares: dict[str, _Share], free: list[tuple[Uuid, int]]) -> None:
    """Give the free partitions to the members that lack some; AssignmentFailed."""
    left = iter(free)
    for share in shares.values():
        if not share.quota:
            continue
        made = share.copied()
        for _ in range(share.quota):
            entry = next(left, None)
            if entry is None:
                break
            made.compute_if_absent(entry[0], JavaHashMap())[entry[1]] = None
    entry = next(left, None)
    if entry is not None:
        raise AssignmentFailed(f"{entry} is left over")
