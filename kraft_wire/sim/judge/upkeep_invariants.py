"""Invariants of snapshots, metadata transactions and voters' addresses (KIP-630, 868, 853).

Everything is compared with the judge's own reading: the control records and transactions of the
committed log, the bytes of its batches, the head of each snapshot on a disk.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

from kraft_wire.raft.roles import Leader
from kraft_wire.sim.judge.judge import Judge, LogSignals, NodeWatch, Signals
from kraft_wire.sim.judge.ledger import register_of_config
from kraft_wire.sim.judge.log_watch import SeenBatch, SeenSnapshot, newest_voters
from kraft_wire.sim.setup import LISTENER
from kraft_wire.wire.generated.kraft_version_record import KRaftVersionRecord
from kraft_wire.wire.generated.leader_change_message import LeaderChangeMessage
from kraft_wire.wire.generated.voters_record import VotersRecord

__all__ = ["HALVES", "UPKEEP"]

_CLIENT_METRICS: Final = 16
HALVES: Final = ("half-a", "half-b")
"""Client metrics resources that only transactions write."""
_INTERVAL: Final = "interval.ms"
_WRITING_US: Final = 3_000_000
"""How long a due snapshot may take at most."""
_EARLY_US: Final = 300_000
"""A snapshot appears when it is written, and the interval counts from when it was begun."""


class SnapshotHasVotersBelow(LogSignals):
    """A snapshot's voter set and kraft.version are those of the records below its end."""

    id, name = "S41", "SnapshotHasVotersBelow"

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self._voters: list[tuple[int, VotersRecord]] = []
        self._levels: list[tuple[int, int]] = []
        self._read: dict[bytes, tuple[VotersRecord | None, int]] = {}

    def committed(self, watch: NodeWatch, batch: SeenBatch) -> None:
        for offset, _, message in batch.controls():
            if isinstance(message, VotersRecord):
                self._voters.append((offset, message))
            elif isinstance(message, KRaftVersionRecord):
                self._levels.append((offset, message.kraft_version))

    def snapshot(self, watch: NodeWatch, snapshot: SeenSnapshot) -> None:
        if snapshot.offset == 0:
            return
        end = snapshot.offset
        sets = [each for offset, each in self._voters if offset < end]
        levels = [each for offset, each in self._levels if offset < end]
        expected = (sets[-1] if sets else None, levels[-1] if levels else 0)
        found = self._head_of(snapshot)
        self._check(found == expected, watch, "snapshot", end, "has", found, "log has", expected)

    def _head_of(self, snapshot: SeenSnapshot) -> tuple[VotersRecord | None, int]:
        """Return voters and level that a snapshot's head names; equal bytes are read once."""
        known = self._read.get(snapshot.data)
        if known is None:
            voters: VotersRecord | None = None
            level = 0
            for _, _, message in snapshot.batches()[0].controls():
                if isinstance(message, VotersRecord):
                    voters = message
                elif isinstance(message, KRaftVersionRecord):
                    level = message.kraft_version
            known = self._read[snapshot.data] = (voters, level)
        return known


class TransactionIsWhole(LogSignals):
    """No snapshot ends inside a metadata transaction, and images show both halves or none."""

    id, name = "S42", "TransactionIsWhole"

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self._registers = [register_of_config(_CLIENT_METRICS, each, _INTERVAL) for each in HALVES]
        self._pairs: list[tuple[int, str]] = []
        """Where a transaction that wrote both ended, and its values."""

    def committed(self, watch: NodeWatch, batch: SeenBatch) -> None:
        last = self.ledger.entries[-1] if self.ledger.entries else None
        if last is not None and last.register == self._registers[1] and last.value is not None:
            pair = (last.offset, last.value)
            if pair not in self._pairs[-1:]:
                self._pairs.append(pair)
                self.judge.marks["metadata transaction ended"] += 1

        aborted = sum(1 for each in self.ledger.transactions if each.is_aborted)
        self.judge.marks["metadata transaction aborted"] = aborted

    def snapshot(self, watch: NodeWatch, snapshot: SeenSnapshot) -> None:
        is_inside = self.ledger.is_inside_transaction(snapshot.offset)
        self._check(not is_inside, watch, snapshot.offset, "is inside a transaction")

    def applied(self, watch: NodeWatch) -> None:
        if not self.ledger.transactions:
            return
        at = bisect_left(self._pairs, (watch.applied_offset, ""))
        expected = self._pairs[at - 1][1] if at else None
        image = watch.node.raft.committed.image
        shown = [image.config(_CLIENT_METRICS, each).get(_INTERVAL) for each in HALVES]
        self._check(shown == [expected] * 2, watch, watch.applied_offset, shown, "not", expected)


