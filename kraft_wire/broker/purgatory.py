"""Requests that wait: fetches for data, produces for durability; each with its deadline.

A parked fetch is run again from the top when one of its partitions grew; a parked produce must not
be, so it waits for an offset per partition. Both leave through `Broker.complete`. Not here: what a
fetch reads or a produce answers (`handlers/`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.partition import Partition
from kraft_wire.model import Offset, TopicPartition

__all__ = ["FetchPurgatory", "ParkedFetch", "ParkedProduce", "ProducePurgatory"]


@dataclass(slots=True, eq=False)
class ParkedFetch:
    """A fetch that had too little to return when it was last run."""

    reply_to: ReplyTo
    deadline_ms: int
    """Monotonic time at which it is answered with whatever there is."""
    run: Callable[[int, bool], bool]
    """`run(now_ms, expired)` reads again; true once it has completed its answer."""
    watched: list[Partition]
    """The partitions whose growth is a reason to run again."""


@dataclass(slots=True, eq=False)
class ParkedProduce:
    """A produce whose records are appended but not yet as safe as its acknowledgement promises."""

    reply_to: ReplyTo
    deadline_ms: int
    required: dict[TopicPartition, Offset]
    """Per unfinished partition, the high watermark (exclusive end) that it waits for."""
    finish: Callable[[dict[TopicPartition, Offset]], None]
    """Completes the answer; given what is still unfinished, which is then timed out."""
    watched: list[Partition] = field(default_factory=list)


class FetchPurgatory:
    """Waiting fetches by partition and by deadline."""

    def __init__(self) -> None:
        """Start empty."""
        self._parked: dict[ReplyTo, ParkedFetch] = {}
        self._deadlines: list[tuple[int, int, ParkedFetch]] = []
        self._woken: dict[ReplyTo, ParkedFetch] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, fetch: ParkedFetch) -> None:
        """Keep a fetch until one of its partitions grows, its deadline, or its peer's end."""
        assert fetch.reply_to not in self._parked, fetch.reply_to
        self._parked[fetch.reply_to] = fetch
        self._count += 1
        heappush(self._deadlines, (fetch.deadline_ms, self._count, fetch))
        for partition in fetch.watched:
            partition.watchers[fetch.reply_to] = fetch

    def wake(self, partition: Partition) -> None:
        """Note that a partition changed; its fetches run at the next `run_woken`."""
        self._woken.update(partition.watchers)

    def run_woken(self, now_ms: int) -> None:
        """Run the fetches that were woken; those still short of data stay."""
        while self._woken:
            woken, self._woken = self._woken, {}
            for fetch in woken.values():
                if fetch.reply_to in self._parked and fetch.run(now_ms, False):
                    self._remove(fetch)

    def expire(self, now_ms: int) -> None:
        """Answer the fetches whose deadline has come."""
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            _, _, fetch = heappop(self._deadlines)
            if self._parked.get(fetch.reply_to) is fetch:
                completed = fetch.run(now_ms, True)
                assert completed, fetch.reply_to
                self._remove(fetch)

    def deadline_ms(self) -> int | None:
        """Return the earliest deadline, None when nothing waits."""
        while self._deadlines:
            deadline, _, fetch = self._deadlines[0]
            if self._parked.get(fetch.reply_to) is fetch:
                return deadline
            heappop(self._deadlines)
        return None

    def forget(self, connection_id: int) -> None:
        """Drop what a closed connection was waiting for."""
        gone = [fetch for to, fetch in self._parked.items() if to.connection_id == connection_id]
        for fetch in gone:
            self._remove(fetch)

    def complete_all(self, now_ms: int) -> None:
        """Answer everything now: the broker is stopping."""
        for fetch in list(self._parked.values()):
            completed = fetch.run(now_ms, True)
            assert completed, fetch.reply_to
            self._remove(fetch)

    def _remove(self, fetch: ParkedFetch) -> None:
        del self._parked[fetch.reply_to]
        for partition in fetch.watched:
            partition.watchers.pop(fetch.reply_to, None)
        if not self._parked:
            self._deadlines.clear()


class ProducePurgatory:
    """Waiting produces by deadline; partitions tell it how far they have become safe."""

    def __init__(self) -> None:
        """Start empty."""
        self._parked: dict[ReplyTo, ParkedProduce] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, produce: ParkedProduce) -> None:
        """Keep a produce until all its partitions reach the offsets that it requires."""
        assert produce.required, produce.reply_to
        self._parked[produce.reply_to] = produce

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
        for reply_to in [to for to in self._parked if to.connection_id == connection_id]:
            del self._parked[reply_to]

    def _finish(self, produce: ParkedProduce) -> None:
        del self._parked[produce.reply_to]
        produce.finish(produce.required)
