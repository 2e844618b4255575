"""Requests that wait: fetches for data, produces for durability; each with its deadline.

A parked fetch is run again from the top when one of its partitions grew; a parked produce must not
be, so it waits for an offset per partition. Both leave through `Broker.complete`. Not here: what a
fetch reads or a produce answers (`handlers/`).
"""

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Final

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.partition import Partition
from kraft_wire.frozen import slotted
from kraft_wire.model import Offset, TopicPartition

__all__ = ["FetchPurgatory", "ParkedFetch", "ParkedProduce", "ProducePurgatory"]

_STALE_DEADLINES_MAX: Final = 64


@slotted(eq=False)
class ParkedFetch:
    """A fetch that had too little to return when it was last run."""

    reply_to: ReplyTo
    deadline_ms: int
    """Monotonic time at which it is answered with whatever there is."""
    run: Callable[[int, bool], bool]
    """`run(now_ms, expired)` reads again; true once it has completed its answer."""
    watched: list[Partition]
    """The partitions whose growth is a reason to run again."""


@slotted(eq=False)
class ParkedProduce:
    """A produce whose records are appended but not yet as safe as its acknowledgement promises."""

    reply_to: ReplyTo
    deadline_ms: int
    required: dict[TopicPartition, Offset]
    """Per unfinished partition, the high watermark (exclusive end) that it waits for."""
    finish: Callable[[dict[TopicPartition, Offset]], None]
    """Completes the answer; given what is still unfinished, which is then timed out."""


class FetchPurgatory:
    """Waiting fetches by partition and by deadline; one per connection, as requests are."""

    def __init__(self) -> None:
        """Start empty."""
        self._parked: dict[int, ParkedFetch] = {}
        self._deadlines: list[tuple[int, int, ParkedFetch]] = []
        self.woken: dict[ReplyTo, ParkedFetch] = {}
        """Fetches of partitions that changed since `run_woken`."""
        self._count = 0

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, fetch: ParkedFetch) -> None:
        """Keep a fetch until one of its partitions grows, its deadline, or its peer's end."""
        connection_id = fetch.reply_to.connection_id
        assert connection_id not in self._parked, fetch.reply_to
        self._parked[connection_id] = fetch
        self._count += 1
        heappush(self._deadlines, (fetch.deadline_ms, self._count, fetch))
        for partition in fetch.watched:
            partition.watchers[fetch.reply_to] = fetch

    def wake(self, partition: Partition) -> None:
        """Note that a partition changed; its fetches run at the next `run_woken`."""
        self.woken.update(partition.watchers)

    def run_woken(self, now_ms: int) -> None:
        """Run the fetches that were woken; those still short of data stay."""
        while self.woken:
            woken, self.woken = self.woken, {}
            for fetch in woken.values():
                if self._is_parked(fetch) and fetch.run(now_ms, False):
                    self._remove(fetch)

    def expire(self, now_ms: int) -> None:
        """Answer the fetches whose deadline has come."""
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            _, _, fetch = heappop(self._deadlines)
            if self._is_parked(fetch):
                self._complete(fetch, now_ms)

    def deadline_ms(self) -> int | None:
        """Return the earliest deadline, None when nothing waits."""
        while self._deadlines:
            deadline, _, fetch = self._deadlines[0]
            if self._is_parked(fetch):
                return deadline
            heappop(self._deadlines)
        return None

    def forget(self, connection_id: int) -> None:
        """Drop what a closed connection was waiting for."""
        fetch = self._parked.get(connection_id)
        if fetch is not None:
            self._remove(fetch)

    def complete_all(self, now_ms: int) -> None:
        """Answer everything now: the broker is stopping."""
        for fetch in list(self._parked.values()):
            self._complete(fetch, now_ms)

    def _is_parked(self, fetch: ParkedFetch) -> bool:
        return self._parked.get(fetch.reply_to.connection_id) is fetch

    def _complete(self, fetch: ParkedFetch, now_ms: int) -> None:
        completed = fetch.run(now_ms, True)
        assert completed, fetch.reply_to
        self._remove(fetch)

    def _remove(self, fetch: ParkedFetch) -> None:
        del self._parked[fetch.reply_to.connection_id]
        for partition in fetch.watched:
            partition.watchers.pop(fetch.reply_to, None)
        # Deadlines of fetches that are gone may lie far ahead: they must not pile up until then.
        if len(self._deadlines) > 2 * len(self._parked) + _STALE_DEADLINES_MAX:
            self._deadlines = [entry for entry in self._deadlines if self._is_parked(entry[2])]
            heapify(self._deadlines)


class ProducePurgatory:
    """Waiting produces by deadline; partitions tell it how far they have become safe."""

    def __init__(self) -> None:
        """Start empty."""
        self._parked: dict[int, ParkedProduce] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, produce: ParkedProduce) -> None:
        """Keep a produce until all its partitions reach the offsets that it requires."""
        assert produce.required, produce.reply_to
        self._parked[produce.reply_to.connection_id] = produce

    def advanced(self, partitions: Iterable[Partition]) -> None:
        """Finish the produces whose last missing partition is among these."""
        if not self._parked:
            return
        safe = {partition.topic_partition: partition.high_watermark for partition in partitions}
        for produce in list(self._parked.values()):
            reached = [tp for tp, end in produce.required.items() if safe.get(tp, -1) >= end]
            for topic_partition in reached:
                del produce.required[topic_partition]
            if not produce.required:
                self._finish(produce)

    def expire(self, now_ms: int) -> None:
        """Answer the produces whose time is over; what is unfinished is timed out."""
        for produce in [p for p in self._parked.values() if p.deadline_ms <= now_ms]:
            self._finish(produce)

    def deadline_ms(self) -> int | None:
        """Return the earliest deadline, None when nothing waits."""
        return min((produce.deadline_ms for produce in self._parked.values()), default=None)

    def forget(self, connection_id: int) -> None:
        """Drop what a closed connection was waiting for."""
        self._parked.pop(connection_id, None)

    def _finish(self, produce: ParkedProduce) -> None:
        del self._parked[produce.reply_to.connection_id]
        produce.finish(produce.required)
