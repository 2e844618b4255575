"""What answers of every shape do to who asked: obeyed, or ignored for a named reason."""

import random

import pytest

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.raft.effects import (
    AppendFetched,
    AppendSnapshotChunk,
    InstallSnapshot,
    SendRequest,
    TruncateLog,
)
from kraft_wire.raft.events import RequestFailed, ResponseReceived, SnapshotRefused
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.roles import Candidate, Follower, Leader, Prospective, Unattached
from kraft_wire.raft.rpc.remove_raft_voter import on_response
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    SnapshotId,
)
from kraft_wire.wire.generated.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    ResponsePartitionSnapshot,
    ResponseSnapshotId,
    ResponseTopicSnapshot,
)
from kraft_wire.wire.generated.fetch_snapshot import LeaderIdAndEpoch as SnapshotLeader
from kraft_wire.wire.generated.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from kraft_wire.wire.generated.update_raft_voter import UpdateRaftVoterRequest
from kraft_wire.wire.generated.vote import VoteRequest, VoteResponse
from tests.raft.cluster import address_of
from tests.raft.small import TOPIC, TOPIC_ID, Small, begin_request, vote_response


def fetch_response(**fields: object) -> FetchResponse:
    """An answer of leader 2 in epoch 3."""
    counts = {"current_leader": LeaderIdAndEpoch(leader_id=2, leader_epoch=3), "records": b""}
    partition = PartitionData(**{**counts, **fields})  # type: ignore[arg-type]  # of the table
    return FetchResponse(
        responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[partition])]  # type: ignore[arg-type]  # bytes will do
    )


def fetching() -> Small:
    """A follower of 2 in epoch 3 whose fetch is out; its log: epoch 1 to 5, epoch 2 to 8."""
    small = Small((1, 5), (2, 3)).follower()
    update = small.effects[-1]
    small.step(RequestFailed(update.request_id))  # type: ignore[union-attr]  # UpdateRaftVoter first
    small.pass_ms(50)
    assert small.sent(FetchRequest), small.effects
    return small


def answered(small: Small, response: FetchResponse) -> Ignored | None:
    """Answer the fetch; the reason for which it was ignored, if it was."""
    before = small.quorum.ignored.counts()
    small.answer(small.sent(FetchRequest)[-1], response)
    for reason, count in small.quorum.ignored.counts().items():
        if count > before.get(reason, 0):
            return reason
    return None


BAD_FETCHES: list[tuple[FetchResponse, Ignored]] = [
    (FetchResponse(error_code=E.UNKNOWN_SERVER_ERROR), Ignored.TOP_LEVEL_ERROR),
    (FetchResponse(), Ignored.BAD_SHAPE),
    (fetch_response(partition_index=1), Ignored.BAD_SHAPE),
    (fetch_response(current_leader=None), Ignored.STALE_EPOCH),
    (
        fetch_response(current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=2)),
        Ignored.STALE_EPOCH,
    ),
    (
        fetch_response(current_leader=LeaderIdAndEpoch(leader_id=3, leader_epoch=3)),
        Ignored.CONFLICTING_LEADER,
    ),
    (
        fetch_response(current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=3)),
        Ignored.NAMED_AS_LEADER,
    ),
    (
        fetch_response(current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=2**31 - 1)),
        Ignored.EPOCHS_EXHAUSTED,
    ),
    (fetch_response(error_code=E.INVALID_REQUEST), Ignored.PARTITION_ERROR),
    (fetch_response(error_code=E.UNKNOWN_LEADER_EPOCH), Ignored.STALE_EPOCH),
    (fetch_response(diverging_epoch=EpochEndOffset(epoch=1, end_offset=-1)), Ignored.BAD_SHAPE),
    (
        fetch_response(diverging_epoch=EpochEndOffset(epoch=2, end_offset=8)),
        Ignored.NOTHING_TO_TRUNCATE,
    ),
    (
        fetch_response(snapshot_id=SnapshotId(end_offset=9, epoch=-1)),
        Ignored.MALFORMED_SNAPSHOT_ID,
    ),
    (
        fetch_response(snapshot_id=SnapshotId(end_offset=0, epoch=2)),
        Ignored.MALFORMED_SNAPSHOT_ID,
    ),
    (
        fetch_response(snapshot_id=SnapshotId(end_offset=8, epoch=2)),
        Ignored.SNAPSHOT_NOT_NEEDED,
    ),
]


