"""Judges moves of replicas between the log directories of a broker (KIP-113, KIP-858).

A promotion is noticed when a process has a replica's log in another directory than before. Then the
log in the new directory has what the one in the former had, and the committed metadata had the
replica there before. In the end no copy is left, and the metadata has every log where it is.

Errors: `Violation`. The ids are in docs/SIMULATION.md.
"""

from __future__ import annotations

from typing import Final, cast

from kraft_wire.model import Uuid
from kraft_wire.node.disks.log_store import NodeLogStore
from kraft_wire.sim.judge.log_watch import LogWatch
from kraft_wire.sim.judge.partition_truth import PartitionTruth
from kraft_wire.sim.judge.reduced_batches import facts_of
from kraft_wire.sim.judge.replica_judge import ReplicaJudge
from kraft_wire.sim.judge.replica_places import FUTURE, is_there, names_in
from kraft_wire.sim.judge.replica_watch import ReplicaWatch
from kraft_wire.sim.machine_state import MachineState
from kraft_wire.sim.setup import ROOT, directory_id

__all__ = ["MoveJudge"]

_ONE: Final = "S70 OneLog"
_WHOLE: Final = "S71 MovedWhole"
_TOLD: Final = "S72 PlaceIsTold"


class MoveJudge:
    """Judges the places of all replicas."""

    def __init__(self, judge: ReplicaJudge) -> None:
        self.judge = judge
        self._roots = judge.stage.setup.data.log_directories(ROOT)
        self._wanted: dict[tuple[int, Uuid, int], tuple[str, int]] = {}
        """Broker and partition -> the directory that it must end in, and which assignment that was.
        """
        self._unsure: dict[int, None] = {}
        """Brokers that may yet get an old request."""

    def asked(self, node_id: int, truth: PartitionTruth) -> None:
        """A broker is asked to move a replica: until it answers, any directory is right."""
        self._wanted.pop((node_id, truth.topic_id, truth.number), None)

    def answered(self, node_id: int, truth: PartitionTruth, path: str) -> None:
        """A broker has agreed to move a replica to a directory, or to leave it there."""
        if node_id not in self._unsure:
            self._wanted[node_id, truth.topic_id, truth.number] = (path, truth.assignments)

    def unanswered(self, node_id: int) -> None:
        """A request to a broker was given up, or repeated: it may arrive at any time."""
        self._unsure[node_id] = None
        self.forget(node_id)

    def forget(self, node_id: int) -> None:
        """A broker need not end its moves: a disk was lost or has failed, or a copy was damaged."""
        for key in [each for each in self._wanted if each[0] == node_id]:
            del self._wanted[key]

    def after(self, machine: MachineState) -> None:
        """An event is over: no replica has its log in two directories, unless a disk has failed."""
        assert machine.node is not None, machine.id
        store = cast(NodeLogStore, machine.node.broker.logs)
        if any(each.offline is not None for each in store.log_directories):
            self.forget(machine.id)
            return
        roots = self._roots
        for watch in self.judge.watches.get(machine.id, {}).values():
            partition = watch.partition
            if partition is not None and not partition.offline and not watch.truth.is_deleted:
                name = watch.truth.name
                found = [root for root in roots if is_there(machine.fs, f"{root}/{name}")]
                self.judge.check(_ONE, len(found) < 2, watch, found)

    def moved(self, watch: ReplicaWatch) -> None:
        """A process has a replica's log in another directory than before the event."""
        before, watch.moved_from = watch.moved_from, None
        assert before is not None, watch.truth.name
        self.judge.marks["replica served from another directory"] += 1
        lost = _lost(before, watch)
        facts = (before.directory, before.end_offset, watch.log.directory, watch.log.end_offset)
        self.judge.check(_WHOLE, not lost, watch, *facts, "lost", lost)
        told = self._told(watch)
        if told:
            own = self._id_of(watch.machine, watch.log.directory.rpartition("/")[0])
            self.judge.check(_TOLD, own in told, watch, watch.log.directory, own, "of", told)

    def _told(self, watch: ReplicaWatch) -> list[Uuid]:
        """Return the replica's directory in the committed metadata, and as its broker knows it.

        A late duplicate of an earlier report may have changed it since the broker has read it.
        """
        truth, node = watch.truth, watch.machine.node
        assert node is not None, watch.machine.id
        topic = node.broker.image.topic_by_id(truth.topic_id)
        view = None if topic is None else topic.partitions.get(truth.number)
        found = [_directory_of(truth, watch.machine.id)]
        if view is not None and view.directories and watch.machine.id in view.replicas:
            found.append(view.directories[view.replicas.index(watch.machine.id)])
        return [each for each in found if each is not None]

    def _id_of(self, machine: MachineState, root: str) -> Uuid:
        number = self._roots.index(root)
        return directory_id(machine.id, machine.generation, number)

    # -- the end ---------------------------------------------------------------------------------

    def why_unplaced(self) -> str | None:
        """L13: return a copy that is left, or a log where the metadata does not have it.

        Or one that is not where its broker has agreed to move it last.
        """
        stage = self.judge.stage
        for node_id in stage.setup.brokers:
            machine, roots = stage.machines[node_id], self._roots
            for root in roots:
                copies = [each for each in names_in(machine.fs, root) if each.endswith(FUTURE)]
                if copies:
                    return f"{node_id} has copies in {root}: {copies}"
            for truth in self.judge.truth.existing():
                if node_id in truth.replicas:
                    why = self._why_elsewhere(machine, truth, roots)
                    if why is not None:
                        return f"{node_id} {truth.name}: {why}"
        return None

    def _why_elsewhere(
        self, machine: MachineState, truth: PartitionTruth, roots: tuple[str, ...]
    ) -> str | None:
        found = [root for root in roots if is_there(machine.fs, f"{root}/{truth.name}")]
        if len(found) != 1:
            return f"its log is in {found}"
        key = (machine.id, truth.topic_id, truth.number)
        path, assignment = self._wanted.get(key, (found[0], truth.assignments))
        if path != found[0] and assignment == truth.assignments:
            return f"it is in {found[0]}, and was asked to move to {path}"
        told, own = _directory_of(truth, machine.id), self._id_of(machine, found[0])
        return (
            None if told in (None, own) else f"it is in {found[0]}, the metadata has it in {told!r}"
        )


def _directory_of(truth: PartitionTruth, node_id: int) -> Uuid | None:
    """Return the directory of a replica in the committed metadata, None if that has none."""
    if node_id not in truth.replicas or len(truth.directories) != len(truth.replicas):
        return None
    return truth.directories[truth.replicas.index(node_id)]


def _lost(before: LogWatch, watch: ReplicaWatch) -> list[object]:
    """Return what a log had in its former directory and has not in the new one.

    Of a log that is never cleaned every batch counts. Of another one a record counts if
    it is above the log start and not superseded: the new log may be cleaned in the same event.
    """
    truth, after = watch.truth, watch.log
    if truth.rules is None:
        held = {each.identity: None for each in after.batches}
        return [each.identity for each in before.batches if each.identity not in held]
    offsets = {at: None for batch in after.batches for at in facts_of(batch).records}
    lost: list[object] = []
    for batch in before.batches:
        facts = facts_of(batch)
        if facts.is_control or facts.is_transactional:
            continue
        for offset, record in facts.records.items():
            is_due = truth.rules.is_compacted and truth.is_superseded(record)
            if offset >= watch.hidden_below and offset not in offsets and not is_due:
                lost.append(offset)
    if after.end_offset < before.end_offset:
        lost.append((after.end_offset, before.end_offset))
    return lost
