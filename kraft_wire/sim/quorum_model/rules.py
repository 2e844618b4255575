"""The allowed steps of a replica: one function a message, and `internal` for its own actions.

Each returns the allowed steps; more than one where the KIPs leave a choice. A message may always be
lost, and a timeout may always happen if `Due` allows it: safety never depends on time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kraft_wire.sim.quorum_model.states import (
    NOBODY,
    Answer,
    Append,
    Begin,
    Cut,
    End,
    Fetch,
    Fetched,
    FetchedSnapshot,
    FetchSnapshot,
    Install,
    Key,
    Message,
    Point,
    Replica,
    Role,
    Step,
    Take,
    Vote,
    Voted,
    Voters,
    is_member,
    matches,
)

__all__ = [
    "ANYTHING",
    "Due",
    "begin_change",
    "fetched",
    "installed",
    "internal",
    "may_change_voters",
    "receive",
    "requests",
    "restarted",
    "standing",
]


class Due(NamedTuple):
    """Which timeouts may have passed."""

    fetch: bool = True
    """Of a follower: its leader did not answer."""
    quorum: bool = True
    """Of a leader: no majority has fetched, or it was asked to resign."""


ANYTHING = Due()


# -- roles -----------------------------------------------------------------------------------------


def _enter(r: Replica, role: Role, epoch: int, leader: int) -> Replica:
    """Take a role; a vote is kept for its epoch, the state of the old role is dropped."""
    voted = r.voted if epoch == r.epoch else None
    ended = r.has_ended and epoch == r.epoch
    own = frozenset((r.key.id,)) if role in ("prospective", "candidate") else frozenset[int]()
    return Replica(r.key, r.log, epoch, voted, leader, role, r.watermark, ended, granted=own)


def _under(r: Replica, epoch: int, leader: int) -> Iterator[Replica]:
    """Follow a leader; one whose address is unknown is stored, but not followed."""
    if leader not in (NOBODY, r.key.id):
        yield _enter(r, "follower", epoch, leader)
    yield _enter(r, "unattached", epoch, NOBODY if leader == r.key.id else leader)


def _learn(r: Replica, epoch: int, leader: int) -> Iterator[Replica]:
    """Take epoch and leader from a message: the newest epoch wins, its first leader stays."""
    if epoch > r.epoch:
        yield from _under(r, epoch, leader)
        return
    if epoch == r.epoch and leader not in (NOBODY, r.key.id):
        if r.leader == NOBODY:
            yield from _under(r, epoch, leader)
            return
        if r.leader == leader and r.role in ("unattached", "prospective"):
            yield _enter(r, "follower", epoch, leader)
    yield r


def _answer(r: Replica, target: int) -> Answer:
    return Answer(r.key.id, target, r.epoch, r.leader)


# -- votes: KIP-595, KIP-853, KIP-996 --------------------------------------------------------------


def _on_vote(r: Replica, m: Vote) -> Iterator[Step]:
    if m.epoch > r.epoch:
        r = _enter(r, "unattached", m.epoch, NOBODY)
    is_mine = m.target is None or matches(m.target, r.key)
    is_good = m.epoch == r.epoch and is_mine
    if is_good and m.is_pre:
        granted = _would_elect(r) and m.last >= r.log.last
        if not granted and m.source.id in r.refused:
            # The asker misses the leader as well: its own refusal may be outdated (our rule).
            again = r._replace(refused=r.refused - {m.source.id})
            yield Step(again, Voted(r.key.id, m.source.id, r.epoch, r.leader, True, False))
    else:
        granted = is_good and _grants(r, m)
        if granted and r.voted is None:
            r = _enter(r, r.role, r.epoch, r.leader)._replace(voted=m.source)
    yield Step(r, Voted(r.key.id, m.source.id, r.epoch, r.leader, m.is_pre, granted))


def _grants(r: Replica, m: Vote) -> bool:
    """One vote in an epoch, to a log that is as good, while no leader is known."""
    if r.role not in ("unattached", "prospective"):
        return False
    if r.voted is not None:
        return matches(r.voted, m.source)
    return r.leader == NOBODY and m.last >= r.log.last


def _would_elect(r: Replica) -> bool:
    """Whether it sees a need for an election: the rule for pre-votes, which promise nothing."""
    if r.role == "follower":
        return not r.has_fetched or r.is_overdue  # the second half is ours, not Kafka's
    return r.role != "leader"


def _on_voted(r: Replica, m: Voted) -> Iterator[Step]:
    for now in _learn(r, m.epoch, m.leader):
        asked = "prospective" if m.is_pre else "candidate"
        if now is r and r.role == asked and m.epoch == r.epoch:
            if m.is_granted:
                yield Step(
                    r._replace(granted=r.granted | {m.source}, refused=r.refused - {m.source})
                )
            else:
                yield Step(
                    r._replace(refused=r.refused | {m.source}, granted=r.granted - {m.source})
                )
        yield Step(now)


# -- the leader speaks: KIP-595 --------------------------------------------------------------------


def _on_begin(r: Replica, m: Begin) -> Iterator[Step]:
    for now in _learn(r, m.epoch, m.source):
        yield Step(now, _answer(now, m.source))


def _on_end(r: Replica, m: End) -> Iterator[Step]:
    for now in _learn(r, m.epoch, m.source):
        if (now.epoch, now.leader) == (m.epoch, m.source):
            now = now._replace(has_fetched=False, has_ended=True)
        yield Step(now, _answer(now, m.source))


def _on_answer(r: Replica, m: Answer) -> Iterator[Step]:
    for now in _learn(r, m.epoch, m.leader):
        yield Step(now)


# -- replication: KIP-595, KIP-630 -----------------------------------------------------------------


def _on_fetch(r: Replica, m: Fetch) -> Iterator[Step]:
    if r.role != "leader" or m.epoch != r.epoch:
        yield Step(r, _answer(r, m.source.id))
        return
    diverging, snapshot = _compare(r, m.last)
    if diverging is None and snapshot is None and m.source.id >= 0:
        key = next((voter for voter in r.log.voters if matches(voter, m.source)), m.source)
        others = frozenset(each for each in r.ends if each[0] != key)
        r = r._replace(ends=others | {(key, m.last.offset)})
    yield Step(r, fetched(r, m, diverging, snapshot))


def fetched(r: Replica, m: Fetch, diverging: Point | None, snapshot: Point | None) -> Fetched:
    """Return a leader's answer to a fetch; the caller adds the records."""
    target, at = m.source.id, m.last
    return Fetched(r.key.id, target, r.epoch, r.leader, at, r.commits, diverging, snapshot, None)


