"""Features, first records, producer ids, and leadership at a broker's start and stop."""

from dataclasses import replace

import pytest

from kraft_wire.controller.brokers import elections, shut_down_broker
from kraft_wire.controller.features import (
    activation_records,
    bootstrap_records,
    metadata_version_of_release,
)
from kraft_wire.controller.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from kraft_wire.controller.loader import MetadataLoader
from kraft_wire.controller.records import VersionedRecord, register_broker_version
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.producer_ids_record import ProducerIdsRecord
from tests.controller.cluster import OneNodeCluster
from tests.controller.observed_records import observed_records

TOPIC_ID = Uuid(b"t" * 16)


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


def image_with(partition: PartitionImage) -> MetadataImage:
    """A cluster of one broker and one topic with one partition."""
    image = OneNodeCluster().loader.image
    topic = TopicImage("t", TOPIC_ID, {0: partition})
    return replace(image, topics_by_name={"t": topic}, topic_names={TOPIC_ID: "t"})


def partition(**fields: object) -> PartitionImage:
    plain = PartitionImage(
        partition=0,
        replicas=(1, 2),
        isr=(1, 2),
        leader=NO_LEADER,
        leader_epoch=4,
        partition_epoch=7,
    )
    return plain._replace(**fields)  # type: ignore[arg-type]  # names are the fields' names


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # leads again, with a new epoch, whether or not it was leader
        (partition(), {"leader": 1, "isr": (1, 2), "leader_epoch": 5}),
        (partition(leader=1), {"leader": 1, "leader_epoch": 5}),
        # somebody else leads, or could: nothing happens
        (partition(leader=2), None),
        (partition(isr=(2,)), None),
        (partition(replicas=(2, 3), isr=(2, 3)), None),
        # eligible, or the last one known, as a log of Apache Kafka may have it
        (
            partition(isr=(), eligible_leader_replicas=(1,), last_known_elr=(1,)),
            {"leader": 1, "isr": (1,), "eligible_leader_replicas": (), "leader_recovery_state": 0},
        ),
        (
            partition(isr=(), last_known_elr=(1,)),
            {"leader": 1, "isr": (1,), "last_known_elr": (), "leader_recovery_state": 1},
        ),
        (partition(isr=(), eligible_leader_replicas=(2,), last_known_elr=(1,)), None),
        (partition(isr=()), None),
    ],
)
def test_starting_broker_leads_where_it_may(
    before: PartitionImage, after: dict[str, object] | None
) -> None:
    image = image_with(before)
    records = list(elections(image, 1))
    if after is None:
        assert records == []
        return
    replayed = MetadataLoader(image).replay_batch(
        [each.record for each in records], image.offset + 1, 2
    )
    now = replayed.topics_by_name["t"].partitions[0]
    assert {name: getattr(now, name) for name in after} == after
    assert now.partition_epoch == before.partition_epoch + 1


def test_stopping_broker_gives_up_leadership_and_is_fenced() -> None:
    cluster = OneNodeCluster()
    topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
    cluster.ask(CreateTopicsRequest(topics=[topic]), 7)
    for batch in shut_down_broker(cluster.loader.image, 1):
        cluster.commit(batch)
    image = cluster.loader.image
    assert image.brokers[1].fenced
    assert image.brokers[1].in_controlled_shutdown
    assert [each.leader for each in image.topics_by_name["t"].partitions.values()] == [-1, -1]
    changes = [each for each in cluster.committed if isinstance(each.record, PartitionChangeRecord)]
    assert [each.version for each in changes] == [2, 2]
