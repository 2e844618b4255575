"""Values of fields, by the field's name: names that exist, names that do not, and odd ones.

A field that is not listed gets a value of its type's pool. Values that occur twice are drawn twice
as often.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kraft_wire.model import ZERO_UUID, Uuid

__all__ = ["BY_NAME", "BY_OWNER", "BY_TYPE", "IDS", "TOPICS", "Value"]

Value = int | float | str | bool | bytes | None

TOPICS: Final[Mapping[str, tuple[int, Uuid]]] = {
    "t0": (3, Uuid(b"schema-topic-t-0")),
    "t1": (1, Uuid(b"schema-topic-t-1")),
}
"""Topics that both brokers have: the partitions, and the id that stands for theirs in a request."""
_STRANGER: Final = Uuid(b"schema-topic-not")

_TOPIC_NAMES: Final = ("t0", "t1", "gone", "", "a b", "__consumer_offsets")
_GROUPS: Final = ("g0", "g1", "nogroup", "")
_PARTITIONS: Final = (0, 0, 1, 2, -1, 9)
_RESOURCES: Final = (2, 2, 4, 8, 16, 32, 3, 0, 1, 5, 7)
_PATTERNS: Final = (0, 1, 2, 3, 4, 9)

IDS: Final = (*(each for _, each in TOPICS.values()), ZERO_UUID, _STRANGER)
_SETTINGS: Final = (
    *("retention.ms", "cleanup.policy", "min.insync.replicas", "bogus", "", "compression.type"),
    *("segment.bytes", "max.message.bytes", "message.timestamp.type", "flush.ms", "metrics"),
    *("unclean.leader.election.enable", "segment.jitter.ms", "log.retention.ms", "match"),
    *("min.cleanable.dirty.ratio", "consumer.session.timeout.ms", "interval.ms", "preallocate"),
    *("share.record.lock.duration.ms", "delete.retention.ms", "num.io.threads"),
    *("leader.replication.throttled.replicas", "index.interval.bytes"),
)
_QUOTAS: Final = (
    *("producer_byte_rate", "consumer_byte_rate", "bogus", "connection_creation_rate"),
    *("request_percentage", "controller_mutation_rate"),
)
_TEXTS: Final = ("", "a", "t0")

BY_TYPE: Final[Mapping[str, Sequence[Value]]] = {
    "int8": (0, 1, 2, 3, 4, -1, 5, 127, -128),
    "int16": (0, 1, 2, -1, 3, 5, 2**15 - 1, -(2**15)),
    "int32": (0, 1, 2, -1, 3, 100, 2**31 - 1, -(2**31)),
    "int64": (0, 1, 2, -1, -2, 5, 1_000, 2**63 - 1, -(2**63)),
    "uint16": (0, 1, 9_092, 2**16 - 1),
    "uint32": (0, 1, 2**32 - 1),
    "float64": (0.0, 1.0, -1.0, 1e9, 0.5),
    "bool": (False, True),
    "bytes": (b"", b"x", b"some bytes of no meaning"),
    "string": _TEXTS,
}

BY_NAME: Final[Mapping[str, Sequence[Value]]] = {
    **dict.fromkeys(("name", "topic", "topic_name", "topic_names"), _TOPIC_NAMES),
    **dict.fromkeys(("group_id", "groups_names", "groups", "group_ids"), _GROUPS),
    **dict.fromkeys(("partition_index", "partition", "partition_id", "partitions"), _PARTITIONS),
    **dict.fromkeys(("partition_indexes",), _PARTITIONS),
    **dict.fromkeys(("resource_pattern_type", "pattern_type_filter", "pattern_type"), _PATTERNS),
    "resource_type": _RESOURCES,
    "resource_types": _RESOURCES,
    "metadata": (b"",),
    "member_id": ("", "nobody"),
    "group_instance_id": ("static", ""),
    "protocol_type": ("consumer", "connect", ""),
    "protocol_name": ("range", ""),
    "transactional_id": ("x0", "x1", ""),
    "transactional_ids": ("x0", "nox", ""),
    "v3_and_below_transactional_id": ("x0", ""),
    "resource_name": ("t0", "1", "", "gone", "g0", "5", "*"),
    "principal": ("User:a", "a", ""),
    "host": ("*", "1.2.3.4", ""),
    "principal_filter": ("User:a", ""),
    "host_filter": ("*",),
    "value": ("1", "-1", "", "many", "compact", "delete,compact", "0.5", "true", "lz4"),
    "states_filter": ("Empty", "empty", "Stable", "bogus", ""),
    "types_filter": ("classic", "Consumer", "bogus", ""),
    "entity_type": ("user", "client-id", "ip", "bogus", ""),
    "entity_name": ("a", "", "1.2.3.4"),
    "coordinator_keys": ("g0", "x0", "", "bad:key"),
    "key": ("g0", "x0", "", "t0:0"),
    "mechanism": ("PLAIN", "SCRAM-SHA-256", ""),
    "feature": ("metadata.version", "group.version", "bogus", ""),
    "cluster_id": ("", "other"),
    "configuration_keys": ("retention.ms", "cleanup.policy", "bogus", "log.retention.ms", ""),
    "rack_id": ("", "r"),
    "client_software_name": ("a", "", "-bad"),
    "client_software_version": ("1", ""),
    "principal_type": ("User", "Group", ""),
    "principal_name": ("a", "", "ANONYMOUS"),
    "owner_principal_type": ("User", ""),
    "owner_principal_name": ("a", ""),
    "subscribed_topic_regex": ("t.*", "(", ""),
    "server_assignor": ("uniform", "bogus", ""),
    "timeout_ms": (5_000,),
    "max_wait_ms": (0, 100, -1),
    "min_bytes": (0, 1, 100),
    "max_bytes": (0, 1, 1_000, 2**31 - 1),
    "partition_max_bytes": (0, 1, 100, 2**31 - 1, -1),
    "acks": (1, -1, -1, 2, -2),
    "session_timeout_ms": (6_000, 10, 10_000, -1),
    "rebalance_timeout_ms": (1_000, -1, 0),
    "key_type": (0, 1, 2, 9, -1),
    "num_partitions": (1, 2, -1, 0, -2),
    "replication_factor": (1, 1, -1, 0, 3),
    "count": (2, 3, 4, 1, 0, -1),
    "broker_ids": (1, 1, 2, -1),
    "replicas": (1, 2, -1),
    "resource_type_filter": (0, 1, 2, 3, 4, 5, 6, 7, 9),
    "config_operation": (0, 1, 2, 3, 9, -1),
    "permission_type": (0, 1, 2, 3, 9),
    "operation": (0, 1, 2, 3, 4, 8, 15, 20),
    "isolation_level": (0, 1, 2, -1),
    "replica_id": (-1, -1, -1, 0, 1, 5, -2),
    "leader_epoch": (-1, 0, 1, 5),
    "current_leader_epoch": (-1, -1, 0, 1, 5),
    "fetch_offset": (0, 1, 3, 100, -1),
    "timestamp": (-1, -2, -3, -4, -5, -6, -7, 0, 1_000, 2**62),
    "session_id": (0, 0, 1, -1),
    "session_epoch": (-1, -1, 0, 1),
    "producer_id": (-1, 0, 1, 1_000),
    "producer_epoch": (-1, 0, 1),
    "generation_id": (-1, 0, 1),
    "generation_id_or_member_epoch": (-1, 0, 1),
    "member_epoch": (0, 1, -1, -2, 5),
    "endpoint_type": (1, 2, 0, 3),
    "response_partition_limit": (0, 1, 2_000, -1),
    "iterations": (4_096, 8_192, 10, 20_000),
    "match_type": (0, 1, 2, 3, -1),
    "max_version_level": (0, 1, 2, -1),
    "upgrade_type": (1, 2, 3, 0, 9),
    "voter_id": (2, 5, -1),
    "share_session_epoch": (0, -1, 1),
}
"""By the name of a field. Null is drawn besides where a version allows it."""

BY_OWNER: Final[Mapping[tuple[str, str], Sequence[Value]]] = {
    ("CreatableTopicConfig", "name"): _SETTINGS,
    ("AlterableConfig", "name"): _SETTINGS,
    ("OpData", "key"): _QUOTAS,
    ("OpData", "value"): BY_TYPE["float64"],
    ("ScramCredentialUpsertion", "name"): _TEXTS,
    ("ScramCredentialDeletion", "name"): _TEXTS,
    ("UserName", "name"): _TEXTS,
}
"""By the struct and the name of a field, before `BY_NAME`."""
