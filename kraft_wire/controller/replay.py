"""What each metadata record changes: one table, record type -> change of the draft image.

KIP-631 and its successors define the records; the numbers are the schemas' `apiKey`. Replaying is
strict: a record that contradicts the log before it is a MetadataFault, never a guess, because every
later record builds on the result. Transactions (23 to 25) and snapshots belong to `loader.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Never, TypeVar, cast

from kraft_wire.controller.image import (
    TOPIC_RESOURCE,
    AclImage,
    BrokerImage,
    ControllerImage,
    DelegationTokenImage,
    EndpointImage,
    FeatureRange,
    PartitionImage,
    QuotaEntity,
    ScramImage,
)
from kraft_wire.controller.image_draft import ImageDraft, MetadataFault
from kraft_wire.wire.message import Message

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from kraft_wire.wire.generated.access_control_entry_record import AccessControlEntryRecord
    from kraft_wire.wire.generated.broker_registration_change_record import (
        BrokerRegistrationChangeRecord,
    )
    from kraft_wire.wire.generated.clear_elr_record import ClearElrRecord
    from kraft_wire.wire.generated.client_quota_record import ClientQuotaRecord
    from kraft_wire.wire.generated.config_record import ConfigRecord
    from kraft_wire.wire.generated.delegation_token_record import DelegationTokenRecord
    from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
    from kraft_wire.wire.generated.fence_broker_record import FenceBrokerRecord
    from kraft_wire.wire.generated.no_op_record import NoOpRecord
    from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
    from kraft_wire.wire.generated.partition_record import PartitionRecord
    from kraft_wire.wire.generated.producer_ids_record import ProducerIdsRecord
    from kraft_wire.wire.generated.register_broker_record import RegisterBrokerRecord
    from kraft_wire.wire.generated.register_controller_record import RegisterControllerRecord
    from kraft_wire.wire.generated.remove_access_control_entry_record import (
        RemoveAccessControlEntryRecord,
    )
    from kraft_wire.wire.generated.remove_delegation_token_record import (
        RemoveDelegationTokenRecord,
    )
    from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
    from kraft_wire.wire.generated.remove_user_scram_credential_record import (
        RemoveUserScramCredentialRecord,
    )
    from kraft_wire.wire.generated.topic_record import TopicRecord
    from kraft_wire.wire.generated.unfence_broker_record import UnfenceBrokerRecord
    from kraft_wire.wire.generated.unregister_broker_record import UnregisterBrokerRecord
    from kraft_wire.wire.generated.user_scram_credential_record import UserScramCredentialRecord
    from kraft_wire.wire.generated.zk_migration_state_record import ZkMigrationStateRecord

    class EndpointFields(Protocol):
        """An endpoint as either registration record has it."""

        name: str
        host: str
        port: int
        security_protocol: int

    class FeatureFields(Protocol):
        """A feature range as either registration record has it."""

        name: str
        min_supported_version: int
        max_supported_version: int


__all__ = ["REPLAYERS", "UNCHANGED_LEADER", "merge_partition", "replay"]

T = TypeVar("T")

UNCHANGED_LEADER: Final = -2
"""PartitionChangeRecord's leader when the record does not elect one."""


def replay(draft: ImageDraft, record: Message) -> None:
    """Apply one record; MetadataFault when it contradicts what came before."""
    assert record.RECORD_TYPE >= 0, f"{record.NAME} is no metadata record"
    replayer = REPLAYERS.get(record.RECORD_TYPE)
    if replayer is None:
        raise MetadataFault(f"a {record.NAME} may not stand here")
    cast("Callable[[ImageDraft, Message], None]", replayer)(draft, record)


def register_broker(draft: ImageDraft, record: "RegisterBrokerRecord") -> None:
    """A broker, or a new incarnation of it, in the place of the old one."""
    assert record.RECORD_TYPE == 0, record
    draft.brokers.put(
        record.broker_id,
        BrokerImage(
            broker_id=record.broker_id,
            broker_epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=_endpoints(record.end_points),
            features=_features(record.features),
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
            endpoints=_endpoints(record.end_points),
            features=_features(record.features),
            zk_migration_ready=record.zk_migration_ready,
        ),
    )


def add_topic(draft: ImageDraft, record: "TopicRecord") -> None:
    """A topic; its partitions follow as records of their own."""
    assert record.RECORD_TYPE == 2, record
    draft.add_topic(record.name, record.topic_id)
    assert draft.topic_name(record.topic_id) == record.name


def remove_topic(draft: ImageDraft, record: "RemoveTopicRecord") -> None:
    """The end of a topic, of its partitions and of its configuration."""
    assert record.RECORD_TYPE == 9, record
    name = draft.remove_topic(record.topic_id)
    assert name, record
    draft.configs.drop((TOPIC_RESOURCE, name))


