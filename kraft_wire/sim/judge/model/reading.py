"""Reads a production replica as a state of the model, with its voter sets kept apart from it.

Which voters are in force follows from the records that were appended, cut and installed; the
replica's own opinion of it is compared with that.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.model import (
    NO_REPLICA,
    ZERO_UUID,
    ElectionState,
    LeaderEpoch,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
)
from kraft_wire.raft.effects import AppendControlRecords, Effect, TruncateLog
from kraft_wire.raft.events import Event, RecordsAppended, SnapshotInstalled
from kraft_wire.raft.ports import LogView, SnapshotView
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from kraft_wire.raft.voters import VoterSet, VoterSetHistory
from kraft_wire.sim.quorum_model.states import Key, Point, Replica, Role, Voters
from kraft_wire.wire.generated.voters_record import VotersRecord
from kraft_wire.wire.message import Message

__all__ = ["LogSeen", "OtherVoters", "Reading", "key_of", "voters_of"]

_ROLES: Final[dict[type, Role]] = {
    Unattached: "unattached",
    Prospective: "prospective",
    Candidate: "candidate",
    Follower: "follower",
    Leader: "leader",
    Resigned: "resigned",
}


class OtherVoters(Exception):
    """A replica has voters in force that do not follow from its log."""


class LogSeen:
    """A replica's log and snapshots as the model reads them; voters as of one moment."""

    __slots__ = ("_is_controller", "_log", "_snapshots", "voters", "voters_offset")

    def __init__(
        self,
        log: LogView,
        snapshots: SnapshotView,
        is_controller: bool,
        voters: Voters,
        voters_offset: int,
    ) -> None:
        self._log, self._snapshots = log, snapshots
        self._is_controller = is_controller
        self.voters, self.voters_offset = voters, voters_offset

    @property
    def start(self) -> int:
        """First offset that the log holds."""
        return self._log.log_start_offset

    @property
    def last(self) -> Point:
        """The log's end, with the epoch of its last record."""
        return Point(self._log.last_epoch, self._log.log_end_offset)

    @property
    def flushed(self) -> int:
        """The content of the disk; a broker that never votes does not wait for its own."""
        log = self._log
        return log.flushed_end_offset if self._is_controller else log.log_end_offset

    @property
    def oldest_snapshot(self) -> Point | None:
        """The oldest snapshot on the disk."""
        found = self._snapshots.earliest_id
        return None if found is None else Point(found.epoch, found.offset)

    @property
    def newest_snapshot(self) -> Point | None:
        """The newest snapshot on the disk."""
        found = self._snapshots.latest_id
        return None if found is None else Point(found.epoch, found.offset)

    def has(self, snapshot: Point) -> bool:
        """Return whether a snapshot is on the disk."""
        wanted = OffsetAndEpoch(Offset(snapshot.offset), LeaderEpoch(snapshot.epoch))
        return self._snapshots.size_bytes(wanted) is not None

    def end_of(self, epoch: int) -> Point:
        """Return the largest known epoch that is at most `epoch`, and where it ends."""
        found = self._log.end_offset_for_epoch(LeaderEpoch(epoch))
        return Point(found.epoch, found.offset)


def key_of(key: ReplicaKey) -> Key:
    """Return a key of the model; the zero id matches any directory."""
    return Key(key.id, 0 if key.directory_id == ZERO_UUID else key.directory_id)


def voters_of(voters: VoterSet) -> Voters:
    """Return the keys of a voter set."""
    return frozenset(key_of(node.key) for node in voters.nodes.values())


