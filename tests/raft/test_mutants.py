"""Deliberate bugs of RELIABILITY's catalogue, each found by the seeds under the same judge.

A mutant is a patch of the core; it counts as found when a seed breaks an invariant or one of the
core's own asserts. The seeds are tried in order until one does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kraft_wire.model import NO_REPLICA, ElectionState, Offset, ReplicaKey
from kraft_wire.raft import following, leading, replica, voter_changes
from kraft_wire.raft.effects import LeadershipEstablished, SendRequest
from kraft_wire.raft.high_watermark import next_high_watermark
from kraft_wire.raft.peers import Connection, Peers
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Follower, Leader, Prospective, Role, Unattached
from kraft_wire.raft.rpc import add_raft_voter, fetch, remove_raft_voter, vote
from kraft_wire.raft.transitions import Trigger
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.raft import swarm
from tests.raft.swarm import Day

Patch = pytest.MonkeyPatch
MUTANTS: dict[str, Callable[[Patch], None]] = {}
SEEDS_MAX = 40
EVENTS = 1_200


def mutant(change: Callable[[Patch], None]) -> Callable[[Patch], None]:
    MUTANTS[change.__name__] = change
    return change


@mutant
def m02_leader_resumes_its_epoch_after_a_restart(patch: Patch) -> None:
    real = Quorum._first_role

    def first_role(self: Quorum) -> Role:
        if self.election.leader_id == self.config.key.id:
            return Leader(self.log.log_end_offset, self.now_ms + 500, self.now_ms)
        return real(self)

    patch.setattr(Quorum, "_first_role", first_role)


@mutant
def m03_high_watermark_shown_before_the_own_epoch_is_committed(patch: Patch) -> None:
    def next_one(current, ends, start):  # type: ignore[no-untyped-def]  # as the real one
        return next_high_watermark(current, ends, Offset(max(0, start - 1)))

    patch.setattr(leading, "next_high_watermark", next_one)


@mutant
def m05_lower_fetch_offset_is_an_error(patch: Patch) -> None:
    real = leading.count_fetch

    def count(quorum: Quorum, leader: Leader, key: ReplicaKey, offset: Offset) -> None:
        known = leader.progress.get(key)
        assert known is None or (known.end_offset or 0) <= offset, "went back"
        real(quorum, leader, key, offset)

    patch.setattr(fetch, "count_fetch", count)


@mutant
def m06_leader_change_stands_at_offset_zero(patch: Patch) -> None:
    real = leading.AppendControlRecords
    patch.setattr(leading, "AppendControlRecords", lambda at, e, m: real(Offset(0), e, m))


@mutant
def m17_leader_counts_although_it_is_no_voter(patch: Patch) -> None:
    real = leading.durable_ends

    def ends(quorum: Quorum, leader: Leader) -> list[Offset | None]:
        found = real(quorum, leader)
        return found if quorum.is_voter else [*found[1:], quorum.log.flushed_end_offset]

    patch.setattr(leading, "durable_ends", ends)


@mutant
def m18_observer_campaigns(patch: Patch) -> None:
    patch.setattr(Quorum, "is_voter", property(lambda self: self.config.is_controller))


@mutant
def m20_leadership_announced_before_its_first_record_is_committed(patch: Patch) -> None:
    real = leading.append_control_records

    def append(quorum: Quorum, messages):  # type: ignore[no-untyped-def]  # as the real one
        quorum.effects.append(LeadershipEstablished(quorum.epoch, quorum.log.log_end_offset))
        return real(quorum, messages)

    patch.setattr(leading, "append_control_records", append)


@mutant
def m37_vote_forgotten_over_a_restart(patch: Patch) -> None:
    real = Quorum.restore

    def restore(self: Quorum, stored: ElectionState | None) -> None:
        if stored is not None and stored.voted_id != self.config.key.id:
            stored = replace(stored, voted_id=NO_REPLICA, voted_directory_id=bytes(16))
        real(self, stored)

    patch.setattr(Quorum, "restore", restore)


@mutant
def m38_vote_given_but_not_written_down(patch: Patch) -> None:
    real = Quorum.become_unattached_voted

    def voted(self: Quorum, asker: ReplicaKey) -> None:
        count = len(self.effects)
        real(self, asker)
        del self.effects[count:]

    patch.setattr(Quorum, "become_unattached_voted", voted)


@mutant
def m38b_candidate_asks_before_its_own_vote_is_written_down(patch: Patch) -> None:
    real = Quorum.become_candidate

    def candidate(self: Quorum, trigger: Trigger) -> None:
        count = len(self.effects)
        real(self, trigger)
        del self.effects[count:]

    patch.setattr(Quorum, "become_candidate", candidate)


@mutant
def m39_vote_without_a_look_at_the_log(patch: Patch) -> None:
    patch.setattr(vote, "is_up_to_date", lambda asker, own: True)


@mutant
def m40_two_votes_in_one_epoch(patch: Patch) -> None:
    def grants(role: Role, election: ElectionState, asker: ReplicaKey, good: bool) -> bool:
        return isinstance(role, Unattached | Prospective) and good and election.leader_id < 0

    patch.setattr(vote, "grants_vote", grants)


@mutant
def m41_high_watermark_one_below_a_majority(patch: Patch) -> None:
    def next_one(current, ends, start):  # type: ignore[no-untyped-def]  # as the real one
        known = sorted((-1 if end is None else end for end in ends), reverse=True)
        reached = known[max(0, len(known) // 2 - 1)]
        return reached if reached > start and reached > (current or 0) else current

    patch.setattr(leading, "next_high_watermark", next_one)


@mutant
def m42_high_watermark_beyond_the_own_log(patch: Patch) -> None:
    def raised(quorum: Quorum, role: Follower) -> None:
        if role.leader_high_watermark is not None:
            quorum.raise_high_watermark(role.leader_high_watermark)

    for module in (following, replica):
        patch.setattr(module, "raise_to_leaders", raised)


@mutant
def m43_late_and_doubled_answers_obeyed(patch: Patch) -> None:
    sent_once: dict[tuple[Peers, int], SendRequest] = {}
    real = Peers.send

    def send(self: Peers, *given):  # type: ignore[no-untyped-def]  # as the real one
        sent = real(self, *given)
        sent_once[self, sent.request_id] = sent
        return sent

    def answered(self: Peers, request_id: int) -> SendRequest | None:
        sent = sent_once.get((self, request_id))
        if sent is not None:
            self._connections[sent.node_id] = Connection()
        return sent

    patch.setattr(Peers, "send", send)
    patch.setattr(Peers, "take_answered", answered)
    patch.setattr(fetch, "_asks_for_end", lambda quorum, request: True)


@mutant
def m44_vote_compares_length_before_epoch(patch: Patch) -> None:
    patch.setattr(vote, "is_up_to_date", lambda a, b: (a.offset, a.epoch) >= (b.offset, b.epoch))


@mutant
def m50a_two_voter_changes_at_a_time(patch: Patch) -> None:
    for module in (add_raft_voter, remove_raft_voter):
        for name in ("start_error", "uncommitted_error"):
            patch.setattr(module, name, lambda quorum, leader: ErrorCode.NONE)


@mutant
def m50b_voter_set_counts_from_its_commit(patch: Patch) -> None:
    patch.setattr(replica, "obey_control_records", lambda quorum, records: None)


@mutant
def m50c_change_before_anything_of_the_epoch_is_committed(patch: Patch) -> None:
    def start(quorum: Quorum, leader: Leader) -> ErrorCode:
        pending = leader.pending_change is not None
        return ErrorCode.REQUEST_TIMED_OUT if pending else ErrorCode.NONE

    for module in (voter_changes, add_raft_voter, remove_raft_voter):
        patch.setattr(module, "start_error", start)


STORMS = ("m37", "m43", "m44")
"""Mutants that only show where elections never end."""

FIRST = {"m02": 2, "m05": 27, "m17": 52, "m43": 53, "m44": 11, "m50a": 27, "m50c": 27}
"""Where to look first, so that a run is short; without it the same seeds are found, later."""


def seeds_needed(name: str) -> int | None:
    """The number of seeds until one breaks, None where none does."""
    kind = name.split("_")[0]
    first = FIRST.get(kind, 0)
    for tried, seed in enumerate(range(first, first + SEEDS_MAX), 1):
        try:
            Day(seed, EVENTS, storm=kind in STORMS).run()
        except (AssertionError, LookupError):
            return tried
    return None


@pytest.mark.parametrize("name", MUTANTS)
def test_seeds_find_the_mutant(name: str, monkeypatch: Patch) -> None:
    monkeypatch.setattr(swarm, "HEALED_MS", 3_000)
    MUTANTS[name](monkeypatch)
    assert seeds_needed(name) is not None, f"{name} survives {SEEDS_MAX} seeds"


@pytest.mark.parametrize("seed", range(6))
def test_storm_without_a_mutant_holds_every_invariant(seed: int) -> None:
    Day(seed, EVENTS, storm=True).run()