def _compare(r: Replica, at: Point) -> tuple[Point | None, Point | None]:
    """Return where the logs diverge, or the snapshot that must be loaded first, or neither."""
    log, oldest = r.log, r.log.oldest_snapshot
    if oldest is not None:
        is_below = at.offset < log.start or at.epoch < oldest.epoch
        is_other = at.offset == log.start and at.epoch != oldest.epoch
        if at.offset == 0 or is_below or is_other:
            return None, log.newest_snapshot
    if at.offset == 0:
        return None, None
    end = log.end_of(at.epoch)
    if oldest is not None and end.offset == oldest.offset and end.epoch > oldest.epoch:
        end = oldest
    is_same = end.epoch == at.epoch and at.offset <= end.offset
    return (None, None) if is_same else (end, None)


def _on_fetched(r: Replica, m: Fetched) -> Iterator[Step]:
    for now in _learn(r, m.epoch, m.leader):
        is_current = now.role == "follower" and (now.epoch, now.leader) == (m.epoch, m.leader)
        if m.epoch <= r.epoch and is_current and m.asked == now.log.last:
            # The leader's earlier messages may arrive after EndQuorumEpoch (our rule).
            is_overdue = now.is_overdue and now.has_ended
            yield _apply_answer(
                now._replace(has_fetched=not now.has_ended, is_overdue=is_overdue), m
            )
        else:
            yield Step(now)