@dataclass(slots=True)
class _Interval:
    """The start of the interval until a node's next snapshot."""

    life: int
    """The process that counts."""
    end: int
    """Where its newest snapshot ends."""
    since_us: int
    """When that snapshot was whole, or the process started."""
    begun_us: int
    """The earliest time at which it may have begun to write that snapshot, which it counts from."""
    rate_permille: int
    log_start: int
    slowest_permille: int
    """Of its clock, since the interval began."""
    news_us: int | None = None
    """Since when a snapshot would have new records, None if it would not."""
    large_us: int | None = None
    """Since when there are enough bytes for it, None if there are not."""
    installed: int | None = None
    """The snapshot that replaced the log in the same look at the disk."""
    is_excused: bool = False
    """Whether a call of its disk failed: a snapshot without room waits again."""
    applied_us: dict[int, int] = field(default_factory=dict)
    """Applied offset -> when it was reached; a snapshot of it cannot begin before."""


class SnapshotInterval(LogSignals):
    """A node takes a snapshot when enough bytes or time are behind the last one, and not before.

    `metadata.log.max.record.bytes.between.snapshots` and `metadata.log.max.snapshot.interval.ms`
    count from the newest snapshot that a node wrote or fetched, time also from its start.
    """

    id, name = "S43", "SnapshotInterval"

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self._bytes: list[int] = [0]
        """Bytes of the committed log below the end of each batch, 0 first."""
        self._intervals: dict[int, _Interval] = {}

    def committed(self, watch: NodeWatch, batch: SeenBatch) -> None:
        self._bytes.append(self._bytes[-1] + len(batch.data))

    def started(self, watch: NodeWatch) -> None:
        newest = max((offset for offset, _ in watch.log.snapshots), default=0)
        self._intervals[watch.id] = self._begun(watch, newest)

    def cut(self, watch: NodeWatch, offset: int, is_reset: bool) -> None:
        known = self._of(watch)
        if is_reset and known is not None and offset != known.end:  # else nothing was fetched
            begun = self._intervals[watch.id] = self._begun(watch, offset)
            begun.installed, begun.is_excused = offset, known.is_excused

    def snapshot(self, watch: NodeWatch, snapshot: SeenSnapshot) -> None:
        known = self._of(watch)
        if known is None or snapshot.offset in (0, known.installed):
            return
        self._is_early(watch, known, snapshot.offset)
        begun = self._intervals[watch.id] = self._begun(watch, snapshot.offset)
        begun.is_excused = known.is_excused
        begun.begun_us = known.applied_us.get(snapshot.offset, known.begun_us)
        self._look(watch, begun)

    def disk(self, watch: NodeWatch) -> None:
        known = self._of(watch)
        if known is None:
            return
        if known.installed is None and watch.log.start_offset > known.log_start:
            self.judge.marks["log cleaned behind a snapshot"] += 1
        known.installed, known.log_start = None, watch.log.start_offset

    def applied(self, watch: NodeWatch) -> None:
        known = self._of(watch)
        if known is not None:
            known.applied_us.setdefault(watch.applied_offset, self.judge.stage.now_us)
            self._look(watch, known)

    def after(self, watch: NodeWatch) -> None:
        known = self._of(watch)
        if known is None:
            return
        machine = watch.machine
        known.slowest_permille = min(known.slowest_permille, machine.clock.rate_permille)
        due_us = _due_us(known, machine.setup.snapshot_every_ms)
        if due_us is None:
            return
        known.is_excused |= (machine.fs.fault or machine.fs.capacity_bytes) is not None
        late_us = self.judge.stage.now_us - max(due_us, machine.disturbed_us)
        if late_us > _WRITING_US and not known.is_excused:
            facts = "no snapshot behind", known.end, "though it is due for", late_us
            self._check(False, watch, *facts, "applied", watch.applied_offset)

    def _of(self, watch: NodeWatch) -> _Interval | None:
        """Return the start of the running process's count, None before its start was judged."""
        known = self._intervals.get(watch.id)
        return known if known is not None and known.life == watch.machine.life else None

    def _begun(self, watch: NodeWatch, end: int) -> _Interval:
        machine = watch.machine
        rate, start = machine.clock.rate_permille, watch.log.start_offset
        now_us = self.judge.stage.now_us
        return _Interval(machine.life, end, now_us, now_us, rate, start, rate)

    def _between(self, start: int, end: int) -> int:
        """Return the bytes of the committed batches between two ends of batches."""
        ends = self.ledger.ends
        low, high = bisect_left(ends, start) + 1, bisect_left(ends, end) + 1
        return self._bytes[high if end else 0] - self._bytes[low if start else 0]

    def _is_early(self, watch: NodeWatch, known: _Interval, end: int) -> None:
        """A snapshot was written: enough bytes, or enough time, must be behind the last one."""
        machine, setup = watch.machine, watch.machine.setup
        size_bytes = self._between(known.end, end)
        if size_bytes >= setup.snapshot_every_bytes:
            return
        self.judge.marks["snapshot by time"] += 1
        is_disturbed = machine.disturbed_us >= known.begun_us
        if is_disturbed or known.rate_permille != machine.clock.rate_permille:
            return
        passed_us = self.judge.stage.now_us - known.begun_us + _EARLY_US
        has_passed = passed_us * known.rate_permille // 1_000_000 >= setup.snapshot_every_ms
        facts = "takes", end, "after", known.end, size_bytes, "bytes", passed_us - _EARLY_US, "us"
        self._check(setup.snapshot_every_ms > 0 and has_passed, watch, *facts)

    def _look(self, watch: NodeWatch, known: _Interval) -> None:
        """Find out since when the next snapshot is due."""
        setup, now_us = watch.machine.setup, self.judge.stage.now_us
        end = watch.applied_offset
        if end <= known.end or self.ledger.is_inside_transaction(end):
            known.news_us = known.large_us = None
            return
        if known.news_us is None:
            known.news_us = now_us
        if known.large_us is None and self._between(known.end, end) >= setup.snapshot_every_bytes:
            known.large_us = now_us


