"""Group flush: one flush at a time covers everything appended before it began.

Later appends wait for the next flush, so that many answers share one fsync. The host runs
`FlushLogs`, which only uses its files.
"""

from collections.abc import Iterator
from contextlib import suppress

from kraft_wire.broker.replicas import Replicas
from kraft_wire.frozen import frozen
from kraft_wire.model import Offset, StorageError
from kraft_wire.node.outputs import FlushLogs
from kraft_wire.storage.files import MissingFile
from kraft_wire.storage.log import Log
from kraft_wire.storage.pending_flush import PendingFlush

__all__ = ["Flushing"]


@frozen
class _FlushOfReplica:
    """The flush of one replica, which may be deleted or moved aside while another thread runs it.

    Its directory has another name then, and no answer depends on it any more. Kafka's
    `Utils.flushDirIfExists` passes over it, too (KAFKA-15391).
    """

    pending: PendingFlush

    def run(self) -> None:
        """Flush, or raise FsyncFailed."""
        with suppress(MissingFile):
            self.pending.run()


class Flushing:
    """The flush in progress, and its partitions."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._started = 0
        self._running: dict[tuple[str, int], tuple[Log, PendingFlush]] | None = None

    def begin(self, flush_ids: Iterator[int]) -> FlushLogs | None:
        """Return a flush of all waiting partitions, None while another one is running."""
        if self._running is not None:
            return None
        partitions, self._replicas.unflushed = self._replicas.unflushed, {}
        self._running = {}
        for name, partition in partitions.items():
            log = partition.log
            assert isinstance(log, Log), log
            try:
                self._running[name] = (log, log.begin_flush())
            except StorageError as error:
                partition.failed(error)
                if not partition.offline:  # a full disk: tried again at the next event
                    self._replicas.unflushed[name] = partition
        if not self._running:
            self._running = None
            return None
        self._started = next(flush_ids)
        targets = [_FlushOfReplica(pending) for _, pending in self._running.values()]
        return FlushLogs(self._started, targets)

    def completed(self, flush_id: int) -> dict[tuple[str, int], Offset]:
        """Note a finished flush; return the durable end of each partition.

        The flush does not cover a topic that was created again meanwhile: that is another log.
        """
        assert flush_id == self._started, (flush_id, self._started)
        assert self._running is not None, flush_id
        running, self._running = self._running, None
        ends: dict[tuple[str, int], Offset] = {}
        for name, (log, pending) in running.items():
            log.complete_flush(pending)
            partition = self._replicas.partitions.get(name)
            if partition is not None and partition.log is log:
                ends[name] = pending.end_offset
        return ends