def _apply_answer(r: Replica, m: Fetched) -> Step:
    floor = max(r.watermark, r.log.start)
    if m.diverging is not None:
        at = _cut_point(r, m.diverging)
        is_possible = floor <= at < r.log.last.offset
        return Step(r, None, Cut(at)) if is_possible else Step(r)
    if m.snapshot is not None:
        is_useful = m.snapshot.offset >= floor and m.snapshot != r.log.last
        return Step(r._replace(wanted=m.snapshot)) if is_useful else Step(r)
    r = r._replace(leader_high_watermark=max(r.leader_high_watermark, m.watermark), wanted=None)
    return Step(r, None, Take(m.records) if m.records != () else None)


def _cut_point(r: Replica, diverging: Point) -> int:
    if diverging.epoch == 0:
        return min(diverging.offset, r.log.last.offset)
    own = r.log.end_of(diverging.epoch)
    return min(own.offset, diverging.offset) if own.epoch == diverging.epoch else own.offset


def _on_fetch_snapshot(r: Replica, m: FetchSnapshot) -> Iterator[Step]:
    if r.role != "leader" or m.epoch != r.epoch:
        yield Step(r, _answer(r, m.source.id))
        return
    found = m.snapshot if r.log.has(m.snapshot) else None
    yield Step(r, FetchedSnapshot(r.key.id, m.source.id, r.epoch, r.leader, found, frozenset()))


def _on_fetched_snapshot(r: Replica, m: FetchedSnapshot) -> Iterator[Step]:
    for now in _learn(r, m.epoch, m.leader):
        if now is r and r.role == "follower" and r.wanted is not None and m.epoch == r.epoch:
            without = r._replace(wanted=None, is_overdue=r.is_overdue and r.has_ended)
            if m.snapshot == r.wanted:
                yield Step(without, None, Install(m.snapshot, m.voters))
            yield Step(without)  # gone, or another snapshot than requested
        yield Step(now)


# -- a replica's own actions -----------------------------------------------------------------------


def internal(r: Replica, due: Due = ANYTHING) -> Iterator[Step]:
    """Yield the steps that are possible without a message."""
    if r.role == "leader":
        yield from _lead(r, due)
    elif r.role == "follower":
        yield from _follow(r, due)
    elif r.role in ("prospective", "candidate"):
        yield from _campaign(r)
    else:
        if r.role == "resigned":
            yield Step(_enter(r, "unattached", r.epoch + 1, NOBODY))
        if r.is_voter and (r.role == "unattached" or r.is_only_voter):
            yield Step(_enter(r, "prospective", r.epoch, r.leader))


def _follow(r: Replica, due: Due) -> Iterator[Step]:
    reached = min(r.leader_high_watermark, r.log.last.offset)
    if reached > r.watermark:
        yield Step(r._replace(watermark=reached))
    if r.is_voter and (due.fetch or r.is_only_voter):
        yield Step(_enter(r, "prospective", r.epoch, r.leader))
    if due.fetch and not r.is_voter and not r.is_overdue:
        yield Step(r._replace(is_overdue=True))


def _campaign(r: Replica) -> Iterator[Step]:
    ids = frozenset(voter.id for voter in r.log.voters)
    has_won = len(r.granted & ids) >= r.majority
    if r.role == "prospective":
        if has_won and r.is_voter:
            yield Step(standing(r))
        if not r.is_only_voter:
            for under in _under(r, r.epoch, r.leader):  # refused, or not answered in time
                yield Step(under)
        return
    if has_won and r.is_voter:
        leader = _enter(r, "leader", r.epoch, r.key.id)
        yield Step(leader._replace(first=r.log.last.offset), None, Append())
    if r.is_voter:
        yield Step(_enter(r, "prospective", r.epoch, r.leader))


def standing(r: Replica) -> Replica:
    """Return a prospective replica as a candidate: in a new epoch, with its own vote on disk."""
    return _enter(r, "candidate", r.epoch + 1, NOBODY)._replace(voted=r.key)


