"""The configuration keys of a group and of a client-metrics subscription, release 4.3.1.

KIP-848, KIP-932 and KIP-1071 for groups; KIP-714 for client metrics.
"""

from typing import Final

from kraft_wire.settings.definition import ConfigKey
from kraft_wire.settings.key_tables import load_keys

__all__ = [
    "CLIENT_METRICS_KEYS",
    "CLIENT_METRICS_KEYS_AS_DEFINED",
    "GROUP_KEYS",
    "GROUP_KEYS_AS_DEFINED",
]

GROUP_KEYS: Final[dict[str, ConfigKey]] = load_keys("group_keys.json")
CLIENT_METRICS_KEYS: Final[dict[str, ConfigKey]] = load_keys("client_metrics_keys.json")

GROUP_KEYS_AS_DEFINED: Final = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
    "share.session.timeout.ms",
    "share.heartbeat.interval.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.auto.offset.reset",
    "share.isolation.level",
    "share.renew.acknowledge.enable",
    "share.assignment.interval.ms",
    "streams.session.timeout.ms",
    "streams.heartbeat.interval.ms",
    "streams.num.standby.replicas",
    "streams.initial.rebalance.delay.ms",
    "streams.assignment.interval.ms",
)
"""The keys in the order in which 4.3.1 reads values: an error names the first wrong one."""

CLIENT_METRICS_KEYS_AS_DEFINED: Final = ("metrics", "interval.ms", "match")
"""As `GROUP_KEYS_AS_DEFINED`."""
