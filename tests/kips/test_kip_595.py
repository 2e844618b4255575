"""KIP-595 "A Raft Protocol for the Metadata Quorum": what the core alone can show.

Ids are those of the requirement list. The page docs/KIPS.md takes the KIP in once its files, tools
and metrics are shown as well. Where shipped Kafka differs, the test asserts what is shipped.
"""

import pytest

from kraft_wire.model import ElectionState, LeaderEpoch
from kraft_wire.raft.effects import (
    AppendControlRecords,
    FlushLog,
    PersistElectionState,
    Reply,
    ReplyWithRecords,
    SendRequest,
)
from kraft_wire.raft.high_watermark import next_high_watermark
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from kraft_wire.raft.timing import RaftTiming, end_quorum_backoff_ms
from kraft_wire.wire.generated.begin_quorum_epoch import BeginQuorumEpochRequest
from kraft_wire.wire.generated.end_quorum_epoch import EndQuorumEpochRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.generated.leader_change_message import LeaderChangeMessage
from kraft_wire.wire.generated.vote import VoteRequest
from tests.raft.cluster import Cluster, Setup, directory_id
from tests.raft.rpc.test_requests import end_request
from tests.raft.small import Small, begin_request, fetch_request, vote_request, vote_response


def granted(small: Small, request: VoteRequest) -> bool:
    """Whether a vote is given."""
    answer: bool = small.reply(request).topics[0].partitions[0].vote_granted
    return answer


def settled(**setup: object) -> Cluster:
    cluster = Cluster(1, Setup(**setup))  # type: ignore[arg-type]  # fields of Setup
    cluster.start()
    assert cluster.run_until(cluster.is_settled)
    return cluster


# ---- overview and common rules ---------------------------------------------------------------


@pytest.mark.parametrize(
    "request_",
    [
        vote_request(9, cluster_id="other"),
        begin_request(9, cluster_id="other"),
        fetch_request(9, 0, cluster_id="other"),
    ],
)
def test_requests_of_another_cluster_are_refused_at_the_top(request_: FetchRequest) -> None:
    """595-GEN-01: mismatch -> INCONSISTENT_CLUSTER_ID; nothing is learnt from it."""
    small = Small()
    assert small.reply(request_).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert small.quorum.epoch == 0


def test_epochs_of_requests_are_compared_and_refused() -> None:
    """595-GEN-02, 595-FETCH-15: FENCED_LEADER_EPOCH below, UNKNOWN_LEADER_EPOCH above."""
    small = Small((1, 2)).leader()
    codes = [
        small.reply(fetch_request(epoch, 0, 0)).responses[0].partitions[0].error_code
        for epoch in (1, 2, 3)
    ]
    assert codes == [ErrorCode.FENCED_LEADER_EPOCH, 0, ErrorCode.UNKNOWN_LEADER_EPOCH]


def test_every_answer_carries_leader_and_epoch() -> None:
    """595-GEN-03, 595-VOTE-17, 595-FETCH-10, 595-FETCH-11: -1 where nobody is known."""
    small = Small()
    vote = small.reply(vote_request(4, last=(1, 1))).topics[0].partitions[0]
    assert (vote.leader_id, vote.leader_epoch) == (-1, 4)
    small.follower(5, 2)
    told = small.reply(fetch_request(5, 0, 0, node_id=3)).responses[0].partitions[0].current_leader
    assert (told.leader_id, told.leader_epoch) == (2, 5)


def test_exactly_the_metadata_partition_is_spoken_of() -> None:
    """595-GEN-04: anything else is INVALID_REQUEST."""
    assert Small().reply(VoteRequest()).error_code in (
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INCONSISTENT_CLUSTER_ID,
    )
    assert Small().reply(VoteRequest(cluster_id=None)).error_code == ErrorCode.INVALID_REQUEST


# ---- persistent state ------------------------------------------------------------------------