def add_partition(draft: ImageDraft, record: "PartitionRecord") -> None:
    """One partition of a topic that is there."""
    assert record.RECORD_TYPE == 3, record
    partitions = draft.partitions(record.topic_id)
    if record.partition_id in partitions.now:
        name = draft.topic_name(record.topic_id)
        raise MetadataFault(f"partition {name}-{record.partition_id} is there already")
    partitions.put(
        record.partition_id,
        PartitionImage(
            partition=record.partition_id,
            replicas=tuple(record.replicas),
            isr=tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            leader_recovery_state=record.leader_recovery_state,
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            directories=tuple(record.directories),
            eligible_leader_replicas=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
        ),
    )


def change_partition(draft: ImageDraft, record: "PartitionChangeRecord") -> None:
    """New ISR, leader, replicas or directories of one partition."""
    assert record.RECORD_TYPE == 5, record
    partitions = draft.partitions(record.topic_id)
    before = partitions.get(record.partition_id)
    if before is None:
        name = draft.topic_name(record.topic_id)
        raise MetadataFault(f"there is no partition {name}-{record.partition_id}")
    partitions.put(record.partition_id, merge_partition(before, record))


def merge_partition(before: PartitionImage, record: "PartitionChangeRecord") -> PartitionImage:
    """Return a partition after a change: null members stay, each change raises partition_epoch.

    The leader epoch rises exactly when the record names a leader, also when it is the same one.
    """
    elects = record.leader != UNCHANGED_LEADER
    after = PartitionImage(
        partition=before.partition,
        replicas=_changed(record.replicas, before.replicas),
        isr=_changed(record.isr, before.isr),
        leader=record.leader if elects else before.leader,
        leader_epoch=before.leader_epoch + (1 if elects else 0),
        partition_epoch=before.partition_epoch + 1,
        leader_recovery_state=(
            before.leader_recovery_state
            if record.leader_recovery_state < 0
            else record.leader_recovery_state
        ),
        removing_replicas=_changed(record.removing_replicas, before.removing_replicas),
        adding_replicas=_changed(record.adding_replicas, before.adding_replicas),
        directories=_changed(record.directories, before.directories),
        eligible_leader_replicas=_changed(
            record.eligible_leader_replicas, before.eligible_leader_replicas
        ),
        last_known_elr=_changed(record.last_known_elr, before.last_known_elr),
    )
    assert after.partition == before.partition
    assert after.partition_epoch > before.partition_epoch
    return after


def clear_elr(draft: ImageDraft, record: "ClearElrRecord") -> None:
    """Forget the eligible leader replicas of one topic, or of all when no name is given."""
    assert record.RECORD_TYPE == 28, record
    topic_ids = [draft.topic_id(record.topic_name)] if record.topic_name else draft.topic_ids()
    for topic_id in topic_ids:
        partitions = draft.partitions(topic_id)
        for number, partition in list(partitions.now.items()):
            if partition.eligible_leader_replicas or partition.last_known_elr:
                cleared = replace(
                    partition,
                    eligible_leader_replicas=(),
                    last_known_elr=(),
                    partition_epoch=partition.partition_epoch + 1,
                )
                partitions.put(number, cleared)


def set_config(draft: ImageDraft, record: "ConfigRecord") -> None:
    """One value of one resource; null removes it, and the resource with its last value."""
    assert record.RECORD_TYPE == 4, record
    resource = (record.resource_type, record.resource_name)
    values = dict(draft.configs.get(resource) or {})
    if record.value is None:
        values.pop(record.name, None)
    else:
        values[record.name] = record.value
    if values:
        assert values.get(record.name) == record.value, record
        draft.configs.put(resource, values)
    else:
        draft.configs.drop(resource)


def set_feature_level(draft: ImageDraft, record: "FeatureLevelRecord") -> None:
    """The finalised level of a feature; 0 takes it away (KIP-584, KIP-1022)."""
    assert record.RECORD_TYPE == 12, record
    if record.feature_level == 0:
        draft.features.drop(record.name)
    else:
        draft.features.put(record.name, record.feature_level)


def set_client_quota(draft: ImageDraft, record: "ClientQuotaRecord") -> None:
    """One quota of one entity (KIP-546)."""
    assert record.RECORD_TYPE == 14, record
    entity: QuotaEntity = tuple(
        sorted((part.entity_type, part.entity_name) for part in record.entity)
    )
    quotas = dict(draft.client_quotas.get(entity) or {})
    if record.remove:
        quotas.pop(record.key, None)
    else:
        quotas[record.key] = record.value
    if quotas:
        draft.client_quotas.put(entity, quotas)
    else:
        draft.client_quotas.drop(entity)


