"""Records about the nodes of the cluster, for a node that is broker and controller in one.

The order at a start is Kafka's: the controller registers (KIP-919), then the broker, fenced; once
the broker has opened its logs it is unfenced, and it becomes leader of its partitions with a new
leader epoch, so that clients can tell what was written before the restart from what comes after.
At a graceful stop it is in controlled shutdown, gives up leadership, and is fenced.

Not here: registrations, heartbeats and sessions of other brokers, which need a larger quorum.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kraft_wire.controller.features import SUPPORTED_FEATURES
from kraft_wire.controller.image import (
    NO_LEADER,
    EndpointImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from kraft_wire.controller.records import (
    VersionedRecord,
    partition_record_version,
    register_broker_version,
)
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from kraft_wire.wire.generated.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)

__all__ = [
    "NodeRegistration",
    "register_broker",
    "register_controller",
    "shut_down_broker",
    "unfence_broker",
]

_CONTROLLER_REGISTRATION_FROM = 15
"""metadata.version since which controllers register."""


@dataclass(frozen=True, slots=True)
class NodeRegistration:
    """What one incarnation of this node tells the cluster about itself."""

    node_id: int
    incarnation_id: Uuid
    """Drawn anew at each start."""
    endpoints: Sequence[EndpointImage]
    """The broker's listeners, as advertised."""
    controller_endpoints: Sequence[EndpointImage] = ()
    rack: str | None = None
    log_dirs: Sequence[Uuid] = ()
    """Directory ids of the log directories that are online."""


def register_controller(
    image: MetadataImage, registration: NodeRegistration
) -> list[VersionedRecord]:
    """Return the registration of the controller; none below metadata.version 15."""
    if image.metadata_version < _CONTROLLER_REGISTRATION_FROM:
        return []
    record = RegisterControllerRecord(
        controller_id=registration.node_id,
        incarnation_id=registration.incarnation_id,
        zk_migration_ready=False,
        end_points=[
            ControllerEndpoint(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=each.security_protocol,
            )
            for each in registration.controller_endpoints
        ],
        features=[
            ControllerFeature(
                name=name,
                min_supported_version=levels.min_level,
                max_supported_version=levels.max_level,
            )
            for name, levels in SUPPORTED_FEATURES.items()
        ],
    )
    return [VersionedRecord(record)]


def register_broker(
    image: MetadataImage, registration: NodeRegistration, offset: int
) -> list[VersionedRecord]:
    """Return the registration of the broker, fenced; `offset` is the one that it will get.

    The offset becomes the broker epoch: a later incarnation always has a higher one.
    """
    assert offset > image.offset, (offset, image.offset)
    version = register_broker_version(image.metadata_version)
    record = RegisterBrokerRecord(
        broker_id=registration.node_id,
        incarnation_id=registration.incarnation_id,
        broker_epoch=offset,
        end_points=[
            BrokerEndpoint(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=each.security_protocol,
            )
            for each in registration.endpoints
        ],
        features=[
            BrokerFeature(
                name=name,
                min_supported_version=levels.min_level,
                max_supported_version=levels.max_level,
            )
            for name, levels in SUPPORTED_FEATURES.items()
        ],
        rack=registration.rack,
        fenced=True,
    )
    if version >= 3:
        record.log_dirs = list(registration.log_dirs)
    assert record.end_points, "a broker without listeners cannot be reached"
    return [VersionedRecord(record, version)]


def unfence_broker(image: MetadataImage, broker_id: int) -> list[VersionedRecord]:
    """Return the records that open a registered broker: unfenced, leading with new epochs."""
    broker = image.brokers[broker_id]
    assert broker.fenced, broker
    change = BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker.broker_epoch, fenced=-1
    )
    records = [VersionedRecord(change)]
    for topic, partition in _partitions_of(image, broker_id):
        election = _election(broker_id, partition)
        if election is not None:
            records.append(_versioned(image, topic, partition, election))
    return records


def shut_down_broker(image: MetadataImage, broker_id: int) -> list[list[VersionedRecord]]:
    """Return the batches of a graceful stop: controlled shutdown, leadership given up, fenced."""
    broker = image.brokers[broker_id]
    shutdown = BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker.broker_epoch, in_controlled_shutdown=1
    )
    fence = BrokerRegistrationChangeRecord(
        broker_id=broker_id, broker_epoch=broker.broker_epoch, fenced=1
    )
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
    if partition.leader not in (NO_LEADER, broker_id):
        return None
    if broker_id in partition.isr:
        return PartitionChangeRecord(leader=broker_id)
    if partition.isr:
        return None
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
    change.topic_id = topic.topic_id
    change.partition_id = partition.partition
    return VersionedRecord(change, partition_record_version(image.metadata_version))
