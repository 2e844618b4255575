"""The first records of a controller that becomes active.

On an empty log these are the records that the cluster was formatted with, as one change (KIP-631;
since KIP-868 as a metadata transaction). On any other log there are none, unless the previous
controller left a transaction open: it is aborted, and started again if it was the first one. As
release 4.3.1 does. A transaction below the level that knows transactions is a fault of the log.
"""

from collections.abc import Sequence
from typing import Final

from kraft_wire.metadata.features import (
    METADATA_VERSION,
    TRANSACTIONS_FROM,
    activation_records,
    unsupported_level,
)
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.metadata.image_draft import MetadataFault
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.abort_transaction_record import AbortTransactionRecord
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord

__all__ = ["first_records"]

_REASON: Final = "Controller failover"


def first_records(
    image: MetadataImage,
    settings: NodeSettings,
    bootstrap: Sequence[VersionedRecord],
    *,
    in_transaction: bool,
) -> list[VersionedRecord]:
    """Return the batch that is due at activation; MetadataFault for an impossible log."""
    records: list[VersionedRecord] = []
    is_empty = image.metadata_version == 0
    if in_transaction:
        if not is_empty and image.metadata_version < TRANSACTIONS_FROM:
            words = (
                f"metadata.version {image.metadata_version} does not support metadata transactions"
            )
            raise MetadataFault(words)
        records.append(VersionedRecord(AbortTransactionRecord(reason=_REASON)))
    if is_empty:
        levels = {
            each.record.name: each.record.feature_level
            for each in bootstrap
            if isinstance(each.record, FeatureLevelRecord)
        }
        if METADATA_VERSION not in levels:
            raise MetadataFault("the records to begin with do not finalise metadata.version")
        why = unsupported_level(levels, is_controller=True)
        if why is not None:
            raise MetadataFault(f"of the records to begin with, {why}")
        records += activation_records(bootstrap, settings.integer("min.insync.replicas"))
    assert bool(records) == (is_empty or in_transaction)
    return records
