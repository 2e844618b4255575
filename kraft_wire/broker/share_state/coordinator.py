"""The share coordinator: the runtime over `__share_group_state`, a `MetadataFollower`."""

from collections.abc import Callable

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.broker.coordination.log import CoordinatorLog
from kraft_wire.broker.coordination.runtime import CoordinatorRuntime
from kraft_wire.broker.coordination.topic import CoordinatorTopic, CoordinatorTopicCreation
from kraft_wire.broker.share_state.calls import StateCall, StateCallback
from kraft_wire.broker.share_state.coordinator_keys import state_partition
from kraft_wire.broker.share_state.environment import ShareStateEnvironment
from kraft_wire.broker.share_state.failures import lookup_failure
from kraft_wire.broker.share_state.shard import ShareStateShard
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import TopicImage
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["ShareCoordinator"]


class ShareCoordinator:
    """Serves calls about the share partitions that this broker coordinates."""

    def __init__(
        self,
        node_id: int,
        topic: CoordinatorTopic,
        log: CoordinatorLog,
        commits: CommitWaits,
        env: ShareStateEnvironment,
        topic_creation: CoordinatorTopicCreation,
        complete: Callable[[ReplyTo, Message], None],
    ) -> None:
        """`complete` answers a parked request."""
        self.topic_creation = topic_creation
        self.complete = complete
        self.runtime = CoordinatorRuntime(
            node_id, topic, log, commits, lambda shard_log: ShareStateShard(shard_log, env)
        )

    def partition_of(self, key: str) -> int:
        """Return the partition of `__share_group_state` that a coordinator key belongs to."""
        return self.runtime.partition_of(key)

    def call(self, call: StateCall, at: ClockReading, then: StateCallback) -> None:
        """Serve a call; errors: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR, the shard's."""
        shard = self.runtime.shard_at(state_partition(call.key, self.runtime.partition_count))
        if isinstance(shard, ErrorCode):
            then(lookup_failure(call.kind, shard), at)
        else:
            shard.call(call, at, then)

    def follow(self, topic: TopicImage | None, now_ms: int) -> None:
        """Load the partitions that this broker leads, when the coordinator is first needed."""
        self.runtime.follow(topic, now_ms)

    # -- the broker's calls ----------------------------------------------------------------------

    def published(self, delta: MetadataDelta, now_ms: int) -> None:
        """Follow the state topic, and the deletion of others."""
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
