"""Feature levels: which this node supports, and which a release means (KIP-584, KIP-1022).

A level is offered only when the node implements it. All nodes:

- `metadata.version` 7 to 30: every record of these levels is replayed and written in the version
  that the level allows.
- `kraft.version` 0 to 1: static and dynamic voters are both read and formatted.
- `transaction.version` 0 to 2: brokers coordinate and write transactions by the rules of each level
  (KIP-890).
- `group.version` 0 to 1: at 1 brokers serve consumer groups (KIP-848).
- `share.version` 0 to 1: at 1 brokers serve share groups (KIP-932).
- `streams.version` 0 to 1: at 1 brokers serve streams groups (KIP-1071).
- `eligible.leader.replicas.version` 0 to 1: at 1 the controller's elections and settings apply it
  (`partition_changes`, `elr_settings`; KIP-966). A broker does the same at both levels: the high
  watermark waits for `min.insync.replicas`, and a registration names the epoch of a clean stop.

A log of a newer release may have higher levels finalised than this node supports. No node serves
one with another `metadata.version`, and no controller one with another level of any feature
(`unsupported_level`).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kraft_wire.metadata.image import BROKER_RESOURCE, FeatureRange
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.begin_transaction_record import BeginTransactionRecord
from kraft_wire.wire.generated.config_record import ConfigRecord
from kraft_wire.wire.generated.end_transaction_record import EndTransactionRecord
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord

__all__ = [
    "CONTROLLERS_FROM",
    "CORDONED_FROM",
    "DIRECTORIES_FROM",
    "ELR_VERSION",
    "GROUP_VERSION",
    "KRAFT_VERSION",
    "LATEST_METADATA_VERSION",
    "METADATA_VERSION",
    "RELEASE_LEVELS",
    "SCRAM_FROM",
    "SHARE_VERSION",
    "STREAMS_VERSION",
    "SUPPORTED_FEATURES",
    "TOKENS_FROM",
    "TRANSACTIONS_FROM",
    "TRANSACTION_VERSION",
    "activation_records",
    "bootstrap_records",
    "default_levels",
    "metadata_version_of_release",
    "missing_dependency",
    "unsupported_level",
]

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"
TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"
LATEST_METADATA_VERSION: Final = 30

SCRAM_FROM: Final = 11
TRANSACTIONS_FROM: Final = 13
TOKENS_FROM: Final = 14
CONTROLLERS_FROM: Final = 15
DIRECTORIES_FROM: Final = 17
CORDONED_FROM: Final = 30
"""metadata.version since which there are SCRAM credentials (KIP-900), metadata transactions
(KIP-868), delegation tokens, registrations of controllers (KIP-919), ids of log directories
(KIP-858) and cordoned ones (KIP-1066): a log below may not have their records."""

_GROUP_VERSION_FROM: Final = 22
_TRANSACTION_VERSION_FROM: Final = 24
_ELR_VERSION_FROM: Final = 26
_SHARE_VERSION_FROM: Final = 28
_STREAMS_VERSION_FROM: Final = 29
"""metadata.version since which a new cluster has `group.version` 1 (4.0-IV0),
`transaction.version` 2 (4.0-IV2), `eligible.leader.replicas.version` 1 (4.1-IV0), `share.version` 1
(4.2-IV0) and `streams.version` 1 (4.2-IV1)."""

SUPPORTED_FEATURES: Final[Mapping[str, FeatureRange]] = {
    GROUP_VERSION: FeatureRange(0, 1),
    KRAFT_VERSION: FeatureRange(0, 1),
    METADATA_VERSION: FeatureRange(7, LATEST_METADATA_VERSION),
    SHARE_VERSION: FeatureRange(0, 1),
    STREAMS_VERSION: FeatureRange(0, 1),
    TRANSACTION_VERSION: FeatureRange(0, 2),
    ELR_VERSION: FeatureRange(0, 1),
}
"""All features of release 4.3.1 with their levels. The order is that in which 4.3.1 registers them
and writes them into every snapshot, so that snapshots of both implementations have the same bytes.
"""

_DEPENDENCIES: Final = {(ELR_VERSION, 1): (METADATA_VERSION, 23)}
"""The level that another feature must have for a level above 0 (KIP-1022)."""

RELEASE_LEVELS: Final[Mapping[str, int]] = {
    "3.3-IV3": 7,
    "3.4-IV0": 8,
    "3.5-IV0": 9,
    "3.5-IV1": 10,
    "3.5-IV2": 11,
    "3.6-IV0": 12,
    "3.6-IV1": 13,
    "3.6-IV2": 14,
    "3.7-IV0": 15,
    "3.7-IV1": 16,
    "3.7-IV2": 17,
    "3.7-IV3": 18,
    "3.7-IV4": 19,
    "3.8-IV0": 20,
    "3.9-IV0": 21,
    "4.0-IV0": 22,
    "4.0-IV1": 23,
    "4.0-IV2": 24,
    "4.0-IV3": 25,
    "4.1-IV0": 26,
    "4.1-IV1": 27,
    "4.2-IV0": 28,
    "4.2-IV1": 29,
    "4.3-IV0": 30,
}
"""Every metadata.version by name; a release means its highest one."""


def unsupported_level(finalized: Mapping[str, int], *, is_controller: bool) -> str | None:
    """Return why a node must not serve a log with these levels, None if it may.

    Sources: `FeatureControlManager.replay` and `FeaturesDelta.replay` of 4.3.1. A record may mean
    something else from a level on, and a controller would write records of another one.
    """
    names = finalized if is_controller else [METADATA_VERSION]
    for name in names:
        level = finalized.get(name, 0)
        known = SUPPORTED_FEATURES.get(name, FeatureRange(0, 0))
        if level and not known.min_level <= level <= known.max_level:
            return (
                f"{name} {level} is finalised, and this release supports "
                f"{known.min_level} to {known.max_level}; start the release that finalised it"
            )
    return None


def default_levels(metadata_version: int = LATEST_METADATA_VERSION) -> dict[str, int]:
    """Return the levels that a new cluster is formatted with, as 4.3.1 does."""
    levels = {METADATA_VERSION: metadata_version}
    if metadata_version >= _GROUP_VERSION_FROM:
        levels[GROUP_VERSION] = 1
    if metadata_version >= _TRANSACTION_VERSION_FROM:
        levels[TRANSACTION_VERSION] = 2
    if metadata_version >= _ELR_VERSION_FROM:
        levels[ELR_VERSION] = 1
    if metadata_version >= _SHARE_VERSION_FROM:
        levels[SHARE_VERSION] = 1
    if metadata_version >= _STREAMS_VERSION_FROM:
        levels[STREAMS_VERSION] = 1
    return levels


def missing_dependency(feature: str, level: int, levels: Mapping[str, int]) -> str | None:
    """Return why other features' levels do not allow a level to be finalised, None if they do."""
    assert level >= 0, (feature, level)
    other, needed = _DEPENDENCIES.get((feature, level), (METADATA_VERSION, 0))
    if levels.get(other, 0) >= needed:
        return None
    return f"{feature} could not be set to {level} because it depends on {other} level {needed}"


