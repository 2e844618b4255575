"""The group coordinator: the coordinator runtime over `__consumer_offsets`, by group id."""

from typing import TYPE_CHECKING

from kraft_wire.broker.coordination.log import CoordinatorLog
from kraft_wire.broker.coordination.runtime import CoordinatorRuntime
from kraft_wire.broker.coordination.topic import CoordinatorTopic, CoordinatorTopicCreation
from kraft_wire.broker.groups.environment import GroupEnvironment
from kraft_wire.broker.groups.partition import GroupPartition
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.ports import AskController
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.wire.generated.error_code import ErrorCode

if TYPE_CHECKING:
    from kraft_wire.broker.groups.streams.topology.internal_topics import InternalTopicCreation

__all__ = ["GroupCoordinator"]


class GroupCoordinator:
    """Finds the shard of a group; handlers do the rest with the functions of this package."""

    def __init__(
        self,
        node_id: int,
        topic: CoordinatorTopic,
        log: CoordinatorLog,
        env: GroupEnvironment,
        topic_creation: CoordinatorTopicCreation,
        ask_controller: AskController,
    ) -> None:
        self.env = env
        self.topic_creation = topic_creation
        self._ask_controller = ask_controller
        self._internal_topic_creation: InternalTopicCreation | None = None
        self.runtime = CoordinatorRuntime(
            node_id,
            topic,
            log,
            env.commits,
            lambda shard_log: GroupPartition(GroupShard(shard_log, env)),
        )

    def partition_of(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that a group belongs to."""
        return self.runtime.partition_of(group_id)

    def shard_of(self, group_id: str) -> GroupShard | ErrorCode:
        """Return where the group is coordinated.

        Errors: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
        """
        found = self.runtime.shard_of(group_id)
        return found if isinstance(found, ErrorCode) else found.shard

    def shard_at(self, partition: int) -> GroupShard | ErrorCode:
        """Return the shard of a partition of `__consumer_offsets`; errors as `shard_of`."""
        found = self.runtime.shard_at(partition)
        return found if isinstance(found, ErrorCode) else found.shard

    def shards(self) -> list[GroupShard] | ErrorCode:
        """Return every shard, to list its groups.

        Error: COORDINATOR_LOAD_IN_PROGRESS while one is read.
        """
        found = self.runtime.shards()
        return found if isinstance(found, ErrorCode) else [each.shard for each in found]

    @property
    def internal_topic_creation(self) -> "InternalTopicCreation":
        """Has the controller create topics that streams groups lack; created on first use."""
        if self._internal_topic_creation is None:
            from kraft_wire.broker.groups.streams.topology.internal_topics import (
                InternalTopicCreation,
            )

            self._internal_topic_creation = InternalTopicCreation(self._ask_controller)
        return self._internal_topic_creation

    # -- the broker's calls ----------------------------------------------------------------------

    def published(self, delta: MetadataDelta, now_ms: int) -> None:
        """Follow the groups' topic, and note new topics, which regular expressions may match."""
        self.env.topic_versions.published(delta)
        self.runtime.published(delta, now_ms)

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Act on time."""
        self.runtime.tick(now_ms, wall_ms)

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next."""
        return self.runtime.deadline_ms()

    def stop(self) -> None:
        """Resign every partition, because the broker stops."""
        self.runtime.stop()