@pytest.mark.parametrize(("response", "reason"), BAD_FETCHES, ids=lambda v: getattr(v, "name", ""))
def test_bad_fetch_answer_is_ignored_for_a_named_reason(
    response: FetchResponse, reason: Ignored
) -> None:
    small = fetching()
    assert answered(small, response) is reason
    changing = AppendFetched | TruncateLog
    assert not [e for e in small.effects if isinstance(e, changing)]
    assert small.quorum.ignored.counts() == {reason: 1}
    assert not isinstance(small.role, Follower) or small.role.transfer is None


@pytest.mark.parametrize(
    ("epoch", "end", "cut"), [(2, 6, 6), (1, 4, 4), (1, 5, 5), (1, 9, 5), (0, 3, 3)]
)
def test_diverging_answer_truncates_to_the_common_part(epoch: int, end: int, cut: int) -> None:
    small = fetching()
    answered(small, fetch_response(diverging_epoch=EpochEndOffset(epoch=epoch, end_offset=end)))
    assert [e.end_offset for e in small.effects if isinstance(e, TruncateLog)] == [cut]


def test_nothing_below_the_high_watermark_is_cut_or_replaced() -> None:
    """M04: what is committed stays, whatever a leader says."""
    small = fetching()
    answered(small, fetch_response(high_watermark=7))
    assert small.quorum.high_watermark == 7
    told = EpochEndOffset(epoch=1, end_offset=4)
    reason = answered(small, fetch_response(diverging_epoch=told))
    assert reason is Ignored.TRUNCATION_BELOW_HIGH_WATERMARK
    small.pass_ms(50)
    snapshot = SnapshotId(end_offset=6, epoch=2)
    reason = answered(small, fetch_response(snapshot_id=snapshot))
    assert reason is Ignored.SNAPSHOT_BELOW_HIGH_WATERMARK


def test_high_watermark_is_clamped_to_the_own_log_and_never_falls() -> None:
    small = fetching()
    answered(small, fetch_response(high_watermark=100))
    assert small.quorum.high_watermark == 8
    assert answered(small, fetch_response(high_watermark=50)) is Ignored.HIGH_WATERMARK_FELL
    assert small.quorum.high_watermark == 8


def test_a_leader_that_says_it_is_none_is_asked_again_after_a_backoff() -> None:
    """It may have restarted in its epoch. 4.3.1 asks at once, as fast as it answers."""
    small = fetching()
    backoff_ms = small.quorum.config.timing.retry_backoff_ms
    sent = small.sent(FetchRequest)[-1]
    small.answer(sent, fetch_response(error_code=E.NOT_LEADER_OR_FOLLOWER))
    assert isinstance(small.role, Follower)
    asked = [*small.sent(FetchRequest)]
    small.pass_ms(backoff_ms - 1)
    asked += small.sent(FetchRequest)
    assert not asked
    small.pass_ms(1)
    assert [each.node_id for each in small.sent(FetchRequest)] == [2]


def test_records_are_not_appended_by_who_follows_nobody() -> None:
    """handleFetchResponse of 4.3.1 is a follower's: the answer comes after its fetch timeout."""
    small = fetching()
    sent = small.sent(FetchRequest)[-1]
    small.pass_ms(400)
    assert isinstance(small.role, Prospective)
    nobody = LeaderIdAndEpoch(leader_id=-1, leader_epoch=3)
    effects = small.answer(sent, fetch_response(current_leader=nobody, records=b"x"))
    assert small.quorum.ignored[Ignored.LATE_ANSWER] == 1
    assert not [each for each in effects if isinstance(each, AppendFetched)]
    assert isinstance(small.role, Prospective)