def test_vote_is_written_down_before_it_is_answered() -> None:
    """595-STATE-05, 595-STATE-08."""
    small = Small()
    effects = small.ask(vote_request(4, last=(1, 1)))
    kinds = [type(effect) for effect in effects]
    assert kinds.index(Reply) > max(
        at for at, kind in enumerate(kinds) if kind is PersistElectionState
    )
    written = [e.election for e in effects if isinstance(e, PersistElectionState)][-1]
    assert (written.leader_epoch, written.voted_id) == (4, 2)


def test_candidate_writes_its_own_vote_before_it_asks() -> None:
    """595-STATE-09, 595-VOTE-04, 595-VOTE-15: only then the epoch rises (pre-vote first)."""
    small = Small((1, 2)).candidate()
    kinds = [type(effect) for effect in small.effects]
    assert kinds.index(PersistElectionState) < kinds.index(SendRequest)
    assert (small.quorum.epoch, small.quorum.election.voted_id) == (2, 1)


def test_winner_writes_itself_down_before_its_first_record_and_announcement() -> None:
    """595-STATE-10, 595-ELECT-02, 595-ELECT-05, 595-ELECT-06."""
    small = Small((1, 2)).leader()
    kinds = [type(effect) for effect in small.effects]
    assert kinds.index(PersistElectionState) < kinds.index(AppendControlRecords)
    assert kinds.index(AppendControlRecords) < kinds.index(FlushLog) < kinds.index(SendRequest)
    assert small.sent(BeginQuorumEpochRequest)


def test_fenced_leader_writes_the_new_epoch_down_before_it_follows() -> None:
    """595-STATE-11, 595-LPT-03, 595-BEGIN-15."""
    small = Small((1, 2)).leader()
    effects = small.ask(begin_request(9, 3))
    assert isinstance(small.role, Follower)
    written = [e.election for e in effects if isinstance(e, PersistElectionState)]
    assert [(one.leader_epoch, one.leader_id) for one in written] == [(9, 3)]


def test_nothing_stored_starts_in_epoch_0_without_leader() -> None:
    """595-STATE-03, 595-STATE-04."""
    small = Small()
    assert (small.quorum.epoch, small.quorum.leader_id) == (0, -1)
    assert isinstance(small.role, Unattached)


def test_static_voters_are_stored_with_data_version_0() -> None:
    """595-STATE-07."""
    written = [e for e in Small().effects if isinstance(e, PersistElectionState)]
    assert [(e.data_version, e.election.static_voters) for e in written] == [(0, (1, 2, 3))]
    written = [e for e in Small(is_dynamic=True).effects if isinstance(e, PersistElectionState)]
    assert [(e.data_version, e.election.static_voters) for e in written] == [(1, ())]


# ---- votes -----------------------------------------------------------------------------------


def test_more_up_to_date_means_a_later_epoch_then_a_longer_log() -> None:
    """595-VOTE-05, 595-VOTE-06, 595-VOTE-07, 595-VOTE-13, 595-VOTE-14."""
    for last, good in (((2, 8), 1), ((3, 1), 1), ((2, 9), 1), ((2, 7), 0), ((1, 99), 0)):
        small = Small((1, 5), (2, 3))
        assert granted(small, vote_request(9, last=last)) is bool(good)
        assert small.quorum.epoch == 9, "the epoch is adopted either way"


def test_vote_of_an_older_epoch_is_fenced() -> None:
    """595-VOTE-08, 595-END-23."""
    small = Small((5, 1))
    answer = small.reply(vote_request(4, last=(3, 9))).topics[0].partitions[0]
    assert (answer.error_code, answer.vote_granted) == (ErrorCode.FENCED_LEADER_EPOCH, False)


def test_vote_is_repeated_to_the_same_candidate_and_refused_to_another() -> None:
    """595-VOTE-09, 595-VOTE-10, 595-ELECT-03, 595-ELECT-04: also after a restart of either."""
    small = Small((1, 2))
    asked = vote_request(4, 2, last=(1, 2))
    assert [granted(small, asked), granted(small, asked)] == [True, True]
    assert not granted(small, vote_request(4, 3, last=(1, 99)))
    stored = small.quorum.election
    again = Small((1, 2), stored=stored)
    assert granted(again, asked)
    assert not granted(again, vote_request(4, 3, last=(1, 99)))


