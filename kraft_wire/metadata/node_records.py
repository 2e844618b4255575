"""Registrations of brokers and controllers as records; `replay_nodes` does the reverse.

KIP-631 (brokers), KIP-858 and KIP-1066 (log directories), KIP-919 (controllers). Used for a broker
that registers, for a controller that registers at another one, and for snapshots.
"""

from typing import Protocol, TypeVar

from kraft_wire.metadata.features import CORDONED_FROM, DIRECTORIES_FROM
from kraft_wire.metadata.image import BrokerImage, ControllerImage
from kraft_wire.metadata.records import VersionedRecord, register_broker_version
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

__all__ = ["broker_record", "controller_record"]

FieldT = TypeVar("FieldT", covariant=True)


class EndpointClass(Protocol[FieldT]):
    """The class of a listener in either registration."""

    def __call__(self, *, name: str, host: str, port: int, security_protocol: int) -> FieldT: ...


class FeatureClass(Protocol[FieldT]):
    """The class of a feature's levels in either registration."""

    def __call__(
        self, *, name: str, min_supported_version: int, max_supported_version: int
    ) -> FieldT: ...


def broker_record(broker: BrokerImage, level: int) -> VersionedRecord:
    """Return a broker's registration as metadata.version `level` has it."""
    assert level >= DIRECTORIES_FROM or not broker.log_dirs, (level, broker)
    assert level >= CORDONED_FROM or broker.cordoned_log_dirs is None, (level, broker)
    record = RegisterBrokerRecord(
        broker_id=broker.broker_id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.broker_epoch,
        end_points=_endpoints(broker, BrokerEndpoint),
        features=_levels(broker, BrokerFeature),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.log_dirs),
        cordoned_log_dirs=(
            None if broker.cordoned_log_dirs is None else list(broker.cordoned_log_dirs)
        ),
    )
    assert len(record.end_points) == len(broker.endpoints), record
    return VersionedRecord(record, register_broker_version(level))


def controller_record(controller: ControllerImage) -> VersionedRecord:
    """Return a controller's registration, of metadata.version 15 or later."""
    record = RegisterControllerRecord(
        controller_id=controller.controller_id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.zk_migration_ready,
        end_points=_endpoints(controller, ControllerEndpoint),
        features=_levels(controller, ControllerFeature),
    )
    assert len(record.end_points) == len(controller.endpoints), record
    return VersionedRecord(record)


def _endpoints(
    node: BrokerImage | ControllerImage, endpoint: EndpointClass[FieldT]
) -> list[FieldT]:
    assert all(name == each.name for name, each in node.endpoints.items()), node
    return [
        endpoint(
            name=each.name,
            host=each.host,
            port=each.port,
            security_protocol=each.security_protocol,
        )
        for each in node.endpoints.values()
    ]


def _levels(node: BrokerImage | ControllerImage, feature: FeatureClass[FieldT]) -> list[FieldT]:
    return [
        feature(
            name=name,
            min_supported_version=levels.min_level,
            max_supported_version=levels.max_level,
        )
        for name, levels in node.features.items()
    ]