def test_answer_counts_once() -> None:
    """M43: a doubled answer finds its question gone."""
    small = fetching()
    sent = small.sent(FetchRequest)[-1]
    response = fetch_response(diverging_epoch=EpochEndOffset(epoch=1, end_offset=5))
    small.answer(sent, response)
    small.step(ResponseReceived(sent.request_id, response))
    assert small.quorum.ignored[Ignored.LATE_ANSWER] == 1
    assert not [e for e in small.effects if isinstance(e, TruncateLog)]


def chunk(position: int, data: bytes, size: int = 10, **fields: object) -> FetchSnapshotResponse:
    counts: dict[str, object] = {
        "snapshot_id": ResponseSnapshotId(end_offset=20, epoch=2),
        "current_leader": SnapshotLeader(leader_id=2, leader_epoch=3),
        "size": size,
        "position": position,
        "unaligned_records": data,
    }
    partition = ResponsePartitionSnapshot(**{**counts, **fields})  # type: ignore[arg-type]  # of the table
    topics = [ResponseTopicSnapshot(name=TOPIC, partitions=[partition])]
    return FetchSnapshotResponse(topics=topics)


def transferring() -> Small:
    small = fetching()
    answered(small, fetch_response(snapshot_id=SnapshotId(end_offset=20, epoch=2)))
    assert small.sent(FetchSnapshotRequest)
    return small


def test_chunks_are_written_where_they_were_asked_for_and_the_last_installs() -> None:
    small = transferring()
    small.answer(small.sent(FetchSnapshotRequest)[-1], chunk(0, b"abcdef"))
    assert [(e.position, e.data) for e in small.effects if isinstance(e, AppendSnapshotChunk)] == [
        (0, b"abcdef")
    ]
    sent = small.sent(FetchSnapshotRequest)[-1]
    assert sent.request.topics[0].partitions[0].position == 6  # type: ignore[attr-defined]  # its request
    small.answer(sent, chunk(6, b"ghij"))
    assert [type(e) for e in small.effects][:2] == [AppendSnapshotChunk, InstallSnapshot]


BAD_CHUNKS = [
    (chunk(1, b"x"), Ignored.OTHER_SNAPSHOT),
    (
        chunk(0, b"x", snapshot_id=ResponseSnapshotId(end_offset=21, epoch=2)),
        Ignored.OTHER_SNAPSHOT,
    ),
    (chunk(0, b""), Ignored.CHUNK_OUT_OF_RANGE),
    (chunk(0, b"x" * 11), Ignored.CHUNK_OUT_OF_RANGE),
    (chunk(0, b"", error_code=98), Ignored.SNAPSHOT_GONE),
    (chunk(0, b"", snapshot_id=ResponseSnapshotId(end_offset=-1, epoch=-1)), Ignored.SNAPSHOT_GONE),
]


@pytest.mark.parametrize(("response", "reason"), BAD_CHUNKS)
def test_wrong_chunk_ends_the_transfer(response: FetchSnapshotResponse, reason: Ignored) -> None:
    small = transferring()
    small.answer(small.sent(FetchSnapshotRequest)[-1], response)
    assert small.quorum.ignored[reason] == 1
    assert isinstance(small.role, Follower)
    assert small.role.transfer is None


@pytest.mark.parametrize(
    ("leader_id", "leader_epoch", "ignored"),
    [(2, 2, {Ignored.STALE_EPOCH: 1}), (3, 4, {})],
)
def test_chunk_under_another_epoch_is_not_written(
    leader_id: int, leader_epoch: int, ignored: dict[Ignored, int]
) -> None:
    """An older one is set aside; a newer one is learned, and nothing is wrong with it."""
    small = transferring()
    leader = SnapshotLeader(leader_id=leader_id, leader_epoch=leader_epoch)
    small.answer(small.sent(FetchSnapshotRequest)[-1], chunk(0, b"abc", current_leader=leader))
    assert not [e for e in small.effects if isinstance(e, AppendSnapshotChunk)]
    assert small.quorum.ignored.counts() == ignored
    assert small.quorum.epoch == max(3, leader_epoch)


