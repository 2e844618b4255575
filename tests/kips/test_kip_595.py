"""KIP-595 "A Raft Protocol for the Metadata Quorum": what the core alone can show.

Ids are those of docs/KIPS.md; bytes, files and settings are in `test_kip_595_forms`. Where shipped
Kafka differs, the test asserts what is shipped.
"""

import pytest

from kraft_wire.model import ElectionState, LeaderEpoch, Offset
from kraft_wire.raft.effects import (
    AppendControlRecords,
    AppendFetched,
    AppendRecords,
    AppendRefused,
    FlushLog,
    HighWatermarkAdvanced,
    PersistElectionState,
    Reply,
    ReplyWithRecords,
    SendRequest,
    ShutdownCompleted,
    TruncateLog,
)
from kraft_wire.raft.events import (
    AppendRequested,
    ControlRecord,
    LogFlushed,
    RecordsAppended,
    ResignRequested,
    ResponseReceived,
    ShutdownRequested,
)
from kraft_wire.raft.high_watermark import next_high_watermark
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from kraft_wire.raft.timing import RaftTiming, end_quorum_backoff_ms
from kraft_wire.raft.voters import VoterSet
from kraft_wire.wire.generated import begin_quorum_epoch, end_quorum_epoch
from kraft_wire.wire.generated.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from kraft_wire.wire.generated.describe_quorum import DescribeQuorumRequest
from kraft_wire.wire.generated.describe_quorum import PartitionData as DescribeAsked
from kraft_wire.wire.generated.describe_quorum import ResponsePartitionData as DescribePartition
from kraft_wire.wire.generated.describe_quorum import TopicData as DescribeTopic
from kraft_wire.wire.generated.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import EpochEndOffset, FetchRequest, LeaderIdAndEpoch
from kraft_wire.wire.generated.leader_change_message import LeaderChangeMessage
from kraft_wire.wire.generated.vote import VoteRequest
from tests.raft.cluster import Cluster, Setup, directory_id, voter_node
from tests.raft.rpc.test_requests import end_request
from tests.raft.rpc.test_responses import fetch_response, fetching
from tests.raft.small import Small, begin_request, fetch_request, vote_request, vote_response
from tests.raft.swarm import remove_request

TOPIC = "__cluster_metadata"


def begin_response(epoch: int, leader_id: int = 1) -> BeginQuorumEpochResponse:
    made = begin_quorum_epoch
    partition = made.ResponsePartitionData(leader_id=leader_id, leader_epoch=epoch)
    topic = made.ResponseTopicData(topic_name=TOPIC, partitions=[partition])
    return BeginQuorumEpochResponse(topics=[topic])


def end_response(epoch: int, *, error: int = 0, leader_id: int = 1) -> EndQuorumEpochResponse:
    made = end_quorum_epoch
    partition = made.ResponsePartitionData(
        error_code=error, leader_id=leader_id, leader_epoch=epoch
    )
    topic = made.ResponseTopicData(topic_name=TOPIC, partitions=[partition])
    return EndQuorumEpochResponse(topics=[topic])


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


# ---- what is appended, and when it counts ----------------------------------------------------


def test_only_the_leader_appends_what_the_state_machine_wants() -> None:
    """595-GEN-05, 595-GEN-06: in its epoch, which every batch carries; the content is not read."""
    small = Small((1, 2)).established()
    wanted = AppendRequested("ticket", (b"anything", b"\xff"), small.quorum.epoch)
    appended = [e for e in small.step(wanted) if isinstance(e, AppendRecords)]
    assert [(e.leader_epoch, e.values) for e in appended] == [(2, (b"anything", b"\xff"))]
    for other in (Small((1, 2)).follower(5, 2), Small((1, 2)).candidate()):
        refused = other.step(AppendRequested("ticket", (b"x",), other.quorum.epoch))
        assert [e.ticket for e in refused if isinstance(e, AppendRefused)] == ["ticket"]
        assert not [e for e in refused if isinstance(e, AppendRecords)]


