"""Records by which a broker gains and gives up leadership at its start and stop.

A broker that was unfenced becomes leader of its partitions with a new leader epoch, so that clients
can tell what was written before the restart from what comes after (KIP-101, KIP-320). At a graceful
stop it is in controlled shutdown, gives up leadership, and is fenced.

Not here: registrations (node); heartbeats and sessions of other brokers, which replication brings.
"""

from collections.abc import Iterator, Mapping

from kraft_wire.controller.image import NO_LEADER, MetadataImage, PartitionImage, TopicImage
from kraft_wire.controller.records import VersionedRecord, partition_record_version
from kraft_wire.wire.generated.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord

__all__ = ["elections", "shut_down_broker"]


def elections(image: MetadataImage, broker_id: int) -> Iterator[VersionedRecord]:
    """Yield the changes that make a starting broker leader wherever it may be, with new epochs."""
    for topic, partition in _partitions_of(image, broker_id):
        change = _election(broker_id, partition)
        if change is not None:
            yield _versioned(image, topic, partition, change)


def shut_down_broker(image: MetadataImage, broker_id: int) -> list[list[VersionedRecord]]:
    """Return the batches of a graceful stop: controlled shutdown, leadership given up, fenced."""
    broker = image.brokers[broker_id]
    shutdown = BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker.broker_epoch, in_controlled_shutdown=1
    )
    fence = BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker.broker_epoch, fenced=1
    )
    assert not broker.fenced, "only a broker that serves can stop gracefully"
    led = [
        _versioned(image, topic, partition, PartitionChangeRecord(leader=NO_LEADER))
        for topic, partition in _partitions_of(image, broker_id)
        if partition.leader == broker_id
    ]
    return [[VersionedRecord(shutdown, 1), *led], [VersionedRecord(fence)]]


def _election(broker_id: int, partition: PartitionImage) -> PartitionChangeRecord | None:
    """Return the change that makes a broker leader, None when it may not become it.

    It may when nobody or itself leads and it is in the ISR; when the ISR is empty and it is an
    eligible leader replica; or the last known one where both are empty, which is then a recovery
    (KIP-966, KIP-704): such states come from a log that Apache Kafka wrote.
    """
    assert broker_id in partition.replicas, partition
    if partition.leader not in (NO_LEADER, broker_id):
        return None
    if broker_id in partition.isr:
        return PartitionChangeRecord(leader=broker_id)
    if partition.isr:
        return None
    assert not partition.isr, partition
    alone = PartitionChangeRecord(leader=broker_id, isr=[broker_id])
    if partition.eligible_leader_replicas or partition.last_known_elr:
        alone.eligible_leader_replicas, alone.last_known_elr = [], []
    if broker_id in partition.eligible_leader_replicas:
        return alone
    if not partition.eligible_leader_replicas and partition.last_known_elr == (broker_id,):
        alone.leader_recovery_state = 1
        return alone
    return None


def _partitions_of(
    image: MetadataImage, broker_id: int
) -> Iterator[tuple[TopicImage, PartitionImage]]:
    for topic in image.topics():
        partitions: Mapping[int, PartitionImage] = topic.partitions
        for partition in partitions.values():
            if broker_id in partition.replicas:
                yield topic, partition


def _versioned(
    image: MetadataImage,
    topic: TopicImage,
    partition: PartitionImage,
    change: PartitionChangeRecord,
) -> VersionedRecord:
    assert partition.partition in topic.partitions
    assert change.RECORD_TYPE == 5, change
    change.topic_id = topic.topic_id
    change.partition_id = partition.partition
    return VersionedRecord(change, partition_record_version(image.metadata_version))
