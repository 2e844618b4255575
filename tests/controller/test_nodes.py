"""Features, first records, producer ids."""

import pytest

from kraft_wire.metadata.features import (
    activation_records,
    bootstrap_records,
    metadata_version_of_release,
)
from kraft_wire.metadata.records import VersionedRecord, register_broker_version
from kraft_wire.wire.generated.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.producer_ids_record import ProducerIdsRecord
from tests.controller.cluster import OneNodeCluster
from tests.metadata.observed_records import observed_records


def test_first_records_are_those_that_apaches_controller_wrote() -> None:
    features = {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
    theirs = [each.record for each in observed_records("metadata_log.jsonl") if each.offset < 10]
    ours = activation_records(bootstrap_records(features))
    assert [each.record for each in ours] == theirs


def test_old_level_has_no_metadata_transaction() -> None:
    first = activation_records(bootstrap_records({"metadata.version": 12, "kraft.version": 1}))
    assert [each.record.NAME for each in first] == ["FeatureLevelRecord"]


@pytest.mark.parametrize(
    ("release", "level"),
    [
        ("4.3-IV0", 30),
        ("4.3", 30),
        ("4.3.1", 30),
        ("4.3.1.", 30),
        ("4.3..1", 30),
        ("4.3-IV0.1", 30),
        ("4.3..", None),
        ("3.7", 19),
        ("3.7-IV1", 16),
        ("2.8", None),
        ("4.3-IV1", None),
        ("", None),
    ],
)
def test_release_means_its_highest_level(release: str, level: int | None) -> None:
    assert metadata_version_of_release(release) == level


@pytest.mark.parametrize(("level", "version"), [(6, 0), (7, 1), (8, 2), (17, 3), (30, 4)])
def test_registration_has_the_version_of_the_level(level: int, version: int) -> None:
    assert register_broker_version(level) == version


def test_blocks_of_producer_ids_follow_each_other() -> None:
    cluster = OneNodeCluster()
    epoch = cluster.loader.image.brokers[1].broker_epoch

    def ask(broker_epoch: int, broker_id: int = 1) -> AllocateProducerIdsResponse:
        request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker_epoch)
        response = cluster.ask(request, 0)
        assert isinstance(response, AllocateProducerIdsResponse)
        return response

    assert (ask(epoch).producer_id_start, ask(epoch).producer_id_start) == (0, 1_000)
    assert ask(epoch + 1).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert ask(epoch, broker_id=2).error_code == ErrorCode.STALE_BROKER_EPOCH
    record = cluster.committed[-1].record
    assert record == ProducerIdsRecord(broker_id=1, broker_epoch=epoch, next_producer_id=2_000)
    cluster.commit([VersionedRecord(ProducerIdsRecord(next_producer_id=(1 << 63) - 1))])
    assert ask(epoch).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
