"""Looks at the replicas of every broker after every event, from outside.

For each replica it keeps the node's last state (end, high watermark, leader epoch) and its own
reading of the raw segments. After a change it compares them with the truth (`partition_truth`): a
new leader has all committed records. What it commits is in the logs of the whole ISR, and of at
least `min.insync.replicas` replicas. No other replica commits more, or other bytes. The answers of
clients are compared with the same truth.

Errors: `Violation`. The ids are in docs/SIMULATION.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, cast

from kraft_wire.broker.partition import Partition
from kraft_wire.sim.judge.coordinator_replay import CoordinatorReplayJudge
from kraft_wire.sim.judge.epoch_starts import EpochStarts
from kraft_wire.sim.judge.group_epochs import GroupEpochs
from kraft_wire.sim.judge.group_memory import judge_group_memory
from kraft_wire.sim.judge.isr_watch import IsrWatch
from kraft_wire.sim.judge.log_watch import SeenBatch
from kraft_wire.sim.judge.move_judge import MoveJudge
from kraft_wire.sim.judge.partition_truth import PartitionTruth
from kraft_wire.sim.judge.replica_judge import ReplicaJudge
from kraft_wire.sim.judge.replica_watch import ReplicaWatch
from kraft_wire.sim.judge.session_watch import judge_follower
from kraft_wire.sim.judge.transactions.watch import TransactionWatch
from kraft_wire.sim.judge.upkeep_judge import UpkeepJudge
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine_state import MachineState
from kraft_wire.storage.log import Log

__all__ = ["DataJudge"]

_TICKS_OF_RECOUNT: Final = 32
"""A recount of memory costs as much as a tick, and an error in it stays."""
_TICKS_OF_REPLAY: Final = 8
"""Only logs that have grown are replayed, and a difference stays until its key is written again."""


@dataclass(slots=True)
class DataJudge(ReplicaJudge):
    """Notices changes on brokers, and runs the checks that depend on them."""

    has_canary: bool = False
    """Whether it also holds, falsely, that nothing is ever committed."""
    upkeep: UpkeepJudge | None = None
    """Judges compaction and retention, where the plan has any."""
    transactions: TransactionWatch | None = None
    """Judges transactions, where the plan has any."""
    groups: GroupEpochs | None = None
    """Judges consumer and streams groups, where the plan has any."""
    moves: MoveJudge | None = None
    """Judges where replicas are, where the brokers have several log directories."""
    isr_watch: IsrWatch = field(init=False)
    """Judges how long a replica that does not fetch stays in an ISR."""
    epoch_starts: EpochStarts = field(init=False)
    """Compares the leader epochs of replicas."""
    coordinators: CoordinatorReplayJudge = field(init=False)
    """Compares the state of coordinators with their logs."""
    ticks_count: int = 0
    """Timers of brokers that have fired."""

    def __post_init__(self) -> None:
        """Judge the upkeep of logs too, if the plan has it."""
        ReplicaJudge.__post_init__(self)
        self.isr_watch = IsrWatch(self)
        self.epoch_starts = EpochStarts(self)
        if self.stage.setup.data.upkeep:
            self.upkeep = UpkeepJudge(self)
        if self.stage.setup.data.transactors:
            self.transactions = TransactionWatch(self)
        data = self.stage.setup.data
        self.coordinators = CoordinatorReplayJudge(may_refuse=data.min_isr > 1)
        if data.directories > 1:
            self.moves = MoveJudge(self)
        if data.consumer_members or data.streams_members:
            self.groups = GroupEpochs(self.looked)

    # -- events ----------------------------------------------------------------------------------

    def after(self, machine: MachineState, event: str) -> bool:
        """A broker has handled an event; return whether a replica has changed."""
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
            if watch is not None and watch.state == now and not self._has_moved(watch, partition):
                continue
            is_other = True
            self._changed(machine, partition, now)
        self._beside_replicas(machine, event, is_other)
        return is_other

    def _beside_replicas(self, machine: MachineState, event: str, is_other: bool) -> None:
        """Look at what is judged after each event; `is_other`: whether a replica has changed."""
        if self.transactions is not None and is_other:
            self.transactions.after(machine)
        if self.upkeep is not None:
            self.upkeep.after(machine, event)
        if self.moves is not None:
            self.moves.after(machine)
        if event == "receive":
            self._look_at_sessions(machine)
            judge_follower(machine, self.stage.machines)
        elif event == "tick":
            self.isr_watch.after(machine)
            self.ticks_count += 1
            if self.ticks_count % _TICKS_OF_RECOUNT == 0:
                self.looked["S25 BoundedMemory"] += judge_group_memory(machine)
            if self.ticks_count % _TICKS_OF_REPLAY == 0:
                self.looked["S75 StateIsTheLog"] += self.coordinators.after(machine)
            if self.transactions is not None:
                self.transactions.timeouts.after(machine)

    def _has_moved(self, watch: ReplicaWatch, partition: Partition) -> bool:
        """Return whether a replica's log is in another log directory than at the last look."""
        log = cast(Log, partition.log)
        return self.moves is not None and log.directory != watch.log.directory

    def metadata_committed(self, batch: SeenBatch) -> None:
        """A batch of the metadata log was committed."""
        truth = self.truth
        truth.metadata_committed(batch)
        while truth.unclean:
            self._led_uncleanly(truth.unclean.pop())
        for partition in truth.existing():
            self._look_at_isr(partition)

    def _look_at_isr(self, truth: PartitionTruth) -> None:
        """Check an ISR: it has replicas only, the leader, and a fenced broker only alone."""
        self.looked["S23 IsrSound"] += 1
        fenced = [each for each in truth.isr if self.truth.fenced.get(each, True)]
        facts = (truth.name, "leader", truth.leader, "ISR", truth.isr, "of", truth.replicas)
        is_led = truth.leader in truth.isr and truth.leader not in fenced
        if (
            not set(truth.isr) <= set(truth.replicas)
            or not (truth.leader < 0 or is_led)
            or (fenced and len(truth.isr) > 1)
        ):
            raise Violation("S23 IsrSound", truth.leader, *facts, "fenced", fenced)

    def _led_uncleanly(self, truth: PartitionTruth) -> None:
        """Only a leader that an operator requests may lack committed records, in some plans."""
        if not self.stage.setup.data.may_elect_uncleanly:
            facts = (truth.name, "is led uncleanly, in epoch", truth.leader_epoch)
            raise Violation("S06 LeaderCompleteness", truth.leader, *facts)
        self.marks["unclean election"] += 1
        truth.led_uncleanly()

    def about_to_die(self, machine: MachineState) -> None:
        """A process dies in the middle of an event: its upkeep until now counts."""
        if self.upkeep is not None and machine.node is not None:
            self.upkeep.about_to_die(machine)

    def stopped(self, machine: MachineState) -> None:
        """A process is gone, perhaps with unsynced changes: the next one reads everything."""
        for watch in self.watches.get(machine.id, {}).values():
            watch.forget()

    def wiped(self, machine: MachineState) -> None:
        """A broker's disk was replaced: the ISRs still count it until they know."""
        self.stopped(machine)
        if self.moves is not None:
            self.moves.forget(machine.id)
        for truth in self.truth.existing():
            if machine.id in truth.isr:
                truth.wiped = (*truth.wiped, machine.id)

    def copy_given_up(self, machine: MachineState) -> None:
        """A broker has set a damaged copy of a replica aside, or dropped it."""
        if self.moves is not None:
            self.moves.forget(machine.id)

    def _look_at_sessions(self, machine: MachineState) -> None:
        assert machine.node is not None, machine.id
        cache, settings = machine.node.broker.fetch_sessions, self.stage.setup.data
        self.looked["S25 BoundedMemory"] += 1
        if cache.sessions_count > settings.sessions:
            facts = ("fetch sessions", cache.sessions_count, "of", settings.sessions)
            raise Violation("S25 BoundedMemory", machine.id, *facts)

    # -- replicas --------------------------------------------------------------------------------

    def _changed(
        self, machine: MachineState, partition: Partition, now: tuple[int, int, int, bool]
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
        was_empty = not watch.log.batches
        self._look_at_log(watch, before)
        watch.is_loading = False
        end, high_watermark, epoch, is_leader = now
        facts = (end, "on disk", watch.log.end_offset)
        self.check("S12 OffsetContiguity", end == watch.log.end_offset, watch, *facts)
        led_epoch = epoch if is_leader else watch.led_between(before[2], epoch)
        if led_epoch >= 0 and led_epoch != watch.led_epoch:
            watch.led_epoch = led_epoch
            self._began(watch, led_epoch)
        # A follower that restarts at its leader's log start may begin again at the base of the
        # batch that holds it, as in Kafka: a log without a batch has nothing to keep.
        if high_watermark != before[1] and not (was_empty and not watch.log.batches):
            led_before = before[3] and watch.led_epoch == before[2]
            has_led = not is_leader and (led_before or led_epoch >= 0)
            self._look_at_watermark(watch, before[1], high_watermark, has_led)
        self.epoch_starts.changed(watch, partition)
        if self.transactions is not None:
            self.transactions.replica_changed(watch, partition)

    def _look_at_log(self, watch: ReplicaWatch, before: tuple[int, int, int, bool]) -> None:
        """Check the appends and truncations since the last look."""
        truth, changes = watch.truth, watch.look()
        watch.truncated_to = -1 if changes.truncated_to is None else changes.truncated_to
        if self.moves is not None and watch.moved_from is not None:
            self.moves.moved(watch)
        if changes.truncated_to is not None:
            self.marks["replica truncated"] += 1
            owed = min(before[1], truth.kept_until(watch.committed_epoch))
            kept = changes.truncated_to >= owed
            facts = (changes.truncated_to, "below", owed, "of", before[1])
            self.check("S08 NoTruncateBelowHighWatermark", kept, watch, *facts)
        at = len(watch.log.batches) - len(changes.appended)
        last = watch.log.batches[at - 1] if at > 0 else None
        for batch in changes.appended:
            end = watch.log.start_offset if last is None else last.end_offset
            place = (batch.identity, "behind", last and last.identity)
            is_next = batch.base_offset == end
            if truth.rules is not None and (truth.rules.is_compacted or last is None):
                is_next = batch.end_offset > end  # the log start may lie within the first one
            is_next &= last is None or batch.epoch >= last.epoch
            self.check("S12 OffsetContiguity", is_next, watch, *place)
            self.check("S07 LogMatching", truth.is_as_placed(batch), watch, batch.identity)
            if self.upkeep is not None:
                self.upkeep.appended(watch, batch)
            if self.transactions is not None:
                self.transactions.appended(watch, batch)
            last = batch

    def _began(self, watch: ReplicaWatch, epoch: int) -> None:
        """A leader epoch began on a broker: it was elected, and has all committed records."""
        truth, node_id = watch.truth, watch.machine.id
        elected = truth.leaders.get(epoch)
        self.check("S01 SingleLeaderPerEpoch", elected == node_id, watch, epoch, elected)
        if not truth.is_cut and epoch >= truth.unclean_epoch:
            truth.take_back(watch.log)
            self._commit(watch, watch.state[1], is_found=True)
        if epoch < truth.unclean_epoch or epoch < truth.leader_epoch:
            return  # it leads behind the others' backs, and others decide
        last = truth.batch_before(truth.end)
        has_all = last is None or watch.has_reached(last)
        facts = ("leads epoch", epoch, "to", watch.log.end_offset, "committed to", truth.end)
        self.check("S06 LeaderCompleteness", has_all, watch, *facts)

    # -- what is committed -----------------------------------------------------------------------

    def _look_at_watermark(self, watch: ReplicaWatch, before: int, now: int, has_led: bool) -> None:
        """`has_led`: whether it led until this event, in which it may have committed again."""
        truth, leads = watch.truth, watch.state[3] or has_led
        if self.has_canary:
            self.check("S00 Canary", now == 0, watch, "committed up to", now)
        owed = min(before, truth.kept_until(watch.committed_epoch))
        # A log that is truncated behind a gap of compaction ends before the gap.
        is_behind_gap = now == watch.state[0] and watch.truncated_to >= owed
        self.check("S04 MonotoneHighWatermark", now >= owed or is_behind_gap, watch, before, now)
        own = watch.log.batch_before(now) if now else None
        watch.committed_epoch = -1 if own is None else own.epoch
        epoch = watch.led_epoch if has_led else self._said_in(watch, before, now, own)
        if own is not None and now > truth.kept_until(epoch):
            return  # it has records that an unclean election lost, and will truncate them
        if now > truth.end:
            self.check("S26 CommittedReadOnly", leads, watch, now, "beyond", truth.end)
            self._commit(watch, now)
        if now > max(watch.log.start_offset, watch.hidden_below):
            committed = truth.batch_before(now)
            same = truth.is_same(own, committed)
            if own is None and truth.rules is not None:
                same = True  # it was taken out, as the judge of rewritten segments has seen
            same = same or self.is_gone_from_leader(truth, now)
            facts = (now, own and own.identity, committed and committed.identity)
            self.check("S09 CommittedIsForever", same, watch, *facts)

    def _said_in(self, watch: ReplicaWatch, before: int, now: int, own: SeenBatch | None) -> int:
        """Return the leader epoch in which a node calls records committed.

        A leader, or a replica whose high watermark grows, is in its own epoch. A replica that has
        just read its disk, or begins to truncate its log, may follow the new leader and still have
        the state of its last batch's epoch.
        """
        is_new = watch.state[3] or now > before > 0
        return watch.state[2] if is_new or own is None else own.epoch

    def _commit(self, watch: ReplicaWatch, end: int, *, is_found: bool = False) -> None:
        """Accept a leader's committed records, if the others have them.

        `is_found`: whether they came with an unclean election, which may restore records that an
        earlier one lost; the others had them once.
        """
        truth = watch.truth
        while truth.end < end:
            batch = watch.batch_from(truth.end)
            if batch is None or batch.end_offset > end:
                self.check("S09 CommittedIsForever", False, watch, "lacks", truth.end, "of", end)
            assert batch is not None, end
            if not is_found:
                self._held_by_isr(watch, batch)
            truth.commit(batch, watch.machine.id)
            self.truth.group_records(truth, batch)
            if self.transactions is not None:
                self.transactions.committed(truth, watch.machine.id, batch)
            if self.groups is not None:
                self.groups.committed(truth, watch.machine.id, batch)

    def _held_by_isr(self, watch: ReplicaWatch, batch: SeenBatch) -> None:
        """S23: the whole ISR of the metadata has it, and as many replicas as were promised.

        A replica whose disk was lost counts as having it; no other exception is made.
        """
        truth = watch.truth
        for member in truth.isr:
            other = self.watch_of(member, truth)
            has_it = other is watch or other.holds(batch)
            if member in truth.wiped:
                if has_it:
                    truth.wiped = tuple(each for each in truth.wiped if each != member)
                continue
            missing = (batch.identity, "is not at", member, "of", truth.isr, truth.leader_epoch)
            self.check("S23 IsrSound", has_it, watch, *missing)
            if self.stage.setup.data.flushes:
                end = other.log.durable_end
                reached = (batch.identity, "is on the disk of", member, "up to", end)
                self.check("S23 IsrDurable", end >= batch.end_offset, watch, *reached)
        promised = min(self.stage.setup.data.min_isr, len(truth.replicas))
        brokers = self.stage.setup.brokers
        holding = [
            each
            for each in brokers
            if each in (watch.machine.id, *truth.wiped) or self.watch_of(each, truth).holds(batch)
        ]
        facts = (batch.identity, "is held by", holding, "promised", promised)
        self.check("S23 MinIsr", len(holding) >= promised, watch, *facts)

    # -- the end ---------------------------------------------------------------------------------

    def compare_everything(self) -> int:
        """Compare the bytes of all replicas up to their high watermarks; return how many logs."""
        count = 0
        for truth in self.truth.existing():
            for node_id in truth.replicas:
                watch = self.watch_of(node_id, truth)
                watch.look()
                if truth.rules is not None and self.upkeep is not None:
                    self.upkeep.compare(watch)
                    count += 1
                    continue
                for own, committed in zip(watch.log.batches, truth.batches, strict=False):
                    same = own.identity == committed.identity and own.data == committed.data
                    self.check("S09 CommittedIsForever", same, watch, own.identity)
                whole = watch.log.end_offset >= truth.end
                self.check("S10 AckedIsCommitted", whole, watch, watch.log.end_offset, truth.end)
                count += 1
        return count
