"""Invariants of voter sets and their changes.

One small class each; docs/SIMULATION.md explains the ids.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.model import ZERO_UUID, ReplicaKey, uuid_to_text
from kraft_wire.raft.roles import Candidate, Leader, Prospective, Role
from kraft_wire.raft.voters import VoterSet
from kraft_wire.sim.judge.judge import Judge, NodeWatch, Signals
from kraft_wire.sim.judge.log_watch import (
    SeenBatch,
    newest_voters,
)
from kraft_wire.wire.generated.voters_record import VotersRecord
from kraft_wire.wire.records.control_records import ControlRecordType

__all__ = ["AddedVoterCaughtUp", "OneVoterChange", "OnlyVotersCount"]

_NO_DIRECTORY: Final = uuid_to_text(ZERO_UUID)


class OnlyVotersCount(Signals):
    """Only members of the voter set campaign, and a leader was elected by a majority of it."""

    id, name = "S17", "OnlyVotersCount"

    def role(self, watch: NodeWatch, before: Role | None, epoch_before: int) -> None:
        role, quorum = watch.role, watch.quorum
        if isinstance(role, Candidate | Prospective):
            self._check(quorum.is_voter, watch, "campaigns as an observer in epoch", watch.epoch)
        elif isinstance(role, Leader) and role is not before:
            members = [node.key for node in quorum.voters.latest.nodes.values()]
            own = ReplicaKey(quorum.config.key.id, quorum.config.key.directory_id)
            votes = [key for key in members if self._voted(watch.epoch, key, own)]
            facts = "leads epoch", watch.epoch, "by votes of", [key.id for key in votes], "of"
            self._check(2 * len(votes) > len(members), watch, *facts, [key.id for key in members])

    def _voted(self, epoch: int, voter: ReplicaKey, leader: ReplicaKey) -> bool:
        for (at, node_id, directory), (candidate, named) in self.ledger.votes.items():
            is_member = node_id == voter.id and voter.directory_id in (ZERO_UUID, directory)
            if at == epoch and is_member and candidate == leader.id:
                return named in ("", _NO_DIRECTORY, uuid_to_text(leader.directory_id))
        return False


class OneVoterChange(Signals):
    """A voter set applies from its append; at most one change is uncommitted at a time."""

    id, name = "S18", "OneVoterChange"

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self._due: dict[int, bool] = {}

    def after(self, watch: NodeWatch) -> None:
        """The control records on a changed disk must be in use when the event is over."""
        if self._due and self._due.pop(watch.id, False):
            self.voters(watch)

    def cut(self, watch: NodeWatch, offset: int, is_reset: bool) -> None:
        self._due[watch.id] = True

    def voters(self, watch: NodeWatch) -> None:
        expected, offset = _voters_on_disk(self.judge, watch)
        facts = _difference_of_sets(watch.voters, expected)
        self._check(watch.voters == expected, watch, *facts, "at", offset)

    def appended(self, watch: NodeWatch, batch: SeenBatch, before: SeenBatch | None) -> None:
        if not batch.is_control:
            return
        # Non-obvious 21: checked after each control record, though memory has not changed.
        self._due[watch.id] = True
        if not isinstance(watch.role, Leader):
            return
        reached = watch.high_watermark or 0
        changes = [
            one.base_offset
            for one in reversed(watch.log.batches)
            if one.end_offset > reached and one.is_control and _is_lone_voters(one)
        ]
        self._check(len(changes) <= 1, watch, changes, "above", reached)


class AddedVoterCaughtUp(Signals):
    """A voter that a leader adds has caught up once: its disk has the beginning of the epoch."""

    id, name = "S66", "AddedVoterCaughtUp"

    def appended(self, watch: NodeWatch, batch: SeenBatch, before: SeenBatch | None) -> None:
        if watch.machine.node is None or not batch.is_control or not _is_lone_voters(batch):
            return
        role, watches = watch.quorum.role, self.judge.watches
        if not isinstance(role, Leader) or watch.voters is None:
            return
        for _, _, message in batch.controls():
            assert isinstance(message, VotersRecord), message
            for voter in message.voters:
                other = watches.get(voter.voter_id)
                if other is None or voter.voter_id in watch.voters.nodes:
                    continue
                if other.machine.directory_id == voter.voter_directory_id:
                    facts = ("adds", voter.voter_id, "with log end", other.log.end_offset)
                    has_begun = other.log.end_offset > role.epoch_start_offset
                    self._check(has_begun, watch, *facts, "of epoch from", role.epoch_start_offset)


def _voters_on_disk(judge: Judge, watch: NodeWatch) -> tuple[VoterSet, int]:
    """Return the last voter set that a disk speaks of, and where: the dumb twin of the history."""
    found = newest_voters(watch.log)
    if found is None:
        return judge.first_voters, -1
    record, offset = found
    return VoterSet.from_record(record), offset


def _is_lone_voters(batch: SeenBatch) -> bool:
    """Return whether a batch changes membership; beside a LeaderChange it only repeats it."""
    kinds = [kind for _, kind, _ in batch.controls()]
    return kinds == [ControlRecordType.KRAFT_VOTERS]


def _difference_of_sets(obeyed: VoterSet | None, written: VoterSet) -> tuple[object, ...]:
    """Return the applied and the written voters; in full if the ids are the same."""
    ids, wanted = list(obeyed.nodes) if obeyed else [], list(written.nodes)
    if ids == wanted:
        return "obeys", obeyed, "on disk", written
    return "obeys voters", ids, "on disk", wanted
