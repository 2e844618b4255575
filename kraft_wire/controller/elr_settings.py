"""`min.insync.replicas` while eligible leader replicas are kept: permitted changes, and effects.

The controller decides by this setting which replicas stay eligible (KIP-966). So it must know the
value that brokers apply: a single broker may not have a value of its own, and the cluster always
has one. A change drops the eligible replicas of the topic, or of all topics, because
acknowledgements had another meaning before it. As release 4.3.1 does it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.features import ELR_VERSION
from kraft_wire.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.clear_elr_record import ClearElrRecord
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["check_min_isr", "clear_elr_records", "explicit_min_isr_records"]

_MIN_ISR: Final = "min.insync.replicas"


def check_min_isr(
    image: MetadataImage, resource_type: int, name: str, changes: Iterable[tuple[str, str | None]]
) -> None:
    """Refuse with INVALID_CONFIG changes that would hide the value from the controller.

    `changes` are keys with their new values, None where one is removed.
    """
    if not _keeps_elr(image) or resource_type != BROKER_RESOURCE:
        return
    assert image.metadata_version > 0, "features are of a cluster that has begun"
    for key, value in changes:
        if key == _MIN_ISR and name:
            words = f"Broker-level {_MIN_ISR} cannot be altered while ELR is enabled."
            raise Refusal(ErrorCode.INVALID_CONFIG, words)
        if key == _MIN_ISR and value is None:
            words = f"Cluster-level {_MIN_ISR} cannot be removed while ELR is enabled."
            raise Refusal(ErrorCode.INVALID_CONFIG, words)


def explicit_min_isr_records(image: MetadataImage, settings: NodeSettings) -> list[VersionedRecord]:
    """Return the records due before ELR: one value for the cluster, none of single brokers."""
    changes: list[tuple[str, str | None]] = []
    if _MIN_ISR not in image.config(BROKER_RESOURCE, ""):
        in_file = settings.with_dynamic({}, {}).integer(_MIN_ISR)
        changes.append(("", str(in_file)))
    changes += [
        (name, None)
        for kind, name in sorted(image.configs)
        if kind == BROKER_RESOURCE and name and _MIN_ISR in image.config(kind, name)
    ]
    assert all(value is not None or name for name, value in changes), "the cluster keeps a value"
    return [
        VersionedRecord(
            ConfigRecord(
                resource_type=BROKER_RESOURCE, resource_name=name, name=_MIN_ISR, value=value
            )
        )
        for name, value in changes
    ]


def clear_elr_records(
    image: MetadataImage, records: Sequence[VersionedRecord]
) -> list[VersionedRecord]:
    """Return the records due after those of a change of settings: one for each affected topic."""
    if not _keeps_elr(image):
        return []
    changed = [
        each.record
        for each in records
        if isinstance(each.record, ConfigRecord) and each.record.name == _MIN_ISR
    ]
    assert all(each.resource_type in (TOPIC_RESOURCE, BROKER_RESOURCE) for each in changed), changed
    return [
        VersionedRecord(
            ClearElrRecord(
                topic_name=each.resource_name if each.resource_type == TOPIC_RESOURCE else ""
            )
        )
        for each in changed
    ]


def _keeps_elr(image: MetadataImage) -> bool:
    return image.finalized_features.get(ELR_VERSION, 0) > 0
