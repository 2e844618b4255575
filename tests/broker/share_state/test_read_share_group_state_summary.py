"""ReadShareGroupStateSummary: start offsets, epochs and counts."""

from __future__ import annotations

import pytest

from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.read_share_group_state_summary import (
    PartitionData,
    ReadShareGroupStateSummaryRequest,
    ReadStateSummaryData,
)
from tests.broker.share_state.sharing import GROUP, NOWHERE, Sharing, unreadable_state


def test_a_summary_has_no_batches_and_needs_no_state() -> None:
    """932-COORD-08."""
    node = Sharing()
    unknown = node.summary(2)
    assert (unknown.error_code, unknown.error_message) == (E.NONE, None)
    assert (unknown.state_epoch, unknown.leader_epoch) == (0, 0)
    assert (unknown.start_offset, unknown.delivery_complete_count) == (-1, -1)
    node.initialize(epoch=3, start=5)
    node.read(leader=8)
    node.write(0, (5, 9, 2, 1), start=5, complete=5)
    known = node.summary()
    assert (known.state_epoch, known.leader_epoch) == (3, 8)
    assert (known.start_offset, known.delivery_complete_count) == (5, 5)
    assert len(node.changes()) == 3, "a summary writes nothing"


@pytest.mark.parametrize(
    ("group", "topics"),
    [
        ("", [ReadStateSummaryData(partitions=[PartitionData()])]),
        (GROUP, []),
        (GROUP, [ReadStateSummaryData(partitions=[PartitionData()]), ReadStateSummaryData()]),
    ],
)
def test_a_request_about_nothing_is_answered_with_nothing(
    group: str, topics: list[ReadStateSummaryData]
) -> None:
    request = ReadShareGroupStateSummaryRequest(group_id=group, topics=topics)
    assert Sharing().send(request, 1).response.results == []


def test_errors_in_order() -> None:
    assert Sharing(is_in_use=False).summary(-1).error_code == E.NOT_COORDINATOR
    node = Sharing()
    node.initialize()
    with unreadable_state():
        node = node.restarted()
        assert node.summary(-1).error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    node.advance(1_000)
    assert node.summary(-1, topic_id=NOWHERE).error_code == E.INVALID_REQUEST
    assert node.summary(0, topic_id=NOWHERE).error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert node.summary(3).error_code == E.UNKNOWN_TOPIC_OR_PARTITION