def test_position_out_of_range_keeps_the_partial_file() -> None:
    small = transferring()
    small.answer(small.sent(FetchSnapshotRequest)[-1], chunk(0, b"", error_code=99))
    assert isinstance(small.role, Follower)
    assert small.role.transfer is not None


def lapsed(small: Small) -> Small:
    """The leader's answers stay away for a fetch timeout; it leads on, as the others say."""
    small.pass_ms(200)
    for sent in small.sent(VoteRequest):
        small.answer(sent, vote_response(small.quorum.epoch))
    assert isinstance(small.role, Follower)
    assert small.role.transfer is None
    return without_update(small)


def without_update(small: Small) -> Small:
    """The update that a follower begins with gets no answer."""
    (update,) = small.sent(UpdateRaftVoterRequest)
    small.step(RequestFailed(update.request_id))
    return small


def asks_again_from(small: Small, leader_epoch: int = 3, named: tuple[int, int] = (20, 2)) -> int:
    """Fetch once more, and be told of a snapshot; the position that is asked for."""
    small.pass_ms(50)
    end_offset, epoch = named
    leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=leader_epoch)
    snapshot = SnapshotId(end_offset=end_offset, epoch=epoch)
    answered(small, fetch_response(snapshot_id=snapshot, current_leader=leader))
    (sent,) = small.sent(FetchSnapshotRequest)
    position: int = sent.request.topics[0].partitions[0].position  # type: ignore[attr-defined]  # its request
    return position


def half_way() -> Small:
    """Six of ten bytes have come."""
    small = transferring()
    small.answer(small.sent(FetchSnapshotRequest)[-1], chunk(0, b"abcdef"))
    return small


def test_transfer_goes_on_after_a_lapse_where_the_same_leader_names_the_same_snapshot() -> None:
    small = half_way()
    for _ in range(3):
        assert asks_again_from(lapsed(small)) == 6
    small.answer(small.sent(FetchSnapshotRequest)[-1], chunk(6, b"ghij"))
    assert [type(e) for e in small.effects][:2] == [AppendSnapshotChunk, InstallSnapshot]


def test_transfer_goes_on_after_two_lapses_without_an_answer_in_between() -> None:
    assert asks_again_from(lapsed(lapsed(half_way()))) == 6


@pytest.mark.parametrize("other", [(21, 2), (20, 3)])
def test_transfer_of_another_snapshot_begins_anew_and_forgets_the_first(
    other: tuple[int, int],
) -> None:
    small = lapsed(half_way())
    assert asks_again_from(small, named=other) == 0
    assert asks_again_from(lapsed(small)) == 0


def test_transfer_from_the_same_leader_of_a_later_epoch_begins_anew() -> None:
    small = half_way()
    small.ask(begin_request(4, 2))
    without_update(small)
    assert asks_again_from(small, leader_epoch=4) == 0


def test_transfer_that_the_disk_refused_begins_anew_after_a_lapse() -> None:
    small = lapsed(half_way())
    small.step(SnapshotRefused(OffsetAndEpoch(Offset(20), LeaderEpoch(2))))
    assert asks_again_from(small) == 0


def test_vote_of_one_who_takes_the_candidate_for_the_leader_counts() -> None:
    small = Small().prospective()
    for role in (Candidate, Leader):
        epoch = small.quorum.epoch
        mistaken = vote_response(epoch, granted=True, leader_id=1)
        small.answer(small.sent(VoteRequest)[0], mistaken)
        assert isinstance(small.role, role)
    assert small.quorum.ignored[Ignored.NAMED_AS_LEADER] == 2


def test_vote_of_an_older_epoch_is_stale_whoever_it_names_as_leader() -> None:
    small = Small().candidate()
    stale = vote_response(small.quorum.epoch - 1, granted=True, leader_id=1)
    small.answer(small.sent(VoteRequest)[0], stale)
    assert isinstance(small.role, Candidate)
    assert small.quorum.ignored.counts() == {Ignored.STALE_EPOCH: 1}


