"""A leader's work besides answers: its epoch's first record, progress, high watermark, end.

KIP-595: LeaderChange as the first record of an epoch, commitment by majority, check-quorum;
KIP-853: KRaftVersion and KRaftVoters in the same batch where they are due.
"""

from typing import Final

from kraft_wire.model import Offset, ReplicaId, ReplicaKey
from kraft_wire.raft.effects import (
    AppendControlRecords,
    AppendRecords,
    AppendRefused,
    FlushLog,
    LeadershipEstablished,
)
from kraft_wire.raft.events import AppendRequested
from kraft_wire.raft.high_watermark import next_high_watermark
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Candidate, Leader, ReplicaProgress
from kraft_wire.raft.voters import VoterSet
from kraft_wire.wire.generated.kraft_version_record import KRaftVersionRecord
from kraft_wire.wire.generated.leader_change_message import LeaderChangeMessage, Voter
from kraft_wire.wire.message import Message

__all__ = [
    "append_control_records",
    "append_records",
    "begin_leader_epoch",
    "count_fetch",
    "durable_ends",
    "forget_silent_observers",
    "note_contact",
    "quorum_check_needs",
    "resign",
    "update_high_watermark",
]

_REPLICAS_MAX: Final = 10_000
"""Replicas whose progress a leader remembers: more than a cluster has."""


def begin_leader_epoch(quorum: Quorum, now_ms: int) -> None:
    """Make a candidate that won the leader, and append the first record of its epoch."""
    assert isinstance(quorum.role, Candidate), quorum.role
    voters = quorum.voters.latest
    granted = [voter for voter, yes in quorum.role.answers.items() if yes]
    assert len(granted) >= voters.majority(), (granted, voters)
    quorum.become_leader(now_ms)
    messages: list[Message] = [
        LeaderChangeMessage(
            version=0,
            leader_id=quorum.config.key.id,
            voters=[Voter(voter_id=voter) for voter in voters.nodes],
            granting_voters=[Voter(voter_id=voter) for voter in sorted(granted)],
        )
    ]
    level = quorum.voters.kraft_version
    updated = _voters_to_announce(quorum)
    if updated is not None:
        messages += [KRaftVersionRecord(version=0, kraft_version=level), updated.to_record()]
    append_control_records(quorum, messages, now_ms)
    if updated is not None:
        end = Offset(quorum.log.log_end_offset + len(messages))
        quorum.voters.appended_version(Offset(end - 2), level)
        quorum.voters.appended_voters(Offset(end - 1), updated)


def _voters_to_announce(quorum: Quorum) -> VoterSet | None:
    """Return the voter set that this epoch's first batch must contain, None if none is due.

    It is due from kraft.version 1 on, if the set comes from the formatted checkpoint or differs
    from the leader's own configuration.
    """
    if quorum.voters.kraft_version == 0:
        return None
    own = quorum.config.as_voter()
    known = quorum.voters.latest.nodes.get(own.key.id)
    assert known is not None, own
    if known == own and not quorum.voters.is_bootstrap:
        return None
    return quorum.voters.latest.with_updated(own)


def append_control_records(quorum: Quorum, messages: list[Message], now_ms: int) -> Offset:
    """Append control records as one batch, and return the offset of the first."""
    assert isinstance(quorum.role, Leader), quorum.role
    assert not quorum.log_is_changing, "one append in a step"
    base_offset = quorum.log.log_end_offset
    quorum.effects.append(AppendControlRecords(base_offset, quorum.epoch, tuple(messages)))
    _appended(quorum, Offset(base_offset + len(messages)), now_ms)
    return base_offset


def append_records(quorum: Quorum, event: AppendRequested, now_ms: int) -> None:
    """Append the state machine's records, or refuse if this replica does not lead that epoch."""
    assert not quorum.log_is_changing, "one append in a step"
    leads = isinstance(quorum.role, Leader) and event.leader_epoch == quorum.epoch
    if not leads or not event.values:
        quorum.effects.append(AppendRefused(event.ticket))
        return
    base_offset = quorum.log.log_end_offset
    quorum.effects.append(AppendRecords(event.ticket, base_offset, quorum.epoch, event.values))
    _appended(quorum, Offset(base_offset + len(event.values)), now_ms)


def _appended(quorum: Quorum, log_end_offset: Offset, now_ms: int) -> None:
    """Send appended records to parked fetches, and flush them meanwhile.

    Replication may be ahead of the leader's disk: the leader counts only its flushed records for
    the high watermark.
    """
    assert log_end_offset > quorum.log.log_end_offset, log_end_offset
    quorum.log_is_changing = True
    count = log_end_offset - quorum.log.log_end_offset
    quorum.metrics.appended(log_end_offset, count, now_ms)
    quorum.woken += quorum.parked.take_behind(log_end_offset)
    quorum.effects.append(FlushLog())


