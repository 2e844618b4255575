"""What clients choose the number of costs no more than that number, of one group or of all."""

from __future__ import annotations

from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.coordination.timers import Timers
from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.classic.member import Member
from kraft_wire.broker.groups.classic.timers import Timer, TimerKind

MANY = 300


class Name(str):
    """A name that counts how often it, or one of its kind, is compared."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Name.comparisons += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


def member(number: int, protocols: list[Name]) -> Member:
    return Member(
        member_id=f"member-{number}",
        group_instance_id=None,
        client_id="client",
        client_host="/host",
        rebalance_timeout_ms=1,
        session_timeout_ms=1,
        protocol_type="anything",
        protocols=dict.fromkeys(protocols, b""),
    )


def test_a_vote_costs_as_many_looks_as_there_are_protocols() -> None:
    """Two joins of a megabyte each kept the node busy for minutes, in each generation again."""
    group = ClassicGroup("group", MemoryUse(lambda: 1 << 30), 0)
    common = [Name(f"common-{number}") for number in range(MANY)]
    group.add(member(1, [Name(f"own-{number}") for number in range(MANY)] + common), None)
    group.add(member(2, [Name(name) for name in common]), None)
    Name.comparisons = 0
    assert group.select_protocol() == common[0]
    assert Name.comparisons < 10 * MANY


def test_a_group_that_goes_looks_at_its_own_timers_alone() -> None:
    """One DeleteGroups of all the groups that there may be kept the node busy for hours."""
    timers = Timers[Timer]()
    groups = [Name(f"group-{number}") for number in range(MANY)]
    for group in groups:
        for kind in (TimerKind.JOIN, TimerKind.SYNC):
            timers.schedule(Timer(kind, group), 10)
        timers.schedule(Timer(TimerKind.MEMBER, group, "member"), 5)
    assert timers.pop_due(5) == Timer(TimerKind.MEMBER, groups[0], "member")
    timers.cancel(Timer(TimerKind.SYNC, groups[1]))
    Name.comparisons = 0
    for group in groups[:30]:
        timers.cancel_all_of(group)
    assert Name.comparisons < 10 * MANY
    assert len(timers) == 3 * (MANY - 30)
    for group in groups:
        timers.cancel_all_of(group)
    assert (len(timers), timers.deadline_ms()) == (0, None)
