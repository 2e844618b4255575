"""Our server assignors give what Apache's give, in the order of its records."""

from __future__ import annotations

import pytest

from tests.broker.groups.assignors.__main__ import ApacheAssignors, compared
from tests.broker.groups.assignors.groups import EVERY, SIMPLE, Group, Targets, assigned
from tests.broker.groups.assignors.recorded import recorded

GROUPS = recorded()
EXCLUSIVE = [number for number, (group, _) in enumerate(GROUPS) if group["assignor"] != SIMPLE]


@pytest.mark.parametrize("number", range(len(GROUPS)))
def test_targets_are_those_of_apache(number: int) -> None:
    """848-ASSIGN-05, 848-ASSIGN-06, 848-ASSIGN-07, 848-ASSIGN-08, 848-ASSIGN-13."""
    group, targets = GROUPS[number]
    assert _ordered(assigned(group)) == _ordered(targets)


def test_the_recorded_groups_have_every_assignor_and_kind_of_subscription() -> None:
    kinds = {(group["assignor"], group["homogeneous"]) for group, _ in GROUPS}
    assert kinds == {(name, flag) for name in EVERY for flag in (True, False)}
    assert any(member["target"] for group, _ in GROUPS for member in group["members"])


@pytest.mark.java
def test_targets_of_fresh_groups_are_those_of_apache() -> None:
    apache = ApacheAssignors()
    assert sum(1 for _ in compared(apache, 77, 600)) == 600
    assert sum(1 for _ in compared(apache, 78, 600, (SIMPLE,))) == 600
    apache.close()


def _ordered(targets: Targets | None) -> Targets | None:
    """Return targets by member id: the members' own order is not part of a result."""
    return targets and dict(sorted(targets.items()))


def _given(group: Group) -> dict[str, int]:
    return {name: count for name, _, count in group["topics"]}


@pytest.mark.parametrize("number", EXCLUSIVE)
def test_each_subscribed_partition_is_given_once(number: int) -> None:
    """848-RECON-07: the twin of the comparison, without Apache."""
    group, _ = GROUPS[number]
    names = {text: name for name, text, _ in group["topics"]}
    subscribed = {name for member in group["members"] for name in member["names"]}
    given = sorted(
        (names[text], partition)
        for target in (assigned(group) or {}).values()
        for text, partitions in target
        for partition in partitions
    )
    assert given == sorted(
        (name, partition)
        for name, count in _given(group).items()
        if name in subscribed
        for partition in range(count)
    )