def metadata_version_of_release(release: str) -> int | None:
    """Return the metadata.version of `4.3-IV0`, `4.3` or `4.3.1`, None for an unknown release.

    Only the first two numbers count.
    """
    parts = release.split(".")
    name = ".".join(parts[:2]) if any(parts[2:]) else release
    if name in RELEASE_LEVELS:
        return RELEASE_LEVELS[name]
    levels = [level for known, level in RELEASE_LEVELS.items() if known.partition("-")[0] == name]
    assert "-" not in name or not levels, release
    return max(levels, default=None)


def bootstrap_records(features: Mapping[str, int]) -> list[VersionedRecord]:
    """Return the FeatureLevel records of `bootstrap.checkpoint`.

    metadata.version first, then the others in name order; level 0 and kraft.version are left out,
    the latter because it is in control records.
    """
    assert METADATA_VERSION in features, sorted(features)
    others = sorted(set(features) - {METADATA_VERSION, KRAFT_VERSION})
    records = [
        FeatureLevelRecord(name=name, feature_level=features[name])
        for name in [METADATA_VERSION, *others]
        if features[name] > 0
    ]
    assert records[0].name == METADATA_VERSION, records
    return [VersionedRecord(record) for record in records]


def activation_records(
    bootstrap: Sequence[VersionedRecord], min_insync_replicas: int = 1
) -> list[VersionedRecord]:
    """Return the first data records of a cluster: those of `bootstrap.checkpoint`, as one change.

    With ELR finalised the cluster's `min.insync.replicas` becomes explicit (KIP-966), so that no
    broker's file can override the controller's value.
    """
    levels = {
        each.record.name: each.record.feature_level
        for each in bootstrap
        if isinstance(each.record, FeatureLevelRecord)
    }
    assert METADATA_VERSION in levels, sorted(levels)
    records = list(bootstrap)
    if levels.get(ELR_VERSION, 0) > 0:
        explicit = ConfigRecord(
            resource_type=BROKER_RESOURCE,
            resource_name="",
            name="min.insync.replicas",
            value=str(min_insync_replicas),
        )
        records.append(VersionedRecord(explicit))
    if levels[METADATA_VERSION] < TRANSACTIONS_FROM:
        return records
    assert len(records) >= len(bootstrap)
    begin = BeginTransactionRecord(name="Bootstrap records")
    return [VersionedRecord(begin), *records, VersionedRecord(EndTransactionRecord())]