def _lead(r: Replica, due: Due) -> Iterator[Step]:
    known = dict(r.ends)
    ends = [
        r.log.flushed if matches(voter, r.key) else known.get(voter, -1) for voter in r.log.voters
    ]
    reached = sorted(ends, reverse=True)[len(ends) // 2]
    if reached > max(r.first, r.commits):
        yield Step(r._replace(commits=reached, watermark=max(r.watermark, reached)))
    is_removed = not r.is_voter and r.log.voters_offset < r.commits
    if is_removed or due.quorum:
        yield Step(_enter(r, "resigned", r.epoch, r.leader))


def installed(r: Replica) -> Replica:
    """Return a replica whose log a snapshot has replaced: all of it is committed."""
    return r._replace(watermark=max(r.watermark, r.log.start))


def restarted(r: Replica) -> Iterator[Replica]:
    """Yield the possible starts of a process on its disk (KIP-595 quorum-state)."""
    r = r._replace(watermark=0, has_ended=False)
    if r.log.last.epoch > r.epoch:
        yield _enter(r, "unattached", r.log.last.epoch, NOBODY)
    elif r.leader == r.key.id:
        yield _enter(r, "resigned", r.epoch, r.leader)
    elif r.leader == NOBODY and r.voted is not None and matches(r.voted, r.key) and r.is_voter:
        yield _enter(r, "candidate", r.epoch, NOBODY)
    else:
        yield from _under(r, r.epoch, r.leader)


# -- what a replica sends, and what a leader appends -----------------------------------------------


def requests(r: Replica, peers: tuple[Key, ...]) -> Iterator[Message]:
    """Yield the possible requests of a replica; `peers` are the nodes that it may fetch from."""
    others = sorted(voter for voter in r.log.voters if voter.id != r.key.id)
    is_on_disk = r.log.flushed == r.log.last.offset
    match r.role:
        case "prospective" | "candidate":
            yield from _votes(r, others, is_on_disk)
        case "leader":
            yield from (Begin(r.key.id, voter.id, r.epoch) for voter in others)
        case "resigned":
            yield from (End(r.key.id, voter.id, r.epoch) for voter in others)
        case "follower" | "unattached":
            if r.wanted is not None:
                yield FetchSnapshot(r.key, r.leader, r.epoch, r.wanted)
            if is_on_disk and (r.wanted is None or r.is_overdue):
                is_looking = r.role == "unattached" or r.is_overdue
                asked = [peer for peer in peers if is_looking or peer.id == r.leader]
                yield from (Fetch(r.key, peer.id, r.epoch, r.log.last) for peer in asked)


def _votes(r: Replica, others: list[Key], is_on_disk: bool) -> Iterator[Vote]:
    """Ask the voters that have not answered. A granted vote is repeated without a check of the log.

    So a candidate's log must not be shorter after loss of power.
    """
    is_pre = r.role == "prospective"
    if is_pre or is_on_disk:
        for voter in others:
            if voter.id not in r.granted | r.refused:
                yield Vote(r.key, voter, r.epoch, r.log.last, is_pre)


def may_change_voters(r: Replica, voters: Voters) -> bool:
    """Return whether a leader may append a voter set: one change, and only after a commit."""
    if r.role != "leader" or r.commits == 0 or not voters:
        return False
    old = r.log.voters
    added = [key for key in voters if not is_member(old, key)]
    removed = [key for key in old if not any(matches(key, other) for other in voters)]
    return r.log.voters_offset < r.commits and len(added) + len(removed) <= 1


def begin_change(r: Replica, voters: Voters) -> Iterator[Step]:
    """Yield the append of a voter set, where one is allowed."""
    if may_change_voters(r, voters):
        yield Step(r, None, Append(voters))


def receive(r: Replica, m: Message) -> Iterator[Step]:
    """Yield the possible results of a message; its loss is always possible too."""
    match m:
        case Vote():
            return _on_vote(r, m)
        case Voted():
            return _on_voted(r, m)
        case Begin():
            return _on_begin(r, m)
        case End():
            return _on_end(r, m)
        case Answer():
            return _on_answer(r, m)
        case Fetch():
            return _on_fetch(r, m)
        case Fetched():
            return _on_fetched(r, m)
        case FetchSnapshot():
            return _on_fetch_snapshot(r, m)
        case FetchedSnapshot():
            return _on_fetched_snapshot(r, m)
