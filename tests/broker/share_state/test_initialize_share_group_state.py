"""InitializeShareGroupState: state epoch and start offset of share partitions."""

from __future__ import annotations

import pytest

from kraft_wire.broker.share_state.state import ShareState
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeStateData,
)
from tests.broker.share_state.sharing import GROUP, NOWHERE, Sharing, unreadable_state


def test_a_state_begins_with_its_epoch_and_start_offset() -> None:
    """932-COORD-03."""
    node = Sharing()
    assert node.initialize(0, epoch=3, start=7).error_code == E.NONE
    assert node.initialize(1, epoch=4).error_code == E.NONE
    read, summary = node.read(0), node.summary(0)
    assert (read.state_epoch, read.start_offset, read.state_batches) == (3, 7, [])
    assert (summary.leader_epoch, summary.delivery_complete_count) == (0, 0)
    unknown = node.summary(1)
    assert (unknown.start_offset, unknown.delivery_complete_count) == (-1, -1)


def test_a_state_that_begins_again_is_a_new_snapshot() -> None:
    """932-COORD-03: what was delivered is forgotten, the known leader epoch is not."""
    node = Sharing()
    node.initialize(epoch=1, start=0)
    node.read(leader=5)
    node.write(0, (0, 9, 2, 1), start=0)
    assert node.initialize(epoch=1, start=4).error_code == E.NONE
    last = node.changes()[-1]
    assert isinstance(last, ShareState)
    assert (last.snapshot_epoch, last.leader_epoch, last.batches) == (1, 0, [])
    assert node.read(leader=4).error_code == E.FENCED_LEADER_EPOCH


def test_a_lower_state_epoch_is_fenced() -> None:
    """932-COORD-04: an epoch of -1 is not compared."""
    node = Sharing()
    node.initialize(epoch=5)
    fenced = node.initialize(epoch=4)
    assert fenced.error_code == E.FENCED_STATE_EPOCH
    assert fenced.error_message == (
        "The share coordinator rejected the request because the share-group state epoch did not"
        " match."
    )
    assert node.initialize(epoch=-1).error_code == E.NONE
    assert node.initialize(epoch=4).error_code == E.FENCED_STATE_EPOCH


@pytest.mark.parametrize(
    "request_",
    [
        InitializeShareGroupStateRequest(group_id="", topics=[InitializeStateData()]),
        InitializeShareGroupStateRequest(group_id=GROUP),
        InitializeShareGroupStateRequest(group_id=GROUP, topics=[InitializeStateData()]),
    ],
)
def test_a_request_about_nothing_is_answered_with_nothing(
    request_: InitializeShareGroupStateRequest,
) -> None:
    assert Sharing().send(request_, 0).response.results == []


def test_errors_in_order() -> None:
    assert Sharing(is_in_use=False).initialize(-1).error_code == E.NOT_COORDINATOR
    node = Sharing()
    node.initialize(-1, epoch=9)
    node.initialize(0, epoch=9)
    with unreadable_state():
        node = node.restarted()
        assert node.initialize(-1).error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    node.advance(1_000)
    assert node.initialize(-1, topic_id=NOWHERE).error_code == E.INVALID_REQUEST
    assert node.initialize(0, epoch=8).error_code == E.FENCED_STATE_EPOCH
    assert node.initialize(0, topic_id=NOWHERE).error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert node.initialize(3).error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert node.initialize(0, epoch=9).error_code == E.NONE
