"""When a session's partition is told of, and when it need not even be read (KIP-227).

The shortcut `is_settled` must never pass over a partition whose answer would be news.
"""

from dataclasses import replace

import pytest

from kraft_wire.broker.fetching.fetch_session import WantedPartition
from kraft_wire.model import ZERO_UUID
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import EpochEndOffset, FetchPartition, PartitionData
from tests.broker.fetch_client import FakeBroker, FakePartition, fetch_request, listed

DRAINED = FakePartition(high_watermark=7, log_start_offset=2, leader_epoch=3)


def drained() -> tuple[WantedPartition, FakePartition]:
    """A partition of which the client has everything, and was told so."""
    source = replace(DRAINED)
    params = FetchPartition(partition=0, fetch_offset=7)
    wanted = WantedPartition(("t", 0), "t", ZERO_UUID, params)
    wanted.note_source(source)
    wanted.sent(PartitionData(high_watermark=7, log_start_offset=2, records=b""))
    return wanted, source


def test_drained_partition_is_settled() -> None:
    wanted, _ = drained()
    assert wanted.is_settled()


@pytest.mark.parametrize(
    "change",
    [
        {"high_watermark": 8},
        {"log_start_offset": 3},
        {"leader_epoch": 4},
        {"is_leader": False},
        {"offline": True},
    ],
    ids=lambda change: next(iter(change)),
)
def test_anything_that_a_reader_could_notice_unsettles_it(change: dict[str, object]) -> None:
    wanted, source = drained()
    for name, value in change.items():
        setattr(source, name, value)
    assert not wanted.is_settled()


@pytest.mark.parametrize(
    "special",
    [
        {"error_code": ErrorCode.KAFKA_STORAGE_ERROR},
        {"preferred_read_replica": 2},
        {"diverging_epoch": EpochEndOffset(epoch=1, end_offset=3)},
        {"high_watermark": 8},
    ],
    ids=lambda special: next(iter(special)),
)
def test_only_an_answer_that_says_nothing_new_settles_it(special: dict[str, object]) -> None:
    """The next one must say it again: the client may not have acted on it (KIP-392, KIP-595)."""
    wanted, source = drained()
    data = PartitionData(high_watermark=7, log_start_offset=2, records=b"")
    for name, value in special.items():
        setattr(data, name, value)
    wanted.sent(data)
    source.high_watermark = data.high_watermark
    assert not wanted.is_settled()


def test_client_that_moved_its_offset_unsettles_it() -> None:
    wanted, _ = drained()
    wanted.update(FetchPartition(partition=0, fetch_offset=6))
    assert not wanted.is_settled()


def test_partition_that_recovers_is_listed_again_although_nothing_else_changed() -> None:
    """The watermark of before the error is the same as after it."""
    broker = FakeBroker([("t", 0)])
    partition = broker.partitions["t", 0]
    partition.high_watermark = 1
    session_id = broker.fetch(fetch_request(0, 0, {("t", 0): 1})).session_id
    assert listed(broker.fetch(fetch_request(session_id, 1))) == []
    partition.error = ErrorCode.KAFKA_STORAGE_ERROR
    partition.offline = True
    assert listed(broker.fetch(fetch_request(session_id, 2))) == [("t", 0)]
    partition.error = ErrorCode.NONE
    partition.offline = False
    assert listed(broker.fetch(fetch_request(session_id, 3))) == [("t", 0)]
    assert listed(broker.fetch(fetch_request(session_id, 4))) == []
