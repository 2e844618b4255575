"""AllocateProducerIds: blocks of a thousand, each given once (KIP-730)."""

import pytest

from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.producer_ids_record import ProducerIdsRecord
from tests.controller.cluster import OneNodeCluster

LARGEST = (1 << 63) - 1


def ask(
    cluster: OneNodeCluster, broker_id: int = 1, epoch_above: int = 0
) -> AllocateProducerIdsResponse:
    """Ask as a broker, whose epoch may be another than the registered one."""
    epoch = cluster.loader.image.brokers[1].broker_epoch + epoch_above
    request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
    response = cluster.ask(request, 0)
    assert isinstance(response, AllocateProducerIdsResponse)
    return response


def test_each_block_follows_the_last() -> None:
    cluster = OneNodeCluster()
    blocks = [ask(cluster) for _ in range(3)]
    assert [(each.producer_id_start, each.producer_id_len) for each in blocks] == [
        (0, 1_000),
        (1_000, 1_000),
        (2_000, 1_000),
    ]
    assert cluster.loader.image.next_producer_id == 3_000


@pytest.mark.parametrize(("broker_id", "epoch_above"), [(2, 0), (1, 1), (1, -1)])
def test_broker_of_another_life_gets_none(broker_id: int, epoch_above: int) -> None:
    cluster = OneNodeCluster()
    response = ask(cluster, broker_id, epoch_above)
    assert response.error_code == ErrorCode.STALE_BROKER_EPOCH
    assert cluster.loader.image.next_producer_id == 0


@pytest.mark.parametrize(
    ("following", "error"),
    [
        (LARGEST - 1_000, ErrorCode.NONE),
        (LARGEST - 999, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_last_block_ends_below_the_largest_id(following: int, error: ErrorCode) -> None:
    cluster = OneNodeCluster()
    broker = cluster.loader.image.brokers[1]
    taken = ProducerIdsRecord(
        broker_id=1, broker_epoch=broker.broker_epoch, next_producer_id=following
    )
    cluster.commit([VersionedRecord(taken)])
    assert ask(cluster).error_code == error
