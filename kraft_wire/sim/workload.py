"""The topics, promises and clients of a simulated cluster of brokers.

Part of a `Setup`, and so of a plan file. Times are short and numbers small, as in the quorum's
setup: a session ends within seconds, a replica lags after one second, an operator's topic has a few
partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["AGED_EPOCH", "AGED_ID", "Workload"]

AGED_ID: Final = "aged"
"""A transactional id whose producer's epochs are almost used up when it is first used."""
AGED_EPOCH: Final = 32_765
_LOCK_MS: Final = 1_000
"""The shortest lock of a share group's record that a broker may have."""
# Without an interval between targets: it is counted by the wall clock, which jumps by an hour.
_CONSUMER_GROUPS: Final = {
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.min.heartbeat.interval.ms": 200,
    "group.consumer.min.session.timeout.ms": 1_500,
    "group.consumer.session.timeout.ms": 1_500,
}

_STREAMS_GROUPS: Final = {
    "group.streams.assignment.interval.ms": 0,
    "group.streams.heartbeat.interval.ms": 200,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.min.heartbeat.interval.ms": 200,
    "group.streams.min.session.timeout.ms": 1_500,
    "group.streams.session.timeout.ms": 1_500,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Partitions, promises and clients of a cluster; times in milliseconds."""

    topics: int = 2
    partitions: int = 2
    """Of each topic."""
    replicas: int = 3
    min_isr: int = 1
    directories: int = 1
    """Log directories of each broker."""
    flushes: bool = True
    """Whether acknowledged records survive loss of power (`log.flush.interval.messages=1`)."""
    may_elect_uncleanly: bool = False
    """Whether an operator may ask for elections that lose records."""
    session_ms: int = 2_000
    """`broker.session.timeout.ms`; a broker sends four heartbeats in that time."""
    lag_ms: int = 1_000
    """`replica.lag.time.max.ms`."""
    fetch_wait_ms: int = 200
    fetch_backoff_ms: int = 50
    fetch_max_bytes: int = 1_048_576
    """Of one partition, in the fetch of a follower."""
    sessions: int = 1_000
    """Fetch sessions that a broker keeps."""
    rebalance_seconds: int = 5
    """Period of the preferred elections."""
    producers: int = 2
    consumers: int = 1
    members: int = 2
    """Of one group."""
    upkeep: tuple[str, ...] = ()
    """Topics whose logs are compacted or cut from the front (`upkeep_topics`), by kind."""
    segment_batches: int = 2
    """Batches of one segment of theirs."""
    segment_ms: int = 0
    """`segment.ms` of these topics, 0 for the default."""
    offsets_segment_batches: int = 5
    """Batches of a segment of all other topics, in plans with upkeep."""
    keys: int = 3
    tombstone_ms: int = 300
    """`delete.retention.ms`."""
    compaction_lag_ms: int = 0
    compaction_lag_max_ms: int = 0
    """0 for no limit."""
    dirty_percent: int = 0
    """`min.cleanable.dirty.ratio`."""
    retention_bytes: int = 300
    retention_ms: int = 1_500
    careless: int = 0
    """Producers whose batches must be refused."""
    stale_members: int = 0
    """Clients that speak as members of generations that are over."""
    askers: int = 0
    """Clients that ask for offsets by time and by leader epoch."""
    transactors: int = 0
    """Producers with transactional ids."""
    twins: int = 0
    """How many of the ids have a second producer, so that each fences the other."""
    stable_readers: int = 0
    """Consumers that read committed records only."""
    transaction_version: int = 2
    """Level of the feature that the cluster is formatted with."""
    transaction_partitions: int = 1
    """Of `__transaction_state`."""
    transaction_timeout_ms: int = 2_000
    id_expiration_ms: int = 604_800_000
    """`transactional.id.expiration.ms`."""
    consumer_members: int = 0
    """Of one consumer group (KIP-848)."""
    static_members: int = 0
    """How many of them are static."""
    streams_members: int = 0
    """Of one streams group (KIP-1071)."""
    share_members: int = 0
    """Of one share group (KIP-932)."""
    tools: int = 0
    """Clients that keep the offsets of their own groups by hand."""
    delivery_limit: int = 5
    """`group.share.delivery.count.limit`."""

    def log_directories(self, first: str) -> tuple[str, ...]:
        """Return the log directories of a broker, the one of its metadata log first."""
        return (first, *(f"{first}{number}" for number in range(2, self.directories + 1)))

    def settings(self, brokers_count: int) -> dict[str, object]:
        """Return the entries in the `server.properties` of brokers and controllers.

        `upkeep_topics.settings_for_upkeep` adds to it.
        """
        found: dict[str, object] = {
            "auto.create.topics.enable": "false",
            "broker.heartbeat.interval.ms": self.session_ms // 4,
            "broker.session.timeout.ms": self.session_ms,
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 500,
            "leader.imbalance.check.interval.seconds": self.rebalance_seconds,
            "log.segment.delete.delay.ms": 500,
            "max.incremental.fetch.session.cache.slots": self.sessions,
            "min.insync.replicas": self.min_isr,
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": min(self.replicas, brokers_count),
            "replica.fetch.backoff.ms": self.fetch_backoff_ms,
            "replica.fetch.max.bytes": self.fetch_max_bytes,
            "replica.fetch.wait.max.ms": self.fetch_wait_ms,
            "replica.high.watermark.checkpoint.interval.ms": 500,
            "replica.lag.time.max.ms": self.lag_ms,
            "replica.socket.timeout.ms": 2_000,
        }
        if self.flushes:
            found["log.flush.interval.messages"] = 1
        if self.transactors:
            found |= self._transaction_settings(brokers_count)
        if self.tools:
            found["offsets.retention.check.interval.ms"] = 500
        if self.consumer_members:
            found |= _CONSUMER_GROUPS
        if self.streams_members:
            found |= _STREAMS_GROUPS
        if self.share_members:
            found |= self._share_settings(brokers_count)
        return found

    def _share_settings(self, brokers_count: int) -> dict[str, object]:
        return {
            "group.share.assignment.interval.ms": 0,
            "group.share.delivery.count.limit": self.delivery_limit,
            "group.share.heartbeat.interval.ms": 200,
            "group.share.min.heartbeat.interval.ms": 200,
            "group.share.min.record.lock.duration.ms": _LOCK_MS,
            "group.share.min.session.timeout.ms": 1_500,
            "group.share.record.lock.duration.ms": _LOCK_MS,
            "group.share.session.timeout.ms": 1_500,
            "share.coordinator.state.topic.min.isr": self.min_isr,
            "share.coordinator.state.topic.num.partitions": 1,
            "share.coordinator.state.topic.replication.factor": min(self.replicas, brokers_count),
        }

    def _transaction_settings(self, brokers_count: int) -> dict[str, object]:
        return {
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
            "transaction.remove.expired.transaction.cleanup.interval.ms": 1_000,
            "transaction.state.log.min.isr": self.min_isr,
            "transaction.state.log.num.partitions": self.transaction_partitions,
            "transaction.state.log.replication.factor": min(self.replicas, brokers_count),
            "transactional.id.expiration.ms": self.id_expiration_ms,
        }