def count_fetch(
    quorum: Quorum, leader: Leader, key: ReplicaKey, fetch_offset: Offset, now_ms: int
) -> None:
    """Record a valid fetch as the replica's durable end, for commitment and for check-quorum."""
    assert fetch_offset <= quorum.log.log_end_offset, (key, fetch_offset)
    log_end_offset = quorum.log.log_end_offset
    key = _key_in_force(quorum, key)
    progress = leader.progress.get(key)
    if progress is None:
        _make_room(quorum, leader)
        progress = leader.progress[key] = ReplicaProgress(key)
    if progress.end_offset is not None and fetch_offset < progress.end_offset:
        quorum.ignored.count(Ignored.FETCH_OFFSET_FELL)  # a lost disk must be allowed to return
    if fetch_offset >= log_end_offset:
        progress.last_caught_up_ms = now_ms
    elif fetch_offset >= progress.leader_end_at_last_fetch >= 0:
        progress.last_caught_up_ms = progress.last_fetch_ms
    progress.end_offset = fetch_offset
    progress.last_fetch_ms = now_ms
    progress.leader_end_at_last_fetch = log_end_offset
    if quorum.voters.latest.is_voter(key):
        leader.endorsements[key.id] = True
        note_contact(quorum, leader, key, now_ms)
        update_high_watermark(quorum, leader, now_ms)


def _make_room(quorum: Quorum, leader: Leader) -> None:
    """Drop the oldest observer if there are too many: its next fetch adds it again.

    Any peer that can connect may fetch, as any replica and from any directory.
    """
    if len(leader.progress) < _REPLICAS_MAX:
        return
    voters = quorum.voters.latest
    observers = (key for key in leader.progress if not voters.is_voter(key))
    first = next(observers, None)
    if first is not None:
        del leader.progress[first]
    assert len(leader.progress) <= max(_REPLICAS_MAX, len(voters)), len(leader.progress)


def _key_in_force(quorum: Quorum, key: ReplicaKey) -> ReplicaKey:
    """Return a voter's key as the set has it: a static set has no directories."""
    voters = quorum.voters.latest
    found = voters.nodes[key.id].key if voters.is_voter(key) else key
    assert found.id == key.id, (found, key)
    return found


def note_contact(quorum: Quorum, leader: Leader, key: ReplicaKey, now_ms: int) -> None:
    """Extend the leadership once a majority has fetched; observers do not count."""
    if not quorum.voters.latest.is_voter(key) or key.id == quorum.config.key.id:
        return
    leader.heard_since_check[key.id] = True
    voters = quorum.voters.latest.nodes
    heard = [voter for voter in leader.heard_since_check if voter in voters]
    assert heard, "at least the voter that just responded"
    if len(heard) >= quorum_check_needs(quorum):
        leader.heard_since_check = {}
        timeout_ms = quorum.config.timing.check_quorum_timeout_ms
        leader.check_quorum_deadline_ms = now_ms + timeout_ms


def quorum_check_needs(quorum: Quorum) -> int:
    """Return how many others must fetch; 0 for the only voter, whose leadership never expires.

    A leader that is being removed is not a member and needs a whole majority of the others.
    """
    needed = quorum.voters.latest.majority() - quorum.is_voter
    assert needed >= 0, needed
    return needed


def durable_ends(quorum: Quorum, leader: Leader) -> list[Offset | None]:
    """Return the durable end of each voter of the set in force, None before its first fetch."""
    ends: list[Offset | None] = []
    for node in quorum.voters.latest.nodes.values():
        if node.key.id == quorum.config.key.id and quorum.is_voter:
            ends.append(quorum.log.flushed_end_offset)
        else:
            progress = leader.progress.get(node.key)
            ends.append(progress.end_offset if progress is not None else None)
    assert len(ends) == len(quorum.voters.latest), ends
    return ends


def update_high_watermark(quorum: Quorum, leader: Leader, now_ms: int) -> None:
    """Advance the high watermark by the voters' progress, and wake parked fetches."""
    current = leader.high_watermark
    ends = durable_ends(quorum, leader)
    reached = next_high_watermark(current, ends, leader.epoch_start_offset)
    if reached is None or reached == current:
        return
    assert reached > leader.epoch_start_offset, (reached, leader.epoch_start_offset)
    assert reached <= quorum.log.log_end_offset, (reached, quorum.log.log_end_offset)
    leader.high_watermark = reached
    quorum.metrics.committed(reached, now_ms)
    quorum.raise_high_watermark(reached)
    if current is None:
        established = LeadershipEstablished(quorum.epoch, leader.epoch_start_offset)
        quorum.effects.append(established)
    quorum.woken += quorum.parked.take_all()


def resign(quorum: Quorum, leader: Leader, now_ms: int) -> None:
    """Resign and name the successors, the one with the longest log first."""
    own_id = quorum.config.key.id
    others = [node.key for node in quorum.voters.latest.nodes.values() if node.key.id != own_id]

    def lag(key: ReplicaKey) -> tuple[int, ReplicaId]:
        progress = leader.progress.get(key)
        end = progress.end_offset if progress is not None else None
        return (-end if end is not None else 1, key.id)

    preferred = sorted(others, key=lag)
    assert len(preferred) == len(others)
    quorum.become_resigned(preferred, now_ms)


def forget_silent_observers(quorum: Quorum, leader: Leader, now_ms: int) -> None:
    """Drop the progress of observers that have not fetched for minutes."""
    oldest_ms = now_ms - quorum.config.timing.observer_forgotten_ms
    voters = quorum.voters.latest
    for key, progress in list(leader.progress.items()):
        assert progress.last_fetch_ms is not None, progress
        if progress.last_fetch_ms <= oldest_ms and not voters.is_voter(key):
            del leader.progress[key]