def test_candidate_outside_of_the_voter_set_is_considered() -> None:
    """595-VOTE-11, 595-VOTE-12: not refused for that; no election follows at once."""
    small = Small((1, 2))
    assert granted(small, vote_request(9, 77, last=(1, 2)))
    assert isinstance(small.role, Unattached)


def test_candidate_may_vote_in_a_later_epoch() -> None:
    """595-VOTE-16."""
    small = Small((1, 2)).candidate()
    assert granted(small, vote_request(small.quorum.epoch + 1, 3, last=(1, 2)))
    assert isinstance(small.role, Unattached)


@pytest.mark.parametrize("last", [(-1, 2), (1, -1), (9, 2)])
def test_malformed_numbers_are_refused(last: tuple[int, int]) -> None:
    """595-VOTE-18."""
    answer = Small().reply(vote_request(9, last=last)).topics[0].partitions[0]
    assert answer.error_code == ErrorCode.INVALID_REQUEST


def test_late_vote_is_ignored() -> None:
    """595-ELECT-01."""
    small = Small((1, 2)).prospective()
    sent = small.sent(VoteRequest)[0]
    small.follower(5, 2)
    small.answer(sent, vote_response(1, granted=True))
    assert isinstance(small.role, Follower)
    assert small.quorum.ignored[Ignored.LATE_ANSWER] == 1


def test_first_record_of_an_epoch_is_leader_change_of_version_0() -> None:
    """595-ELECT-07, 595-ELECT-08, 595-ELECT-09: leader, voters, who voted for it."""
    small = Small((1, 2)).leader()
    appended = [e for e in small.effects if isinstance(e, AppendControlRecords)]
    message = appended[0].messages[0]
    assert isinstance(message, LeaderChangeMessage)
    assert (message.version, message.leader_id) == (0, 1)
    assert [voter.voter_id for voter in message.voters] == [1, 2, 3]
    assert len(message.granting_voters) == 2
    assert small.disk.log.batch_at(2).epoch == 2  # type: ignore[union-attr]  # it is there


def test_candidate_without_majority_tries_again_in_its_epoch() -> None:
    """595-ELECT-10, 595-ELECT-11: Prospective in the same epoch, after [T, 2T)."""
    small = Small((1, 2)).candidate()
    epoch = small.quorum.epoch
    small.pass_ms(2 * 100)
    assert isinstance(small.role, Prospective)
    assert small.quorum.epoch == epoch


def test_prospective_that_cannot_win_steps_down_at_once() -> None:
    """595-ELECT-12: a candidate waits its timeout out."""
    small = Small((1, 2), voters=(1, 2)).prospective()
    small.answer(small.sent(VoteRequest)[0], vote_response(1))
    assert isinstance(small.role, Unattached)


# ---- BeginQuorumEpoch ------------------------------------------------------------------------


def test_leader_announces_itself_to_voters_until_they_fetch() -> None:
    """595-BEGIN-01, 595-BEGIN-02, 595-BEGIN-13, 595-BEGIN-14: every half fetch timeout."""
    small = Small((1, 2)).leader()
    assert [sent.node_id for sent in small.sent(BeginQuorumEpochRequest)] == [2, 3]
    small.pass_ms(60)
    small.ask(fetch_request(2, 3, 2, node_id=2))
    small.pass_ms(40)
    assert [sent.node_id for sent in small.sent(BeginQuorumEpochRequest)] == [3]
    assert small.role.endorsements == {2: True}  # type: ignore[union-attr]  # the leader's


