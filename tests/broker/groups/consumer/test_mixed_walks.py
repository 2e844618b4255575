"""Members of both protocols in one group: answers and records, byte for byte as Apache's.

A walk is compared up to the first step at which we differ on purpose (`_differs_on_purpose`).
"""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.wire.generated.group_metadata_value import GroupMetadataValue
from tests.broker.groups.consumer.apache_groups import Answer, Step
from tests.broker.groups.consumer.mixed_walk import MixedWalk
from tests.broker.groups.consumer.our_groups import OurGroups
from tests.broker.groups.consumer.recorded_walks import MIXED_WALKS, fresh, recorded
from tests.broker.groups.consumer.test_walks import comparable

Walked = list[tuple[Step, Answer]]
WALKS = recorded(MIXED_WALKS)
GROUP_METADATA = "0002"


@pytest.mark.parametrize("number", range(len(WALKS)))
def test_a_mixed_walk_is_answered_and_written_as_by_apache(number: int) -> None:
    """848-MIG-01, 848-MIG-02, 848-MIG-03, 848-MIG-05, 848-MIG-06, 848-MIG-07, 848-MIG-08,
    848-MIG-09, 848-MIG-10, 848-MIG-11, 848-MIG-12, 848-MIG-13."""
    assert compare(WALKS[number]) == len(WALKS[number])


def test_the_recorded_walks_go_both_ways_under_every_policy() -> None:
    policies = {walk[0][0]["settings"]["group.consumer.migration.policy"] for walk in WALKS}
    assert policies >= {"bidirectional", "upgrade", "downgrade", "disabled"}
    batches = [
        [(key[:4], value) for key, value in batch]
        for walk in WALKS
        for _, answer in walk
        for batch in answer.get("writes", ())
    ]
    upgrades = [b for b in batches if b[0] == (GROUP_METADATA, None) and len(b) > 6]
    downgrades = [b for b in batches if len(b) > 5 and b[-1][0] == GROUP_METADATA]
    assert (len(upgrades) > 5, len(downgrades) > 5) == (True, True)


@pytest.mark.java
def test_fresh_mixed_walks_are_answered_and_written_as_by_apache() -> None:
    walks = fresh(dict.fromkeys(range(9_000, 9_060), 80), MixedWalk)
    whole = sum(compare(walk) == len(walk) for walk in walks)
    assert whole > len(walks) // 2


def compare(walk: Walked) -> int:
    """Take a walk's steps, and return how many were compared."""
    ours = OurGroups()
    ours.drawn_ids = _drawn_ids(walk)
    upgrades = 0
    for number, (step, answer) in enumerate(walk):
        was_classic = number > 0 and _has_classic_members(ours)
        if number > 0 and _joins_emptiness(ours, step):
            return number
        found = _plain(step, ours.ask(step))
        expected = _plain(step, answer)
        upgrades += was_classic and _group(ours) is not None
        if not _is_same(expected, found):
            assert _differs_on_purpose(step, expected, found, upgrades), (number, step)
            return number
        _check_load(ours, step)
    return len(walk)


# --- Where we differ on purpose --------------------------------------------------------------


def _joins_emptiness(ours: OurGroups, step: Step) -> bool:
    """Kafka forgets an empty consumer group when a member joins it with an id, without a record."""
    group = _group(ours)
    joins = step["step"] == "classic join" and bool(step["request"]["memberId"])
    return joins and group is not None and group.is_empty


def _differs_on_purpose(step: Step, expected: Answer, found: Answer, upgrades: int) -> bool:
    """A leader that another order elects; a removed member's parked request, which we answer;
    timers that outlive, in Kafka, the time that a group was a classic one.
    """
    if _leaders(expected) != _leaders(found):
        return True
    if step["step"] == "classic leave":
        return len(found.get("completed", ())) > len(expected.get("completed", ()))
    return step["step"] == "advance" and upgrades > 1


def _leaders(answer: Answer) -> set[str]:
    return {each["leader"] for each in answer.get("completed", {}).values() if each.get("leader")}


# --- Comparison ------------------------------------------------------------------------------


def _plain(step: Step, answer: Answer) -> Answer:
    """Return an answer in a form that both make: an error is that of the response."""
    plain = {key: value for key, value in answer.items() if key != "message"}
    completed = {key: _sorted_members(each) for key, each in plain.pop("completed", {}).items()}
    if step["step"].startswith("classic"):
        error = plain.pop("error", None)
        if error is not None and "number" in step:
            completed[str(step["number"])] = {"errorCode": error}
        elif error is not None:
            plain["response"] = {"errorCode": error}
        plain.setdefault("writes", [])
    else:
        plain = comparable(
            {**plain, **({"message": answer["message"]} if "message" in answer else {})}
        )
    if "writes" in plain:
        plain["writes"] = [[_record(*each) for each in batch] for batch in plain["writes"]]
    return plain | {"completed": completed}


def _sorted_members(response: dict[str, Any]) -> dict[str, Any]:
    """The order of a classic group's members is that of a hash table in Kafka."""
    if "members" not in response:
        return response
    return {**response, "members": sorted(response["members"], key=lambda each: each["memberId"])}


def _record(key: str, value: str | None) -> tuple[str, Any]:
    if not key.startswith(GROUP_METADATA) or value is None:
        return key, value
    group = GroupMetadataValue.decode(bytes.fromhex(value), 3, 2)[0]
    group.members.sort(key=lambda each: each.member_id)
    return key, repr(group)


def _is_same(expected: Any, found: Any) -> bool:
    """Whether all that Apache's answer has is in ours; "" and null are both no name."""
    if isinstance(expected, dict):
        extra = set(found.get("completed", ())) - set(expected.get("completed", ()))
        return not extra and all(_is_same(each, found.get(key)) for key, each in expected.items())
    if isinstance(expected, list):
        return len(expected) == len(found) and all(map(_is_same, expected, found))
    return expected == found or (expected in (None, "") and found in (None, ""))


def _drawn_ids(walk: Walked) -> dict[int, str]:
    completed = [pair for _, answer in walk for pair in answer.get("completed", {}).items()]
    return {int(number): each["memberId"] for number, each in completed if each.get("memberId")}


# --- The log is the memory -------------------------------------------------------------------


def _check_load(ours: OurGroups, step: Step) -> None:
    """A coordinator that reads the log has the same consumer group, or classic generation."""
    if step["step"] != "list":
        return
    loaded = ours.loaded()
    for group_id, other in ours.shard.other_groups.items():
        again = loaded.other_groups[group_id]
        assert isinstance(other, ConsumerGroup)
        assert isinstance(again, ConsumerGroup)
        assert dict(again.members.items()) == dict(other.members.items())
        assert again.epoch == other.epoch
        assert again.assignment_epoch == other.assignment_epoch
        assert again.static_members == other.static_members
        assert dict(again.targets.items()) == dict(other.targets.items())
    assert set(loaded.other_groups) == set(ours.shard.other_groups)


def _group(ours: OurGroups) -> ConsumerGroup | None:
    group = ours.shard.other_groups.get("group")
    return group if isinstance(group, ConsumerGroup) else None


def _has_classic_members(ours: OurGroups) -> bool:
    group = ours.shard.groups.get("group")
    return group is not None and bool(group.members)