def test_follower_asks_for_more_only_when_what_it_has_is_on_its_disk() -> None:
    """595-GEN-07: the fetch offset is the acknowledgement."""
    small = fetching()
    batch = small.shelf.new_batch(8, 3, (b"x",))
    effects = small.replica.step(
        ResponseReceived(
            small.sent(FetchRequest)[-1].request_id,
            fetch_response(records=batch.bytes, high_watermark=-1),
        ),
        small.now_ms,
    )
    assert [type(e) for e in effects] == [AppendFetched, FlushLog]
    small.disk.log.append(batch)
    assert not small.replica.step(RecordsAppended(), small.now_ms)
    small.disk.log.flush()
    sent = [e for e in small.replica.step(LogFlushed(), small.now_ms) if isinstance(e, SendRequest)]
    assert sent[0].request.topics[0].partitions[0].fetch_offset == 9  # type: ignore[attr-defined]  # its request


def test_leader_counts_what_it_has_on_its_own_disk_only() -> None:
    """595-GEN-07, 595-HW-02: nothing is told to be committed before a majority holds it."""
    small = Small((1, 2)).established()
    wanted = AppendRequested("ticket", (b"a",), small.quorum.epoch)
    effects = small.replica.step(wanted, small.now_ms)
    assert not [e for e in effects if isinstance(e, HighWatermarkAdvanced)]
    small.disk.log.append(small.shelf.new_batch(3, 2, (b"a",)))
    small.ask(fetch_request(2, 4, 2, node_id=3))
    assert small.quorum.high_watermark == 3, "one of three, and our own is not flushed"
    small.disk.log.flush()
    told = small.replica.step(LogFlushed(), small.now_ms)
    assert [e.high_watermark for e in told if isinstance(e, HighWatermarkAdvanced)] == [4]


def test_change_of_the_voters_is_answered_when_it_is_committed() -> None:
    """595-HW-02: who asked hears of it only once the high watermark has passed the record."""
    cluster = settled(is_dynamic=True)
    leader = cluster.leader()
    assert leader is not None
    key = next(host.key for host in cluster.hosts.values() if host is not leader)
    record = leader.disk.log.log_end_offset
    ticket = cluster.ask(leader.id, remove_request(key.id, key.directory_id))
    quorum = leader.quorum().quorum
    while ticket not in cluster.client_answers:
        assert quorum.high_watermark == record
        cluster.advance()
    assert cluster.client_answers[ticket].error_code == 0  # type: ignore[attr-defined]  # all have one
    assert quorum.high_watermark == record + 1


# ---- the end of an epoch ---------------------------------------------------------------------


def test_voter_writes_nothing_when_its_leader_ends_the_epoch() -> None:
    """595-STATE-12: a pre-vote first; only the candidate's own vote is written down."""
    small = Small((1, 2)).follower(9, 2)
    effects = small.ask(end_request(9, 2, (1, 3)))
    assert isinstance(small.role, Prospective)
    assert not [e for e in effects if isinstance(e, PersistElectionState)]
    small.answer(small.sent(VoteRequest)[0], vote_response(9, granted=True))
    written = [e.election for e in small.effects if isinstance(e, PersistElectionState)]
    assert [(one.leader_epoch, one.voted_id) for one in written] == [(10, 1)]


@pytest.mark.parametrize("ended_by", ["stop", "request", "check of the quorum"])
def test_leader_that_gives_up_tells_the_voters(ended_by: str) -> None:
    """595-END-02: at a graceful stop; also when asked to, and without a majority."""
    small = Small((1, 2)).established()
    if ended_by == "check of the quorum":
        small.pass_ms(small.quorum.config.timing.check_quorum_timeout_ms)
    else:
        stop = ShutdownRequested(500) if ended_by == "stop" else ResignRequested(2)
        small.step(stop)
    assert isinstance(small.role, Resigned)
    assert [sent.node_id for sent in small.sent(EndQuorumEpochRequest)] == [2, 3]


@pytest.mark.parametrize("role", ["prospective", "candidate"])
def test_candidate_that_stops_tells_nobody(role: str) -> None:
    """595-END-03: it asks on until it wins, loses or its time is over."""
    small: Small = getattr(Small((1, 2)), role)()
    small.step(ShutdownRequested(500))
    assert not small.sent(EndQuorumEpochRequest)
    assert isinstance(small.role, Prospective | Candidate)


