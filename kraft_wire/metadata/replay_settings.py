"""Replays settings of the cluster: configurations, features, quotas, producer ids.

KIP-226, KIP-584, KIP-546, KIP-730, KIP-835. Called through the table in `replay.py`; whether a
value may be set is checked before it is written, not here.
"""

from typing import TYPE_CHECKING

from kraft_wire.metadata.image import QuotaEntity
from kraft_wire.metadata.image_draft import ImageDraft, MetadataFault

if TYPE_CHECKING:
    from kraft_wire.wire.generated.client_quota_record import ClientQuotaRecord
    from kraft_wire.wire.generated.config_record import ConfigRecord
    from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
    from kraft_wire.wire.generated.no_op_record import NoOpRecord
    from kraft_wire.wire.generated.producer_ids_record import ProducerIdsRecord
    from kraft_wire.wire.generated.zk_migration_state_record import ZkMigrationStateRecord

__all__ = [
    "no_op",
    "set_client_quota",
    "set_config",
    "set_feature_level",
    "set_producer_ids",
    "set_zk_migration_state",
]


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
    """The finalised level of a feature; 0 removes it (KIP-584, KIP-1022)."""
    assert record.RECORD_TYPE == 12, record
    if record.feature_level == 0:
        draft.features.drop(record.name)
    else:
        draft.features.put(record.name, record.feature_level)


def set_client_quota(draft: ImageDraft, record: "ClientQuotaRecord") -> None:
    """One quota of one entity (KIP-546); for a repeated entity type the last name counts."""
    assert record.RECORD_TYPE == 14, record
    names = {part.entity_type: part.entity_name for part in record.entity}
    entity: QuotaEntity = tuple(sorted(names.items()))  # no type twice: names are never compared
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
    """The start of the next block of producer ids; it never decreases (KIP-730)."""
    assert record.RECORD_TYPE == 15, record
    if record.next_producer_id < draft.next_producer_id:
        raise MetadataFault(
            f"producer ids decrease from {draft.next_producer_id} to {record.next_producer_id}"
        )
    draft.next_producer_id = record.next_producer_id
    assert draft.next_producer_id >= draft.base.next_producer_id


def set_zk_migration_state(draft: ImageDraft, record: "ZkMigrationStateRecord") -> None:
    """How far a migration from ZooKeeper went; only logs begun before 4.0 have it."""
    assert record.RECORD_TYPE == 21, record
    draft.zk_migration_state = record.zk_migration_state


def no_op(draft: ImageDraft, record: "NoOpRecord") -> None:
    """Nothing: the record advances the offset of an idle cluster (KIP-835)."""
    assert record.RECORD_TYPE == 20, record
