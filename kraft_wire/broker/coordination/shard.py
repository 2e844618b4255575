"""The interface of one kind of coordinator: the state of one partition, driven by the runtime."""

from collections.abc import Mapping
from typing import Any, Protocol

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.timers import Timers
from kraft_wire.model import Uuid
from kraft_wire.wire.records.memory_records import AnyBatch

__all__ = ["CoordinatorShard"]


class CoordinatorShard(Protocol):
    """State that is read back from one partition of the coordinator's topic.

    Calls come in this order: `replay` for every batch, `loaded`, then any of the others, and
    `resign` at last, which may come at any time. Requests reach the shard between `loaded` and
    `resign` only.
    """

    @property
    def ignored(self) -> Mapping[str, int]:
        """Reason to number of records that `replay` could not read and left in the log."""
        ...

    @property
    def timers(self) -> Timers[Any]:
        """The only deadlines of the shard; those that have passed are acted on by `tick`."""
        ...

    def replay(self, batch: AnyBatch) -> None:
        """Take a batch of the log into the state; control batches end transactions."""
        ...

    def loaded(self, at: ClockReading) -> None:
        """Begin to serve: all that was replayed is committed. Sessions count from now.

        A partition without records is served without this call.
        """
        ...

    def tick(self, at: ClockReading) -> None:
        """Act on every deadline that has passed."""
        ...

    def topics_deleted(self, topics: Mapping[Uuid, str], at: ClockReading) -> None:
        """Remove the state of deleted topics."""
        ...

    def clean_up(self, at: ClockReading) -> None:
        """Remove expired state; called every `CoordinatorTopic.clean_up_interval_ms`."""
        ...

    def resign(self) -> None:
        """Answer waiting requests with NOT_COORDINATOR and release the counted memory.

        Appends in flight are not undone: another coordinator may find them in the log.
        """
        ...
