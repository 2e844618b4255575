"""Replays registrations of brokers and controllers, their changes and their ends.

KIP-631 (brokers), KIP-841 (controlled shutdown), KIP-858 and KIP-1066 (log directories), KIP-919
(controllers). Called through the table in `replay.py`; sessions are not metadata.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from kraft_wire.metadata.image import (
    BrokerImage,
    ControllerImage,
    EndpointImage,
    FeatureRange,
)
from kraft_wire.metadata.image_draft import ImageDraft, MetadataFault

if TYPE_CHECKING:
    from kraft_wire.wire.generated.broker_registration_change_record import (
        BrokerRegistrationChangeRecord,
    )
    from kraft_wire.wire.generated.fence_broker_record import FenceBrokerRecord
    from kraft_wire.wire.generated.register_broker_record import RegisterBrokerRecord
    from kraft_wire.wire.generated.register_controller_record import RegisterControllerRecord
    from kraft_wire.wire.generated.unfence_broker_record import UnfenceBrokerRecord
    from kraft_wire.wire.generated.unregister_broker_record import UnregisterBrokerRecord

__all__ = [
    "change_broker_registration",
    "endpoint_images",
    "feature_images",
    "fence_broker",
    "register_broker",
    "register_controller",
    "unfence_broker",
    "unregister_broker",
]

T = TypeVar("T")


class EndpointFields(Protocol):
    """An endpoint as every registration has it."""

    name: str
    host: str
    port: int
    security_protocol: int


class FeatureFields(Protocol):
    """A feature range as every registration has it."""

    name: str
    min_supported_version: int
    max_supported_version: int


def register_broker(draft: ImageDraft, record: "RegisterBrokerRecord") -> None:
    """A broker, or its new incarnation, which replaces the old one."""
    assert record.RECORD_TYPE == 0, record
    draft.brokers.put(
        record.broker_id,
        BrokerImage(
            broker_id=record.broker_id,
            broker_epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=endpoint_images(record.end_points),
            features=feature_images(record.features),
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            is_migrating_zk_broker=record.is_migrating_zk_broker,
            log_dirs=tuple(sorted(record.log_dirs)),
            cordoned_log_dirs=_optional(record.cordoned_log_dirs),
        ),
    )


def unregister_broker(draft: ImageDraft, record: "UnregisterBrokerRecord") -> None:
    """The end of a registration; id and epoch must match."""
    assert record.RECORD_TYPE == 1, record
    _registered(draft, record.broker_id, record.broker_epoch)
    removed = draft.brokers.drop(record.broker_id)
    assert removed, record


def fence_broker(draft: ImageDraft, record: "FenceBrokerRecord") -> None:
    """The fencing record of metadata versions below 6."""
    assert record.RECORD_TYPE == 7, record
    broker = _registered(draft, record.id, record.epoch)
    draft.brokers.put(record.id, replace(broker, fenced=True))


def unfence_broker(draft: ImageDraft, record: "UnfenceBrokerRecord") -> None:
    """The unfencing record of metadata versions below 6."""
    assert record.RECORD_TYPE == 8, record
    broker = _registered(draft, record.id, record.epoch)
    draft.brokers.put(record.id, replace(broker, fenced=False))


def change_broker_registration(draft: ImageDraft, record: "BrokerRegistrationChangeRecord") -> None:
    """Fencing, controlled shutdown and log directories of a registered broker (KIP-841, 858)."""
    assert record.RECORD_TYPE == 17, record
    broker = _registered(draft, record.broker_id, record.broker_epoch)
    if record.fenced not in (-1, 0, 1) or record.in_controlled_shutdown not in (0, 1):
        raise MetadataFault(f"broker {record.broker_id}: {record!r} has an unknown flag")
    assert broker.broker_epoch == record.broker_epoch, (broker, record)
    if record.fenced:
        broker = replace(broker, fenced=record.fenced == 1)
    if record.in_controlled_shutdown:
        broker = replace(broker, in_controlled_shutdown=True)
    if record.log_dirs:
        broker = replace(broker, log_dirs=tuple(sorted(record.log_dirs)))
    if record.cordoned_log_dirs is not None:
        broker = replace(broker, cordoned_log_dirs=tuple(record.cordoned_log_dirs))
    draft.brokers.put(record.broker_id, broker)


def register_controller(draft: ImageDraft, record: "RegisterControllerRecord") -> None:
    """A controller, or a new incarnation of it (KIP-919)."""
    assert record.RECORD_TYPE == 27, record
    draft.controllers.put(
        record.controller_id,
        ControllerImage(
            controller_id=record.controller_id,
            incarnation_id=record.incarnation_id,
            endpoints=endpoint_images(record.end_points),
            features=feature_images(record.features),
            zk_migration_ready=record.zk_migration_ready,
        ),
    )


def _registered(draft: ImageDraft, broker_id: int, broker_epoch: int) -> BrokerImage:
    broker = draft.brokers.get(broker_id)
    if broker is None:
        raise MetadataFault(f"broker {broker_id} is not registered")
    if broker.broker_epoch != broker_epoch:
        raise MetadataFault(
            f"broker {broker_id} has epoch {broker.broker_epoch}, the record {broker_epoch}"
        )
    assert broker.broker_id == broker_id, broker
    return broker


def endpoint_images(fields: "Sequence[EndpointFields]") -> dict[str, EndpointImage]:
    """Return the listeners of a registration by name."""
    return {
        field.name: EndpointImage(field.name, field.host, field.port, field.security_protocol)
        for field in fields
    }


def feature_images(fields: "Sequence[FeatureFields]") -> dict[str, FeatureRange]:
    """Return the levels of a registration by feature."""
    return {
        field.name: FeatureRange(field.min_supported_version, field.max_supported_version)
        for field in fields
    }


def _optional(values: "Sequence[T] | None") -> tuple[T, ...] | None:
    return None if values is None else tuple(values)
