"""OffsetForLeaderEpoch: where epochs end (KIP-101, KIP-320)."""

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.handlers.offset_for_leader_epoch import handle
from kraft_wire.model import LeaderEpoch, Offset
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.broker.small_broker import context, image_of, log_of, partition_image, small_broker


@pytest.fixture
def broker() -> Broker:
    """Epoch 2 began at offset 0, epoch 5 at 10, epoch 7 at 25; the log ends at 40."""
    made = small_broker(
        image_of(
            {
                "a": [
                    partition_image(0, leader_epoch=7),
                    partition_image(1, leader=2, replicas=(1, 2), leader_epoch=7),
                    partition_image(2, leader_epoch=0),
                ],
                "far": [partition_image(0, leader=2, replicas=(2,))],
            }
        )
    )
    log = log_of(made, "a")
    log.grow(40)
    log.epochs._epochs = [LeaderEpoch(each) for each in (2, 5, 7)]
    log.epochs._offsets = [Offset(each) for each in (0, 10, 25)]
    return made


def ask(
    broker: Broker, epoch: int, *, topic: str = "a", index: int = 0, current: int = -1
) -> tuple[int, int, int]:
    """Error, epoch and end offset of one question."""
    request = OffsetForLeaderEpochRequest(
        topics=[
            OffsetForLeaderTopic(
                topic=topic,
                partitions=[
                    OffsetForLeaderPartition(
                        partition=index, leader_epoch=epoch, current_leader_epoch=current
                    )
                ],
            )
        ]
    )
    (answer,) = (
        handle(broker, context(OffsetForLeaderEpochRequest.MAX_VERSION), request)
        .topics[0]
        .partitions
    )
    assert answer.partition == index
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (7, (7, 40)),  # newest: the log's end
        (6, (5, 25)),  # unknown between two: the one below
        (5, (5, 25)),
        (2, (2, 10)),
        (1, (1, 0)),  # below all: where the first one begins
        (0, (0, 0)),
        (8, (-1, -1)),  # above all: not known
        (-1, (-1, -1)),
    ],
)
def test_epoch_is_answered_with_the_largest_known_one_below(
    broker: Broker, epoch: int, expected: tuple[int, int]
) -> None:
    assert ask(broker, epoch) == (ErrorCode.NONE, *expected)


@pytest.mark.parametrize(
    ("epoch", "expected"), [(0, (0, 0)), (1, (1, 0)), (2, (2, 0)), (3, (-1, -1)), (-1, (-1, -1))]
)
def test_empty_log_knows_its_leaders_epoch(
    broker: Broker, epoch: int, expected: tuple[int, int]
) -> None:
    broker.partitions["a", 2].leader_epoch = LeaderEpoch(2)
    assert ask(broker, epoch, index=2) == (ErrorCode.NONE, *expected)


@pytest.mark.parametrize(
    ("epoch", "expected"), [(9, (9, 40)), (8, (7, 40)), (7, (7, 40)), (10, (-1, -1))]
)
def test_leader_that_wrote_nothing_yet_begins_its_epoch_at_the_logs_end(
    broker: Broker, epoch: int, expected: tuple[int, int]
) -> None:
    broker.partitions["a", 0].leader_epoch = LeaderEpoch(9)
    assert ask(broker, epoch) == (ErrorCode.NONE, *expected)


@pytest.mark.parametrize(
    ("topic", "index", "current", "error"),
    [
        ("missing", 0, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a", 9, -1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("far", 0, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("a", 0, 6, ErrorCode.FENCED_LEADER_EPOCH),
        ("a", 0, 8, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ("a", 1, 6, ErrorCode.FENCED_LEADER_EPOCH),
        ("a", 1, 7, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_refusal_leaves_epoch_and_offset_undefined(
    broker: Broker, topic: str, index: int, current: int, error: ErrorCode
) -> None:
    assert ask(broker, 5, topic=topic, index=index, current=current) == (error, -1, -1)


def test_offline_partition_is_a_storage_error(broker: Broker) -> None:
    broker.partitions["a", 0].offline = True
    assert ask(broker, 5)[0] == ErrorCode.KAFKA_STORAGE_ERROR


def test_errors_in_order(broker: Broker) -> None:
    def error(topic: str, index: int, current: int) -> int:
        return ask(broker, 5, topic=topic, index=index, current=current)[0]

    follower = broker.partitions["a", 1]
    follower.offline = True
    assert error("a", 9, 6) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert error("a", 1, 6) == ErrorCode.KAFKA_STORAGE_ERROR
    follower.offline = False
    assert error("far", 0, 6) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert error("a", 1, 6) == ErrorCode.FENCED_LEADER_EPOCH
    assert error("a", 1, 8) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert error("a", 1, 7) == ErrorCode.NOT_LEADER_OR_FOLLOWER
