"""Looks at the replicas of every broker after every event, from outside.

Of each replica it keeps what the node said last (end, high watermark, leader epoch) and its own
reading of the raw segments. Where one of them moved, the truth (`partition_truth`) is asked: a new
leader has what is committed; what it commits is in the logs of the whole ISR, and of as many
replicas as `min.insync.replicas` says; nobody else knows of more, or of other bytes. What clients
were told is held against the same truth.

Errors: `Violation`. The ids stand in docs/SIMULATION.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.partition import Partition
from kraft_wire.model import Uuid
from kraft_wire.sim.judge import Violation
from kraft_wire.sim.log_watch import LogChanges, LogWatch, SeenBatch
from kraft_wire.sim.partition_truth import PartitionTruth, Truth
from kraft_wire.sim.setup import ROOT

if TYPE_CHECKING:
    from kraft_wire.sim.machine import Machine
    from kraft_wire.sim.world import World

__all__ = ["DataJudge", "ReplicaWatch"]

_NOTHING: Final = (0, 0, -1, False)


@dataclass(slots=True, eq=False)
class ReplicaWatch:
    """What the judge saw last of one replica."""

    machine: Machine
    truth: PartitionTruth
    log: LogWatch
    state: tuple[int, int, int, bool] = _NOTHING
    """End, high watermark, leader epoch, whether it leads: as the node has it in memory."""
    led_epoch: int = -1
    partition: Partition | None = None
    """What the node has it in; another one once it was taken away and given back."""

    @property
    def high_watermark(self) -> int:
        """What the node called committed last."""
        return self.state[1]

    @property
    def is_of_lost_history(self) -> bool:
        """Whether it still follows a leader from before an unclean election."""
        return self.state[2] < self.truth.unclean_epoch or not self.truth.is_cut

    def forget(self) -> None:
        """Begin anew: another process has it, or another log."""
        self.log = LogWatch(self.log.directory)
        self.state, self.led_epoch, self.partition = _NOTHING, -1, None

    def look(self) -> LogChanges:
        """Read what is new on the disk."""
        return self.log.look(self.machine.fs)

    def holds(self, batch: SeenBatch) -> bool:
        """Tell whether a batch stands in the log, as the disk is now."""
        if not self.log.is_unchanged(self.machine.fs):
            self.look()
        own = self.log.batch_before(batch.end_offset)
        return own is not None and own.identity == batch.identity


@dataclass(slots=True)
class DataJudge:
    """Sees what changed on brokers, and asks what depends on it."""

    world: World
    truth: Truth = field(default_factory=Truth)
    watches: dict[int, dict[tuple[Uuid, int], ReplicaWatch]] = field(default_factory=dict)
    """Node -> its replicas."""
    looked: Counter[str] = field(default_factory=Counter)
    """How often each invariant was asked."""
    marks: Counter[str] = field(default_factory=Counter)
    has_canary: bool = False
    """Whether it also holds, falsely, that nothing is ever committed."""

    def _check(self, invariant: str, holds: bool, watch: ReplicaWatch, *facts: object) -> None:
        self.looked[invariant] += 1
        if not holds:
            raise Violation(invariant, watch.machine.id, watch.truth.name, *facts)

    def watch_of(self, node_id: int, truth: PartitionTruth) -> ReplicaWatch:
        """Return the watch of one replica."""
        found = self.watches.setdefault(node_id, {})
        key = (truth.topic_id, truth.number)
        if key not in found:
            machine = self.world.machines[node_id]
            log = LogWatch(f"{ROOT}/{truth.topic}-{truth.number}")
            found[key] = ReplicaWatch(machine, truth, log)
        return found[key]

    def leads(self, node_id: int, truth: PartitionTruth) -> bool:
        """Tell whether a broker is the leader, and knows it: a former one may lack anything."""
        epoch = self.watch_of(node_id, truth).state[2]
        return truth.leader == node_id and truth.leader_epoch == epoch

    # -- events ----------------------------------------------------------------------------------

    def after(self, machine: Machine, event: str) -> bool:
        """A broker has taken an event; tell whether a replica is another one now."""
        node = machine.node
        if node is None:
            return False
        is_other = False
        watches = self.watches.setdefault(machine.id, {})
        for partition in node.broker.partitions.values():
            log = partition.log
            watch = watches.get((partition.topic_id, partition.partition))
            if partition.offline or log is None:
                continue
            now = (
                log.log_end_offset,
                log.high_watermark,
                partition.leader_epoch,
                partition.is_leader,
            )
            if watch is not None and watch.state == now:
                continue
            is_other = True
            self._changed(machine, partition, now)
        if event == "receive":
            self._look_at_sessions(machine)
        return is_other

    def metadata_committed(self, batch: SeenBatch) -> None:
        """A batch of the metadata log was committed."""
        truth = self.truth
        truth.metadata_committed(batch)
        while truth.unclean:
            self._led_uncleanly(truth.unclean.pop())
        for partition in truth.existing():
            self.looked["S23 IsrSound"] += 1
            if not set(partition.isr) <= set(partition.replicas):
                facts = (partition.name, partition.isr, "of", partition.replicas)
                raise Violation("S23 IsrSound", partition.leader, *facts)

    def _led_uncleanly(self, truth: PartitionTruth) -> None:
        """Only whom an operator asked for may lead without what is committed, in some plans."""
        if not self.world.setup.data.may_elect_uncleanly:
            facts = (truth.name, "is led uncleanly, in epoch", truth.leader_epoch)
            raise Violation("S06 LeaderCompleteness", truth.leader, *facts)
        self.marks["unclean election"] += 1
        truth.unclean_epoch, truth.is_cut = truth.leader_epoch, False

    def stopped(self, machine: Machine) -> None:
        """A process is gone, perhaps with what was not synced: the next one reads everything."""
        for watch in self.watches.get(machine.id, {}).values():
            watch.forget()

    def _look_at_sessions(self, machine: Machine) -> None:
        assert machine.node is not None, machine.id
        cache, settings = machine.node.broker.fetch_sessions, self.world.setup.data
        self.looked["S25 BoundedMemory"] += 1
        if cache.sessions_count > settings.sessions:
            facts = ("fetch sessions", cache.sessions_count, "of", settings.sessions)
            raise Violation("S25 BoundedMemory", machine.id, *facts)

    # -- replicas --------------------------------------------------------------------------------

    def _changed(
        self, machine: Machine, partition: Partition, now: tuple[int, int, int, bool]
    ) -> None:
        truth = self.truth.partitions.get((partition.topic_id, partition.partition))
        if truth is None:
            name = partition.topic_partition
            raise Violation("S26 CommittedReadOnly", machine.id, name, "is in no metadata")
        if truth.is_deleted:
            return
        watch = self.watch_of(machine.id, truth)
        if watch.partition is not partition:
            watch.forget()
            watch.partition = partition
        before, watch.state = watch.state, now
        self._look_at_log(watch, before)
        end, high_watermark, epoch, is_leader = now
        facts = (end, "on disk", watch.log.end_offset)
        self._check("S12 OffsetContiguity", end == watch.log.end_offset, watch, *facts)
        if is_leader and epoch != watch.led_epoch:
            watch.led_epoch = epoch
            self._began(watch, epoch)
        if high_watermark != before[1]:
            self._look_at_watermark(watch, before[1], high_watermark)

    def _look_at_log(self, watch: ReplicaWatch, before: tuple[int, int, int, bool]) -> None:
        """Ask about what was appended and cut since the last look."""
        truth, changes = watch.truth, watch.look()
        is_forgiven = truth.unclean_epoch >= 0
        if changes.truncated_to is not None:
            self.marks["replica truncated"] += 1
            kept = changes.truncated_to >= before[1] or is_forgiven
            facts = (changes.truncated_to, "below", before[1])
            self._check("S08 NoTruncateBelowHighWatermark", kept, watch, *facts)
        at = len(watch.log.batches) - len(changes.appended)
        last = watch.log.batches[at - 1] if at > 0 else None
        for batch in changes.appended:
            end = watch.log.start_offset if last is None else last.end_offset
            place = (batch.identity, "behind", last and last.identity)
            is_next = batch.base_offset == end and (last is None or batch.epoch >= last.epoch)
            self._check("S12 OffsetContiguity", is_next, watch, *place)
            known = truth.placed.setdefault((batch.epoch, batch.base_offset), batch.crc)
            self._check("S07 LogMatching", known == batch.crc, watch, batch.identity, known)
            last = batch

    def _began(self, watch: ReplicaWatch, epoch: int) -> None:
        """A leader epoch began on a broker: it is the one elected, and has what is committed."""
        truth, node_id = watch.truth, watch.machine.id
        elected = truth.leaders.get(epoch)
        self._check("S01 SingleLeaderPerEpoch", elected == node_id, watch, epoch, elected)
        if not truth.is_cut and epoch >= truth.unclean_epoch:
            truth.take_back(watch.log)
        if epoch < truth.unclean_epoch or epoch < truth.leader_epoch:
            return  # it leads behind the others' backs, and others decide
        last = truth.batch_before(truth.end)
        has_all = last is None or watch.holds(last)
        facts = ("leads epoch", epoch, "to", watch.log.end_offset, "committed to", truth.end)
        self._check("S06 LeaderCompleteness", has_all, watch, *facts)

    # -- what is committed -----------------------------------------------------------------------

    def _look_at_watermark(self, watch: ReplicaWatch, before: int, now: int) -> None:
        truth = watch.truth
        if watch.is_of_lost_history:
            return
        is_forgiven = truth.unclean_epoch >= 0
        if is_forgiven and not watch.state[3]:
            return  # it may still have what was lost, and is about to be cut
        if self.has_canary:
            self._check("S00 Canary", now == 0, watch, "committed up to", now)
        self._check("S04 MonotoneHighWatermark", now >= before or is_forgiven, watch, before, now)
        if now > truth.end:
            leads = watch.state[3]
            self._check("S26 CommittedReadOnly", leads, watch, now, "beyond", truth.end)
            self._commit(watch, now)
        if now > watch.log.start_offset:
            own, committed = watch.log.batch_before(now), truth.batch_before(now)
            same = own is not None and committed is not None and own.identity == committed.identity
            facts = (now, own and own.identity, committed and committed.identity)
            self._check("S09 CommittedIsForever", same, watch, *facts)

    def _commit(self, watch: ReplicaWatch, end: int) -> None:
        """Take what a leader calls committed for committed, where the others have it."""
        truth, log = watch.truth, watch.log
        while truth.end < end:
            batch = log.batch_before(truth.end + 1)
            if batch is None or batch.base_offset != truth.end or batch.end_offset > end:
                self._check("S09 CommittedIsForever", False, watch, "lacks", truth.end, "of", end)
            assert batch is not None, end
            self._held_by_isr(watch, batch)
            truth.commit(batch, watch.machine.id)
            self.truth.group_records(truth, batch)

    def _held_by_isr(self, watch: ReplicaWatch, batch: SeenBatch) -> None:
        """S23: the whole ISR of the metadata has it, and as many replicas as were promised."""
        truth, machines = watch.truth, self.world.machines
        for member in truth.isr:
            other = self.watch_of(member, truth)
            has_it = other.holds(batch) or machines[member].generation > 0
            missing = (batch.identity, "is not at", member, "of", truth.isr, truth.leader_epoch)
            self._check("S23 IsrSound", has_it, watch, *missing)
            if self.world.setup.data.flushes:
                end = other.log.durable_end
                is_durable = end >= batch.end_offset or machines[member].generation > 0
                reached = (batch.identity, "is on the disk of", member, "up to", end)
                self._check("S23 IsrDurable", is_durable, watch, *reached)
        promised = min(self.world.setup.data.min_isr, len(truth.replicas))
        if any(each.generation > 0 for each in machines.values()):
            return
        brokers = self.world.setup.brokers
        holding = [each for each in brokers if self.watch_of(each, truth).holds(batch)]
        facts = (batch.identity, "is held by", holding, "promised", promised)
        self._check("S23 MinIsr", len(holding) >= promised, watch, *facts)

    # -- the end ---------------------------------------------------------------------------------

    def compare_everything(self) -> int:
        """Compare the bytes of all replicas up to their high watermarks; return how many logs."""
        count = 0
        for truth in self.truth.existing():
            for node_id in truth.replicas:
                watch = self.watch_of(node_id, truth)
                watch.look()
                for own, committed in zip(watch.log.batches, truth.batches, strict=False):
                    same = own.identity == committed.identity and own.data == committed.data
                    self._check("S09 CommittedIsForever", same, watch, own.identity)
                whole = watch.log.end_offset >= truth.end
                self._check("S10 AckedIsCommitted", whole, watch, watch.log.end_offset, truth.end)
                count += 1
        return count
