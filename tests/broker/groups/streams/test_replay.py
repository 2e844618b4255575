"""A streams group that is made of its records, one after the other, and of their tombstones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.streams.assigned_tasks import NOTHING_ASSIGNED, AssignedTasks
from kraft_wire.broker.groups.streams.group import StreamsGroup, StreamsGroupState
from kraft_wire.broker.groups.streams.member import MemberState, StreamsMember, UserEndpoint
from kraft_wire.broker.groups.streams.records import (
    current_assignment_record,
    epoch_record,
    group_tombstones,
    member_record,
    member_tombstones,
    target_epoch_record,
    target_record,
    topology_record,
)
from kraft_wire.broker.groups.streams.replay import replay_record, streams_group_remains
from kraft_wire.broker.groups.streams.tasks import TasksTuple
from kraft_wire.sim.judge.group_memory import group_bytes
from kraft_wire.wire.generated.streams_group_topology_value import (
    StreamsGroupTopologyValue,
    Subtopology,
)
from kraft_wire.wire.message import MalformedMessage

MEMBER = StreamsMember(
    "m",
    instance_id="i",
    rack_id="r",
    client_id="c",
    client_host="/h",
    rebalance_timeout_ms=7,
    topology_epoch=3,
    process_id="p",
    user_endpoint=UserEndpoint("app", 8),
    client_tags={"a": "1"},
    member_epoch=9,
    previous_member_epoch=8,
    state=MemberState.UNREVOKED_TASKS,
    assigned=AssignedTasks({"0": {1: 9}}, {"0": frozenset({2})}, {"0": frozenset({3})}),
    pending_revocation=AssignedTasks({"0": {4: 5}}, {"0": frozenset({5})}, {"0": frozenset({6})}),
)
OTHER = StreamsMember("n", process_id="q", member_epoch=9)
TARGET = TasksTuple({"0": frozenset({1, 2})}, {"0": frozenset({3})}, {})
TOPOLOGY = StreamsGroupTopologyValue(
    epoch=3, subtopologies=[Subtopology(subtopology_id="0", source_topics=["t"])]
)


class Replayed:
    """A group and the memory that is counted for it."""

    def __init__(self) -> None:
        self.memory = MemoryUse(lambda: 1 << 30)
        self.group = StreamsGroup("group", self.memory)

    def take(self, records: Iterable[CoordinatorRecord]) -> None:
        for key, value in records:
            replay_record(self.group, key, value)
            assert self.memory.total_bytes == group_bytes(self.group)

    def processes(self) -> list[str | None]:
        """Which process has each task of the subtopology, as active or as a copy."""
        known, found = self.group.processes, []
        for number in range(1, 7):
            copies = [each for each in ("p", "q") if known.keeps_copy(each, "0", number)]
            found.append(known.active("0", number) or (copies or [None])[0])
        return found


def replayed() -> Replayed:
    made = Replayed()
    made.take(
        [
            member_record("group", MEMBER),
            member_record("group", OTHER),
            epoch_record("group", 9, 77, 3, {"k": "v"}),
            topology_record("group", TOPOLOGY),
            target_record("group", "m", TARGET),
            target_epoch_record("group", 9, 99),
            current_assignment_record("group", MEMBER),
            current_assignment_record("group", OTHER),
        ]
    )
    return made


def test_group_is_what_its_records_say() -> None:
    made = replayed()
    group = made.group
    assert dict(group.members.items()) == {"m": MEMBER, "n": OTHER}
    assert (group.epoch, group.metadata_hash, group.validated_topology_epoch) == (9, 77, 3)
    assert (group.assignment_epoch, group.assignment_timestamp_ms) == (9, 99)
    assert (group.assignment_configs, group.topology) == ({"k": "v"}, TOPOLOGY)
    assert dict(group.targets.items()) == {"m": TARGET}
    assert (group.is_subscribed_to("t"), group.is_subscribed_to("u")) == (True, False)
    assert made.processes() == ["p"] * 6
    assert group.state is StreamsGroupState.RECONCILING


def test_removed_member_leaves_nothing_behind() -> None:
    made = replayed()
    group = made.group
    group.revocation_epochs.update({"m": 9, "n": 9})
    current, target, metadata = member_tombstones("group", "m")
    made.take([current])
    gone = replace(
        MEMBER,
        member_epoch=-1,
        previous_member_epoch=-1,
        assigned=NOTHING_ASSIGNED,
        pending_revocation=NOTHING_ASSIGNED,
    )
    assert dict(group.members.items()) == {"m": gone, "n": OTHER}
    assert made.processes() == [None] * 6
    made.take([target])
    assert dict(group.targets.items()) == {}
    group.request_shutdown("n")
    group.request_shutdown("m")
    made.take([metadata])
    assert dict(group.members.items()) == {"n": OTHER}
    assert (group.revocation_epochs, group.shutdown_member_id) == ({"n": 9}, "n")
    made.take([*member_tombstones("group", "m"), *member_tombstones("group", "n")])
    assert (group.is_empty, group.shutdown_member_id) == (True, None)
    assert group.state is StreamsGroupState.EMPTY
    assert not group.is_subscribed_to("t")


def test_member_that_is_removed_first_takes_its_target_along() -> None:
    made = replayed()
    *_, metadata = member_tombstones("group", "m")
    made.take([metadata])
    assert dict(made.group.targets.items()) == {}
    assert made.processes() == [None] * 6


def test_tombstones_of_the_group_end_it_with_the_last_but_one() -> None:
    made = replayed()
    records = group_tombstones("group", ["m", "n"])
    made.take(records)
    group = made.group
    assert (group.is_empty, group.topology, group.assignment_epoch) == (True, None, -1)
    assert (group.assignment_timestamp_ms, group.epoch) == (0, 9)
    remains = [streams_group_remains(key, value) for key, value in records]
    assert remains == [True] * 7 + [False, True]
    group.release()
    assert made.memory.total_bytes == 0


@pytest.mark.parametrize(
    ("validated", "epoch", "assigned", "member_epoch", "state"),
    [
        (2, 9, 9, 9, StreamsGroupState.NOT_READY),
        (3, 10, 9, 9, StreamsGroupState.ASSIGNING),
        (3, 9, 9, 8, StreamsGroupState.RECONCILING),
        (3, 9, 9, 9, StreamsGroupState.STABLE),
    ],
)
def test_state_is_that_of_the_slowest_step(
    validated: int, epoch: int, assigned: int, member_epoch: int, state: StreamsGroupState
) -> None:
    made = Replayed()
    made.take(
        [
            member_record("group", OTHER),
            epoch_record("group", epoch, 77, validated, {}),
            target_epoch_record("group", assigned, 99),
            current_assignment_record("group", replace(OTHER, member_epoch=member_epoch)),
        ]
    )
    assert made.group.state is StreamsGroupState.NOT_READY
    made.take([topology_record("group", TOPOLOGY)])
    assert (made.group.state, made.group.state_name) == (state, state.value)


def test_value_of_a_later_version_is_refused_and_a_later_kind_left_alone() -> None:
    made = replayed()
    for key, value in (epoch_record("group", 10, 1, 3, {}), topology_record("group", TOPOLOGY)):
        assert value is not None
        with pytest.raises(MalformedMessage, match="streams group value of version 1"):
            replay_record(made.group, key, b"\0\1" + value[2:])
    replay_record(made.group, b"\0\x63", b"\0\0")
    assert made.group.epoch == 9
