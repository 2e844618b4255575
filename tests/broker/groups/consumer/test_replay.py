"""A consumer group that is made of its records, one after the other, and of their tombstones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.consumer.group import ConsumerGroup, ConsumerGroupState
from kraft_wire.broker.groups.consumer.member import ConsumerMember, MemberState
from kraft_wire.broker.groups.consumer.records import (
    current_assignment_record,
    epoch_record,
    group_tombstones,
    member_record,
    member_tombstones,
    regex_record,
    regex_tombstone,
    target_epoch_record,
    target_record,
)
from kraft_wire.broker.groups.consumer.replay import group_remains, replay_record
from kraft_wire.broker.groups.consumer.results import ResolvedRegex
from kraft_wire.sim.judge.group_memory import group_bytes
from kraft_wire.wire.message import MalformedMessage
from tests.broker.groups.consumer.test_written_records import ONE, TWO, having
from tests.broker.groups.harness import image_of
from tests.broker.groups.streams.our_answers import topics_image

MEMBER = ConsumerMember(
    "m",
    instance_id="i",
    rack_id="r",
    client_id="c",
    client_host="/h",
    subscribed_topic_names=("a", "b"),
    subscribed_topic_regex="x.*",
    rebalance_timeout_ms=7,
    server_assignor="range",
    member_epoch=9,
    previous_member_epoch=8,
    state=MemberState.UNREVOKED_PARTITIONS,
    assigned=having(ONE, _1=4, _2=9),
    pending_revocation=having(TWO, _0=3),
)
OTHER = ConsumerMember(
    "n", subscribed_topic_regex="x.*", member_epoch=9, assigned=having(TWO, _0=9)
)
REGEX = ResolvedRegex(("xa", "xb"), 3, 8)


class Replayed:
    """A group and the memory that is counted for it."""

    def __init__(self) -> None:
        self.memory = MemoryUse(lambda: 1 << 30)
        self.group = ConsumerGroup("group", self.memory)

    def take(self, records: Iterable[CoordinatorRecord]) -> None:
        for key, value in records:
            replay_record(self.group, key, value)
            assert self.memory.total_bytes == group_bytes(self.group)


def replayed() -> Replayed:
    made = Replayed()
    made.take(
        [
            member_record("group", MEMBER),
            member_record("group", OTHER),
            epoch_record("group", 9, 77),
            regex_record("group", "x.*", REGEX),
            target_record("group", "m", {TWO: (3,), ONE: (0, 1)}),
            target_epoch_record("group", 9, 99),
            current_assignment_record("group", MEMBER),
            current_assignment_record("group", OTHER),
        ]
    )
    return made


def test_group_is_what_its_records_say() -> None:
    group = replayed().group
    assert dict(group.members.items()) == {"m": MEMBER, "n": OTHER}
    assert (group.epoch, group.metadata_hash) == (9, 77)
    assert (group.assignment_epoch, group.assignment_timestamp_ms) == (9, 99)
    assert {each: dict(target) for each, target in group.targets.items()} == {
        "m": {TWO: (3,), ONE: (0, 1)}
    }
    assert dict(group.regexes.items()) == {"x.*": REGEX}
    assert dict(group.regex_users.items()) == {"x.*": 2}
    assert dict(group.assignor_users.items()) == {"range": 1}
    assert group.static_members == {"i": "m"}
    assert dict(group.holders()) == {(ONE, 1): 1, (ONE, 2): 1, (TWO, 0): 2}
    assert [group.is_subscribed_to(each) for each in ("a", "xb", "x")] == [True, True, False]
    assert (group.state, group.is_empty) == (ConsumerGroupState.RECONCILING, False)


def test_removed_member_leaves_nothing_behind() -> None:
    made = replayed()
    group = made.group
    current, target, metadata = member_tombstones("group", "m")
    made.take([current])
    gone = group.members.get("m")
    assert gone is not None
    assert (gone.member_epoch, gone.previous_member_epoch) == (-1, -1)
    assert (len(gone.assigned), len(gone.pending_revocation)) == (0, 0)
    assert dict(group.holders()) == {(TWO, 0): 1}
    made.take([target])
    assert len(group.targets) == 0
    made.take([metadata])
    assert (list(group.members), group.static_members) == (["n"], {})
    assert dict(group.regex_users.items()) == {"x.*": 1}
    assert dict(group.assignor_users.items()) == {}
    made.take([regex_tombstone("group", "x.*"), *member_tombstones("group", "m")])
    made.take(member_tombstones("group", "n"))
    assert (len(group.regexes), dict(group.holders()), group.is_empty) == (0, {}, True)
    assert group.state_name == "Empty"


def test_instance_is_of_the_member_that_took_it_over() -> None:
    made = replayed()
    made.take([member_record("group", replace(MEMBER, member_id="later"))])
    assert made.group.static_members == {"i": "later"}
    *_, metadata = member_tombstones("group", "m")
    made.take([metadata])
    assert made.group.static_members == {"i": "later"}


def test_tombstones_of_the_group_end_it_with_the_last() -> None:
    made = replayed()
    records = group_tombstones("group", ["m", "n"], ["x.*"])
    made.take(records)
    group = made.group
    assert (group.is_empty, len(group.regexes), len(group.targets)) == (True, 0, 0)
    assert (group.assignment_epoch, group.assignment_timestamp_ms, group.epoch) == (-1, 0, 9)
    assert [group_remains(key, value) for key, value in records] == [True] * 9 + [False]
    group.release()
    assert made.memory.total_bytes == 0


@pytest.mark.parametrize(
    ("epoch", "assigned", "member_epoch", "state"),
    [
        (10, 9, 9, ConsumerGroupState.ASSIGNING),
        (9, 9, 8, ConsumerGroupState.RECONCILING),
        (9, 9, 9, ConsumerGroupState.STABLE),
        (8, 9, 9, ConsumerGroupState.STABLE),
    ],
)
def test_state_is_that_of_the_slowest_step(
    epoch: int, assigned: int, member_epoch: int, state: ConsumerGroupState
) -> None:
    made = Replayed()
    made.take(
        [
            member_record("group", OTHER),
            epoch_record("group", epoch, 77),
            target_epoch_record("group", assigned, 99),
            current_assignment_record("group", replace(OTHER, member_epoch=member_epoch)),
        ]
    )
    assert (made.group.state, made.group.state_name) == (state, state.value)


def test_value_of_a_later_version_is_refused() -> None:
    made = replayed()
    key, value = epoch_record("group", 10, 1)
    assert value is not None
    with pytest.raises(MalformedMessage, match="consumer group value of version 1"):
        replay_record(made.group, key, b"\0\1" + value[2:])
    assert made.group.epoch == 9


def test_hash_of_the_topics_is_due_when_one_has_changed() -> None:
    """Also if the change is undone, once it was seen."""
    group, image = Replayed().group, topics_image({"a": 1, "b": 1})
    assert group.is_metadata_due(image)
    group.note_metadata(["a", "gone"], image)
    assert not group.is_metadata_due(image)
    assert not group.is_metadata_due(image_of({"a": image.topics_by_name["a"]}))
    assert group.is_metadata_due(topics_image({"a": 2}))
    assert group.is_metadata_due(image)
