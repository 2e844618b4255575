"""Invariants of the metadata log and its committed records.

One small class each; docs/SIMULATION.md explains the ids.
"""

from __future__ import annotations

from kraft_wire.model import ZERO_UUID, ReplicaKey
from kraft_wire.raft.roles import Leader, Role
from kraft_wire.sim.judge.election_invariants import epoch_of
from kraft_wire.sim.judge.judge import NodeWatch, Signals
from kraft_wire.sim.judge.log_watch import (
    LogWatch,
    SeenBatch,
)
from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.message import Message

__all__ = [
    "BatchAtomicity",
    "CommittedIsForever",
    "CommittedOnMajority",
    "CommittedReadOnly",
    "FetchIsFlushed",
    "LeaderCompleteness",
    "LogMatching",
    "MonotoneHighWatermark",
    "NoTruncateBelowHighWatermark",
    "OffsetContiguity",
]


class MonotoneHighWatermark(Signals):
    """The high watermark never falls, and stays within the log."""

    id, name = "S04", "MonotoneHighWatermark"

    def high_watermark(self, watch: NodeWatch, before: int | None, now: int | None) -> None:
        self._check(before is None or (now is not None and now >= before), watch, before, now)
        if now is not None:
            self._check(now <= watch.log.end_offset, watch, now, watch.log.end_offset)


class CommittedOnMajority(Signals):
    """A leader's committed records are durable on a majority of the voters in force."""

    id, name = "S05", "CommittedOnMajority"

    def high_watermark(self, watch: NodeWatch, before: int | None, now: int | None) -> None:
        if now is None or now <= self.ledger.committed_end or not watch.has_led:
            return
        quorum = watch.quorum
        last = watch.log.batch_before(now)
        members = [node.key for node in quorum.voters.latest.nodes.values()]
        holding = [key.id for key in members if self._holds(key, now, last)]
        self._check(2 * len(holding) > len(members), watch, now, holding, "of", members)

    def _holds(self, key: ReplicaKey, end: int, last: SeenBatch | None) -> bool:
        log = self._log_of(key)
        if log is None or log.durable_end < end:
            return False
        if log.start_offset >= end:
            return True
        own = log.batch_before(end)
        return own is not None and last is not None and own.identity == last.identity

    def _log_of(self, key: ReplicaKey) -> LogWatch | None:
        watch = self.judge.watches.get(key.id)
        if watch is None:
            return None
        if key.directory_id in (ZERO_UUID, watch.machine.directory_id):
            return watch.log
        return self.judge.lost_disks.get((key.id, key.directory_id))


class LeaderCompleteness(Signals):
    """The leader of an epoch has every record that was committed before it was elected."""

    id, name = "S06", "LeaderCompleteness"

    def role(self, watch: NodeWatch, before: Role | None, epoch_before: int) -> None:
        if not isinstance(watch.role, Leader) or watch.role is before:
            return
        # A node that was stopped as a candidate may still win its old epoch, unnoticed by the
        # others.
        end = self.ledger.end_before(watch.epoch)
        self._check(watch.log.end_offset >= end, watch, watch.log.end_offset, end)
        if end > watch.log.start_offset:
            own, committed = watch.log.batch_before(end), self.ledger.batch_before(end)
            assert committed is not None, end
            self._check(own is not None and own.identity == committed.identity, watch, end)


class LogMatching(Signals):
    """Equal epoch and offset on two disks mean equal bytes there and before it."""

    id, name = "S07", "LogMatching"

    def appended(self, watch: NodeWatch, batch: SeenBatch, before: SeenBatch | None) -> None:
        place = (batch.epoch, batch.base_offset)
        is_first = before is None
        known = self.ledger.placed.get(place)
        if known is None:
            self.ledger.placed[place] = (batch.crc, -1 if before is None else before.epoch)
            return
        same_before = is_first or known[1] == -1 or before is None or known[1] == before.epoch
        self._check(known[0] == batch.crc and same_before, watch, place, known, batch.crc)


