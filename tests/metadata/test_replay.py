"""Images out of records: the log of a real cluster against the snapshot that Apache made of it."""

from dataclasses import replace

import pytest

from kraft_wire.metadata.image import (
    BROKER_RESOURCE,
    EMPTY_IMAGE,
    NO_LEADER,
    TOPIC_RESOURCE,
    MetadataImage,
)
from kraft_wire.metadata.image_draft import MetadataFault
from kraft_wire.metadata.loader import MetadataLoader
from kraft_wire.metadata.records import (
    VersionedRecord,
    decode_record,
    encode_record,
)
from kraft_wire.metadata.replay import REPLAYERS
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.abort_transaction_record import AbortTransactionRecord
from kraft_wire.wire.generated.begin_transaction_record import BeginTransactionRecord
from kraft_wire.wire.generated.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraft_wire.wire.generated.clear_elr_record import ClearElrRecord
from kraft_wire.wire.generated.client_quota_record import ClientQuotaRecord, EntityData
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.end_transaction_record import EndTransactionRecord
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.fence_broker_record import FenceBrokerRecord
from kraft_wire.wire.generated.no_op_record import NoOpRecord
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.producer_ids_record import ProducerIdsRecord
from kraft_wire.wire.generated.register_broker_record import RegisterBrokerRecord
from kraft_wire.wire.generated.registry import METADATA_RECORDS
from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.generated.unfence_broker_record import UnfenceBrokerRecord
from kraft_wire.wire.message import Message
from tests.metadata.observed_records import observed_records

TOPIC_ID = Uuid(b"t" * 16)


def replayed(*records: Message, onto: MetadataImage = EMPTY_IMAGE) -> MetadataImage:
    return MetadataLoader(onto).replay_batch(records, onto.offset + 1, 1)


def without_position(image: MetadataImage) -> MetadataImage:
    return replace(image, offset=0, epoch=0, finalized_features_epoch=0)


def test_every_metadata_record_but_the_transaction_markers_has_a_replayer() -> None:
    assert sorted(REPLAYERS) == sorted(set(METADATA_RECORDS) - {23, 24, 25})


def test_records_of_older_releases_fence_and_unfence_a_registered_broker() -> None:
    """They were written below metadata.version 3.3 (level 6); id and epoch must match."""
    before = replayed(RegisterBrokerRecord(broker_id=1, broker_epoch=7, fenced=True))
    unfenced = replayed(UnfenceBrokerRecord(id=1, epoch=7), onto=before)
    fenced = replayed(FenceBrokerRecord(id=1, epoch=7), onto=unfenced)
    assert [each.brokers[1].fenced for each in (before, unfenced, fenced)] == [True, False, True]
    for kind in (FenceBrokerRecord, UnfenceBrokerRecord):
        for wrong in (kind(id=2, epoch=7), kind(id=1, epoch=6), kind(id=1, epoch=8)):
            with pytest.raises(MetadataFault):
                replayed(wrong, onto=before)


def test_log_of_a_real_cluster_gives_the_image_of_its_snapshot() -> None:
    loader = MetadataLoader()
    for observed in observed_records("metadata_log.jsonl"):
        if observed.offset < 532:
            loader.replay_batch([observed.record], observed.offset, 8)
    snapshot = [observed.record for observed in observed_records("snapshot.jsonl")]
    from_snapshot = MetadataLoader().replay_snapshot(snapshot, 531, 8)
    assert without_position(loader.image) == without_position(from_snapshot)
    assert sorted(loader.image.topics_by_name) == sorted(from_snapshot.topics_by_name)
    assert loader.image.finalized_features_epoch == 9


