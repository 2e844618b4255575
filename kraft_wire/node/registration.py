"""The records by which a node of one joins its own cluster at each start.

KIP-631 and KIP-919: the controller registers itself, the broker registers fenced and is unfenced;
then this broker leads its partitions, under a new leader epoch, because after a crash the same
offsets may be written again with other records (KIP-101, KIP-320). At a graceful stop it gives up
what it leads and is fenced.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from kraft_wire.controller.brokers import elections, shut_down_broker
from kraft_wire.controller.features import SUPPORTED_FEATURES
from kraft_wire.controller.image import MetadataImage
from kraft_wire.controller.records import VersionedRecord, register_broker_version
from kraft_wire.model import Uuid
from kraft_wire.node.config import Listener
from kraft_wire.wire.generated.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
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
    "election_batches",
    "farewell_batches",
    "register_broker",
    "register_controller",
    "unfence",
]

_UNFENCED: Final = -1
_PLAINTEXT: Final = 0
_RECORDS_PER_BATCH: Final = 1_000


def register_controller(
    node_id: int, incarnation_id: Uuid, listener: Listener | None
) -> VersionedRecord:
    """Return the controller's registration; without a controller listener it names no endpoint."""
    endpoints = []
    if listener is not None:
        endpoints = [
            ControllerEndpoint(
                name=listener.name,
                host=listener.advertised_host,
                port=listener.advertised_port,
                security_protocol=_PLAINTEXT,
            )
        ]
    record = RegisterControllerRecord(
        controller_id=node_id,
        incarnation_id=incarnation_id,
        zk_migration_ready=False,
        end_points=endpoints,
        features=[
            ControllerFeature(
                name=name,
                min_supported_version=levels.min_level,
                max_supported_version=levels.max_level,
            )
            for name, levels in SUPPORTED_FEATURES.items()
        ],
    )
    return VersionedRecord(record)


def register_broker(
    image: MetadataImage,
    *,
    node_id: int,
    incarnation_id: Uuid,
    broker_epoch: int,
    listeners: tuple[Listener, ...],
    rack: str | None,
    log_dirs: list[Uuid],
) -> VersionedRecord:
    """Return the broker's registration, fenced; `broker_epoch` is the offset that it will get."""
    record = RegisterBrokerRecord(
        broker_id=node_id,
        incarnation_id=incarnation_id,
        broker_epoch=broker_epoch,
        end_points=[
            BrokerEndpoint(
                name=each.name,
                host=each.advertised_host,
                port=each.advertised_port,
                security_protocol=_PLAINTEXT,
            )
            for each in listeners
        ],
        features=[
            BrokerFeature(
                name=name,
                min_supported_version=levels.min_level,
                max_supported_version=levels.max_level,
            )
            for name, levels in SUPPORTED_FEATURES.items()
        ],
        rack=rack,
        fenced=True,
        log_dirs=sorted(log_dirs),
    )
    return VersionedRecord(record, register_broker_version(image.metadata_version))


def unfence(node_id: int, broker_epoch: int) -> VersionedRecord:
    """Return the record that lets the broker lead."""
    return VersionedRecord(
        BrokerRegistrationChangeRecord(
            broker_id=node_id, broker_epoch=broker_epoch, fenced=_UNFENCED
        )
    )


def election_batches(image: MetadataImage, node_id: int) -> Iterator[list[VersionedRecord]]:
    """Yield batches of records that make this broker lead the partitions that it may lead."""
    yield from _batches(elections(image, node_id))


def farewell_batches(image: MetadataImage, node_id: int) -> Iterator[list[VersionedRecord]]:
    """Yield the batches of a graceful stop, which Kafka's broker asks its controller for."""
    for records in shut_down_broker(image, node_id):
        yield from _batches(records)


def _batches(records: Iterable[VersionedRecord]) -> Iterator[list[VersionedRecord]]:
    batch: list[VersionedRecord] = []
    for record in records:
        batch.append(record)
        if len(batch) == _RECORDS_PER_BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
