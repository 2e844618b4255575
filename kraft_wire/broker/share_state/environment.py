"""The state that all shards of the share coordinator share."""

from collections.abc import Callable

from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.broker.share_persister import SharePartitionKey
from kraft_wire.frozen import frozen

__all__ = ["ShareStateEnvironment"]


@frozen
class ShareStateEnvironment:
    """The neighbors of a shard, its log apart."""

    settings: Callable[[], BrokerSettings]
    """Read at each use: a dynamic change replaces the settings as a whole."""
    has_partition: Callable[[SharePartitionKey], bool]
    """Whether the metadata have the topic partition."""
    delete_records: Callable[[int, int], None]
    """Moves the log start of a partition of `__share_group_state` up to an offset."""

    def updates_per_snapshot(self) -> int:
        """Return after how many updates a snapshot is written."""
        name = "share.coordinator.snapshot.update.records.per.snapshot"
        return self.settings().source.integer(name)

    def prune_interval_ms(self) -> int:
        """Return how often a partition's old records are removed."""
        return self.settings().source.integer("share.coordinator.state.topic.prune.interval.ms")

    def cold_interval_ms(self) -> int:
        """Return after which time without a snapshot one is written again."""
        return self.settings().source.integer(
            "share.coordinator.cold.partition.snapshot.interval.ms"
        )