@pytest.mark.parametrize("file_name", ["metadata_log.jsonl", "snapshot.jsonl"])
def test_observed_record_encodes_to_the_observed_size_and_back(file_name: str) -> None:
    for observed in observed_records(file_name):
        versioned = VersionedRecord(observed.record, observed.version)
        value = encode_record(versioned)
        assert len(value) == observed.size_bytes, observed
        assert decode_record(value) == versioned


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "ends inside its frame"),
        (b"\x00\x02\x00", "frame version 0"),
        (b"\x01\x7f\x00", "type 127 is unknown"),
        (b"\x01\x02\x09", "version 9 of TopicRecord"),
        (b"\x01\x02\x00\x05ab", "TopicRecord version 0: name"),
        (b"\x01\x14\x00\x00\x00", "1 extra bytes"),
        (b"\x80\x80\x80\x80\x80\x80", "more than five bytes"),
        (b"\x80\x80\x80\x80\x80\x01", "more than five bytes"),
    ],
)
def test_value_that_is_not_one_record_is_a_fault(value: bytes, reason: str) -> None:
    with pytest.raises(MetadataFault, match=reason):
        decode_record(value)


def test_epoch_of_the_features_is_the_offset_of_the_batch_that_changed_them() -> None:
    """The loader keeps it when the next batch comes before a read of the image."""
    loader = MetadataLoader()
    level = FeatureLevelRecord(name="metadata.version", feature_level=30)
    loader.take_batch([level], 0, 1)
    loader.take_batch([TopicRecord(name="t", topic_id=Uuid(bytes(15) + b"\x07"))], 1, 1)
    assert loader.image.finalized_features_epoch == 0
    assert loader.image.topic("t") is not None


@pytest.mark.parametrize(("start", "is_right"), [(999, False), (1000, True), (1001, True)])
def test_producer_ids_never_decrease(start: int, is_right: bool) -> None:
    before = replayed(ProducerIdsRecord(next_producer_id=1000))
    if is_right:
        after = replayed(ProducerIdsRecord(next_producer_id=start), onto=before)
        assert after.next_producer_id == start
        return
    with pytest.raises(MetadataFault, match="producer ids decrease from 1000 to 999"):
        replayed(ProducerIdsRecord(next_producer_id=start), onto=before)


def test_transaction_becomes_visible_with_its_end() -> None:
    loader = MetadataLoader()
    before = loader.replay_batch(
        [
            FeatureLevelRecord(name="metadata.version", feature_level=30),
            BeginTransactionRecord(name="Bootstrap records"),
            TopicRecord(name="a", topic_id=TOPIC_ID),
        ],
        0,
        1,
    )
    assert loader.in_transaction
    assert before.metadata_version == 30
    assert before.topic("a") is None
    after = loader.replay_batch([EndTransactionRecord()], 3, 1)
    assert after.topic("a") is not None
    assert not loader.in_transaction


def test_aborted_transaction_leaves_nothing() -> None:
    loader = MetadataLoader()
    loader.replay_batch([BeginTransactionRecord(), TopicRecord(name="a", topic_id=TOPIC_ID)], 0, 1)
    image = loader.replay_batch([AbortTransactionRecord(), NoOpRecord()], 2, 1)
    assert image.topic("a") is None
    assert image.offset == 3


@pytest.mark.parametrize(
    "records",
    [
        [BeginTransactionRecord(), BeginTransactionRecord()],
        [EndTransactionRecord()],
        [AbortTransactionRecord()],
    ],
)
def test_transaction_marker_out_of_place_is_a_fault(records: list[Message]) -> None:
    with pytest.raises(MetadataFault, match="metadata transaction"):
        replayed(*records)


def broker_record(broker_epoch: int = 5) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(broker_id=1, broker_epoch=broker_epoch, fenced=True)


