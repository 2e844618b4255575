"""Who may commit offsets to a streams group: KIP-1251, as `StreamsGroup.validateOffsetCommit`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_wire.broker.groups.streams.assigned_tasks import (
    NOTHING_ASSIGNED,
    AssignedTasks,
    active_tasks,
)
from kraft_wire.broker.groups.streams.offset_checks import (
    check_streams_commit,
    check_streams_fetch,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraft_wire.wire.generated.streams_group_current_member_assignment_value import TaskIds
from tests.broker.groups.harness import Harness
from tests.broker.groups.requests import committed
from tests.broker.groups.test_streams_group_heartbeat import group_in, send, staying, streaming

OK, STALE = ErrorCode.NONE, ErrorCode.STALE_MEMBER_EPOCH
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
MEMBER_EPOCH = 9
ASSIGNED = {0: 4, 1: 7}
"""Partition -> the epoch since which the member has its task."""
REVOKED = {2: 5}


def with_member(*, has_topology: bool = True) -> Harness:
    """Return a group whose member has had its tasks since different epochs."""
    harness = streaming("member", partitions=5)
    group = group_in(harness)
    member = replace(
        group.members["member"],
        member_epoch=MEMBER_EPOCH,
        assigned=AssignedTasks({"0": ASSIGNED}, {}, {}),
        pending_revocation=AssignedTasks({"0": REVOKED}, {}, {}),
    )
    group.members["member"] = member
    if not has_topology:
        group.put_topology(None)
    return harness


def error_of(
    epoch: int,
    *partitions: int,
    topic: str = "topic",
    version: int = 9,
    is_transactional: bool = False,
    has_topology: bool = True,
    member_id: str = "member",
    instance_id: str | None = None,
) -> ErrorCode:
    """Commit as the member, and with an epoch."""
    group = group_in(with_member(has_topology=has_topology))
    named = [OffsetCommitRequestPartition(partition_index=at) for at in partitions]
    topics = [OffsetCommitRequestTopic(name=topic, partitions=named)]
    request = OffsetCommitRequest(
        generation_id_or_member_epoch=epoch, member_id=member_id, group_instance_id=instance_id
    )
    return check_streams_commit(group, request, topics, version, is_transactional=is_transactional)


@pytest.mark.parametrize(("partition", "since"), [*ASSIGNED.items(), *REVOKED.items()])
def test_partition_is_committed_from_the_epoch_on_since_which_the_member_has_it(
    partition: int, since: int
) -> None:
    found = {epoch: error_of(epoch, partition) for epoch in range(-1, MEMBER_EPOCH + 2)}
    assert found == {epoch: OK if since <= epoch <= MEMBER_EPOCH else STALE for epoch in found}


def test_one_partition_refuses_all() -> None:
    assert [error_of(epoch, 0, 1, 2) for epoch in (6, 7)] == [STALE, OK]
    assert [error_of(epoch, 1, 2, 0) for epoch in (6, 7)] == [STALE, OK]


@pytest.mark.parametrize("epoch", [0, 7, MEMBER_EPOCH - 1])
def test_partition_that_the_member_does_not_have_needs_its_own_epoch(epoch: int) -> None:
    assert error_of(epoch, 3) == STALE
    assert error_of(epoch, 0, topic="another") == STALE
    assert error_of(epoch, 0, has_topology=False) == STALE
    assert error_of(epoch, has_topology=False) == STALE
    assert error_of(epoch, topic="another") == OK
    assert error_of(MEMBER_EPOCH, 3) == OK
    assert error_of(MEMBER_EPOCH, 0, topic="another", has_topology=False) == OK


def test_errors_in_order() -> None:
    assert error_of(MEMBER_EPOCH, 0, version=8, member_id="another") == UNKNOWN
    assert error_of(7, 3, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert error_of(MEMBER_EPOCH, 0, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert error_of(-1, 0, member_id="") == UNKNOWN


def test_a_transaction_needs_no_member_and_no_version_and_has_another_error() -> None:
    """`OffsetMetadataManager` turns the stale epoch of a transaction into ILLEGAL_GENERATION."""
    assert error_of(-1, 3, member_id="", is_transactional=True) == OK
    assert error_of(-1, 3, member_id="", instance_id="i", is_transactional=True) == UNKNOWN
    assert error_of(-2, 3, member_id="", is_transactional=True) == UNKNOWN
    assert error_of(0, 3, member_id="", is_transactional=True) == UNKNOWN
    assert error_of(7, 0, version=3, is_transactional=True) == OK
    for epoch, partition in ((7, 3), (6, 1), (MEMBER_EPOCH + 1, 0), (-1, 0)):
        found = error_of(epoch, partition, version=3, is_transactional=True)
        assert found == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", [2, 8, 9])
def test_an_empty_group_takes_commits_of_tools(version: int) -> None:
    """An administrator resets the offsets of a stopped application, in any version."""
    harness = streaming("member")
    assert send(harness, staying(-1)).error == OK
    group = group_in(harness)
    for member_id in ("", "another"):
        request = OffsetCommitRequest(generation_id_or_member_epoch=-1, member_id=member_id)
        for is_transactional in (False, True):
            found = check_streams_commit(
                group, request, [], version, is_transactional=is_transactional
            )
            assert found == OK
    request = OffsetCommitRequest(generation_id_or_member_epoch=0, member_id="member")
    assert check_streams_commit(group, request, [], version, is_transactional=False) == UNKNOWN


def test_an_epoch_refuses_no_partition_that_its_metadata_refuses() -> None:
    """`OffsetMetadataManager.commitOffset` looks at the metadata of each partition first."""
    harness = with_member()
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=at, committed_offset=5, committed_metadata=note
        )
        for at, note in ((0, "short"), (3, "m" * 4_097))
    ]
    request = OffsetCommitRequest(
        group_id="group",
        member_id="member",
        generation_id_or_member_epoch=7,
        topics=[OffsetCommitRequestTopic(name="topic", partitions=partitions)],
    )
    (topic,) = harness.send(request, 9).response.topics
    found = {each.partition_index: each.error_code for each in topic.partitions}
    assert found == {0: OK, 3: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert committed(harness) == {("topic", 0): 5}


def test_tasks_without_an_epoch_each_have_that_of_the_member() -> None:
    """As `TasksTupleWithEpochs.parseActiveTasksWithEpochs`, also for too few and too many."""
    stored = [
        TaskIds(subtopology_id="0", partitions=[1, 2], assignment_epochs=[4, 5]),
        TaskIds(subtopology_id="1", partitions=[1, 2], assignment_epochs=None),
        TaskIds(subtopology_id="2", partitions=[1, 2], assignment_epochs=[4]),
        TaskIds(subtopology_id="3", partitions=[1], assignment_epochs=[4, 5]),
    ]
    assert active_tasks(stored, 8) == {
        "0": {1: 4, 2: 5},
        "1": {1: 8, 2: 8},
        "2": {1: 8, 2: 8},
        "3": {1: 8},
    }
    assert NOTHING_ASSIGNED.active == active_tasks([], 8)


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [
        (None, -1, OK),
        (None, 0, UNKNOWN),
        (None, MEMBER_EPOCH, UNKNOWN),
        ("", -1, UNKNOWN),
        ("another", MEMBER_EPOCH, UNKNOWN),
        ("member", -1, STALE),
        ("member", MEMBER_EPOCH - 1, STALE),
        ("member", MEMBER_EPOCH, OK),
        ("member", MEMBER_EPOCH + 1, STALE),
    ],
)
def test_fetch_of_offsets_needs_no_member_or_its_present_epoch(
    member_id: str | None, epoch: int, error: ErrorCode
) -> None:
    """`StreamsGroup.validateOffsetFetch`."""
    assert check_streams_fetch(group_in(with_member()), member_id, epoch) == error