def set_producer_ids(draft: ImageDraft, record: "ProducerIdsRecord") -> None:
    """The start of the next block of producer ids; it never goes back (KIP-730)."""
    assert record.RECORD_TYPE == 15, record
    if record.next_producer_id < draft.next_producer_id:
        raise MetadataFault(
            f"producer ids go back from {draft.next_producer_id} to {record.next_producer_id}"
        )
    draft.next_producer_id = record.next_producer_id
    assert draft.next_producer_id >= draft.base.next_producer_id


def add_acl(draft: ImageDraft, record: "AccessControlEntryRecord") -> None:
    """An access-control entry."""
    assert record.RECORD_TYPE == 18, record
    draft.acls.put(
        record.id,
        AclImage(
            resource_type=record.resource_type,
            resource_name=record.resource_name,
            pattern_type=record.pattern_type,
            principal=record.principal,
            host=record.host,
            operation=record.operation,
            permission_type=record.permission_type,
        ),
    )


def remove_acl(draft: ImageDraft, record: "RemoveAccessControlEntryRecord") -> None:
    """The end of an access-control entry that is there."""
    assert record.RECORD_TYPE == 19, record
    if not draft.acls.drop(record.id):
        raise MetadataFault(f"there is no access-control entry {record.id.hex()}")


def set_scram_credential(draft: ImageDraft, record: "UserScramCredentialRecord") -> None:
    """A user's credential for one mechanism."""
    assert record.RECORD_TYPE == 11, record
    draft.scram.put(
        (record.name, record.mechanism),
        ScramImage(
            salt=bytes(record.salt),
            stored_key=bytes(record.stored_key),
            server_key=bytes(record.server_key),
            iterations=record.iterations,
        ),
    )


def remove_scram_credential(draft: ImageDraft, record: "RemoveUserScramCredentialRecord") -> None:
    """The end of a credential that is there."""
    assert record.RECORD_TYPE == 22, record
    if not draft.scram.drop((record.name, record.mechanism)):
        raise MetadataFault(f"user {record.name} has no credential {record.mechanism}")


def set_delegation_token(draft: ImageDraft, record: "DelegationTokenRecord") -> None:
    """A new or renewed delegation token."""
    assert record.RECORD_TYPE == 10, record
    draft.delegation_tokens.put(
        record.token_id,
        DelegationTokenImage(
            owner=record.owner,
            requester=record.requester,
            renewers=tuple(record.renewers),
            issue_timestamp=record.issue_timestamp,
            max_timestamp=record.max_timestamp,
            expiration_timestamp=record.expiration_timestamp,
        ),
    )


def remove_delegation_token(draft: ImageDraft, record: "RemoveDelegationTokenRecord") -> None:
    """The end of a delegation token, whether or not it is there."""
    assert record.RECORD_TYPE == 26, record
    draft.delegation_tokens.drop(record.token_id)


def set_zk_migration_state(draft: ImageDraft, record: "ZkMigrationStateRecord") -> None:
    """How far a migration from ZooKeeper went; only logs begun before 4.0 have it."""
    assert record.RECORD_TYPE == 21, record
    draft.zk_migration_state = record.zk_migration_state


def no_op(draft: ImageDraft, record: "NoOpRecord") -> None:
    """Nothing: the record moves the offset on an idle cluster (KIP-835)."""
    assert record.RECORD_TYPE == 20, record


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


def _endpoints(fields: "Sequence[EndpointFields]") -> dict[str, EndpointImage]:
    return {
        field.name: EndpointImage(field.name, field.host, field.port, field.security_protocol)
        for field in fields
    }


def _features(fields: "Sequence[FeatureFields]") -> dict[str, FeatureRange]:
    return {
        field.name: FeatureRange(field.min_supported_version, field.max_supported_version)
        for field in fields
    }


def _changed(new: "Sequence[T] | None", old: tuple[T, ...]) -> tuple[T, ...]:
    return old if new is None else tuple(new)


def _optional(values: "Sequence[T] | None") -> tuple[T, ...] | None:
    return None if values is None else tuple(values)


REPLAYERS: Final[Mapping[int, Callable[[ImageDraft, Never], None]]] = {
    0: register_broker,
    1: unregister_broker,
    2: add_topic,
    3: add_partition,
    4: set_config,
    5: change_partition,
    7: fence_broker,
    8: unfence_broker,
    9: remove_topic,
    10: set_delegation_token,
    11: set_scram_credential,
    12: set_feature_level,
    14: set_client_quota,
    15: set_producer_ids,
    17: change_broker_registration,
    18: add_acl,
    19: remove_acl,
    20: no_op,
    21: set_zk_migration_state,
    22: remove_scram_credential,
    26: remove_delegation_token,
    27: register_controller,
    28: clear_elr,
}
"""Every record but the three of transactions; a type that is missing here is a fault."""
