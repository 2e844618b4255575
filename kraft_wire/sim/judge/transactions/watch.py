"""Judges transactions in the logs and memories of brokers, after every event.

T02: markers agree with a verdict that was committed before. T03: a completion comes after every
marker. T07: the last stable offset. T08 to T11: data of a producer belongs to one transaction that
its partition had joined, and ends with it. T13: a coordinator's memory is its log. T14: epochs of
coordinators do not fall. T15: index and producers' table are what the log says. T17: in the end
nothing is open.

Errors: `Violation`.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, cast

from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC, TRANSACTION_TOPIC
from kraft_wire.broker.partition import Partition
from kraft_wire.model import Uuid
from kraft_wire.sim.disk.file_nodes import FileNode
from kraft_wire.sim.judge.log_watch import SeenBatch
from kraft_wire.sim.judge.partition_truth import PartitionTruth
from kraft_wire.sim.judge.replica_judge import ReplicaJudge
from kraft_wire.sim.judge.replica_watch import ReplicaWatch
from kraft_wire.sim.judge.transactions.id_records import ONGOING, PREPARED, IdFold
from kraft_wire.sim.judge.transactions.id_truth import IdTruth, TransactionVerdict
from kraft_wire.sim.judge.transactions.log_scan import BatchHead, LogScan, head_of
from kraft_wire.sim.judge.transactions.memory import judge_memory
from kraft_wire.sim.judge.transactions.timeouts import TimeoutWatch
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine_state import MachineState
from kraft_wire.storage.log import Log

__all__ = ["TransactionWatch"]

_INDEX_ENTRY: Final = Struct(">hqqqq")
_Key = tuple[Uuid, int]


class TransactionWatch:
    """Has the transactions of every log, and their verdicts."""

    def __init__(self, judge: ReplicaJudge) -> None:
        self.judge = judge
        self.ids = IdTruth(judge.truth)
        self.timeouts = TimeoutWatch(judge, self.ids)
        self.tainted: dict[str, None] = {}
        """Ids whose transactions a late marker of the older protocol has ended."""
        self._placed: dict[tuple[_Key, int, int], None] = {}
        self._fresh: list[tuple[ReplicaWatch, SeenBatch]] = []
        """Appended in this event."""
        self._found: list[tuple[ReplicaWatch, SeenBatch]] = []
        """What new processes have in their logs, and no committed record is known for yet."""
        self._decided: list[tuple[int, int, SeenBatch]] = []
        """Commits in `__transaction_state` in this event: broker, partition and records."""
        self._ends: list[tuple[int, str, BatchHead, int]] = []
        """Committed markers of this event, and the epochs of the data that they end."""
        self._scans: dict[_Key, LogScan] = {}
        """Of committed records."""
        self._replicas: dict[tuple[int, _Key], LogScan] = {}
        self._folds: dict[tuple[int, int], IdFold] = {}
        """Of the logs of coordinators, by node and partition."""
        self._coordinators: dict[_Key, int] = {}
        """Partition of `__transaction_state` -> leader epoch of its newest coordinator."""
        self._stable: dict[tuple[int, _Key], tuple[int, int, int]] = {}
        """Node and partition -> life, leader epoch and last stable offset."""
        self._marked: dict[tuple[_Key, int], int] = {}
        """Partition and producer id -> when its newest marker was committed."""
        self._ended: dict[tuple[_Key, int], tuple[int, SeenBatch]] = {}
        """Partition and producer id -> the transaction that its newest marker has ended, and it."""

    def scan_of(self, truth: PartitionTruth) -> LogScan:
        """Return the committed transactions of a partition."""
        return self._scans.setdefault((truth.topic_id, truth.number), LogScan())

    def leads_ids(self, node_id: int, name: str) -> bool:
        """Return whether a broker leads all of `__transaction_state`, and knows it."""
        truths = self.judge.truth.of_topic(TRANSACTION_TOPIC)
        return all(self.judge.leads(node_id, each) for each in truths)

    def check(self, invariant: str, holds: bool, node_id: int, *facts: object) -> None:
        """Raise where an invariant does not hold."""
        self.judge.looked[invariant] += 1
        if not holds:
            raise Violation(invariant, node_id, *facts)

    # -- events ----------------------------------------------------------------------------------

    def appended(self, watch: ReplicaWatch, batch: SeenBatch) -> None:
        """A batch was found in a log."""
        key = ((watch.truth.topic_id, watch.truth.number), batch.epoch, batch.base_offset)
        if key not in self._placed:
            self._placed[key] = None
            (self._found if watch.is_loading else self._fresh).append((watch, batch))

    def committed(self, truth: PartitionTruth, node_id: int, batch: SeenBatch) -> None:
        """A batch was committed."""
        if truth.topic == TRANSACTION_TOPIC:
            self._decided.append((node_id, truth.number, batch))
            return
        head = head_of(batch)
        if head.producer_id < 0 or head.is_foreign:
            return
        scan = self.scan_of(truth)
        self._judge_committed(truth, node_id, batch, head, scan)
        scan.add(batch)

    def after(self, machine: MachineState) -> None:
        """An event is over: judge its appends and completions.

        In one event a decision may be committed, carried out and completed by one broker alone.
        """
        self.ids.event += 1
        decided, self._decided = self._decided, []
        for node_id, number, batch in decided:
            self.ids.committed(node_id, number, batch)
        fresh, self._fresh = self._take_found() + self._fresh, []
        for watch, batch in fresh:
            head = head_of(batch)
            if head.producer_id >= 0 and not head.is_foreign:
                if head.is_marker:
                    self._judge_marker(watch, batch, head)
                elif head.is_transactional:
                    self._judge_membership(watch, batch, head)
        ends, self._ends = self._ends, []
        for node_id, name, head, epoch in ends:
            ended = self._verdict_of_marker(head)
            is_above = ended is None or ended.is_legacy or head.epoch > epoch
            self.check("T10 EpochsRise", is_above, node_id, name, head, "ends data of", epoch)
        completed, self.ids.completed = self.ids.completed, []
        for verdict in completed:
            self._judge_completed(machine.id, verdict)

    def _take_found(self) -> list[tuple[ReplicaWatch, SeenBatch]]:
        """Return what a process found in its log and can be judged now.

        The former one may have died within the event that committed a verdict and wrote its
        markers, or that added a partition and wrote to it: the record of the coordinator is known
        as committed when its partition has a leader again.
        """
        found, self._found = self._found, []
        judged: list[tuple[ReplicaWatch, SeenBatch]] = []
        for watch, batch in found:
            head, truth = head_of(batch), watch.truth
            if head.producer_id < 0 or head.is_foreign:
                continue
            if self._awaits_record(truth, head):
                self._found.append((watch, batch))
                continue
            judged.append((watch, batch))
            if head.is_marker and truth.is_same(batch, truth.batch_before(batch.end_offset)):
                self._marked[(truth.topic_id, truth.number), head.producer_id] = self.ids.event
        return judged

    def _awaits_record(self, truth: PartitionTruth, head: BatchHead) -> bool:
        """Return whether no committed record of a coordinator speaks of a batch yet."""
        if truth.is_deleted:
            return False
        if head.is_marker:
            return self._awaits_verdict(head, (truth.topic, truth.number))
        joined = self.ids.membership.get((head.producer_id, head.epoch), {})
        return head.is_transactional and (truth.topic, truth.number) not in joined

    def _awaits_verdict(self, head: BatchHead, partition: tuple[str, int]) -> bool:
        """Return whether no known verdict can be that of a marker.

        In the older protocol transactions have the same epoch, so that a later one may be.
        """
        newest = self._verdict_of_marker(head)
        if newest is None or not newest.is_legacy:
            return newest is None
        return not any(
            each.is_commit == head.is_commit and partition in each.partitions
            for each in self.ids.verdicts[head.producer_id]
            if each.marker_epoch == head.epoch
        )

    def replica_changed(self, watch: ReplicaWatch, partition: Partition) -> None:
        """A replica's log, high watermark or leader epoch is another one."""
        truth = watch.truth
        if truth.topic == TRANSACTION_TOPIC:
            self._note_move(watch, partition)
            fold = self._folds.setdefault((watch.machine.id, truth.number), IdFold())
            judge_memory(self.judge, watch, partition, fold)
        elif truth.rules is None or truth.topic == OFFSETS_TOPIC:
            self._look_at_replica(watch, partition)

    def _note_move(self, watch: ReplicaWatch, partition: Partition) -> None:
        """Count coordinators that begin with decided transactions in their log."""
        marks, truth = self.judge.marks, watch.truth
        marks["transactional id expired"] = self.ids.expired
        marks["epochs exhausted"] = self.ids.exhausted
        key, epoch = (truth.topic_id, truth.number), partition.leader_epoch
        if partition.is_leader and epoch > self._coordinators.get(key, -1):
            is_move, self._coordinators[key] = key in self._coordinators, epoch
            is_decided = any(each.state in PREPARED for each in self.ids.ids.values())
            marks["coordinator moved with a decision"] += is_move and is_decided

    # -- committed logs --------------------------------------------------------------------------

    def _judge_committed(
        self,
        truth: PartitionTruth,
        node_id: int,
        batch: SeenBatch,
        head: BatchHead,
        scan: LogScan,
    ) -> None:
        facts = (truth.name, batch.identity, (head.producer_id, head.epoch))
        epoch, coordinator_epoch = scan.epochs.get(head.producer_id, (-1, -1))
        self.check("T10 EpochsRise", head.epoch >= epoch, node_id, *facts, "after", epoch)
        own = scan.open.get(head.producer_id)
        if not head.is_marker:
            is_one = own is None or own.epoch == head.epoch
            self.check("T08 OneOpen", is_one, node_id, *facts, "in", own and own.epoch)
            floor = self.ids.floors.get(head.producer_id, -1)
            self.check("T11 FencedIsFenced", head.epoch >= floor, node_id, *facts, "below", floor)
            return
        is_newer = head.coordinator_epoch >= coordinator_epoch
        self.check("T14 OneCoordinator", is_newer, node_id, *facts, "after", coordinator_epoch)
        self._marked[(truth.topic_id, truth.number), head.producer_id] = self.ids.event + 1
        if own is not None:
            self._ends.append((node_id, truth.name, head, own.epoch))

    def _judge_completed(self, node_id: int, verdict: TransactionVerdict) -> None:
        """T03: a completed transaction has a committed marker on every partition of it."""
        for truth in verdict.truths:
            if truth.is_deleted:
                continue
            key = ((truth.topic_id, truth.number), verdict.producer_id)
            is_marked = self._marked.get(key, -1) >= verdict.event
            facts = (verdict.transactional_id, verdict.producer_id, verdict.marker_epoch)
            self.check("T03 AtomicInTheEnd", is_marked, node_id, *facts, "no marker in", truth.name)

    # -- logs as they are written ----------------------------------------------------------------

    def _verdict_of_marker(self, head: BatchHead) -> TransactionVerdict | None:
        found = self.ids.verdicts.get(head.producer_id, ())
        return next((each for each in reversed(found) if each.marker_epoch == head.epoch), None)

    def _judge_marker(self, watch: ReplicaWatch, batch: SeenBatch, head: BatchHead) -> None:
        """T02: a marker agrees with the verdict of its epoch, which was committed before."""
        truth = watch.truth
        if truth.is_deleted:
            return
        verdict = self._verdict_of_marker(head)
        key = ((truth.topic_id, truth.number), head.producer_id)
        if verdict is not None and verdict.is_legacy:
            self._look_for_late_marker(verdict, head, (truth.topic, truth.number))
        if verdict is None or verdict.transactional_id not in self.tainted:
            is_named = verdict is not None and (truth.topic, truth.number) in verdict.partitions
            agrees = is_named and verdict is not None and verdict.is_commit == head.is_commit
            facts = (truth.name, batch.identity, head, "of", verdict)
            self.check("T02 MarkersAgree", agrees, watch.machine.id, *facts)
        assert verdict is not None, head
        marks = self.judge.marks
        marks["marker written"] += 1
        marks["marker written again"] += self._ended.get(key, (0,))[0] == verdict.instance
        self._ended[key] = verdict.instance, batch

    def _look_for_late_marker(
        self, verdict: TransactionVerdict, head: BatchHead, partition: tuple[str, int]
    ) -> None:
        """A late marker of the older protocol may end a later transaction.

        It may also come without an open transaction, to a partition that the newest transaction
        lacks.
        """
        name = verdict.transactional_id
        record = self.ids.ids.get(name)
        is_open = record is not None and record.state == ONGOING
        same = record is not None and record.producer == (head.producer_id, head.epoch)
        is_other = verdict.is_commit != head.is_commit or partition not in verdict.partitions
        if (is_open and same) or is_other:
            found = self.ids.verdicts.get(head.producer_id, ())
            older = [e for e in found if e.marker_epoch == head.epoch and e.is_legacy]
            if any(e.is_commit == head.is_commit and partition in e.partitions for e in older):
                self.judge.marks["late marker of the older protocol"] += 1
                self.tainted[name] = None

    def _judge_membership(self, watch: ReplicaWatch, batch: SeenBatch, head: BatchHead) -> None:
        """T09: the partition was added to this transaction before, and not only to the ended one.

        A leader that does not know its replacement may continue with an ended transaction, and so
        may one whose election has lost the marker, which was not committed.
        """
        truth = watch.truth
        owner = self.ids.owners.get(head.producer_id)
        if truth.is_deleted or owner in self.tainted:
            return
        key = ((truth.topic_id, truth.number), head.producer_id)
        joined = self.ids.membership.get((head.producer_id, head.epoch), {})
        instance = joined.get((truth.topic, truth.number), 0)
        ended, marker = self._ended.get(key, (0, None))
        is_replaced = truth.leader_epoch > batch.epoch
        is_member = instance > ended or (
            instance > 0 and (is_replaced or _is_lost(truth, marker, batch.epoch))
        )
        facts = (truth.name, batch.identity, head, "joined", instance, "ended", ended)
        self.check("T09 MembershipFirst", is_member, watch.machine.id, *facts)

    # -- replicas --------------------------------------------------------------------------------

    def _look_at_replica(self, watch: ReplicaWatch, partition: Partition) -> None:
        """T07, T15: of each replica, in memory and on the disk."""
        machine, log = watch.machine, cast(Log, partition.log)
        key = (machine.id, (watch.truth.topic_id, watch.truth.number))
        scan = self._replicas.setdefault(key, LogScan())
        scan.follow(watch.log.batches)
        if not scan.open and not scan.ended:
            return
        stable, high_watermark = log.last_stable_offset, log.high_watermark
        wanted = max(scan.last_stable_offset(high_watermark), log.log_start_offset)
        facts = (watch.truth.name, stable, "not", wanted, "committed to", high_watermark)
        self.check("T07 LastStableOffset", stable == wanted, machine.id, *facts)
        self.judge.marks["last stable offset held back"] += stable < high_watermark
        state = (machine.life, partition.leader_epoch)
        before = self._stable.get(key)
        if partition.is_leader and before is not None and before[:2] == state:
            self.check("T07 LastStableOffset", stable >= before[2], machine.id, *facts, before)
        self._stable[key] = (*state, stable)
        self._judge_producers(watch, log, scan)
        if watch.truth.rules is None:
            self._judge_index(watch, log, scan)

    def _judge_producers(self, watch: ReplicaWatch, log: Log, scan: LogScan) -> None:
        """T15: the producers' table has the open transactions and epochs of the log."""
        found = {
            each.producer_id: each.transaction_first_offset
            for each in log.producer_states.active_producers()
            if each.transaction_first_offset is not None
        }
        wanted = {each.producer_id: each.first_offset for each in scan.open.values()}
        node_id = watch.machine.id
        facts = (watch.truth.name, "open", found, "not", wanted)
        self.check("T15 ProducersAreTheLog", found == wanted, node_id, *facts)
        for transaction in scan.open.values():
            entry = log.producer_states.get(transaction.producer_id)
            assert entry is not None, transaction
            epochs = (entry.producer_epoch, entry.coordinator_epoch)
            own = scan.epochs[transaction.producer_id]
            shown = (watch.truth.name, transaction.producer_id, epochs, "not", own)
            self.check("T15 ProducersAreTheLog", epochs == own, node_id, *shown)

    def _judge_index(self, watch: ReplicaWatch, log: Log, scan: LogScan) -> None:
        """T15: the indexes have the aborted transactions of the log, in the order of markers.

        A segment that is sealed or was not read again is judged by its file.
        """
        entries = []
        for segment in log.segments:
            indexes = segment.indexes
            if indexes.is_loaded:
                entries += [tuple(each) for each in indexes._transactions.entries]
            else:
                entries += self._index_on_disk(watch, indexes.paths[-1])
        wanted = [
            (each.producer_id, each.first_offset, each.marker_offset, each.stable_offset)
            for each in scan.ended
            if not each.is_commit
        ]
        is_same = entries == wanted
        facts = (watch.truth.name, entries[-3:], "not", wanted[-3:], len(entries), len(wanted))
        self.check("T15 IndexIsTheLog", is_same, watch.machine.id, *facts)

    def _index_on_disk(self, watch: ReplicaWatch, path: str) -> list[tuple[int, ...]]:
        node = watch.machine.fs.look(path)
        data = bytes(node.content) if isinstance(node, FileNode) else b""
        return [fields[1:] for fields in _INDEX_ENTRY.iter_unpack(data)]

    # -- the end ---------------------------------------------------------------------------------

    def why_open(self) -> str | None:
        """T17: return what is still open, or against T02 or T09 there, None for nothing."""
        for watch, batch in self._found:
            if watch.holds(batch):
                return f"{watch.truth.name} has what no record allows: {head_of(batch)}"
        for name, record in self.ids.ids.items():
            if record.state in (ONGOING, *PREPARED):
                return f"{name} is in state {record.state} as {record.producer}"
        for truth in self.judge.truth.existing():
            is_open = self.scan_of(truth).open if truth.topic != TRANSACTION_TOPIC else {}
            if is_open:
                return f"{truth.name} has {[*is_open]} open"
        return None


def _is_lost(truth: PartitionTruth, marker: SeenBatch | None, leader_epoch: int) -> bool:
    """Return whether a later leader lacks a marker, because it was not committed."""
    if marker is None or marker.epoch >= leader_epoch:
        return False
    return not truth.is_same(marker, truth.batch_before(marker.end_offset))
