"""S78 EpochsBeginAlike: replicas agree on where each leader epoch of a partition began.

The leader of an epoch decides: it began where its log ended then. Every replica truncates by these
starts once it leads (KIP-101), also those of epochs whose first batches compaction has removed.
Left out are the first epoch of a log, and those that begin at or below its start: of deleted
records no replica has to know them.
"""

from typing import Final, cast

from kraft_wire.broker.partition import Partition
from kraft_wire.sim.judge.replica_judge import ReplicaJudge
from kraft_wire.sim.judge.replica_watch import ReplicaWatch
from kraft_wire.storage.log import Log

__all__ = ["EpochStarts"]

_ID: Final = "S78 EpochsBeginAlike"


class EpochStarts:
    """Remembers where the epochs of each partition began, as their leaders said."""

    def __init__(self, judge: ReplicaJudge) -> None:
        self._judge = judge
        self._starts: dict[tuple[bytes, int, int], int] = {}
        """Topic id, partition and epoch -> start."""

    def changed(self, watch: ReplicaWatch, partition: Partition) -> None:
        """A replica has changed: compare its epochs, and remember the one that it leads."""
        log = cast(Log, partition.log)
        entries = log.epochs.entries
        place = (bytes(partition.topic_id), partition.partition)
        if partition.is_leader and entries and entries[-1][0] == partition.leader_epoch:
            self._starts.setdefault((*place, partition.leader_epoch), entries[-1][1])
        for epoch, start in entries[1:]:
            if start <= log.log_start_offset:
                continue
            began = self._starts.get((*place, epoch), start)
            facts = ("epoch", epoch, "begins at", start, "and began at", began)
            self._judge.check(_ID, start == began, watch, *facts)