def test_begin_is_accepted_from_the_same_epoch_on() -> None:
    """595-BEGIN-08, 595-BEGIN-10, 595-BEGIN-11: and fetching begins."""
    small = Small((1, 2), stored=ElectionState(LeaderEpoch(5)))
    fenced = small.reply(begin_request(4, 2)).topics[0].partitions[0]
    assert fenced.error_code == ErrorCode.FENCED_LEADER_EPOCH
    small.ask(begin_request(5, 2))
    assert isinstance(small.role, Follower)
    assert [sent.node_id for sent in small.effects if isinstance(sent, SendRequest)] == [2]


def test_second_leader_of_an_epoch_is_not_believed() -> None:
    """595-BEGIN-09: a server fault, not a clean error; nobody stops."""
    small = Small().follower(5, 2)
    answer = small.reply(begin_request(5, 3)).topics[0].partitions[0]
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert small.quorum.leader_id == 2


# ---- EndQuorumEpoch --------------------------------------------------------------------------


def test_leader_that_steps_down_names_its_successors_by_their_logs() -> None:
    """595-END-01, 595-END-05, 595-END-06, 595-END-11."""
    small = Small((1, 2)).leader()
    small.ask(fetch_request(2, 2, 1, node_id=3))
    small.pass_ms(300)
    assert isinstance(small.role, Resigned)
    sent = small.sent(EndQuorumEpochRequest)
    assert [one.node_id for one in sent] == [2, 3]
    ended = sent[0].request.topics[0].partitions[0]  # type: ignore[attr-defined]  # its request
    assert (ended.leader_id, ended.preferred_successors) == (1, [3, 2])


def test_successors_wait_by_their_place() -> None:
    """595-END-07, 595-END-08, 595-END-09, 595-END-16, 595-END-17, 595-END-18."""
    small = Small().follower(9, 2)
    assert small.reply(end_request(9, 2, (1, 3))).error_code == 0
    assert isinstance(small.role, Prospective), "the first campaigns at once"
    small = Small().follower(9, 2)
    assert small.reply(end_request(9, 2, (3,))).error_code == 0
    assert isinstance(small.role, Follower)
    assert small.role.fetch_deadline_ms == 1_000, "who is not in the list waits longest"
    waits = [end_quorum_backoff_ms(place, 4, 1_000) for place in range(5)]
    assert waits == [0, 125, 250, 500, 1_000]


# ---- Fetch and the high watermark ------------------------------------------------------------


def test_fetch_names_offset_and_last_epoch() -> None:
    """595-FETCH-01, 595-FETCH-03."""
    small = Small((1, 5), (2, 3))
    sent = small.sent(FetchRequest)
    asked = sent[0].request.topics[0].partitions[0]  # type: ignore[attr-defined]  # its request
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (8, 2)


def test_silent_leader_makes_a_voter_campaign() -> None:
    """595-FETCH-02, 595-CFG-02, 595-END-22."""
    small = Small((1, 2)).follower(5, 2)
    small.pass_ms(200)
    assert isinstance(small.role, Prospective)


@pytest.mark.parametrize(
    ("offset", "epoch", "told"), [(7, 1, (1, 5)), (9, 2, (2, 8)), (8, 2, None), (5, 1, None)]
)
def test_leader_says_where_logs_diverge(
    offset: int, epoch: int, told: tuple[int, int] | None
) -> None:
    """595-FETCH-04, 595-FETCH-05, 595-FETCH-08, 595-FETCH-09, 595-FETCH-17, 595-FETCH-18."""
    small = Small((1, 5), (2, 3)).leader()
    answer = small.reply(fetch_request(3, offset, epoch)).responses[0].partitions[0]
    found = answer.diverging_epoch
    assert (found and (found.epoch, found.end_offset)) == told
    assert answer.error_code == 0


def test_only_voters_move_the_high_watermark() -> None:
    """595-FETCH-14, 595-FETCH-19, 595-FETCH-20: an observer is tracked, not counted."""
    small = Small((1, 2)).leader()
    small.ask(fetch_request(2, 3, 2, node_id=9))
    assert small.quorum.high_watermark is None
    small.ask(fetch_request(2, 3, 2, node_id=2))
    assert small.quorum.high_watermark == 3


