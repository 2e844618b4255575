"""Waiting requests: fetches for data, others for followers or the disk; each with its deadline.

A parked fetch is run again from the top when one of its partitions grew. A parked produce must not
run again, so it waits for an offset per partition, as a DeleteRecords does. All leave through
`Broker.complete`. Not here: the content of answers (`handlers/`).
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import field

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.deadlines import Deadlines
from kraft_wire.broker.partition import Partition
from kraft_wire.frozen import slotted
from kraft_wire.model import Offset, TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["DelayedFetch", "DelayedOperation", "DelayedOperationPurgatory", "FetchPurgatory"]


@slotted(eq=False)
class DelayedFetch:
    """A fetch that had too little to return when it was last run."""

    reply_to: ReplyTo
    deadline_ms: int
    """Monotonic time at which the request is answered with the data that is there."""
    run: Callable[[int, bool], bool]
    """`run(now_ms, expired)` reads again; true once it has completed its answer."""
    watched: Sequence[Hashable]
    """The partitions whose growth runs the fetch again, and share partitions that may change."""
    is_follower: bool = False
    """Whether the fetch waits for the log's end, not for its high watermark."""
    partitions_count: int = 0
    """How many partitions it names, existing or not; its memory grows with them."""


@slotted(eq=False)
class DelayedOperation:
    """A request that waits for one offset in each of some partitions.

    A produce whose records are appended, but not yet as safe as its acknowledgement promises; a
    DeleteRecords that not every replica has followed.
    """

    reply_to: ReplyTo
    deadline_ms: int
    required: dict[TopicPartition, Offset]
    """Per unfinished partition, the offset that it waits for."""
    outcome: Callable[[Partition, Offset], ErrorCode | None]
    """Returns the result of a partition, None while it must wait."""
    finish: Callable[[dict[TopicPartition, ErrorCode]], None]
    """Completes the answer; given the partitions that ended with an error."""
    errors: dict[TopicPartition, ErrorCode] = field(default_factory=dict)


class FetchPurgatory:
    """Waiting fetches by partition and by deadline; one per connection, as requests are."""

    def __init__(self) -> None:
        """Start empty."""
        self._parked: dict[int, DelayedFetch] = {}
        self._deadlines: Deadlines[DelayedFetch] = Deadlines(self._is_parked)
        self.partitions_count = 0
        """Partitions that the waiting fetches name, all together."""
        self._readers: dict[Hashable, dict[ReplyTo, DelayedFetch]] = {}
        """Fetches to wake when more of a partition is committed."""
        self._followers: dict[Hashable, dict[ReplyTo, DelayedFetch]] = {}
        """Fetches of followers, to wake when the log of a partition grows."""
        self.woken: dict[ReplyTo, DelayedFetch] = {}
        """Fetches of partitions that changed since `run_woken`."""

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, fetch: DelayedFetch) -> None:
        """Keep a fetch until one of its partitions grows, its deadline, or its peer's end."""
        connection_id = fetch.reply_to.connection_id
        assert connection_id not in self._parked, fetch.reply_to
        self._parked[connection_id] = fetch
        self.partitions_count += fetch.partitions_count
        self._deadlines.add(fetch.deadline_ms, fetch, len(self._parked))
        watching = self._watching(fetch)
        for partition in fetch.watched:
            watching.setdefault(partition, {})[fetch.reply_to] = fetch

    def wake(self, partition: Partition) -> None:
        """Note that a partition changed; its fetches run at the next `run_woken`."""
        if self._readers:
            self.wake_readers(partition)
        if self._followers:
            self.wake_followers(partition)

    def wake_readers(self, partition: Hashable) -> None:
        """Note that more of a partition is committed, or of a share partition is available."""
        if partition in self._readers:
            self.woken.update(self._readers[partition])

    def wake_followers(self, partition: Partition) -> None:
        """Note that a partition's log grew, which is nothing to others yet."""
        if partition in self._followers:
            self.woken.update(self._followers[partition])

    def run_woken(self, now_ms: int) -> None:
        """Run the woken fetches; those that still lack data stay."""
        while self.woken:
            woken, self.woken = self.woken, {}
            for fetch in woken.values():
                if self._is_parked(fetch) and fetch.run(now_ms, False):
                    self._remove(fetch)

    def expire(self, now_ms: int) -> None:
        """Answer the fetches whose deadline has passed."""
        for fetch in self._deadlines.due(now_ms):
            self._complete(fetch, now_ms)

    def deadline_ms(self) -> int | None:
        """Return the earliest deadline, None when nothing waits."""
        return self._deadlines.next_ms()

    def forget(self, connection_id: int) -> None:
        """Drop what a closed connection was waiting for."""
        fetch = self._parked.get(connection_id)
        if fetch is not None:
            self._remove(fetch)

    def complete_all(self, now_ms: int) -> None:
        """Answer everything now: the broker is stopping."""
        for fetch in list(self._parked.values()):
            self._complete(fetch, now_ms)

    def _is_parked(self, fetch: DelayedFetch) -> bool:
        return self._parked.get(fetch.reply_to.connection_id) is fetch

    def _complete(self, fetch: DelayedFetch, now_ms: int) -> None:
        completed = fetch.run(now_ms, True)
        assert completed, fetch.reply_to
        self._remove(fetch)

    def _remove(self, fetch: DelayedFetch) -> None:
        del self._parked[fetch.reply_to.connection_id]
        self.partitions_count -= fetch.partitions_count
        assert self.partitions_count >= 0, fetch.reply_to
        watching = self._watching(fetch)
        for partition in fetch.watched:
            fetches = watching.get(partition, {})
            fetches.pop(fetch.reply_to, None)  # a fetch may name a partition twice
            if not fetches:
                watching.pop(partition, None)

    def _watching(self, fetch: DelayedFetch) -> dict[Hashable, dict[ReplyTo, DelayedFetch]]:
        return self._followers if fetch.is_follower else self._readers