class Reading:
    """One replica; `apply_event` before a step is judged, `apply_effects` after it."""

    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum
        self._key = key_of(quorum.config.key)
        self._keys: dict[ReplicaKey, Key] = {}
        self._election, self._voted = quorum.election, _vote_in(quorum.election)
        self._latest: VoterSet | None = None
        self._sets = _sets_of(quorum.voters)
        self._log = self._new_log()
        self._compared: LogSeen | None = None
        self._is_static = quorum.voters.latest_offset is None

    def _new_log(self) -> LogSeen:
        quorum = self._quorum
        offset, voters = self._sets[-1] if self._sets else (-1, frozenset[Key]())
        return LogSeen(quorum.log, quorum.snapshots, quorum.config.is_controller, voters, offset)

    def log(self) -> LogSeen:
        """Return the log with the voters in force."""
        return self._log

    # -- voters ----------------------------------------------------------------------------------

    def apply_event(self, event: Event) -> None:
        """Take over the host's appends and installed snapshots."""
        if isinstance(event, RecordsAppended):
            for record in event.control_records:
                self._appended(record.offset, record.message)
        elif isinstance(event, SnapshotInstalled):
            self._sets = [one for one in self._sets if one[0] < 0 and self._is_static]
            for message in event.control_records:
                self._appended(event.snapshot_id.offset - 1, message)
            self._log = self._new_log()

    def apply_effects(self, effects: list[Effect]) -> None:
        """Take over the replica's appends and truncations, and compare its voters with ours."""
        for effect in effects:
            if isinstance(effect, AppendControlRecords):
                for at, message in enumerate(effect.messages):
                    self._appended(effect.base_offset + at, message)
            elif isinstance(effect, TruncateLog):
                kept = [one for one in self._sets if one[0] < effect.end_offset]
                if len(kept) < len(self._sets):
                    self._sets = kept
                    self._log = self._new_log()
        latest = self._quorum.voters.latest
        if latest is self._latest and self._log is self._compared:
            return
        self._latest, self._compared = latest, self._log
        if self._log.voters != voters_of(latest):
            raise OtherVoters(f"in force {latest}, in the log {self._sets}")

    def _appended(self, offset: int, message: Message) -> None:
        if isinstance(message, VotersRecord):
            ids = [voter.voter_id for voter in message.voters]
            if ids and len(set(ids)) == len(ids) and min(ids) >= 0:
                self._sets.append((offset, voters_of(VoterSet.from_record(message))))
                self._log = self._new_log()

    # -- the state -------------------------------------------------------------------------------

    def state(self) -> Replica:
        """Return the replica as the model sees it now."""
        quorum = self._quorum
        election, role = quorum.election, quorum.role
        if election is not self._election:
            self._election, self._voted = election, _vote_in(election)
        common = (
            self._key,
            self._log,
            election.leader_epoch,
            self._voted,
            election.leader_id,
            _ROLES[type(role)],
            quorum.high_watermark or 0,
            quorum.has_leader_resigned,
        )
        match role:
            case Follower():
                wanted = role.transfer.snapshot_id if role.transfer is not None else None
                point = None if wanted is None else Point(wanted.epoch, wanted.offset)
                leader_high_watermark = role.leader_high_watermark or 0
                return Replica(*common, role.has_fetched, False, leader_high_watermark, point)
            case Leader():
                return Replica(
                    *common,
                    first=role.epoch_start_offset,
                    commits=role.high_watermark or 0,
                    ends=self._ends_of(role),
                )
            case Prospective() | Candidate():
                answers = role.answers.items()
                return Replica(
                    *common,
                    granted=frozenset(voter for voter, is_granted in answers if is_granted),
                    refused=frozenset(voter for voter, is_granted in answers if not is_granted),
                )
            case _:
                return Replica(*common)

    def _ends_of(self, role: Leader) -> frozenset[tuple[Key, int]]:
        keys, found = self._keys, []
        for key, progress in role.progress.items():
            if progress.end_offset is not None:
                known = keys.get(key)
                if known is None:
                    known = keys[key] = key_of(key)
                found.append((known, progress.end_offset))
        return frozenset(found)


def _vote_in(election: ElectionState) -> Key | None:
    if election.voted_id == NO_REPLICA:
        return None
    return key_of(ReplicaKey(election.voted_id, election.voted_directory_id))


def _sets_of(history: VoterSetHistory) -> list[tuple[int, Voters]]:
    """Return the voter sets that a replica starts with, by the offsets of their records."""
    found: list[tuple[int, Voters]] = []
    offset = history.latest_offset
    voters = history.latest
    while offset is not None and offset >= 0:
        found.append((offset, voters_of(voters)))
        voters = history.set_at(offset)
        ends = (Offset(end) for end in range(offset + 1))
        first = next(end for end in ends if history.set_at(end) is voters)
        offset = Offset(first - 1)  # -1: of the formatted disk or the configuration
    return [(-1, voters_of(voters)), *found[::-1]] if voters.nodes else found[::-1]