def test_fetch_without_news_waits_and_is_answered_at_its_deadline_or_when_leadership_ends() -> None:
    """595-FETCH-23."""
    small = Small((1, 2)).established()
    assert not [e for e in small.ask(fetch_request(2, 3, 2, max_wait_ms=50)) if _is_reply(e)]
    assert [e for e in small.pass_ms(50) if _is_reply(e)]
    small.ask(fetch_request(2, 3, 2, max_wait_ms=50))
    replies = [e for e in small.ask(begin_request(9, 3)) if _is_reply(e)]
    first = replies[-1].response.responses[0].partitions[0]
    assert first.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def _is_reply(effect: object) -> bool:
    fetched = isinstance(effect, Reply | ReplyWithRecords)
    return fetched and hasattr(effect.response, "responses")  # type: ignore[attr-defined]  # a reply


def test_high_watermark_waits_for_a_record_of_the_own_epoch() -> None:
    """595-HW-01, 595-HW-04: LeaderChange is that record."""
    small = Small((1, 5)).leader()
    small.ask(fetch_request(2, 5, 1, node_id=2))
    assert small.quorum.high_watermark is None
    small.ask(fetch_request(2, 6, 2, node_id=2))
    assert small.quorum.high_watermark == 6


def test_records_of_older_epochs_on_a_majority_are_not_committed_by_that() -> None:
    """595-HW-03: figure 8 of the Raft paper."""
    assert next_high_watermark(None, [5, 5, 5], 5) is None  # type: ignore[list-item,arg-type]  # plain
    assert next_high_watermark(None, [6, 6, 2], 5) == 6  # type: ignore[list-item,arg-type]  # plain


# ---- progress timeout, settings, a whole quorum ----------------------------------------------


def test_leader_without_a_majority_resigns_and_epochs_do_not_grow_alone() -> None:
    """595-LPT-01, 595-LPT-02, 595-LPT-04: after 1.5 fetch timeouts; pre-votes keep the epoch."""
    cluster = settled()
    leader = cluster.leader()
    assert leader is not None
    epoch = leader.quorum().quorum.epoch
    others = [node for node in cluster.hosts if node != leader.id]
    cluster.cut([leader.id], others)
    for node in others:
        cluster.hosts[node].crash()
    cluster.run(30_000)
    assert not isinstance(leader.quorum().quorum.role, Leader | Candidate)
    assert leader.quorum().quorum.epoch == epoch + 1


def test_defaults_of_the_periods_are_kafkas() -> None:
    """595-CFG-03, 595-CFG-04, 595-CFG-05, 595-CFG-06."""
    timing = RaftTiming()
    assert (timing.election_timeout_ms, timing.election_backoff_max_ms) == (1_000, 1_000)
    assert (timing.request_timeout_ms, timing.retry_backoff_ms) == (2_000, 20)
    assert timing.fetch_timeout_ms == 2_000


def test_observer_finds_the_leader_by_asking_anybody() -> None:
    """595-BEGIN-03, 595-BEGIN-04, 595-FRESP-02: no FindQuorum."""
    cluster = settled(observers=(9,))
    assert cluster.hosts[9].quorum().quorum.leader_id == cluster.leader().id  # type: ignore[union-attr]  # settled
    assert cluster.hosts[9].key.directory_id == directory_id(9)


def test_stale_tail_is_cut_and_fetched_anew_in_a_whole_quorum() -> None:
    """595-FETCH-06, 595-FETCH-22, 595-FRESP-03."""
    cluster = settled()
    old = cluster.leader()
    assert old is not None
    others = [node for node in cluster.hosts if node != old.id]
    cluster.cut([old.id], others)
    cluster.append(old.id, 5)
    cluster.run(10_000)
    new = cluster.leader()
    assert new is not None
    assert new is not old
    cluster.append(new.id, 2)
    cluster.heal()
    assert cluster.run_until(cluster.is_settled)
    assert [b.number for b in old.disk.log.batches] == [b.number for b in new.disk.log.batches]
