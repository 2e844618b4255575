"""The records of a snapshot: replayed, they give the image that they were made of."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from kraft_wire.metadata.image import EMPTY_IMAGE, MetadataImage, QuotaEntity
from kraft_wire.metadata.image_records import UnwritableImage, snapshot_values
from kraft_wire.metadata.loader import MetadataLoader
from kraft_wire.metadata.records import decode_record
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.client_quota_record import ClientQuotaRecord, EntityData
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.producer_ids_record import ProducerIdsRecord
from kraft_wire.wire.generated.register_broker_record import RegisterBrokerRecord
from kraft_wire.wire.generated.register_controller_record import RegisterControllerRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.generated.user_scram_credential_record import UserScramCredentialRecord
from kraft_wire.wire.generated.zk_migration_state_record import ZkMigrationStateRecord
from kraft_wire.wire.message import Message
from tests.metadata.observed_records import observed_records
from tests.metadata.random_records import History
from tests.metadata.snapshot import snapshot_records

TOPIC_ID = Uuid(b"t" * 16)


def placeless(image: MetadataImage) -> MetadataImage:
    """An image without the place in the log that it stands for."""
    return replace(image, offset=0, epoch=0, finalized_features_epoch=0)


def reloaded(image: MetadataImage) -> MetadataImage:
    """The image that the snapshot of an image gives, its records as bytes and back."""
    values = list(snapshot_values(image))
    records = [decode_record(value).record for value in values]
    return MetadataLoader().replay_snapshot(records, max(image.offset, 0), 1)


def leveled(level: int, *records: Message) -> MetadataImage:
    finalised = FeatureLevelRecord(name="metadata.version", feature_level=level)
    return MetadataLoader().replay_batch([finalised, *records], 0, 1)


@pytest.mark.parametrize("seed", range(60))
def test_snapshot_of_a_random_history_gives_the_image_again(seed: int) -> None:
    history = History(1_000 + seed, 7 + seed % 24)
    history.grow(150)
    assert placeless(reloaded(history.image)) == placeless(history.image)


def test_snapshot_of_a_real_cluster_has_the_records_that_apache_wrote() -> None:
    observed = [(each.record, each.version) for each in observed_records("snapshot.jsonl")]
    image = MetadataLoader().replay_snapshot([record for record, _ in observed], 531, 8)

    def bytes_of(records: Iterator[tuple[Message, int]]) -> list[bytes]:
        return sorted(record.encode(version) for record, version in records)

    assert bytes_of(iter(snapshot_records(image))) == bytes_of(iter(observed))


def test_sections_follow_each_other_as_in_apaches_snapshot() -> None:
    history = History(2)
    history.grow(400)
    types = [record.record.RECORD_TYPE for record in snapshot_records(history.image)]
    merged = [2 if each == 3 else each for each in types]
    sections = [each for number, each in enumerate(merged) if merged[number - 1 : number] != [each]]
    assert sections == [12, 0, 27, 2, 4, 14, 15, 18, 11, 10]
    names = [each.record for each in snapshot_records(history.image)][:1]
    assert [getattr(each, "name", None) for each in names] == ["metadata.version"]


def test_equal_images_have_equal_snapshots_whatever_the_order_of_their_making() -> None:
    settings = [
        ConfigRecord(resource_type=4, resource_name=name, name=key, value="1")
        for name in ("", "1")
        for key in ("a", "b")
    ]
    forth, back = leveled(30, *settings), leveled(30, *reversed(settings))
    assert list(snapshot_records(forth)) == list(snapshot_records(back))


def test_record_of_a_snapshot_stays_as_it_is_when_the_next_one_is_asked_for() -> None:
    quotas: dict[QuotaEntity, dict[str, float]] = {
        (("client-id", None), ("user", "a")): {"request_percentage": 1.0},
        (("user", "a"),): {"consumer_byte_rate": 2.0, "producer_byte_rate": 3.0},
    }
    image = MetadataImage(
        offset=1,
        finalized_features={"metadata.version": 30},
        client_quotas=quotas,
        configs={(4, ""): {"a": "1", "b": "2"}},
    )
    _, *rest = [each.record for each in snapshot_records(image)]
    assert rest == [
        ConfigRecord(resource_type=4, resource_name="", name="a", value="1"),
        ConfigRecord(resource_type=4, resource_name="", name="b", value="2"),
        *(
            ClientQuotaRecord(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                key=key,
                value=values[key],
            )
            for entity, values in quotas.items()
            for key in sorted(values)
        ),
    ]


def test_empty_image_has_no_records() -> None:
    assert list(snapshot_records(EMPTY_IMAGE)) == []


def test_state_of_a_migration_from_zookeeper_is_not_lost() -> None:
    image = leveled(21, ZkMigrationStateRecord(zk_migration_state=3))
    assert reloaded(image).zk_migration_state == 3


@pytest.mark.parametrize(
    ("level", "broker_version", "partition_version"),
    [(7, 1, 0), (8, 2, 0), (16, 2, 0), (17, 3, 1), (22, 3, 1), (23, 3, 2), (29, 3, 2), (30, 4, 2)],
)
def test_records_have_the_version_of_the_finalised_level(
    level: int, broker_version: int, partition_version: int
) -> None:
    image = leveled(
        level,
        RegisterBrokerRecord(broker_id=1, broker_epoch=1),
        TopicRecord(name="a", topic_id=TOPIC_ID),
        PartitionRecord(
            topic_id=TOPIC_ID, partition_id=0, replicas=[1], isr=[1], leader=1, leader_epoch=0
        ),
        ProducerIdsRecord(next_producer_id=1_000),
    )
    versions = {each.record.RECORD_TYPE: each.version for each in snapshot_records(image)}
    assert versions == {12: 0, 0: broker_version, 2: 0, 3: partition_version, 15: 0}
    assert placeless(reloaded(image)) == placeless(image)


@pytest.mark.parametrize(
    ("level", "record", "what"),
    [
        (16, RegisterBrokerRecord(broker_id=1, log_dirs=[TOPIC_ID]), "log directories"),
        (29, RegisterBrokerRecord(broker_id=1, cordoned_log_dirs=[]), "cordoned"),
        (14, RegisterControllerRecord(controller_id=1), "controllers"),
        (10, UserScramCredentialRecord(name="a", iterations=4096), "SCRAM"),
    ],
)
def test_value_that_the_finalised_level_cannot_carry_is_refused_by_name(
    level: int, record: Message, what: str
) -> None:
    image = leveled(level, record)
    with pytest.raises(UnwritableImage, match=f"metadata.version {level} cannot carry .*{what}"):
        list(snapshot_records(image))


def test_an_image_without_a_level_has_no_records_unless_it_is_empty() -> None:
    """metadata.version is finalised by a cluster's first records; directories need level 17."""
    assert list(snapshot_records(EMPTY_IMAGE)) == []
    with pytest.raises(UnwritableImage, match=r"metadata\.version 0 cannot carry any record"):
        list(snapshot_records(replace(EMPTY_IMAGE, offset=3)))
