"""Invariants of elections in the metadata quorum: leaders and epochs.

One small class each; docs/SIMULATION.md explains the ids.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.model import NO_REPLICA, ZERO_UUID, ReplicaKey, uuid_to_text
from kraft_wire.raft.roles import Leader, Resigned, Role
from kraft_wire.sim.judge.judge import Judge, NodeWatch, Signals
from kraft_wire.sim.judge.log_watch import (
    Election,
    SeenBatch,
)
from kraft_wire.wire.generated.begin_quorum_epoch import BeginQuorumEpochRequest
from kraft_wire.wire.generated.end_quorum_epoch import EndQuorumEpochRequest
from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.generated.vote import PartitionData as AskedVote
from kraft_wire.wire.generated.vote import VoteRequest, VoteResponse
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.control_records import ControlRecordType

__all__ = [
    "EpochMonotone",
    "LeaderChangeFirst",
    "OneVotePerEpoch",
    "SingleLeaderPerEpoch",
    "StaleIsFenced",
    "StaleLeaderResigns",
    "SuccessorsInOrder",
    "epoch_of",
]

_SLACK_US: Final = 200_000
_NO_DIRECTORY: Final = uuid_to_text(ZERO_UUID)


class StaleLeaderResigns(Signals):
    """A leader that hears no majority any more resigns within two check-quorum times.

    The times begin again with another voter set: the last senders may not be voters any more.
    """

    id, name = "L7", "StaleLeaderResigns"

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self._voters: dict[int, tuple[int, ...]] = {}
        """Node -> the voters of its last check."""

    def role(self, watch: NodeWatch, before: Role | None, epoch_before: int) -> None:
        watch.machine.heard_us = self.judge.stage.now_us

    def after(self, watch: NodeWatch) -> None:
        voters, machine = watch.voters, watch.machine
        stage = self.judge.stage
        if voters is None:
            return
        members = tuple(voters.nodes)
        if self._voters.get(watch.id) != members:
            self._voters[watch.id], machine.heard_us = members, stage.now_us
        if len(members) < 2:
            return
        if not isinstance(watch.role, Leader):
            return
        rate = machine.clock.rate_permille
        period_us = machine.setup.fetch_timeout_ms * 1_500_000 // rate
        others = [node for node in voters.nodes if node != watch.id]
        needed = len(voters.nodes) // 2 + 1 - (watch.id in voters.nodes)
        heard = sorted((machine.heard.get(node, 0) for node in others), reverse=True)
        silent_us = stage.now_us - max(machine.heard_us, heard[needed - 1])
        bound_us = 2 * period_us + stage.late_us_max + _SLACK_US
        self._check(silent_us <= bound_us, watch, "leads, heard no majority for", silent_us)


class SingleLeaderPerEpoch(Signals):
    """In one epoch at most one replica leads, and all replicas that name a leader name the same.

    Flipped bits can name any replica, undetected on the wire: then only actual leaders are judged.
    """

    id, name = "S01", "SingleLeaderPerEpoch"

    def role(self, watch: NodeWatch, before: Role | None, epoch_before: int) -> None:
        if watch.leader_id != NO_REPLICA and not self.judge.stage.is_garbled:
            named = self.ledger.named.setdefault(watch.epoch, watch.leader_id)
            self._check(named == watch.leader_id, watch, watch.epoch, named, watch.leader_id)
        if isinstance(watch.role, Leader):
            own = (watch.id, watch.machine.directory_id)
            leader = self.ledger.leaders.setdefault(watch.epoch, own)
            self._check(leader == own, watch, watch.epoch, leader)


class EpochMonotone(Signals):
    """A durable epoch never falls; no message carries an epoch above the durable one."""

    id, name = "S02", "EpochMonotone"

    def election(self, watch: NodeWatch, before: Election | None, now: Election) -> None:
        self._check(before is None or now.epoch >= before.epoch, watch, before, now)

    def role(self, watch: NodeWatch, before: Role | None, epoch_before: int) -> None:
        stored = watch.log.election
        self._check(stored is not None and stored.epoch == watch.epoch, watch, stored, watch.epoch)

    def sent(self, watch: NodeWatch, message: Message, target: int) -> None:
        epoch = epoch_of(message)
        stored = watch.log.election
        if epoch is not None:
            self._check(stored is not None and epoch <= stored.epoch, watch, epoch, stored)
        if isinstance(message, BeginQuorumEpochRequest | EndQuorumEpochRequest):
            # One of an older epoch may have waited for its link; its receiver fences it.
            leads = stored is not None and (epoch != stored.epoch or stored.leader_id == watch.id)
            self._check(leads, watch, "speaks as leader", stored)


class OneVotePerEpoch(Signals):
    """A replica votes for one candidate (id and directory) in an epoch, durably before its answer.

    Answers are judged too: a vote that is granted again leaves no trace on the disk. A candidate
    without a directory, as before KIP-853, is identified by its id. Pre-votes are not recorded.
    """

    id, name = "S03", "OneVotePerEpoch"

    def election(self, watch: NodeWatch, before: Election | None, now: Election) -> None:
        if now.voted_id != NO_REPLICA:
            key = (now.epoch, watch.id, watch.machine.directory_id)
            vote = (now.voted_id, now.voted_directory)
            given = self.ledger.votes.setdefault(key, vote)
            self._check(given == vote, watch, now.epoch, given, vote)

    def sent(self, watch: NodeWatch, message: Message, target: int) -> None:
        if isinstance(message, VoteRequest):
            asked = message.topics[0].partitions[0]
            stored = watch.log.election
            if stored is not None and not asked.pre_vote and asked.replica_epoch == stored.epoch:
                self._check(stored.voted_id == watch.id, watch, "asks before its own vote", stored)
        elif isinstance(message, VoteResponse) and message.topics and watch.vote_asked is not None:
            asked = watch.vote_asked.topics[0].partitions[0]
            answer = message.topics[0].partitions[0]
            if answer.vote_granted and not asked.pre_vote:
                self._check(answer.leader_epoch == asked.replica_epoch, watch, asked, answer)
                self._granted(watch, asked)

    def _granted(self, watch: NodeWatch, asked: AskedVote) -> None:
        key = (asked.replica_epoch, watch.id, watch.machine.directory_id)
        candidate = (asked.replica_id, uuid_to_text(asked.replica_directory_id))
        given = self.ledger.granted.setdefault(key, candidate)
        self._check(_is_same_candidate(given, candidate), watch, "grants", key, given, candidate)
        stored = self.ledger.votes.get(key)
        is_durable = stored is not None and _is_same_candidate(stored, candidate)
        self._check(is_durable, watch, "votes for", candidate, "on its disk is", stored)


class SuccessorsInOrder(Signals):
    """A leader that resigns names each other voter, the one that has fetched most first.

    Replicas with equal fetch offsets are in the order of their ids; silent ones are last.
    """

    id, name = "S65", "SuccessorsInOrder"

    def role(self, watch: NodeWatch, before: Role | None, epoch_before: int) -> None:
        if not isinstance(watch.role, Resigned) or not isinstance(before, Leader):
            return
        named = watch.role.preferred
        places = [(-_end_of(before, key), key.id) for key in named]
        members = set(watch.quorum.voters.latest.nodes) - {watch.id}
        is_right = places == sorted(places) and {key.id for key in named} == members
        self._check(is_right, watch, "names", places, "of", members)


def _end_of(leader: Leader, key: ReplicaKey) -> int:
    progress = leader.progress.get(key)
    return -1 if progress is None or progress.end_offset is None else progress.end_offset


class LeaderChangeFirst(Signals):
    """An epoch begins with LeaderChange; nothing of it is committed before that."""

    id, name = "S19", "LeaderChangeFirst"

    def appended(self, watch: NodeWatch, batch: SeenBatch, before: SeenBatch | None) -> None:
        if before is None or batch.epoch == before.epoch:
            return
        first = next(iter(batch.controls()), None)
        is_change = first is not None and first[1] is ControlRecordType.LEADER_CHANGE
        self._check(is_change and first is not None and first[0] == batch.base_offset, watch, batch)

    def high_watermark(self, watch: NodeWatch, before: int | None, now: int | None) -> None:
        role = watch.quorum.role if watch.machine.node is not None else None
        if isinstance(role, Leader) and role.high_watermark is not None:
            start = role.epoch_start_offset
            self._check(role.high_watermark > start, watch, role.high_watermark, start)


class StaleIsFenced(Signals):
    """A leader appends in its own epoch only, and no replica appends a later epoch."""

    id, name = "S27", "StaleIsFenced"

    def appended(self, watch: NodeWatch, batch: SeenBatch, before: SeenBatch | None) -> None:
        stored = watch.log.election
        if watch.machine.node is not None and stored is not None:
            self._check(batch.epoch <= stored.epoch, watch, batch.identity, stored)


def epoch_of(message: Message) -> int | None:
    """Return the sender's epoch of a message."""
    match message:
        case VoteRequest():
            asked = message.topics[0].partitions[0]
            return None if asked.pre_vote else asked.replica_epoch
        case BeginQuorumEpochRequest() | EndQuorumEpochRequest():
            return message.topics[0].partitions[0].leader_epoch
        case VoteResponse() if message.topics:
            return message.topics[0].partitions[0].leader_epoch
        case FetchRequest() if message.topics:
            return message.topics[0].partitions[0].current_leader_epoch
        case _:
            return None


def _is_same_candidate(voted: tuple[int, str], asker: tuple[int, str]) -> bool:
    """Return whether both candidates are the same: same id and directory."""
    return voted[0] == asker[0] and voted[1] in ("", _NO_DIRECTORY, asker[1])
