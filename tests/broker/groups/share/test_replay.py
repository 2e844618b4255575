"""A share group that is made of its records, one after the other, and of their tombstones."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.java_collections import java_hash_set
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.member import ShareMember
from kraft_wire.broker.groups.share.records import (
    current_assignment_record,
    epoch_record,
    group_tombstones,
    member_record,
    member_tombstones,
    state_partitions_record,
    target_epoch_record,
    target_record,
)
from kraft_wire.broker.groups.share.replay import replay_record, share_group_remains
from kraft_wire.broker.groups.share.state_partitions import (
    DeletingTopics,
    NamedPartitions,
    PartitionsByTopic,
    StatePartitions,
    partition_set,
)
from kraft_wire.model import Uuid
from kraft_wire.sim.judge.group_memory import group_bytes
from kraft_wire.wire.message import MalformedMessage
from tests.broker.groups.harness import image_of
from tests.broker.groups.streams.our_answers import topics_image

ONE, TWO = (Uuid(bytes([each]) * 16) for each in (1, 2))
MEMBER = ShareMember(
    "m", "r", "c", "/h", java_hash_set(["a", "b"]), 9, 8, assigned={ONE: (0, 1), TWO: (3,)}
)
OTHER = ShareMember("n", subscribed_topic_names=java_hash_set(["b"]), member_epoch=9)


class Replayed:
    """A group and the memory that is counted for it."""

    def __init__(self) -> None:
        self.memory = MemoryUse(lambda: 1 << 30)
        self.group = ShareGroup("group", self.memory)

    def take(self, records: Iterable[CoordinatorRecord]) -> None:
        for key, value in records:
            replay_record(self.group, key, value)
            assert self.memory.total_bytes == group_bytes(self.group)


def partitions(**topics: list[int]) -> PartitionsByTopic:
    found = PartitionsByTopic()
    for name, numbers in topics.items():
        found[ONE if name == "one" else TWO] = NamedPartitions(name, partition_set(numbers))
    return found


def state_partitions() -> StatePartitions:
    deleting = DeletingTopics()
    deleting[Uuid(bytes([3]) * 16)] = "three"
    return StatePartitions(partitions(one=[0, 1]), partitions(two=[3]), deleting)


def replayed() -> Replayed:
    made = Replayed()
    made.take(
        [
            member_record("group", MEMBER),
            member_record("group", OTHER),
            epoch_record("group", 9, 77),
            target_record("group", "m", {TWO: (3,), ONE: (0, 1)}),
            target_epoch_record("group", 8, 99),
            current_assignment_record("group", MEMBER),
            current_assignment_record("group", OTHER),
            state_partitions_record("group", state_partitions()),
        ]
    )
    return made


def test_group_is_what_its_records_say() -> None:
    group = replayed().group
    assert dict(group.members.items()) == {"m": MEMBER, "n": OTHER}
    assert [dict(each.assigned) for each in group.members.values()] == [
        {ONE: (0, 1), TWO: (3,)},
        {},
    ]
    assert (group.epoch, group.metadata_hash) == (9, 77)
    assert (group.assignment_epoch, group.assignment_timestamp_ms) == (8, 99)
    assert {each: dict(target) for each, target in group.targets.items()} == {
        "m": {ONE: (0, 1), TWO: (3,)}
    }
    assert dict(group.subscribers.items()) == {"a": 1, "b": 2}
    subscribed = [group.is_subscribed_to(each) for each in ("a", "b", "c")]
    assert (subscribed, group.is_homogeneous) == ([True, True, False], False)
    stored, expected = group.state_partitions, state_partitions()
    assert stored is not None
    for kind in ("initializing", "initialized", "deleting"):
        assert (
            dict(getattr(stored, kind).items()).keys()
            == dict(getattr(expected, kind).items()).keys()
        )
    assert [(each.name, list(each.partitions)) for each in stored.initializing.values()] == [
        ("one", [0, 1])
    ]
    assert (group.state_name, group.is_empty) == ("Stable", False)


def test_removed_member_leaves_nothing_behind() -> None:
    made = replayed()
    group = made.group
    current, target, metadata = member_tombstones("group", "m")
    made.take([current])
    gone = group.members.get("m")
    assert gone is not None
    assert (gone.member_epoch, gone.previous_member_epoch, dict(gone.assigned)) == (-1, -1, {})
    made.take([target])
    assert len(group.targets) == 0
    made.take([metadata])
    assert (list(group.members), dict(group.subscribers.items())) == (["n"], {"b": 1})
    assert group.is_homogeneous
    made.take([*member_tombstones("group", "m"), *member_tombstones("group", "n")])
    assert (group.is_empty, group.state_name, len(group.subscribers)) == (True, "Empty", 0)


def test_tombstones_of_the_group_end_it_with_the_last() -> None:
    made = replayed()
    *_, metadata = member_tombstones("group", "m")
    made.take([metadata])
    assert len(made.group.targets) == 0
    records = group_tombstones("group", ["m", "n"])
    made.take(records)
    group = made.group
    assert (group.is_empty, group.state_partitions) == (True, None)
    assert (group.assignment_epoch, group.assignment_timestamp_ms, group.epoch) == (-1, 0, 9)
    assert [share_group_remains(key, value) for key, value in records] == [True] * 8 + [False]
    group.release()
    assert made.memory.total_bytes == 0


def test_value_of_a_later_version_is_refused() -> None:
    made = replayed()
    key, value = epoch_record("group", 10, 1)
    assert value is not None
    with pytest.raises(MalformedMessage, match="share group value of version 1"):
        replay_record(made.group, key, b"\0\1" + value[2:])
    assert made.group.epoch == 9


def test_hash_of_the_topics_is_due_when_one_may_have_changed() -> None:
    """Also a change that is undone before the next heartbeat, once it was seen."""
    group, image = Replayed().group, topics_image({"a": 1, "b": 1})
    assert group.is_metadata_due(image)
    group.note_metadata(["a", "gone"], image)
    assert not group.is_metadata_due(image)
    topics = {name: image.topics_by_name[name] for name in ("a",)}
    assert not group.is_metadata_due(image_of(topics))
    group.keep_metadata_due(image_of(topics))
    assert not group.is_metadata_due(image)
    changed = topics_image({"a": 2})
    assert group.is_metadata_due(changed)
    assert not group.is_metadata_due(image)
    group.keep_metadata_due(changed)
    assert group.is_metadata_due(image)
