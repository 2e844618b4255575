"""Clever functions beside the most obvious ones, over every small input."""

import itertools
import random

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch, ReplicaId, ReplicaKey
from kraft_wire.raft.divergence import Diverging, Valid, judge_fetch, truncation_point
from kraft_wire.raft.elections import VoteOutcome, is_up_to_date, outcome
from kraft_wire.raft.high_watermark import majority_end_offset, next_high_watermark
from kraft_wire.raft.timing import end_quorum_backoff_ms
from kraft_wire.raft.voters import VoterSet
from tests.raft.cluster import directory_id, voter_node
from tests.raft.memory import MemoryLog, MemorySnapshots, Shelf


def test_majority_end_is_the_largest_that_most_have_reached() -> None:
    for count in range(1, 6):
        for ends in itertools.product((None, 0, 1, 2, 3), repeat=count):
            known = [Offset(-1 if end is None else end) for end in ends]
            holding = [end for end in known if 2 * sum(e >= end for e in known) > count]
            counts = [None if end is None else Offset(end) for end in ends]
            assert majority_end_offset(counts) == max(holding)


def test_high_watermark_never_falls_and_needs_the_own_epoch() -> None:
    for current, start in itertools.product((None, 2, 4), range(4)):
        for ends in itertools.product(range(6), repeat=3):
            known = None if current is None else Offset(current)
            reached = next_high_watermark(known, [Offset(e) for e in ends], Offset(start))
            middle = sorted(ends)[1]
            expected = middle if middle > start and (current is None or middle > current) else None
            assert reached == (expected if expected is not None else current)


def test_outcome_is_what_counting_all_completions_says() -> None:
    for count in range(1, 6):
        voters = VoterSet.of(voter_node(n, directory_id(n)) for n in range(1, count + 1))
        for answers in itertools.product((None, False, True), repeat=count):
            known = {ReplicaId(n): a for n, a in enumerate(answers, 1) if a is not None}
            open_ones = [n for n, a in enumerate(answers, 1) if a is None]
            wins = [
                2 * (sum(known.values()) + extra) > count for extra in range(len(open_ones) + 1)
            ]
            expected = VoteOutcome.OPEN
            if wins[0]:
                expected = VoteOutcome.WON
            elif not wins[-1]:
                expected = VoteOutcome.LOST
            assert outcome(voters, known) is expected
            assert outcome(voters, {**known, ReplicaId(99): True}) is expected


def test_log_is_compared_by_epoch_first() -> None:
    for a, b, c, d in itertools.product(range(4), repeat=4):
        asker = OffsetAndEpoch(Offset(a), LeaderEpoch(b))
        own = OffsetAndEpoch(Offset(c), LeaderEpoch(d))
        assert is_up_to_date(asker, own) == (b > d or (b == d and a >= c))


def test_successor_waits_double_from_none_to_the_maximum() -> None:
    for count in range(1, 8):
        waits = [end_quorum_backoff_ms(place, count, 1000) for place in range(count + 1)]
        assert waits[0] == 0
        assert waits[-1] == 1000
        assert waits == sorted(waits)
    assert [end_quorum_backoff_ms(p, 3, 1000) for p in range(4)] == [0, 250, 500, 1000]


def random_logs(random_source: random.Random) -> tuple[MemoryLog, MemoryLog, Shelf]:
    """Two logs that agree up to some point; the second has seen the newer epochs."""
    shelf, leader, follower = Shelf(), MemoryLog(), MemoryLog()
    epoch = 1
    for _ in range(random_source.randrange(6)):
        epoch += random_source.choice((0, 0, 1))
        batch = shelf.new_batch(
            leader.log_end_offset, epoch, (b"x",) * random_source.choice((1, 2))
        )
        leader.append(batch)
        follower.append(batch)
    mine, theirs = epoch, epoch
    for log, low in ((follower, 1), (leader, 2)):
        at = mine if log is follower else theirs
        for _ in range(random_source.randrange(4)):
            at += random_source.choice((low, low, 2))
            at += (at % 2) != (low % 2)  # odd epochs are the follower's, even ones the leader's
            log.append(shelf.new_batch(log.log_end_offset, at, (b"y",)))
    top = max(leader.last_epoch, follower.last_epoch) + 1
    leader.append(shelf.new_batch(leader.log_end_offset, top, (b"z",)))
    return leader, follower, shelf


def test_rounds_of_divergence_end_at_the_longest_common_log() -> None:
    random_source = random.Random(7)
    for _ in range(2_000):
        leader, follower, _ = random_logs(random_source)
        pairs = zip(leader.batches, follower.batches, strict=False)
        common = [a for a, b in pairs if a is b]
        shared = 0
        for batch in common:
            if batch.base_offset != shared:
                break
            shared = batch.end_offset
        for _ in range(12):
            end, epoch = follower.log_end_offset, follower.last_epoch
            verdict = judge_fetch(end, epoch, leader, MemorySnapshots())
            if isinstance(verdict, Valid):
                break
            assert isinstance(verdict, Diverging)
            cut = truncation_point(verdict.point, follower)
            assert shared <= cut < end, "it makes progress, and keeps what both have"
            follower.truncate(cut)
        assert isinstance(verdict, Valid)
        assert follower.log_end_offset == shared


def test_voter_sets_overlap_when_they_differ_by_one() -> None:
    ids = (1, 2, 3, 4)
    subsets = [c for size in (1, 2, 3, 4) for c in itertools.combinations(ids, size)]
    for one, other in itertools.product(subsets, repeat=2):
        made = [VoterSet.of(voter_node(n, directory_id(n)) for n in s) for s in (one, other)]
        expected = len(set(one) ^ set(other)) <= 1
        assert made[0].overlaps_majorities_of(made[1]) == expected


def test_key_of_a_lost_directory_is_no_voter() -> None:
    voters = VoterSet.of([voter_node(1, directory_id(1))])
    assert voters.is_voter(ReplicaKey(ReplicaId(1), directory_id(1)))
    assert not voters.is_voter(ReplicaKey(ReplicaId(1), directory_id(1, 1)))