def test_leader_that_was_removed_ends_its_epoch_once_that_is_committed() -> None:
    """595-END-04."""
    cluster = settled(is_dynamic=True)
    leader = cluster.leader()
    assert leader is not None
    epoch = leader.quorum().quorum.epoch
    ticket = cluster.ask(leader.id, remove_request(leader.id, leader.key.directory_id))
    assert isinstance(leader.quorum().quorum.role, Leader)
    assert cluster.run_until(lambda: ticket in cluster.client_answers)
    assert isinstance(leader.quorum().quorum.role, Resigned)
    assert cluster.run_until(cluster.established)
    new = cluster.leader()
    assert new is not None
    assert new is not leader
    assert new.quorum().quorum.epoch == epoch + 1


def test_end_of_an_older_epoch_is_fenced_and_an_unknown_leader_adopted() -> None:
    """595-END-14, 595-END-15: the named leader is taken over first."""
    small = Small((1, 2)).follower(9, 2)
    old = small.reply(end_request(8, 3, (1,))).topics[0].partitions[0]
    assert (old.error_code, old.leader_epoch) == (ErrorCode.FENCED_LEADER_EPOCH, 9)
    assert isinstance(small.role, Follower)
    small = Small((1, 2), stored=ElectionState(LeaderEpoch(9)))
    answer = small.reply(end_request(9, 3, (2, 1))).topics[0].partitions[0]
    assert (answer.error_code, answer.leader_id) == (0, 3)
    assert small.quorum.leader_id == 3


def ended() -> Small:
    """A leader of epoch 2 that has told 2 and 3."""
    small = Small((1, 2)).established()
    small.step(ResignRequested(2))
    return small


def test_voter_that_knows_of_the_end_is_not_told_again() -> None:
    """595-END-19, 595-END-24: and one that answers with an error is."""
    small = ended()
    first, second = small.sent(EndQuorumEpochRequest)
    small.answer(first, end_response(2))
    small.answer(second, EndQuorumEpochResponse(error_code=ErrorCode.BROKER_NOT_AVAILABLE))
    small.pass_ms(20)
    assert [sent.node_id for sent in small.sent(EndQuorumEpochRequest)] == [3]


@pytest.mark.parametrize("is_stopping", [False, True])
def test_answer_that_names_a_newer_leader_is_followed(is_stopping: bool) -> None:
    """595-END-20, 595-END-24: written down first, and also while stopping."""
    small = ended()
    if is_stopping:
        small.replica.step(ShutdownRequested(5_000), small.now_ms)
    error = end_response(7, error=ErrorCode.FENCED_LEADER_EPOCH, leader_id=3)
    effects = small.answer(small.sent(EndQuorumEpochRequest)[0], error)
    written = [e.election for e in effects if isinstance(e, PersistElectionState)]
    assert [(one.leader_epoch, one.leader_id) for one in written] == [(7, 3)]
    assert isinstance(small.role, Follower)


def test_voters_that_cannot_be_reached_do_not_hold_up_a_stop() -> None:
    """595-END-21: it ends with its time."""
    small = Small((1, 2)).established()
    small.step(ShutdownRequested(500))
    assert not [e for e in small.pass_ms(499) if isinstance(e, ShutdownCompleted)]
    assert [e for e in small.pass_ms(1) if isinstance(e, ShutdownCompleted)]


def test_answer_to_begin_is_an_endorsement_and_kept_in_memory() -> None:
    """595-BEGIN-12."""
    small = Small((1, 2)).leader()
    effects = small.answer(small.sent(BeginQuorumEpochRequest)[0], begin_response(2))
    assert isinstance(small.role, Leader)
    assert small.role.endorsements == {2: True}
    assert not [e for e in effects if isinstance(e, PersistElectionState)]


# ---- answers to a fetch ----------------------------------------------------------------------


