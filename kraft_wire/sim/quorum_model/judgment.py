"""Invariants of the model, checked at every step of a replica.

`History` holds the past that the invariants need. `Violated` names the invariant.
"""

from __future__ import annotations

from kraft_wire.sim.quorum_model.logs import Disk, Entry, History
from kraft_wire.sim.quorum_model.states import NOBODY, Message, Replica, Voted, is_member, matches

__all__ = ["Violated", "judge_step", "log_conflict"]


class Violated(Exception):
    """An invariant of the model does not hold."""

    def __init__(self, invariant: str, *facts: object) -> None:
        super().__init__(f"{invariant}: {' | '.join(map(str, facts))}")
        self.invariant = invariant


def _check(holds: bool, invariant: str, *facts: object) -> None:
    if not holds:
        raise Violated(invariant, *facts)


def judge_step(r: Replica, after: Replica, answer: Message | None, h: History) -> History:
    """Judge one step of a running replica, and return the history with it."""
    before, now = r.log, after.log
    assert isinstance(before, Disk)
    assert isinstance(now, Disk)
    _check(after.epoch >= r.epoch, "EpochMonotone", r, after)
    if after.epoch == r.epoch:
        _check(r.voted in (None, after.voted), "OneVotePerEpoch", r, after)
        _check(r.leader in (NOBODY, after.leader), "OneLeaderKnown", r, after)
    if isinstance(answer, Voted) and answer.is_granted and not answer.is_pre:
        is_kept = after.voted is not None and after.voted.id == answer.target
        _check(is_kept, "OneVotePerEpoch", after, answer)
    is_in_place = not now.entries or now.entries[-1].offset == now.last.offset - 1
    _check(is_in_place, "LogMatching", r, after)
    _check(after.watermark >= r.watermark, "MonotoneHighWatermark", r, after)
    _check(after.watermark <= now.last.offset, "NoTruncateBelowHighWatermark", r, after)
    if after.role in ("candidate", "prospective"):
        _check(is_member(now.voters, after.key), "OnlyVotersCampaign", after)
    if after.role == "leader" and r.role != "leader":
        h = _elected(after, now, h)
    if after.role == "leader" and len(now.entries) > len(before.entries):
        _judge_voter_change(before, now, after)
    if after.role == "leader" and after.commits > r.commits:
        return _committed(after, now, h)
    if after.watermark > r.watermark:
        _judge_reading(after, now, h)
    return h


def _elected(leader: Replica, disk: Disk, h: History) -> History:
    """One leader in an epoch, and it has all that was committed before."""
    others = [each for each in h.leaders if each[0] == leader.epoch]
    _check(not others, "SingleLeaderPerEpoch", leader, others)
    if leader.epoch > h.committed_in:
        _check(_has(disk, h.committed), "LeaderCompleteness", leader, h.committed)
    return h._replace(leaders=h.leaders | {(leader.epoch, leader.key, h.crashes)})


def _has(disk: Disk, committed: tuple[Entry, ...]) -> bool:
    """Whether a log holds the committed entries that are not in its snapshot."""
    wanted = committed[disk.start :]
    return disk.entries[: len(wanted)] == wanted


def _committed(leader: Replica, disk: Disk, h: History) -> History:
    """A leader's commits follow the earlier ones, and never replace them."""
    _check(_has(disk, h.committed[: leader.commits]), "CommittedIsForever", leader, h.committed)
    if leader.commits <= len(h.committed):
        return h
    known = h.committed[: disk.start]
    committed = known + disk.entries[: leader.commits - disk.start]
    newest = max(h.committed_in, leader.epoch)
    return h._replace(committed=committed, committed_in=newest)


def _judge_reading(r: Replica, disk: Disk, h: History) -> None:
    """Replicas only call committed entries committed."""
    own = disk.entries[: max(0, r.watermark - disk.start)]
    wanted = h.committed[disk.start : r.watermark]
    is_so = r.watermark <= len(h.committed) and own == wanted
    _check(is_so, "CommittedReadOnly", r, h.committed)


def _judge_voter_change(before: Disk, now: Disk, leader: Replica) -> None:
    """One change at a time: sets that follow each other have overlapping majorities."""
    if before.voters == now.voters:
        return
    _check(before.voters_offset < leader.commits, "OneVoterChange", leader)
    added = [key for key in now.voters if not is_member(before.voters, key)]
    removed = [key for key in before.voters if not any(matches(key, one) for one in now.voters)]
    _check(len(added) + len(removed) == 1, "OneVoterChange", leader, added, removed)


def log_conflict(one: Disk, other: Disk) -> int | None:
    """Return an offset before which two logs must be equal but differ; None if they agree."""
    low, high = max(one.start, other.start), min(one.last.offset, other.last.offset)
    for offset in range(high - 1, low - 1, -1):
        ours, theirs = one.entries[offset - one.start], other.entries[offset - other.start]
        if ours.epoch == theirs.epoch:
            first = one.entries[low - one.start : offset - one.start + 1]
            second = other.entries[low - other.start : offset - other.start + 1]
            return None if first == second else offset
    return None