class DelayedOperationPurgatory:
    """Waiting operations by partition and by deadline; one per connection, as requests are."""

    def __init__(self) -> None:
        """Start empty."""
        self._parked: dict[int, DelayedOperation] = {}
        self._deadlines: Deadlines[DelayedOperation] = Deadlines(self._is_parked)
        self._waiting: dict[TopicPartition, dict[int, DelayedOperation]] = {}
        """Per partition those for which it is unfinished, by connection."""
        self._internal_ids = 0

    def __len__(self) -> int:
        return len(self._parked)

    def new_internal_id(self) -> int:
        """Return a connection id below 0, for an operation of the broker itself."""
        self._internal_ids -= 1
        return self._internal_ids

    def park(self, operation: DelayedOperation) -> None:
        """Keep an operation until all its partitions have an outcome."""
        assert operation.required, operation.reply_to
        connection_id = operation.reply_to.connection_id
        assert connection_id not in self._parked, operation.reply_to
        self._parked[connection_id] = operation
        self._deadlines.add(operation.deadline_ms, operation, len(self._parked))
        for topic_partition in operation.required:
            self._waiting.setdefault(topic_partition, {})[connection_id] = operation

    def check(self, partition: Partition) -> None:
        """Check the requests that wait for a partition, which moved or is not led any more."""
        name = partition.topic_partition
        if name not in self._waiting:
            return
        for operation in list(self._waiting[name].values()):
            if not self._is_waiting(operation, name):
                continue  # the end of one before it was that of this one too
            outcome = operation.outcome(partition, operation.required[name])
            if outcome is not None:
                self._end(operation, name, outcome)

    def fail(self, topic_partition: TopicPartition, error: ErrorCode) -> None:
        """End the requests that wait for a deleted partition."""
        for operation in list(self._waiting.get(topic_partition, {}).values()):
            if self._is_waiting(operation, topic_partition):
                self._end(operation, topic_partition, error)

    def expire(self, now_ms: int) -> None:
        """Answer requests at their deadline; unfinished partitions get REQUEST_TIMED_OUT."""
        for operation in self._deadlines.due(now_ms):
            timed_out = dict.fromkeys(operation.required, ErrorCode.REQUEST_TIMED_OUT)
            self._remove(operation)
            operation.errors.update(timed_out)
            operation.finish(operation.errors)

    def deadline_ms(self) -> int | None:
        """Return the earliest deadline, None when nothing waits."""
        return self._deadlines.next_ms()

    def forget(self, connection_id: int) -> None:
        """Drop what a closed connection was waiting for."""
        operation = self._parked.get(connection_id)
        if operation is not None:
            self._remove(operation)

    def _is_parked(self, operation: DelayedOperation) -> bool:
        return self._parked.get(operation.reply_to.connection_id) is operation

    def _is_waiting(self, operation: DelayedOperation, name: TopicPartition) -> bool:
        return self._is_parked(operation) and name in operation.required

    def _end(self, operation: DelayedOperation, name: TopicPartition, outcome: ErrorCode) -> None:
        """Finish one partition of an operation, and the operation with its last one."""
        self._unwatch(operation, name)
        del operation.required[name]
        if outcome != ErrorCode.NONE:
            operation.errors[name] = outcome
        if not operation.required:
            self._remove(operation)
            operation.finish(operation.errors)

    def _remove(self, operation: DelayedOperation) -> None:
        del self._parked[operation.reply_to.connection_id]
        for name in operation.required:
            self._unwatch(operation, name)

    def _unwatch(self, operation: DelayedOperation, name: TopicPartition) -> None:
        waiting = self._waiting[name]
        del waiting[operation.reply_to.connection_id]
        if not waiting:
            del self._waiting[name]