def test_leader_that_a_voter_of_a_higher_epoch_names_is_this_one_no_more() -> None:
    """It led that epoch before its disk was lost: it takes the epoch, and names no leader."""
    small = Small().candidate()
    epoch = small.quorum.epoch + 1
    small.answer(small.sent(VoteRequest)[0], vote_response(epoch, leader_id=1))
    assert isinstance(small.role, Unattached)
    assert (small.quorum.epoch, small.quorum.leader_id) == (epoch, -1)
    assert small.quorum.ignored.counts() == {Ignored.NAMED_AS_LEADER: 1}
    small.pass_ms(0)
    assert 2 not in [each.node_id for each in small.sent(VoteRequest)]


def test_votes_make_a_prospective_a_candidate_a_leader() -> None:
    small = Small((1, 5)).prospective()
    assert isinstance(small.role, Prospective)
    small.answer(small.sent(VoteRequest)[0], vote_response(1, granted=True))
    assert isinstance(small.role, Candidate)
    small.answer(small.sent(VoteRequest)[0], vote_response(2, granted=True))
    assert isinstance(small.role, Leader)


def test_lost_pre_vote_goes_back_and_refused_votes_wait() -> None:
    small = Small((1, 5)).prospective()
    for sent in small.sent(VoteRequest):
        small.answer(sent, vote_response(1))
    assert isinstance(small.role, Unattached)
    small = Small((1, 5)).candidate()
    for sent in small.sent(VoteRequest):
        small.answer(sent, vote_response(2))
    assert isinstance(small.role, Candidate)


def test_voter_without_pre_votes_makes_a_prospective_stand() -> None:
    small = Small((1, 5)).prospective()
    response = VoteResponse(error_code=E.UNSUPPORTED_VERSION)
    small.answer(small.sent(VoteRequest)[0], response)
    assert isinstance(small.role, Candidate)


def test_answer_of_another_kind_is_ignored() -> None:
    small = Small((1, 5)).prospective()
    small.answer(small.sent(VoteRequest)[0], FetchResponse())
    assert small.quorum.ignored[Ignored.UNEXPECTED_KIND] == 1


def test_no_request_or_answer_of_any_shape_raises() -> None:
    """Every message kind with drawn numbers, in every role; what comes out is effects."""
    from kraft_wire.wire.generated.registry import message_table, request_class, response_class
    from tests.wire.random_messages import random_message

    random_source = random.Random(5)
    ways = (Small.prospective, Small.candidate, Small.follower, Small.leader, Small.resigned)
    for key in (1, 52, 53, 54, 55, 59, 80, 81, 82):
        for round_ in range(60):
            small = Small((1, 5), is_dynamic=round_ % 2 == 0)
            ways[round_ % len(ways)](small)
            kind = request_class(key)
            request = random_message(message_table(kind.NAME), kind.MAX_VERSION, random_source)
            small.ask(request)
            for sent in [e for e in small.effects if type(e).__name__ == "SendRequest"]:
                answer = response_class(sent.request.API_KEY)  # type: ignore[union-attr]  # a request
                made = random_message(message_table(answer.NAME), answer.MAX_VERSION, random_source)
                small.answer(sent, made)  # type: ignore[arg-type]  # a SendRequest


@pytest.mark.parametrize(
    ("error", "is_ignored"),
    [
        (E.NONE, False),
        (E.REQUEST_TIMED_OUT, False),
        (E.VOTER_NOT_FOUND, False),
        (E.INVALID_REQUEST, True),
        (E.NOT_LEADER_OR_FOLLOWER, True),
    ],
)
def test_a_voter_that_is_removed_already_or_in_progress_is_no_error(
    error: E, *, is_ignored: bool
) -> None:
    """KIP-853: the next period looks at the voter set again in any case."""
    small = fetching()
    before = small.quorum.ignored[Ignored.TOP_LEVEL_ERROR]
    sent = SendRequest(99, 2, address_of(2), RemoveRaftVoterRequest())
    on_response(small.quorum, sent, RemoveRaftVoterResponse(error_code=error), small.now_ms)
    assert small.quorum.ignored[Ignored.TOP_LEVEL_ERROR] == before + is_ignored