def _due_us(known: _Interval, every_ms: int) -> int | None:
    """Return since when, or from when on, the next snapshot is due; None if it is not."""
    due_us = [] if known.large_us is None else [known.large_us]
    if known.news_us is not None and every_ms > 0:
        span_us = every_ms * 1_000_000 // min(known.slowest_permille, 1_000)
        due_us.append(max(known.news_us, known.since_us + span_us))
    return min(due_us, default=None)


class LeaderNamesItself(Signals):
    """The first batch of an epoch leaves the leader in the voter set with its own address."""

    id, name = "S44", "LeaderNamesItself"

    def appended(self, watch: NodeWatch, batch: SeenBatch, before: SeenBatch | None) -> None:
        if not batch.is_control or watch.machine.node is None:
            return
        if not isinstance(watch.quorum.role, Leader) or batch.epoch != watch.quorum.epoch:
            return
        first = next(iter(batch.controls()), None)
        if first is None or not isinstance(first[2], LeaderChangeMessage):
            return
        machine = watch.machine
        found = newest_voters(watch.log)
        if first[2].leader_id != watch.id or found is None:
            return
        for voter in found[0].voters:
            if (voter.voter_id, voter.voter_directory_id) == (watch.id, machine.directory_id):
                hosts = {each.name: each.host for each in voter.endpoints}
                self._check(hosts.get(LISTENER) == machine.host, watch, hosts, machine.host)


UPKEEP: Final = (
    SnapshotHasVotersBelow,
    TransactionIsWhole,
    SnapshotInterval,
    LeaderNamesItself,
)
