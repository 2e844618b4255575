"""The configuration keys of a topic, release 4.3.1 (33, and one that is for tests only).

A topic that does not set a key takes the value of the broker key named as its synonym; the first
synonym that is set wins, its number converted where hours become milliseconds.
"""

from typing import Final

from kraft_wire.settings.definition import ConfigKey
from kraft_wire.settings.key_tables import load_keys

__all__ = ["TOPIC_KEYS", "TOPIC_KEYS_AS_DEFINED"]

TOPIC_KEYS: Final[dict[str, ConfigKey]] = load_keys("topic_keys.json")

TOPIC_KEYS_AS_DEFINED: Final = (
    "segment.bytes",
    "segment.ms",
    "segment.jitter.ms",
    "segment.index.bytes",
    "flush.messages",
    "flush.ms",
    "retention.bytes",
    "retention.ms",
    "max.message.bytes",
    "index.interval.bytes",
    "delete.retention.ms",
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "file.delete.delay.ms",
    "min.cleanable.dirty.ratio",
    "cleanup.policy",
    "unclean.leader.election.enable",
    "min.insync.replicas",
    "compression.type",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "preallocate",
    "message.timestamp.type",
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
    "remote.storage.enable",
    "local.retention.ms",
    "local.retention.bytes",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "internal.segment.bytes",
)
"""The keys in the order in which 4.3.1 reads values: an error names the first wrong one."""