def topic_records() -> list[Message]:
    partition = PartitionRecord(
        topic_id=TOPIC_ID,
        partition_id=0,
        replicas=[1],
        isr=[1],
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
    )
    return [TopicRecord(name="a", topic_id=TOPIC_ID), partition]


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([*topic_records(), TopicRecord(name="a")], "already exists"),
        ([*topic_records(), topic_records()[1]], "a-0 already exists"),
        ([RemoveTopicRecord(topic_id=TOPIC_ID)], "unknown topic id"),
        ([*topic_records(), PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=1)], "a-1"),
        ([topic_records()[0], PartitionRecord(topic_id=TOPIC_ID, partition_id=1)], "have gaps"),
        ([BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5)], "not registered"),
        (
            [broker_record(), BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=6)],
            "has epoch 5, the record 6",
        ),
        (
            [ProducerIdsRecord(next_producer_id=9), ProducerIdsRecord(next_producer_id=8)],
            "decrease from 9 to 8",
        ),
        ([ClearElrRecord(topic_name="a")], "unknown topic a"),
    ],
)
def test_record_that_contradicts_the_log_is_a_fault(records: list[Message], reason: str) -> None:
    with pytest.raises(MetadataFault, match=reason):
        replayed(*records)


def test_leader_epoch_rises_only_with_an_election_but_partition_epoch_always() -> None:
    shrunk = PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, isr=[])
    elected = PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, leader=NO_LEADER)
    image = replayed(*topic_records(), shrunk, elected)
    topic = image.topic_by_id(TOPIC_ID)
    assert topic is not None
    partition = topic.partitions[0]
    assert (partition.isr, partition.leader) == ((), NO_LEADER)
    assert (partition.leader_epoch, partition.partition_epoch) == (1, 2)


def test_leader_epoch_rises_also_when_the_same_leader_is_elected_again() -> None:
    leader = topic_records()[-1].leader  # type: ignore[attr-defined]  # the partition's
    again = PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0, leader=leader)
    topic = replayed(*topic_records(), again, again).topic_by_id(TOPIC_ID)
    assert topic is not None
    assert (topic.partitions[0].leader, topic.partitions[0].leader_epoch) == (leader, 2)


def test_snapshot_replaces_all_that_was_there() -> None:
    """KAFKA-14894: a key that a snapshot does not have is gone with its loading."""
    loader = MetadataLoader(replayed(*topic_records(), broker_record()))
    quota = ClientQuotaRecord(
        entity=[EntityData(entity_type="user", entity_name="u")], key="k", value=1.5
    )
    image = loader.replay_snapshot([quota], 40, 3)
    assert (image.topics_by_name, image.brokers) == ({}, {})
    assert list(image.client_quotas) == [(("user", "u"),)]
    assert (image.offset, loader.last_offset) == (40, 40)


def test_removed_topic_takes_its_configuration_along() -> None:
    config = ConfigRecord(
        resource_type=TOPIC_RESOURCE, resource_name="a", name="retention.ms", value="1"
    )
    image = replayed(*topic_records(), config)
    assert image.config(TOPIC_RESOURCE, "a") == {"retention.ms": "1"}
    gone = replayed(RemoveTopicRecord(topic_id=TOPIC_ID), onto=image)
    assert gone.topic("a") is None
    assert gone.configs == {}
    assert image.topic("a") is not None, "an image never changes"


def test_null_value_removes_a_setting() -> None:
    def record(value: str | None) -> ConfigRecord:
        return ConfigRecord(
            resource_type=BROKER_RESOURCE, resource_name="", name="log.roll.ms", value=value
        )

    image = replayed(record("7"))
    assert image.config(BROKER_RESOURCE, "") == {"log.roll.ms": "7"}
    assert replayed(record(None), onto=image).configs == {}


def test_quota_entity_is_found_whatever_the_order_of_its_parts() -> None:
    user = EntityData(entity_type="user", entity_name="u")
    client = EntityData(entity_type="client-id", entity_name=None)
    image = replayed(ClientQuotaRecord(entity=[user, client], key="k", value=1.5))
    again = ClientQuotaRecord(entity=[client, user], key="k", remove=True)
    assert image.client_quotas == {(("client-id", None), ("user", "u")): {"k": 1.5}}
    assert replayed(again, onto=image).client_quotas == {}


