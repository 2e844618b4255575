"""ListOffsets: what each special time means, and each error before those that come after it."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.handlers.list_offsets import handle
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.broker.replication.leading import TOPIC, Leading
from tests.broker.small_broker import partition_image

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = range(-1, -7, -1)
NOTHING = (E.NONE, -1, -1, -1)


@pytest.fixture
def leading() -> Leading:
    """Partition 0 has records of the times 100, 300 and 200; partition 1 is led elsewhere."""
    broker = Leading(partition_image(0), partition_image(1, leader=2, replicas=(2, 1)))
    for time_ms in (100, 300, 200):
        broker.produce(time_ms=time_ms)
    return broker


def ask(
    leading: Leading,
    *asked: ListOffsetsPartition,
    version: int = 11,
    topic: str = TOPIC,
    **fields: Any,
) -> list[ListOffsetsPartitionResponse]:
    request = ListOffsetsRequest(
        replica_id=fields.pop("replica_id", -1),
        topics=[ListOffsetsTopic(name=topic, partitions=list(asked))],
        **fields,
    )
    return handle(leading.broker, leading.context(version), request).topics[0].partitions


def at(timestamp: int, index: int = 0, epoch: int = -1) -> ListOffsetsPartition:
    return ListOffsetsPartition(
        partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
    )


def shown(answer: ListOffsetsPartitionResponse) -> tuple[int, int, int, int]:
    return answer.error_code, answer.timestamp, answer.offset, answer.leader_epoch


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (0, (E.NONE, 100, 0, 0)),
        (100, (E.NONE, 100, 0, 0)),
        (101, (E.NONE, 300, 1, 0)),
        (301, NOTHING),
        (LATEST, (E.NONE, -1, 3, 0)),
        (EARLIEST, (E.NONE, -1, 0, 0)),
        (MAX_TIMESTAMP, (E.NONE, 300, 1, 0)),
        (EARLIEST_LOCAL, (E.NONE, -1, 0, 0)),
        (LATEST_TIERED, NOTHING),
        (PENDING_UPLOAD, NOTHING),
    ],
)
def test_time_names_an_offset(
    leading: Leading, timestamp: int, expected: tuple[int, int, int, int]
) -> None:
    (answer,) = ask(leading, at(timestamp))
    assert shown(answer) == expected


@pytest.mark.parametrize(
    ("timestamp", "first_version"),
    [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (PENDING_UPLOAD, 11)],
)
def test_special_time_is_refused_before_its_version(
    leading: Leading, timestamp: int, first_version: int
) -> None:
    (before,) = ask(leading, at(timestamp), version=first_version - 1)
    (since,) = ask(leading, at(timestamp), version=first_version)
    assert (before.error_code, since.error_code) == (E.UNSUPPORTED_VERSION, E.NONE)


def test_largest_time_of_a_record_that_is_not_committed_is_told_to_nobody() -> None:
    """KIP-734 asks the whole log, and a consumer is told what it may read."""
    leading = Leading(partition_image(0, replicas=(1, 2)))
    leading.produce(time_ms=100, acks=1)
    assert shown(ask(leading, at(MAX_TIMESTAMP))[0]) == NOTHING
    leading.fetch(1)
    leading.produce(time_ms=200, acks=1)
    assert shown(ask(leading, at(MAX_TIMESTAMP))[0]) == NOTHING
    assert shown(ask(leading, at(MAX_TIMESTAMP), replica_id=-2)[0]) == (E.NONE, 200, 1, 0)


def test_leader_epoch_is_told_since_version_4(leading: Leading) -> None:
    epochs = [ask(leading, at(EARLIEST), version=version)[0].leader_epoch for version in (3, 4)]
    assert epochs == [-1, 0]


def test_partition_that_is_named_twice_is_refused_once(leading: Leading) -> None:
    assert [shown(each) for each in ask(leading, at(LATEST), at(EARLIEST))] == [
        (E.INVALID_REQUEST, -1, -1, -1)
    ]


@pytest.mark.parametrize(
    ("asked", "fields", "error"),
    [
        ([at(-7, 9)], {"isolation_level": 2}, E.UNKNOWN_SERVER_ERROR),
        ([at(-7, 9), at(-7, 9)], {}, E.INVALID_REQUEST),
        ([at(-7, 9)], {}, E.UNSUPPORTED_VERSION),
        ([at(LATEST, 9, 1)], {}, E.UNKNOWN_TOPIC_OR_PARTITION),
        ([at(LATEST, 0, 1)], {"topic": "absent"}, E.UNKNOWN_TOPIC_OR_PARTITION),
        ([at(LATEST, 1, 1)], {}, E.UNKNOWN_LEADER_EPOCH),
        ([at(LATEST, 1, 0)], {}, E.NOT_LEADER_OR_FOLLOWER),
        ([at(LATEST, 1, 0)], {"replica_id": -2}, E.NONE),
        ([at(LATEST, 0, 0)], {}, E.NONE),
    ],
    ids=lambda value: str(value) if isinstance(value, E) else "",
)
def test_first_error_in_kafka_s_order_is_answered(
    leading: Leading, asked: list[ListOffsetsPartition], fields: dict[str, Any], error: E
) -> None:
    assert [each.error_code for each in ask(leading, *asked, **fields)] == [error]


def test_older_leader_epoch_is_fenced(leading: Leading) -> None:
    leading.change(leader_epoch=3)
    codes = [ask(leading, at(LATEST, 0, epoch))[0].error_code for epoch in (2, 3, 4)]
    assert codes == [E.FENCED_LEADER_EPOCH, E.NONE, E.UNKNOWN_LEADER_EPOCH]


def test_isolation_level_that_does_not_exist_fails_all_that_is_asked(leading: Leading) -> None:
    """4.3.1 answers each question, also two about one partition."""
    found = ask(leading, at(LATEST), at(EARLIEST), at(LATEST, index=9), isolation_level=2)
    assert [(each.partition_index, each.error_code) for each in found] == [
        (0, E.UNKNOWN_SERVER_ERROR),
        (0, E.UNKNOWN_SERVER_ERROR),
        (9, E.UNKNOWN_SERVER_ERROR),
    ]


@pytest.mark.parametrize("leader_epoch", [0, 1, 7])
@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST, EARLIEST_LOCAL])
def test_an_empty_log_has_the_leader_epoch_that_its_first_record_will_get(
    leader_epoch: int, timestamp: int
) -> None:
    """KIP-320: the leader's epoch begins at the end of the log, before it writes anything."""
    leading = Leading(partition_image(0, leader_epoch=leader_epoch))
    (answer,) = ask(leading, at(timestamp))
    assert shown(answer) == (E.NONE, -1, 0, leader_epoch)
