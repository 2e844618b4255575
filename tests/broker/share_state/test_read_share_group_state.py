"""ReadShareGroupState: the state for a new leader, whose epoch becomes known."""

from __future__ import annotations

import pytest

from kraft_wire.broker.share_state.state import ShareUpdate
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.read_share_group_state import (
    PartitionData,
    ReadShareGroupStateRequest,
    ReadStateData,
)
from tests.broker.share_state.sharing import GROUP, NOWHERE, Sharing, stored, unreadable_state


def test_a_read_makes_the_leader_epoch_known() -> None:
    """932-COORD-06: by an update; a read with a known epoch, or with -1, writes nothing."""
    node = Sharing()
    node.initialize(epoch=2, start=3)
    node.write(0, (3, 4, 0, 1), start=3, complete=6)
    for leader in (-1, 4, 4, -1):
        read = node.read(leader=leader)
        assert (read.error_code, read.state_epoch, read.start_offset) == (E.NONE, 2, 3)
        assert stored(read.state_batches) == [(3, 4, 0, 1)]
    raised = node.changes()[2:]
    assert raised == [
        ShareUpdate(
            snapshot_epoch=0, leader_epoch=4, start_offset=3, delivery_complete_count=6, batches=[]
        )
    ]
    assert node.summary().leader_epoch == 4


def test_a_lower_leader_epoch_is_fenced() -> None:
    """932-COORD-05: -1 passes; a write does not raise the epoch."""
    node = Sharing()
    node.initialize()
    assert node.write(leader=9).error_code == E.NONE
    assert node.read(leader=3).error_code == E.NONE
    assert node.read(leader=2).error_code == E.FENCED_LEADER_EPOCH
    fenced = node.write(leader=2)
    assert fenced.error_code == E.FENCED_LEADER_EPOCH
    assert fenced.error_message == (
        "The leader epoch in the request is older than the epoch on the broker."
    )
    assert node.write(leader=-1).error_code == node.read(leader=-1).error_code == E.NONE


def test_what_was_not_initialized_is_neither_read_nor_written() -> None:
    """932-COORD-07."""
    node = Sharing()
    read, written = node.read(), node.write()
    assert read.error_code == written.error_code == E.INVALID_REQUEST
    words = "operation on uninitialized share partition not allowed."
    assert (read.error_message, written.error_message) == (f"Read {words}", f"Write {words}")


@pytest.mark.parametrize(
    ("group", "topics"),
    [
        ("", [ReadStateData(partitions=[PartitionData()])]),
        (GROUP, []),
        (GROUP, [ReadStateData(partitions=[PartitionData()]), ReadStateData()]),
    ],
)
def test_a_request_about_nothing_is_answered_with_nothing(
    group: str, topics: list[ReadStateData]
) -> None:
    request = ReadShareGroupStateRequest(group_id=group, topics=topics)
    assert Sharing().send(request, 0).response.results == []


def test_errors_in_order() -> None:
    assert Sharing(is_in_use=False).read(-1).error_code == E.NOT_COORDINATOR
    node = Sharing()
    node.initialize()
    with unreadable_state():
        node = node.restarted()
        loading = node.read(-1)
        assert loading.error_code == E.COORDINATOR_LOAD_IN_PROGRESS
        assert loading.error_message == (
            "Unable to read share group state: The coordinator is loading and hence can't process"
            " requests."
        )
    node.advance(1_000)
    assert node.read(-1).error_code == E.INVALID_REQUEST
    assert node.read(0, topic_id=NOWHERE).error_code == E.INVALID_REQUEST
    node.read(0, leader=5)
    node.forget_topic()
    assert node.read(0, leader=4).error_code == E.FENCED_LEADER_EPOCH
    assert node.read(0, leader=5).error_code == E.UNKNOWN_TOPIC_OR_PARTITION