def test_type_that_a_quota_s_entity_has_twice_counts_the_last_time() -> None:
    parts = [EntityData(entity_type="user", entity_name=name) for name in (None, "u", None, "v")]
    image = replayed(ClientQuotaRecord(entity=parts, key="k", value=1.5))
    assert image.client_quotas == {(("user", "v"),): {"k": 1.5}}


def test_maps_that_a_batch_did_not_touch_are_shared() -> None:
    image = replayed(*topic_records(), broker_record())
    after = replayed(NoOpRecord(), onto=image)
    assert after.topics_by_name is image.topics_by_name
    assert after.brokers is image.brokers
    assert after.offset == image.offset + 1


def test_head_of_a_record_may_have_longer_varints() -> None:
    """Kafka's `ByteUtils.readUnsignedVarint` takes them; nobody writes them."""
    for record in topic_records():
        value = bytes(encode_record(VersionedRecord(record)))
        longer = b"".join(bytes([each | 0x80, 0]) for each in value[:3]) + value[3:]
        assert decode_record(longer) == decode_record(value)
        longest = bytes([value[0] | 0x80, 0x80, 0x80, 0x80, 0]) + value[1:]
        assert decode_record(longest) == decode_record(value)


@pytest.mark.parametrize("name", ["", "a"])
def test_cleared_partitions_have_no_eligible_replicas_and_a_higher_epoch(name: str) -> None:
    """KIP-966 ClearElrRecord: of one topic, or of all; a partition without any stays as it is."""
    known = {1: ([2], None), 2: (None, [3]), 3: ([2], [3])}
    changes = [
        PartitionChangeRecord(
            topic_id=TOPIC_ID,
            partition_id=number,
            eligible_leader_replicas=eligible,
            last_known_elr=last_known,
        )
        for number, (eligible, last_known) in known.items()
    ]
    partitions = [
        PartitionRecord(topic_id=TOPIC_ID, partition_id=each, replicas=[1, 2, 3], isr=[1], leader=1)
        for each in range(4)
    ]
    topic = TopicRecord(name="a", topic_id=TOPIC_ID)
    before = replayed(topic, *partitions, *changes)
    after = replayed(ClearElrRecord(topic_name=name), onto=before)
    was, now = (each.topics_by_name["a"].partitions for each in (before, after))
    assert [was[at].eligible_leader_replicas for at in range(4)] == [(), (2,), (), (2,)]
    assert [was[at].last_known_elr for at in range(4)] == [(), (), (3,), (3,)]
    for number in range(4):
        assert now[number].eligible_leader_replicas == now[number].last_known_elr == ()
        raised = now[number].partition_epoch - was[number].partition_epoch
        assert raised == (number in known)


@pytest.mark.parametrize(
    ("fields", "is_known"),
    [
        ({"fenced": 1}, True),
        ({"fenced": -1, "in_controlled_shutdown": 1}, True),
        ({"fenced": 2}, False),
        ({"in_controlled_shutdown": 2}, False),
        ({"in_controlled_shutdown": -1}, False),
    ],
)
def test_flags_of_a_registration_that_nobody_knows_are_a_fault(
    fields: dict[str, int], is_known: bool
) -> None:
    """ClusterControlManager.replay of 4.3.1: "unknown value for ... field"."""
    loader = MetadataLoader()
    loader.replay_batch([RegisterBrokerRecord(broker_id=1, broker_epoch=5)], 0, 1)
    change = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, **fields)  # type: ignore[arg-type]  # numbers
    if not is_known:
        with pytest.raises(MetadataFault, match=r"broker 1: .* has an unknown flag"):
            loader.replay_batch([change], 1, 1)
        return
    loader.replay_batch([change], 1, 1)
    broker = loader.image.brokers[1]
    expected = (fields.get("fenced", 0) == 1, fields.get("in_controlled_shutdown", 0) == 1)
    assert (broker.fenced, broker.in_controlled_shutdown) == expected
