"""A heartbeat of a large consumer group costs no look at its other members."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.member import ConsumerMember
from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.groups.test_consumer_group_heartbeat import (
    assigned,
    group_in,
    joining,
    send,
    staying,
    with_topic,
)

PARTITIONS = 6
TOPICS = [Uuid(bytes([number]) * 16) for number in range(2)]


class Unseen(dict[str, ConsumerMember]):
    """Members that may be looked up, and not walked through."""

    def _refuse(self, *_: Any) -> Any:
        raise AssertionError("a heartbeat looks at every member")

    values = items = keys = _refuse

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("a heartbeat looks at every member")


def drawn_partitions(chance: random.Random) -> JavaHashMap[Uuid, JavaHashMap[int, int]]:
    found: JavaHashMap[Uuid, JavaHashMap[int, int]] = JavaHashMap()
    for topic in chance.sample(TOPICS, chance.randrange(3)):
        found[topic] = JavaHashMap()
        for partition in chance.sample(range(PARTITIONS), chance.randrange(1, 4)):
            found.compute_if_absent(topic, JavaHashMap())[partition] = 1
    return found


def held(group: ConsumerGroup) -> Counter[tuple[Uuid, int]]:
    return Counter(
        (topic, partition)
        for member in group.members.values()
        for topics in (member.assigned, member.pending_revocation)
        for topic, partitions in topics.items()
        for partition in partitions
    )


def test_held_partitions_are_those_of_the_members_after_each_change() -> None:
    chance = random.Random(7)
    group = ConsumerGroup("group", MemoryUse(lambda: 1 << 30))
    for _ in range(500):
        member_id = f"member-{chance.randrange(5)}"
        if chance.randrange(4) == 0:
            group.remove_member(member_id)
        else:
            former = group.members.get(member_id) or ConsumerMember(member_id)
            changed = replace(former, assigned=drawn_partitions(chance))
            if chance.randrange(2):
                changed = replace(changed, pending_revocation=drawn_partitions(chance))
            group.put_member(changed)
        assert group.holders() == held(group)
    assert len(group.holders()) > 0


def test_a_step_of_a_member_looks_at_no_other_member() -> None:
    """A rebalance of 1,000 members cost 3,000 heartbeats that each looked at all of them twice."""
    harness = with_topic(PARTITIONS)
    send(harness, joining(member_id="first"))
    send(harness, joining(member_id="second"))
    group = group_in(harness)
    members: Any = Unseen(group.members.items())
    group.members = members
    revoking = send(harness, staying(2, member_id="first"))
    assert revoking.error == ErrorCode.NONE
    assert len(assigned(revoking)) == PARTITIONS // 2
    assert send(harness, staying(3, member_id="second")).error == ErrorCode.NONE
    assert group.assignment_epoch == group.epoch
