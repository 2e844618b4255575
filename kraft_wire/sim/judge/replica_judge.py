"""The shared base of all judges of brokers' replicas: the truth, the watches, and counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kraft_wire.model import Uuid
from kraft_wire.sim.judge.data_log_watch import DataLogWatch
from kraft_wire.sim.judge.log_watch import LogWatch
from kraft_wire.sim.judge.partition_truth import PartitionTruth, Truth
from kraft_wire.sim.judge.replica_watch import ReplicaWatch
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.setup import ROOT
from kraft_wire.sim.stage import Stage
from kraft_wire.sim.upkeep_topics import rules_of

__all__ = ["ReplicaJudge"]


@dataclass(slots=True)
class ReplicaJudge:
    """Has every replica of every partition, and the truth about it."""

    stage: Stage
    truth: Truth = field(default_factory=Truth)
    watches: dict[int, dict[tuple[Uuid, int], ReplicaWatch]] = field(default_factory=dict)
    """Node -> its replicas."""
    looked: Counter[str] = field(default_factory=Counter)
    """How often each invariant was asked."""
    marks: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Set which logs are cleaned."""
        data = self.stage.setup.data
        self.truth.rules_of = lambda topic: rules_of(topic, data)

    def check(self, invariant: str, holds: bool, watch: ReplicaWatch, *facts: object) -> None:
        """Raise where an invariant does not hold of a replica."""
        self.looked[invariant] += 1
        if not holds:
            raise Violation(invariant, watch.machine.id, watch.truth.name, *facts)

    def watch_of(self, node_id: int, truth: PartitionTruth) -> ReplicaWatch:
        """Return the watch of one replica."""
        found = self.watches.setdefault(node_id, {})
        key = (truth.topic_id, truth.number)
        if key not in found:
            machine = self.stage.machines[node_id]
            kind = LogWatch if truth.rules is None else DataLogWatch
            log = kind(f"{ROOT}/{truth.topic}-{truth.number}")
            roots = self.stage.setup.data.log_directories(ROOT)
            found[key] = ReplicaWatch(machine, truth, log, roots=roots)
        return found[key]

    def is_gone_from_leader(self, truth: PartitionTruth, offset: int) -> bool:
        """Return whether compaction removed every batch before an offset from the leader's log."""
        if truth.rules is None or not truth.rules.is_compacted or truth.leader < 0:
            return False
        log = self.watch_of(truth.leader, truth).log
        is_gone = log.end_offset >= offset and log.batch_before(offset) is None
        self.marks["batch kept that compaction took from the leader"] += is_gone
        return is_gone

    def leads(self, node_id: int, truth: PartitionTruth) -> bool:
        """Return whether a broker is the leader, and knows it: a former one may lack any record."""
        return truth.leader == node_id and truth.leader_epoch == self.epoch_of(node_id, truth)

    def epoch_of(self, node_id: int, truth: PartitionTruth) -> int:
        """Return the leader epoch that a node has now; no answer of its is of an earlier one."""
        return self.watch_of(node_id, truth).state[2]
