"""DeleteShareGroupState: tombstones."""

from __future__ import annotations

import pytest

from kraft_wire.broker.share_state.state import ShareState
from kraft_wire.broker.share_state.state_table import Tombstone
from kraft_wire.wire.generated.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteStateData,
    PartitionData,
)
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.share_state.sharing import GROUP, NOWHERE, Sharing, unreadable_state


def test_a_deleted_state_is_a_tombstone() -> None:
    """932-COORD-14: one that is not there is no error and writes nothing."""
    node = Sharing()
    node.initialize(epoch=4, start=3)
    node.read(leader=5)
    assert node.delete().error_code == node.delete().error_code == E.NONE
    assert node.changes()[2:] == [Tombstone.TOMBSTONE]
    assert node.summary().start_offset == -1
    assert node.restarted().read().error_code == E.INVALID_REQUEST


def test_a_state_after_a_deleted_one_knows_nothing_of_it() -> None:
    node = Sharing()
    node.initialize(epoch=4)
    node.read(leader=5)
    node.delete()
    assert node.initialize(epoch=1).error_code == E.NONE
    again = node.changes()[-1]
    assert isinstance(again, ShareState)
    assert again.snapshot_epoch == 0
    assert node.write(epoch=1, leader=0).error_code == E.NONE


@pytest.mark.parametrize(
    ("group", "topics"),
    [
        ("", [DeleteStateData(partitions=[PartitionData()])]),
        (GROUP, []),
        (GROUP, [DeleteStateData(partitions=[PartitionData()]), DeleteStateData()]),
    ],
)
def test_a_request_about_nothing_is_answered_with_nothing(
    group: str, topics: list[DeleteStateData]
) -> None:
    request = DeleteShareGroupStateRequest(group_id=group, topics=topics)
    assert Sharing().send(request, 0).response.results == []


def test_errors_in_order() -> None:
    assert Sharing(is_in_use=False).delete(-1).error_code == E.NOT_COORDINATOR
    node = Sharing()
    node.initialize()
    with unreadable_state():
        node = node.restarted()
        assert node.delete(-1).error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    node.advance(1_000)
    assert node.delete(-1, topic_id=NOWHERE).error_code == E.INVALID_REQUEST
    assert node.delete(0, topic_id=NOWHERE).error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert node.delete(3).error_code == E.UNKNOWN_TOPIC_OR_PARTITION
