"""The transaction coordinator: the runtime over `__transaction_state`, and the marker sender."""

from collections import Counter
from collections.abc import Callable

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.commit_waits import CommitWaits
from kraft_wire.broker.coordination.log import CoordinatorLog
from kraft_wire.broker.coordination.runtime import CoordinatorRuntime
from kraft_wire.broker.coordination.topic import CoordinatorTopic, CoordinatorTopicCreation
from kraft_wire.broker.transactions.environment import TransactionEnvironment
from kraft_wire.broker.transactions.shard import TransactionShard
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import TopicImage
from kraft_wire.model import sooner
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["TransactionCoordinator"]


class TransactionCoordinator:
    """Finds the shard of a transactional id; a `MetadataFollower` of the broker."""

    def __init__(
        self,
        node_id: int,
        topic: CoordinatorTopic,
        log: CoordinatorLog,
        commits: CommitWaits,
        env: TransactionEnvironment,
        topic_creation: CoordinatorTopicCreation,
        complete: Callable[[ReplyTo, Message], None],
    ) -> None:
        """`complete` answers a parked request."""
        self.env = env
        self.topic_creation = topic_creation
        self.complete = complete
        self.runtime = CoordinatorRuntime(
            node_id, topic, log, commits, lambda shard_log: TransactionShard(shard_log, env)
        )
        self._changed_ms: int | None = None
        """When the metadata changed, until the marker sender has processed the change."""

    def partition_of(self, transactional_id: str) -> int:
        """Return the partition of `__transaction_state` that an id belongs to."""
        return self.runtime.partition_of(transactional_id)

    def shard_of(self, transactional_id: str) -> TransactionShard | ErrorCode:
        """Return where an id is coordinated.

        Errors: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
        """
        return self.runtime.shard_of(transactional_id)

    def ids_by_state(self) -> dict[str, int]:
        """Count the ids of the partitions that are served."""
        shards = self.runtime.shards()
        if isinstance(shards, ErrorCode):
            return {}
        return dict(Counter(e.metadata.state.value for s in shards for e in s.ids.values()))

    def follow(self, topic: TopicImage | None, now_ms: int) -> None:
        """Load the partitions that this broker leads, when the coordinator is first needed."""
        self.runtime.follow(topic, now_ms)

    # -- the broker's calls ----------------------------------------------------------------------

    def published(self, delta: MetadataDelta, now_ms: int) -> None:
        """Follow the state topic, and have markers look for their leaders again."""
        self.runtime.published(delta, now_ms)
        self._changed_ms = now_ms

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Act on time."""
        at = ClockReading(now_ms, wall_ms)
        if self._changed_ms is not None:
            self._changed_ms = None
            self.env.markers.metadata_changed(at)
        self.runtime.tick(now_ms, wall_ms)
        self.env.markers.tick(at)

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next."""
        deadline_ms = sooner(self.runtime.deadline_ms(), self.env.markers.deadline_ms())
        if self._changed_ms is not None and self.env.markers.is_waiting:
            return sooner(deadline_ms, self._changed_ms)
        return deadline_ms

    def stop(self) -> None:
        """Resign every partition, because the broker stops."""
        self.runtime.stop()