class NoTruncateBelowHighWatermark(Signals):
    """No node truncates records that it knows to be committed."""

    id, name = "S08", "NoTruncateBelowHighWatermark"

    def cut(self, watch: NodeWatch, offset: int, is_reset: bool) -> None:
        low = watch.high_watermark or 0
        self._check(offset >= low, watch, offset, "below", low, "anew" if is_reset else "")


class CommittedIsForever(Signals):
    """Every node has the batches that were first committed at their offsets."""

    id, name = "S09", "CommittedIsForever"

    def high_watermark(self, watch: NodeWatch, before: int | None, now: int | None) -> None:
        if now is None or now <= watch.log.start_offset or now > self.ledger.committed_end:
            return
        own, committed = watch.log.batch_before(now), self.ledger.batch_before(now)
        same = own is not None and committed is not None and own.identity == committed.identity
        self._check(same, watch, now, own and own.identity, committed and committed.identity)


class BatchAtomicity(Signals):
    """After a start the log holds only whole batches with valid checksums."""

    id, name = "S11", "BatchAtomicity"

    def started(self, watch: NodeWatch) -> None:
        left = watch.log.unread_bytes
        self._check(left == 0, watch, left, "bytes behind the last whole batch")


class OffsetContiguity(Signals):
    """Batches follow each other without a gap, and epochs never fall along the log."""

    id, name = "S12", "OffsetContiguity"

    def appended(self, watch: NodeWatch, batch: SeenBatch, before: SeenBatch | None) -> None:
        end = watch.log.start_offset if before is None else before.end_offset
        self._check(batch.base_offset == end, watch, batch.identity, "at", end)
        if before is not None:
            self._check(batch.epoch >= before.epoch, watch, batch.identity, before.identity)


class FetchIsFlushed(Signals):
    """The offset that a controller fetches from is durable: it acknowledges everything before."""

    id, name = "S20", "FetchIsFlushed"

    def sent(self, watch: NodeWatch, message: Message, target: int) -> None:
        if not isinstance(message, FetchRequest) or not message.topics:
            return
        if watch.machine.is_broker_only:
            return  # its acknowledgements do not count
        asked = message.topics[0].partitions[0]
        stored = watch.log.election
        # A request for an older epoch, or to a replica that does not lead, may have waited for its
        # link: it was right when it was made, and acknowledges nothing to its receiver. Nor does a
        # request that the leader's log contradicts, however late it leaves.
        if stored is None or epoch_of(message) != stored.epoch or target != stored.leader_id:
            return
        offset = asked.fetch_offset
        end = max(watch.log.durable_end, _snapshot_end(watch.log))
        if offset > end:
            last = self.judge.watches[target].log.batch_before(offset)
            counts = last is not None and last.epoch == asked.last_fetched_epoch
            self._check(not counts, watch, "fetches from", offset, "durable", end)


class CommittedReadOnly(Signals):
    """No replica treats or returns records as committed before they are."""

    id, name = "S26", "CommittedReadOnly"

    def high_watermark(self, watch: NodeWatch, before: int | None, now: int | None) -> None:
        if now is None or now <= self.ledger.committed_end:
            return
        self._check(watch.has_led, watch, now, "beyond", self.ledger.committed_end)

    def after(self, watch: NodeWatch) -> None:
        if watch.node.quorum.host.is_active:
            # The active controller leads, and has applied the log past its own epoch's start.
            role = watch.role
            has_read = isinstance(role, Leader) and watch.applied_offset > role.epoch_start_offset
            self._check(has_read, watch, "is active as", watch.role_name, watch.applied_offset)

    def applied(self, watch: NodeWatch) -> None:
        end = self.ledger.committed_end
        self._check(watch.applied_offset <= end, watch, watch.applied_offset, "beyond", end)


def _snapshot_end(log: LogWatch) -> int:
    return max((offset for offset, _ in log.snapshots), default=0)
