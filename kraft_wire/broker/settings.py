"""The broker's own configuration values as plain attributes, for code that reads them often.

A field's name is its key with the dots as underscores (`num_partitions` is `num.partitions`), so
a key can be found from the code and back. Defaults are those of `settings/broker.py`, which are
Kafka's. Not here: values of one topic (`ports.TopicLimits`) and of the sockets (`node.config`).
"""

from dataclasses import field, fields
from typing import Self

from kraft_wire.frozen import frozen
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.compression.codecs import DEFAULT_LIMITS, DecompressionLimits

__all__ = ["BrokerSettings", "field_key"]


def field_key(field_name: str) -> str:
    """Return the configuration key of a field."""
    return field_name.replace("_", ".")


@frozen(kw_only=True)
class BrokerSettings:
    """The settings for handlers and coordinators; replaced as a whole by a dynamic change."""

    auto_create_topics_enable: bool = True
    num_partitions: int = 1
    default_replication_factor: int = 1
    message_max_bytes: int = 1_048_588
    fetch_max_bytes: int = 57_671_680
    max_request_partition_size_limit: int = 2_000
    replica_lag_time_max_ms: int = 30_000
    replica_selector_class: str | None = None
    max_incremental_fetch_session_cache_slots: int = 1_000
    max_incremental_fetch_session_cache_partitions: int = 100_000
    request_timeout_ms: int = 30_000
    transaction_partition_verification_enable: bool = True
    add_partitions_to_txn_retry_backoff_ms: int = 20
    add_partitions_to_txn_retry_backoff_max_ms: int = 100
    transactional_id_expiration_ms: int = 604_800_000
    transaction_max_timeout_ms: int = 900_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transaction_state_log_num_partitions: int = 50
    producer_id_expiration_ms: int = 86_400_000
    offset_metadata_max_bytes: int = 4_096
    offsets_topic_num_partitions: int = 50
    offsets_topic_replication_factor: int = 3
    offsets_topic_segment_bytes: int = 104_857_600
    offsets_topic_compression_codec: int = 0
    offsets_load_buffer_size: int = 5_242_880
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    offsets_commit_timeout_ms: int = 5_000
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2_147_483_647
    group_consumer_max_size: int = 2_147_483_647
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_min_session_timeout_ms: int = 45_000
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_min_heartbeat_interval_ms: int = 5_000
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_assignment_interval_ms: int = 1_000
    group_consumer_min_assignment_interval_ms: int = 0
    group_consumer_max_assignment_interval_ms: int = 15_000
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_share_max_size: int = 200
    group_share_session_timeout_ms: int = 45_000
    group_share_min_session_timeout_ms: int = 45_000
    group_share_max_session_timeout_ms: int = 60_000
    group_share_heartbeat_interval_ms: int = 5_000
    group_share_min_heartbeat_interval_ms: int = 5_000
    group_share_max_heartbeat_interval_ms: int = 15_000
    group_share_assignment_interval_ms: int = 1_000
    group_share_min_assignment_interval_ms: int = 0
    group_share_max_assignment_interval_ms: int = 15_000
    group_share_initialize_retry_interval_ms: int = 30_000
    group_streams_max_size: int = 2_147_483_647
    group_streams_session_timeout_ms: int = 45_000
    group_streams_min_session_timeout_ms: int = 45_000
    group_streams_max_session_timeout_ms: int = 60_000
    group_streams_heartbeat_interval_ms: int = 5_000
    group_streams_min_heartbeat_interval_ms: int = 5_000
    group_streams_max_heartbeat_interval_ms: int = 15_000
    group_streams_assignment_interval_ms: int = 1_000
    group_streams_min_assignment_interval_ms: int = 0
    group_streams_max_assignment_interval_ms: int = 15_000
    group_streams_initial_rebalance_delay_ms: int = 3_000
    group_streams_num_standby_replicas: int = 0
    group_streams_max_standby_replicas: int = 2
    group_coordinator_rebalance_protocols: tuple[str, ...] = ("classic", "consumer", "streams")
    group_memory_max_bytes: int = 67_108_864
    group_coordinator_memory_max_bytes: int = 268_435_456
    replica_fetch_backoff_ms: int = 1_000
    replica_fetch_max_bytes: int = 1_048_576
    replica_fetch_min_bytes: int = 1
    replica_fetch_response_max_bytes: int = 10_485_760
    replica_fetch_wait_max_ms: int = 500
    max_decompressed_message_bytes: int = 67_108_864
    decompression_ratio_max: int = 1_000
    connection_write_buffer_max_bytes: int = 58_720_256
    purgatory_max_partitions: int = 500_000
    decompression: DecompressionLimits = field(default=DEFAULT_LIMITS, compare=False, repr=False)
    """The two values above, as the codecs take them."""
    source: NodeSettings = field(default_factory=NodeSettings, compare=False, repr=False)
    """All settings with their sources, for DescribeConfigs."""

    @classmethod
    def of(cls, settings: NodeSettings) -> Self:
        """Take this class's fields out of the layered settings."""
        made = ("source", "decompression")
        names = [each.name for each in fields(cls) if each.name not in made]
        values = {name: settings.value(field_key(name)) for name in names}
        limits = DecompressionLimits(
            bytes_max=settings.integer("max.decompressed.message.bytes"),
            ratio_max=settings.integer("decompression.ratio.max"),
        )
        return cls(source=settings, decompression=limits, **values)  # type: ignore[arg-type]  # each key's kind is its field's type
