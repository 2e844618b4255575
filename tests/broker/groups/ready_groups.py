"""Coordinators with groups that are ready to be asked about."""

from __future__ import annotations

from tests.broker.groups.harness import Harness
from tests.broker.groups.requests import Member, finish_rebalance


def harness_with_groups() -> Harness:
    """A stable group `stable` and one that only committed offsets, `simple`."""
    harness = Harness(offsets_partitions=5)
    harness.create_topic("topic")
    member = Member(harness, group_id="stable", instance_id="instance")
    member.join_once()
    harness.settle()
    finish_rebalance(member)
    Member(harness, group_id="simple").commit()
    return harness


def with_topic(**settings: int) -> Harness:
    """A coordinator that knows the topic `topic` of two partitions."""
    harness = Harness(**settings)
    harness.create_topic("topic", 2)
    return harness


def stable_member(harness: Harness, **fields: object) -> Member:
    """The only member of its group, with an assignment."""
    member = Member(harness, **fields)  # type: ignore[arg-type]  # fields of Member
    member.join()
    harness.settle()
    finish_rebalance(member)
    return member


def harness_with_delay(**settings: int) -> Harness:
    """A coordinator that waits a second for first members, so that several join at once."""
    return Harness(group_initial_rebalance_delay_ms=1_000, **settings)


def three_members(harness: Harness) -> tuple[Member, Member, Member]:
    """Three clients of one group, none of which has joined."""
    return tuple(Member(harness, client_id=f"client-{n}") for n in range(3))  # type: ignore[return-value]  # three by construction


def stable_group(harness: Harness, count: int = 3) -> tuple[Member, list[Member]]:
    """Return the leader and all members of a stable group, whatever the delay setting."""
    members = [Member(harness, client_id=f"client-{n}") for n in range(count)]
    for member in members:
        member.join()
    harness.advance(harness.settings.group_initial_rebalance_delay_ms * (count + 1))
    for _ in range(count):
        for member in members:
            if member.joining.response is not None and member.generation_id == -1:
                member.joined()
        if all(member.joining.response is not None for member in members):
            break
        for member in members:
            if member.joining.response is not None:
                member.join_once()
    return finish_rebalance(*members), members


def lose_coordination(harness: Harness) -> None:
    """Give the only partition of `__consumer_offsets` to another broker, once it has a record."""
    harness.create_topic("elsewhere")
    assert Member(harness, group_id="another").commit("elsewhere") == 0
    harness.lead("__consumer_offsets", leader=2, leader_epoch=1)


def begin_loading(harness: Harness) -> None:
    """Give it back; its records are read by `Harness.settle`."""
    harness.lead("__consumer_offsets", leader=1, leader_epoch=2)
