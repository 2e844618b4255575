"""The assignor of share groups gives what Apache's gives, in the order of its records."""

from __future__ import annotations

from collections import Counter

import pytest

from kraft_wire.settings.server_assignors import UnknownAssignor, check_share_assignors
from tests.broker.groups.assignors.groups import SIMPLE, assigned
from tests.broker.groups.assignors.recorded import recorded

SHARED = [(group, targets) for group, targets in recorded() if group["assignor"] == SIMPLE]


@pytest.mark.parametrize("number", range(len(SHARED)))
def test_targets_are_those_of_apache(number: int) -> None:
    """932-ASSIGN-01, 932-ASSIGN-02, 932-ASSIGN-03."""
    group, targets = SHARED[number]
    ours = assigned(group)
    assert (ours and dict(sorted(ours.items()))) == (targets and dict(sorted(targets.items())))


@pytest.mark.parametrize("number", range(len(SHARED)))
def test_only_initialised_partitions_are_shared_by_about_as_many_members(number: int) -> None:
    """932-ASSIGN-01, 932-ASSIGN-04: the twin of the comparison, without Apache and from nothing."""
    group, _ = SHARED[number]
    names = group["members"][0]["names"]
    fresh = [{**member, "names": names, "target": []} for member in group["members"]]
    targets = assigned({**group, "homogeneous": True, "members": fresh})
    assert targets is not None
    parts = [
        [(text, partition) for text, partitions in target for partition in partitions]
        for target in targets.values()
    ]
    ready = [
        (text, partition)
        for name, text, _ in group["topics"]
        if name in names
        for partition in group["assignable"].get(text, ())
    ]
    holders = Counter(each for part in parts for each in part)
    assert sorted(holders) == sorted(ready)
    assert max(map(len, parts), default=0) - min(map(len, parts), default=0) <= 1
    assert {*holders.values()} <= {-(-len(fresh) // max(len(ready), 1))}


@pytest.mark.parametrize(
    "listed", [(SIMPLE,), ("org.apache.kafka.coordinator.group.assignor.SimpleAssignor",)]
)
def test_the_simple_assignor_is_listed_by_its_name_or_class(listed: tuple[str, ...]) -> None:
    """932-ASSIGN-05."""
    check_share_assignors(listed)


@pytest.mark.parametrize(
    ("listed", "words"),
    [
        ((SIMPLE, SIMPLE), "group.share.assignors must contain exactly one assignor, but found 2"),
        ((), "group.share.assignors must contain exactly one assignor, but found 0"),
        (("uniform",), "Class uniform cannot be found"),
    ],
)
def test_exactly_one_share_assignor_may_be_listed(listed: tuple[str, ...], words: str) -> None:
    """932-ASSIGN-05."""
    with pytest.raises(UnknownAssignor, match=words):
        check_share_assignors(listed)