def test_fetcher_of_an_older_epoch_learns_from_the_answer() -> None:
    """595-FETCH-16, 595-FRESP-01: written down, and its leader followed."""
    small = fetching()
    leader = LeaderIdAndEpoch(leader_id=3, leader_epoch=7)
    error = ErrorCode.FENCED_LEADER_EPOCH
    effects = small.answer(
        small.sent(FetchRequest)[-1], fetch_response(error_code=error, current_leader=leader)
    )
    written = [e.election for e in effects if isinstance(e, PersistElectionState)]
    assert [(one.leader_epoch, one.leader_id) for one in written] == [(7, 3)]
    assert isinstance(small.role, Follower)


def test_fetcher_of_a_newer_epoch_is_told_and_not_followed() -> None:
    """595-FETCH-16: the leader hears of that epoch from its own leader in time."""
    small = Small((1, 2)).established()
    answer = small.reply(fetch_request(9, 3, 2)).responses[0].partitions[0]
    assert answer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, 2)
    assert isinstance(small.role, Leader)


def test_voters_in_fetched_records_count_from_their_append_and_no_longer_than_it() -> None:
    """595-FRESP-04: also for the replica's own role; a truncation takes them back."""
    small = Small((1, 5), (2, 3), is_dynamic=True).follower()
    small.disk.log.append(small.shelf.new_batch(8, 3, (b"x",)))
    small.disk.log.flush()
    members = VoterSet.of(voter_node(each, directory_id(each)) for each in (2, 3))
    small.step(RecordsAppended((ControlRecord(Offset(8), members.to_record()),)))
    assert not small.quorum.is_voter
    small.pass_ms(200)
    assert isinstance(small.role, Follower), "an observer does not campaign"
    small.pass_ms(100)
    diverging = EpochEndOffset(epoch=2, end_offset=8)
    effects = small.answer(small.sent(FetchRequest)[-1], fetch_response(diverging_epoch=diverging))
    assert [e.end_offset for e in effects if isinstance(e, TruncateLog)] == [8]
    assert small.quorum.is_voter


# ---- DescribeQuorum --------------------------------------------------------------------------


def described(small: Small, version: int = 2) -> DescribePartition:
    partition = DescribeAsked(partition_index=0)
    topics = [DescribeTopic(topic_name="__cluster_metadata", partitions=[partition])]
    answer = small.reply(DescribeQuorumRequest(topics=topics), version)
    found: DescribePartition = answer.topics[0].partitions[0]
    return found


def test_leader_describes_the_quorum() -> None:
    """595-DESC-01, 595-DESC-02: each replica with its end; -1 where it is not known."""
    small = Small((1, 2)).established()
    small.ask(fetch_request(2, 1, 1, node_id=9))
    found = described(small)
    assert (found.error_code, found.leader_id, found.leader_epoch) == (0, 1, 2)
    assert found.high_watermark == 3
    voters = {one.replica_id: one.log_end_offset for one in found.current_voters}
    assert voters == {1: 3, 2: 3, 3: -1}
    assert [(one.replica_id, one.log_end_offset) for one in found.observers] == [(9, 1)]


def test_each_time_and_end_of_a_replica_is_its_own() -> None:
    """KIP-836: a fetch below the leader's end is a fetch, but the replica has not caught up."""
    small = Small((1, 2)).established()
    small.pass_ms(100)
    small.ask(fetch_request(2, small.disk.log.log_end_offset, 2, node_id=8))
    small.pass_ms(10)
    small.ask(fetch_request(2, 1, 1, node_id=9))
    small.ask(fetch_request(2, small.disk.log.log_end_offset, 2, node_id=8))
    small.pass_ms(10)
    small.ask(fetch_request(2, 1, 1, node_id=8))
    found = described(small)
    times = {
        one.replica_id: (one.last_fetch_timestamp, one.last_caught_up_timestamp)
        for one in found.observers
    }
    assert times[8][0] - times[8][1] == 10
    assert times[9][1] == -1
    assert times[8][0] - times[9][0] == 10


def test_who_does_not_lead_describes_nothing() -> None:
    """The leader alone can answer; that a node forwards the question is shown elsewhere."""
    found = described(Small((1, 2)).follower(5, 2))
    assert found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
