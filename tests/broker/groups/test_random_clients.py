"""Clients that say anything in any order: no assertion falls, nothing hangs, the books agree.

Each seed is a run of random requests, mostly plausible, with time, refused appends and restarts in
between. After every step the group's books are checked against the members themselves; at the end
every parked request must get its answer by time alone.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.classic.states import GroupState
from kraft_wire.broker.groups.classic.timers import Timer, TimerKind
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.leave_group import LeaveGroupRequest, MemberIdentity
from kraft_wire.wire.generated.list_groups import ListGroupsRequest
from kraft_wire.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.broker.groups.harness import Harness, Reply
from tests.broker.groups.requests import Member, fetch_group

STEPS = 400
GROUPS = ("a", "b")
SESSION_MAX_MS = 1_800_000


class Chaos:
    """One run."""

    def __init__(self, seed: int) -> None:
        self.random_source = random.Random(seed)
        self.settings = {
            "group_initial_rebalance_delay_ms": self.random_source.choice((0, 500)),
            "group_max_size": self.random_source.choice((2, 3, 1_000)),
        }
        self.harness = Harness(**self.settings)
        self.harness.create_topic("topic", 2)
        self.clients = [self.client(n) for n in range(8)]
        self.parked: list[Reply] = []

    def client(self, number: int) -> Member:
        pick = self.random_source.choice
        return Member(
            self.harness,
            pick(GROUPS),
            client_id=f"client-{number}",
            instance_id=pick((None, None, "one", "two")),
            protocols=pick((("range",), ("range", "sticky"), ("sticky", "range"), ("other",))),
            protocol_type=pick(("consumer",) * 5 + ("connect",)),
            topics=pick((("topic",), ("topic", "more"))),
            session_timeout_ms=pick((6_000, 10_000, SESSION_MAX_MS)),
            rebalance_timeout_ms=pick((-1, 0, 1_000, 60_000)),
            join_version=pick((0, 3, 4, 5, 7, 9)),
            sync_version=pick((3, 5)),
            metadata=pick(({}, {}, {"range": b"?"})),
        )

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()
            self.check()
        self.harness.store.refusals = []
        self.harness.advance(2 * SESSION_MAX_MS)
        self.check()
        unanswered = [reply for reply in self.harness.replies.values() if reply.is_parked]
        assert unanswered == []

    def step(self) -> None:
        step = self.random_source.choice(
            [self.join] * 6
            + [self.sync] * 5
            + [self.heartbeat] * 3
            + [self.commit] * 2
            + [self.leave, self.remove, self.administer, self.wait, self.wait, self.wait]
            + [self.change, self.refuse, self.restart]
        )
        step(self.random_source.choice(self.clients))

    def join(self, client: Member) -> None:
        if client.instance_id is not None and client.join_version < 5:
            client.join_version = 5
        client.join_once()
        self.learn(client)

    def learn(self, client: Member) -> None:
        """Take over what an answered join says, as clients do."""
        reply = client.joining
        if reply is None or reply.is_parked:
            return
        if reply.error == ErrorCode.NONE:
            client.joined()
        elif reply.error == ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = reply.response.member_id
        elif self.random_source.random() < 0.8:
            client.member_id, client.generation_id = "", -1
        client.joining = None

    def sync(self, client: Member) -> None:
        self.learn(client)
        members = [m for g in self.groups() if g.group_id == client.group_id for m in g.members]
        client.sync({member_id: b"x" * self.random_source.randrange(9) for member_id in members})

    def heartbeat(self, client: Member) -> None:
        self.learn(client)
        client.heartbeat(
            generation_id=client.generation_id + self.random_source.choice((0, 0, 0, 1))
        )

    def commit(self, client: Member) -> None:
        changes: dict[str, Any] = {}
        if self.random_source.random() < 0.3:
            changes = {"generation_id_or_member_epoch": -1, "member_id": ""}
        client.commit(offset=self.random_source.randrange(99), **changes)

    def leave(self, client: Member) -> None:
        client.leave(self.random_source.choice((0, 2, 3, 5)))

    def remove(self, client: Member) -> None:
        identities = [
            MemberIdentity(
                member_id=self.random_source.choice(("", client.member_id, "stranger")),
                group_instance_id=self.random_source.choice((None, "one", "two")),
            )
            for _ in range(self.random_source.randrange(3))
        ]
        request = LeaveGroupRequest(group_id=client.group_id, members=identities)
        self.harness.send(request, 5)

    def administer(self, client: Member) -> None:
        partitions = [OffsetDeleteRequestPartition(partition_index=n) for n in range(3)]
        topics = [OffsetDeleteRequestTopic(name="topic", partitions=partitions)]
        requests = [
            (DeleteGroupsRequest(groups_names=[client.group_id]), 2),
            (DescribeGroupsRequest(groups=[client.group_id]), 6),
            (ListGroupsRequest(), 5),
            (fetch_group(client.group_id), 9),
            (OffsetDeleteRequest(group_id=client.group_id, topics=topics), 0),
        ]
        self.harness.send(*self.random_source.choice(requests))

    def wait(self, client: Member) -> None:
        self.harness.advance(self.random_source.choice((0, 1, 100, 1_000, 3_000, 7_000, 60_000)))

    def change(self, client: Member) -> None:
        """The client starts anew, or as another kind of client."""
        fresh = self.client(self.clients.index(client))
        if self.random_source.random() < 0.5:
            fresh.member_id = self.random_source.choice(self.clients).member_id
        self.clients[self.clients.index(client)] = fresh

    def refuse(self, client: Member) -> None:
        refusals = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR)
        self.harness.store.refusals = [self.random_source.choice(refusals)]

    def restart(self, client: Member) -> None:
        if self.random_source.random() < 0.9:
            return
        self.harness.groups.runtime.stop()
        assert not [reply for reply in self.harness.replies.values() if reply.is_parked]
        now_ms = self.harness.now_ms
        self.harness = self.harness.restart(**self.settings)
        self.harness.advance(now_ms)
        for each in self.clients:
            each.door = self.harness
            each.joining = None

    def groups(self) -> list[ClassicGroup]:
        shard = self.shard()
        return list(shard.groups.values())

    def shard(self) -> GroupShard:
        (shard,) = self.harness.groups.shards()  # type: ignore[misc]  # loaded
        return shard

    def check(self) -> None:
        self.harness.settle()
        for group in self.groups():
            check_books(group)
            check_deadlines(self.shard(), group)


def check_books(group: ClassicGroup) -> None:
    """Counters and tables say what the members say."""
    members = list(group.members.values())
    assert group.joined_count == sum(m.awaiting_join is not None for m in members)
    assert (group.leader_id in group.members) if members else (group.leader_id is None)
    static = {m.group_instance_id: m.member_id for m in members if m.is_static}
    assert group.static_members == static
    assert not set(group.pending_members) & set(group.members)
    assert set(group.pending_sync_members) <= set(group.members)
    assert {m.protocol_type for m in members} <= {group.protocol_type}
    if group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        assert members
        assert all(group.protocol_name in m.protocols for m in members)
    if group.is_in(GroupState.EMPTY):
        assert not members
    if not group.is_in(GroupState.PREPARING_REBALANCE):
        assert group.joined_count == 0
    if not group.is_in(GroupState.COMPLETING_REBALANCE):
        assert all(m.awaiting_sync is None for m in members)


def check_deadlines(shard: GroupShard, group: ClassicGroup) -> None:
    """Whatever a group waits for has an end."""
    timers = shard.timers
    name = group.group_id
    for member in group.members.values():
        waits = member.awaiting_join is not None or member.awaiting_sync is not None
        assert waits or Timer(TimerKind.MEMBER, name, member.member_id) in timers
    for member_id in group.pending_members:
        assert Timer(TimerKind.MEMBER, name, member_id) in timers
    if group.is_in(GroupState.PREPARING_REBALANCE):
        assert Timer(TimerKind.JOIN, name) in timers
    if group.pending_sync_members:
        assert Timer(TimerKind.SYNC, name) in timers


@pytest.mark.parametrize("seed", range(30))
def test_random_clients_break_nothing(seed: int) -> None:
    Chaos(seed).run()
