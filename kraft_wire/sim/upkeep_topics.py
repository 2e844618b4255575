"""The topics of a simulated cluster whose logs are compacted, or lose their oldest segments.

Each kind is one topic of that name with one partition. Segments hold a few batches, so that they
are sealed often; periods are short. The judge takes its expectations of a log from here, and not
from the broker's configuration. The offsets topic is compacted too if a plan has any kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC, TRANSACTION_TOPIC
from kraft_wire.sim.workload import Workload

__all__ = [
    "INDEX_INTERVAL_BYTES",
    "KINDS",
    "MESSAGE_BYTES_MAX",
    "LogRules",
    "is_compacted",
    "rules_of",
    "settings_for_upkeep",
    "topic_settings",
]

INDEX_INTERVAL_BYTES: Final = 0
MESSAGE_BYTES_MAX: Final = 2_000
KINDS: Final = ("compact", "compact-delete", "keep-bytes", "keep-ms", "append-time")
_TIME_ENTRY_BYTES: Final = 12
_LONG_MAX: Final = (1 << 63) - 1
_WEEK_MS: Final = 7 * 24 * 3_600_000
_DAY_MS: Final = 24 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRules:
    """The rules of one topic's policies; times in milliseconds, -1 for no limit."""

    is_compacted: bool = False
    is_deleted: bool = False
    """Whether retention by size and time applies."""
    is_append_time: bool = False
    retention_bytes: int = -1
    retention_ms: int = -1
    delete_retention_ms: int = _DAY_MS
    min_lag_ms: int = 0
    dirty_ratio: float = 0.5
    index_bytes: int = 10_485_760
    """`segment.index.bytes`: an index that is full begins the next segment."""


def is_compacted(kind: str) -> bool:
    """Return whether a topic of one kind is compacted."""
    return kind in ("compact", "compact-delete", "append-time")


def rules_of(topic: str, data: Workload) -> LogRules | None:
    """Return the rules of a topic, None for one whose log is never cleaned."""
    if not data.upkeep:
        return None
    if topic in (OFFSETS_TOPIC, TRANSACTION_TOPIC):
        return LogRules(is_compacted=True, index_bytes=_index_bytes(data.offsets_segment_batches))
    if topic not in KINDS:
        return None
    return LogRules(
        is_compacted=is_compacted(topic),
        is_deleted=not is_compacted(topic) or topic == "compact-delete",
        is_append_time=topic == "append-time",
        retention_bytes=data.retention_bytes if topic in _SIZED else -1,
        retention_ms=data.retention_ms if topic in _TIMED else -1,
        delete_retention_ms=data.tombstone_ms,
        min_lag_ms=data.compaction_lag_ms if topic == "compact" else 0,
        dirty_ratio=data.dirty_percent / 100,
        index_bytes=_index_bytes(data.segment_batches),
    )


def _index_bytes(segment_batches: int) -> int:
    """Return the size of an index for a segment of so many batches, with growing times."""
    return (segment_batches + 1) * _TIME_ENTRY_BYTES


_SIZED: Final = ("keep-bytes", "compact-delete")
_TIMED: Final = ("keep-ms",)


def topic_settings(topic: str, data: Workload) -> dict[str, object]:
    """Return the configuration with which the operator creates a topic of one kind."""
    rules = rules_of(topic, data)
    assert rules is not None, topic
    policies = [("compact", rules.is_compacted), ("delete", rules.is_deleted)]
    found: dict[str, object] = {
        "cleanup.policy": ",".join(name for name, is_set in policies if is_set),
        "delete.retention.ms": rules.delete_retention_ms,
        "index.interval.bytes": INDEX_INTERVAL_BYTES,
        "max.message.bytes": MESSAGE_BYTES_MAX,
        "message.timestamp.after.max.ms": _LONG_MAX,
        "message.timestamp.type": "LogAppendTime" if rules.is_append_time else "CreateTime",
        "min.cleanable.dirty.ratio": rules.dirty_ratio,
        "min.compaction.lag.ms": rules.min_lag_ms,
        "min.insync.replicas": data.min_isr,
        "retention.bytes": rules.retention_bytes,
        "retention.ms": rules.retention_ms,
        "segment.index.bytes": rules.index_bytes,
        "segment.ms": data.segment_ms or _WEEK_MS,
    }
    if data.compaction_lag_max_ms > rules.min_lag_ms:
        found["max.compaction.lag.ms"] = data.compaction_lag_max_ms
    return found


def settings_for_upkeep(data: Workload) -> dict[str, object]:
    """Return the entries in the `server.properties` of brokers for these topics."""
    if not data.upkeep:
        return {}
    return {
        "log.cleaner.backoff.ms": 1_000,
        "log.retention.check.interval.ms": 1_000,
        "log.index.interval.bytes": INDEX_INTERVAL_BYTES,
        "log.index.size.max.bytes": _index_bytes(data.offsets_segment_batches),
    }
