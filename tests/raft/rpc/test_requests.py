"""What each RPC answers: one row per check, in the documented order."""

from collections.abc import Callable

import pytest

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.raft.effects import PersistElectionState, Reply, ReplyWithSnapshotSlice
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.roles import Follower, Leader, Prospective, Resigned
from kraft_wire.wire.generated.add_raft_voter import AddRaftVoterRequest
from kraft_wire.wire.generated.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    LeaderEndpoint,
)
from kraft_wire.wire.generated.describe_quorum import DescribeQuorumRequest
from kraft_wire.wire.generated.describe_quorum import PartitionData as DescribedPartition
from kraft_wire.wire.generated.describe_quorum import TopicData as DescribedTopic
from kraft_wire.wire.generated.end_quorum_epoch import EndQuorumEpochRequest
from kraft_wire.wire.generated.end_quorum_epoch import PartitionData as EndPartition
from kraft_wire.wire.generated.end_quorum_epoch import TopicData as EndTopic
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.fetch import FetchRequest, FetchResponse
from kraft_wire.wire.generated.fetch_snapshot import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from kraft_wire.wire.generated.metadata import MetadataRequest
from kraft_wire.wire.generated.remove_raft_voter import RemoveRaftVoterRequest
from kraft_wire.wire.generated.update_raft_voter import UpdateRaftVoterRequest
from kraft_wire.wire.generated.vote import VoteRequest
from kraft_wire.wire.message import Message
from tests.raft.cluster import CLUSTER_ID, address_of, directory_id
from tests.raft.memory import Snapshot
from tests.raft.small import TIMING, TOPIC, Small, begin_request, fetch_request, vote_request

HAS = ((1, 5), (2, 3))
"""Epoch 1 up to offset 5, epoch 2 up to 8."""


def codes(response: Message) -> tuple[int, int | None]:
    """The top-level error and the partition's."""
    top: int = getattr(response, "error_code", 0)
    topics = getattr(response, "topics", None) or getattr(response, "responses", None)
    return top, topics[0].partitions[0].error_code if topics else None


def end_request(epoch: int, leader_id: int = 2, successors: tuple[int, ...] = ()) -> Message:
    partition = EndPartition(
        leader_id=leader_id, leader_epoch=epoch, preferred_successors=list(successors)
    )
    topics = [EndTopic(topic_name=TOPIC, partitions=[partition])]
    return EndQuorumEpochRequest(cluster_id=CLUSTER_ID, topics=topics)


def snapshot_request(
    epoch: int, at: tuple[int, int] = (4, 1), position: int = 0, name: str = TOPIC
) -> FetchSnapshotRequest:
    partition = PartitionSnapshot(
        current_leader_epoch=epoch,
        snapshot_id=SnapshotId(end_offset=at[0], epoch=at[1]),
        position=position,
        replica_directory_id=directory_id(2),
    )
    topics = [TopicSnapshot(name=name, partitions=[partition])]
    return FetchSnapshotRequest(cluster_id=CLUSTER_ID, replica_id=2, topics=topics)


VOTES: list[tuple[str, VoteRequest, tuple[int, int | None], bool]] = [
    (
        "other cluster",
        vote_request(9, cluster_id="other"),
        (E.INCONSISTENT_CLUSTER_ID, None),
        False,
    ),
    ("no cluster", vote_request(9, last=(2, 8), cluster_id=None), (0, 0), True),
    ("no topic", VoteRequest(cluster_id=CLUSTER_ID), (E.INVALID_REQUEST, None), False),
    ("negative offset", vote_request(9, last=(2, -1)), (0, E.INVALID_REQUEST), False),
    ("negative last epoch", vote_request(9, last=(-1, 8)), (0, E.INVALID_REQUEST), False),
    ("last epoch not below", vote_request(9, last=(9, 8)), (0, E.INVALID_REQUEST), False),
    ("older epoch", vote_request(1, last=(0, 8)), (0, E.FENCED_LEADER_EPOCH), False),
    ("negative id", vote_request(9, -1, last=(2, 8)), (0, E.INVALID_REQUEST), False),
    (
        "for another voter",
        vote_request(9, last=(2, 8), voter_id=3),
        (0, E.INVALID_VOTER_KEY),
        False,
    ),
    (
        "for another directory",
        vote_request(9, last=(2, 8), voter_directory=directory_id(1, 1)),
        (0, E.INVALID_VOTER_KEY),
        False,
    ),
    ("as long a log", vote_request(9, last=(2, 8)), (0, 0), True),
    ("a longer log", vote_request(9, last=(2, 9)), (0, 0), True),
    ("a later epoch", vote_request(9, last=(3, 1)), (0, 0), True),
    ("a shorter log", vote_request(9, last=(2, 7)), (0, 0), False),
    ("an older last epoch", vote_request(9, last=(1, 99)), (0, 0), False),
    ("nobody's voter", vote_request(9, 77, last=(2, 8)), (0, 0), True),
    ("last possible epoch", vote_request(2**31 - 1, last=(2, 8)), (0, E.INVALID_REQUEST), False),
    ("pre-vote, same last epoch", vote_request(2, last=(2, 8), pre_vote=True), (0, 0), True),
    ("pre-vote, later last epoch", vote_request(2, last=(3, 8), pre_vote=True), (0, 42), False),
]


@pytest.mark.parametrize(
    ("name", "request_", "expected", "granted"), VOTES, ids=lambda v: str(v)[:30]
)
def test_vote(name: str, request_: VoteRequest, expected: tuple[int, int], granted: bool) -> None:
    small = Small(*HAS)
    response = small.reply(request_)
    assert codes(response) == expected, name
    if response.topics:
        assert response.topics[0].partitions[0].vote_granted is granted
    recorded = small.quorum.election.voted_id >= 0
    is_pre_vote = bool(request_.topics) and request_.topics[0].partitions[0].pre_vote
    assert recorded == (granted and not is_pre_vote)


ROLE_GRANTS: list[tuple[str, Callable[[Small], Small], bool, bool]] = [
    ("unattached", lambda s: s, True, True),
    ("prospective", Small.prospective, True, True),
    ("candidate", Small.candidate, False, True),
    ("follower", Small.follower, False, True),
    ("leader", Small.leader, False, False),
    ("resigned", Small.resigned, False, True),
]


@pytest.mark.parametrize(("name", "enter", "vote", "pre_vote"), ROLE_GRANTS)
def test_role_decides_who_gets_a_vote_in_its_epoch(
    name: str, enter: Callable[[Small], Small], vote: bool, pre_vote: bool
) -> None:
    small = enter(Small((1, 5)))
    epoch = max(2, small.quorum.epoch)
    last = (small.quorum.log.last_epoch, 50)
    asked = vote_request(epoch, 3, last=last, pre_vote=True)
    assert small.reply(asked).topics[0].partitions[0].vote_granted is pre_vote, name
    if last[0] < epoch and not isinstance(small.role, Follower):
        asked = vote_request(epoch, 3, last=last)
        assert small.reply(asked).topics[0].partitions[0].vote_granted is vote, name


def test_follower_of_a_leader_that_answered_refuses_pre_votes() -> None:
    small = Small((1, 5)).follower()
    assert isinstance(small.role, Follower)
    small.role.has_fetched = True
    asked = vote_request(3, 3, last=(3, 99), pre_vote=True)
    assert small.reply(asked).topics[0].partitions[0].vote_granted is False


FETCHES: list[tuple[str, FetchRequest, tuple[int, int | None]]] = [
    ("other cluster", fetch_request(3, 0, cluster_id="x"), (E.INCONSISTENT_CLUSTER_ID, None)),
    ("no topic", FetchRequest(cluster_id=CLUSTER_ID), (E.INVALID_REQUEST, None)),
    ("other topic", fetch_request(3, 0, topic_id=bytes(16)), (E.INVALID_REQUEST, None)),
    ("negative wait", fetch_request(3, 0, max_wait_ms=-1), (0, E.INVALID_REQUEST)),
    ("negative offset", fetch_request(3, -1), (0, E.INVALID_REQUEST)),
    ("negative last epoch", fetch_request(3, 1, -1), (0, E.INVALID_REQUEST)),
    ("last epoch above", fetch_request(3, 1, 4), (0, E.INVALID_REQUEST)),
    ("older epoch", fetch_request(2, 1, 1), (0, E.FENCED_LEADER_EPOCH)),
    ("newer epoch", fetch_request(4, 1, 1), (0, E.UNKNOWN_LEADER_EPOCH)),
    ("our own id", fetch_request(3, 1, 1, node_id=1), (0, E.UNKNOWN_SERVER_ERROR)),
    ("our own id, another log", fetch_request(3, 99, 1, node_id=1), (0, 0)),
    ("negative size", fetch_request(3, 5, 1, max_bytes=-1), (0, E.UNKNOWN_SERVER_ERROR)),
    ("negative size, another log", fetch_request(3, 99, 1, max_bytes=-1), (0, 0)),
    ("agreed", fetch_request(3, 5, 1), (0, 0)),
    ("nobody's id", fetch_request(3, 5, 1, node_id=-1), (0, 0)),
]


@pytest.mark.parametrize(("name", "request_", "expected"), FETCHES, ids=lambda v: str(v)[:24])
def test_fetch_at_the_leader_of_epoch_3(
    name: str, request_: FetchRequest, expected: tuple[int, int | None]
) -> None:
    small = Small(*HAS).leader()
    assert small.quorum.epoch == 3
    response = small.reply(request_)
    assert codes(response) == expected, name
    if expected[1] == E.UNKNOWN_SERVER_ERROR:  # `tryCompleteFetchRequest` of 4.3.1
        (node,) = response.node_endpoints
        assert node.node_id == response.responses[0].partitions[0].current_leader.leader_id == 1


def test_a_fetch_of_a_negative_size_waits_at_the_log_s_end() -> None:
    """`KafkaRaftLog.read` of 4.3.1 refuses the size where there is something to read."""
    small = Small(*HAS).established()
    end = small.quorum.log.log_end_offset
    small.ask(fetch_request(3, end, 3, max_bytes=-1, max_wait_ms=500))
    assert len(small.quorum.parked) == 1


def test_fetch_elsewhere_names_the_leader() -> None:
    small = Small(*HAS).follower(3, 2)
    response = small.reply(fetch_request(3, 5, 1, node_id=3))
    partition = response.responses[0].partitions[0]
    assert partition.error_code == E.NOT_LEADER_OR_FOLLOWER
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (2, 3)
    assert [node.node_id for node in response.node_endpoints] == [2]


ASKED_OF_A_FOLLOWER = [
    (vote_request(3, 3, last=(3, 99)), 1),
    (begin_request(2, 3), 1),
    (end_request(2, 3), 1),
    (fetch_request(3, 5, 1, node_id=3), 17),
    (snapshot_request(3), 1),
]
"""What a follower of 2 in epoch 3 refuses, and from which version on it tells where 2 is."""


@pytest.mark.parametrize(("request_", "since"), ASKED_OF_A_FOLLOWER, ids=lambda v: str(v)[:12])
def test_every_refusal_tells_where_the_leader_is(request_: Message, since: int) -> None:
    """KIP-853: NodeEndpoints, a tagged field of the versions that also have directory ids."""
    small = Small(*HAS).follower(3, 2)
    where = address_of(2)
    for version in range(since, request_.MAX_VERSION + 1):
        (node,) = small.reply(request_, version).node_endpoints  # type: ignore[attr-defined]  # its answer
        assert (node.node_id, node.host, node.port) == (2, where.host, where.port)
    older = small.reply(request_, since - 1)
    assert older.node_endpoints == []  # type: ignore[attr-defined]  # its answer


@pytest.mark.parametrize(
    ("offset", "epoch", "diverging"),
    [(8, 2, None), (9, 2, (2, 8)), (7, 1, (1, 5)), (5, 1, None), (6, 0, (0, 0)), (9, 3, None)],
)
def test_fetch_diverges_where_the_epoch_ends_elsewhere(
    offset: int, epoch: int, diverging: tuple[int, int] | None
) -> None:
    small = Small(*HAS).leader()
    partition = small.reply(fetch_request(3, offset, epoch)).responses[0].partitions[0]
    told = partition.diverging_epoch
    assert partition.error_code == 0
    assert (told and (told.epoch, told.end_offset)) == diverging


def kept_snapshot(small: Small, at: OffsetAndEpoch) -> None:
    small.disk.snapshots.kept[at] = Snapshot(at, 0, (), b"0123456789")


SNAPSHOTS: list[tuple[str, FetchSnapshotRequest, tuple[int, int | None]]] = [
    ("no topic", FetchSnapshotRequest(cluster_id=CLUSTER_ID), (E.INVALID_REQUEST, None)),
    ("other topic", snapshot_request(3, name="x"), (0, E.UNKNOWN_TOPIC_OR_PARTITION)),
    ("older epoch", snapshot_request(2), (0, E.FENCED_LEADER_EPOCH)),
    ("unknown epoch", snapshot_request(-1), (0, E.FENCED_LEADER_EPOCH)),
    ("newer epoch", snapshot_request(4), (0, E.UNKNOWN_LEADER_EPOCH)),
    ("no such snapshot", snapshot_request(3, (5, 1)), (0, E.SNAPSHOT_NOT_FOUND)),
    ("the formatted one", snapshot_request(3, (0, 0)), (0, E.SNAPSHOT_NOT_FOUND)),
    ("before the start", snapshot_request(3, position=-1), (0, E.POSITION_OUT_OF_RANGE)),
    ("at the size", snapshot_request(3, position=10), (0, E.POSITION_OUT_OF_RANGE)),
]


@pytest.mark.parametrize(("name", "request_", "expected"), SNAPSHOTS, ids=lambda v: str(v)[:24])
def test_fetch_snapshot_is_refused(
    name: str, request_: FetchSnapshotRequest, expected: tuple[int, int | None]
) -> None:
    small = Small(*HAS).leader()
    kept_snapshot(small, OffsetAndEpoch(Offset(4), LeaderEpoch(1)))
    assert codes(small.reply(request_)) == expected, name


def test_place_in_a_snapshot_that_4_3_1_cannot_name_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """FetchSnapshot of 4.3.1: IllegalStateException for a position above 2^31 - 1."""
    small = Small(*HAS).leader()
    kept_snapshot(small, OffsetAndEpoch(Offset(4), LeaderEpoch(1)))
    monkeypatch.setattr(small.disk.snapshots, "size_bytes", lambda _: 1 << 32)
    last, beyond = (1 << 31) - 1, 1 << 31
    assert codes(small.reply(snapshot_request(3, position=beyond))) == (
        E.UNKNOWN_SERVER_ERROR,
        None,
    )
    effects = small.ask(snapshot_request(3, position=last))
    (served,) = (each for each in effects if isinstance(each, ReplyWithSnapshotSlice))
    assert served.position == last


def test_leader_that_names_more_addresses_is_known_by_them() -> None:
    """maybeTransition of 4.3.1: more endpoints of the same leader replace those that are known."""
    small = Small(*HAS).follower(9, 2)
    for names in (["extra"], [], ["other", "more"], ["fewer"]):
        request = begin_request(9, 2)
        assert isinstance(request, BeginQuorumEpochRequest)
        request.leader_endpoints += [
            LeaderEndpoint(name=name, host="h", port=number + 1)
            for number, name in enumerate(names)
        ]
        assert codes(small.reply(request)) == (0, 0)
        assert isinstance(small.role, Follower)
        if names:
            known = ["EXTRA"] if names == ["extra"] else ["OTHER", "MORE"]
        assert list(small.role.leader_endpoints)[1:] == known


def test_fetch_snapshot_gets_a_slice_and_counts_as_contact_only() -> None:
    small = Small(*HAS).leader()
    at = OffsetAndEpoch(Offset(4), LeaderEpoch(1))
    kept_snapshot(small, at)
    request = snapshot_request(3, position=6)
    request.max_bytes = 3
    slices = [e for e in small.ask(request) if isinstance(e, ReplyWithSnapshotSlice)]
    assert [(e.snapshot_id, e.position, e.bytes_max) for e in slices] == [(at, 6, 3)]
    assert slices[0].response.topics[0].partitions[0].size == 10
    assert small.role.progress == {}  # type: ignore[union-attr]  # the leader's
    small.now_ms += TIMING.check_quorum_timeout_ms - 1
    small.ask(snapshot_request(3, position=9))
    small.pass_ms(TIMING.check_quorum_timeout_ms - 1)
    assert isinstance(small.role, Leader), "one of the two others is in contact"
    small.pass_ms(1)
    assert isinstance(small.role, Resigned)


BEGINS = [
    ("other cluster", begin_request(9, cluster_id="x"), (E.INCONSISTENT_CLUSTER_ID, None), -1),
    ("no topic", BeginQuorumEpochRequest(), (E.INVALID_REQUEST, None), -1),
    ("older epoch", begin_request(1), (0, E.FENCED_LEADER_EPOCH), -1),
    ("negative id", begin_request(9, -1), (0, E.INVALID_REQUEST), -1),
    ("names ourselves", begin_request(9, 1), (0, E.UNKNOWN_SERVER_ERROR), -1),
    ("for another voter", begin_request(9, voter_id=3), (0, E.INVALID_VOTER_KEY), 2),
    ("good", begin_request(9), (0, 0), 2),
    ("endpoints from the voter set", begin_request(9, endpoints=False), (0, 0), 2),
    ("unreachable leader", begin_request(9, 55, endpoints=False), (0, 0), 55),
]


@pytest.mark.parametrize(("name", "request_", "expected", "leader"), BEGINS)
def test_begin_quorum_epoch(
    name: str, request_: Message, expected: tuple[int, int | None], leader: int
) -> None:
    small = Small(*HAS)
    assert codes(small.reply(request_)) == expected, name
    assert small.quorum.leader_id == leader


def test_second_leader_of_an_epoch_is_refused() -> None:
    small = Small(*HAS).follower(9, 2)
    assert codes(small.reply(begin_request(9, 3))) == (0, E.UNKNOWN_SERVER_ERROR)
    assert small.quorum.leader_id == 2


@pytest.mark.parametrize(
    ("successors", "wait_ms"), [((1, 3), 0), ((), 0), ((3, 1), 500), ((3,), 1000)]
)
def test_end_quorum_epoch_sets_the_wait_by_place(successors: tuple[int, ...], wait_ms: int) -> None:
    small = Small(*HAS).follower(9, 2)
    assert codes(small.reply(end_request(9, 2, successors))) == (0, 0)
    if wait_ms == 0:
        assert isinstance(small.role, Prospective)
    else:
        assert isinstance(small.role, Follower)
        assert small.role.fetch_deadline_ms == wait_ms


@pytest.mark.parametrize(
    ("epoch", "leader", "code"), [(1, 2, 74), (9, -1, 42), (9, 3, -1), (9, 2, 0)]
)
def test_end_quorum_epoch_is_checked(epoch: int, leader: int, code: int) -> None:
    small = Small(*HAS).follower(9, 2)
    assert codes(small.reply(end_request(epoch, leader))) == (0, code)


def described(name: str = TOPIC) -> DescribeQuorumRequest:
    topics = [DescribedTopic(topic_name=name, partitions=[DescribedPartition()])]
    return DescribeQuorumRequest(topics=topics)


def test_describe_quorum_is_the_leaders() -> None:
    assert codes(Small().reply(described("x"))) == (0, E.UNKNOWN_TOPIC_OR_PARTITION)
    assert codes(Small().reply(described())) == (0, E.NOT_LEADER_OR_FOLLOWER)
    small = Small((1, 2)).established()
    small.ask(fetch_request(2, 2, 1, node_id=9))
    partition = small.reply(described()).topics[0].partitions[0]
    assert [(v.replica_id, v.log_end_offset) for v in partition.current_voters] == [
        (1, 3),
        (2, 3),
        (3, -1),
    ]
    assert [o.replica_id for o in partition.observers] == [9]
    assert partition.high_watermark == 3


def test_observers_that_nobody_knows_fill_no_memory_and_keep_no_voter_from_counting() -> None:
    small = Small((1, 2)).established()
    for node_id in range(10, 10_110):
        small.ask(fetch_request(2, 2, 1, node_id=node_id))
    small.ask(fetch_request(2, 3, 2, node_id=3))
    partition = small.reply(described()).topics[0].partitions[0]
    assert [v.log_end_offset for v in partition.current_voters] == [3, 3, 3]
    observers = [each.replica_id for each in partition.observers]
    assert len(observers) < 10_000
    assert (min(observers), max(observers)) == (112, 10_109), "who came first went first"


LEADER_ONLY = [
    AddRaftVoterRequest(cluster_id=None),
    RemoveRaftVoterRequest(cluster_id=None),
    UpdateRaftVoterRequest(cluster_id=None, current_leader_epoch=0),
]


@pytest.mark.parametrize("request_", LEADER_ONLY, ids=lambda r: type(r).__name__)
def test_membership_requests_are_the_leaders_and_need_a_whole_key(request_: Message) -> None:
    assert codes(Small().reply(request_))[0] == E.NOT_LEADER_OR_FOLLOWER
    leader = Small(is_dynamic=True).established()
    if isinstance(request_, UpdateRaftVoterRequest):
        epoch = leader.quorum.epoch
        request_ = UpdateRaftVoterRequest(cluster_id=CLUSTER_ID, current_leader_epoch=epoch)
    assert codes(leader.reply(request_))[0] == E.INVALID_REQUEST


def test_removal_of_a_stranger_and_of_a_former_directory_is_refused() -> None:
    leader = Small(is_dynamic=True).established()
    for node_id, directory in ((9, directory_id(9)), (2, directory_id(2, 1))):
        request = RemoveRaftVoterRequest(
            cluster_id=None, voter_id=node_id, voter_directory_id=directory
        )
        assert codes(leader.reply(request))[0] == E.VOTER_NOT_FOUND


def test_no_change_before_something_of_the_epoch_is_committed() -> None:
    leader = Small(is_dynamic=True).leader()
    request = RemoveRaftVoterRequest(
        cluster_id=None, voter_id=2, voter_directory_id=directory_id(2)
    )
    assert codes(leader.reply(request))[0] == E.REQUEST_TIMED_OUT


def test_static_quorum_does_not_change() -> None:
    leader = Small().established()
    request = RemoveRaftVoterRequest(
        cluster_id=None, voter_id=2, voter_directory_id=directory_id(2)
    )
    assert codes(leader.reply(request))[0] == E.UNSUPPORTED_VERSION


def test_vote_is_durable_before_its_answer_leaves() -> None:
    small = Small(*HAS)
    effects = small.ask(vote_request(9, last=(2, 8)))
    kinds = [type(effect) for effect in effects if isinstance(effect, PersistElectionState | Reply)]
    assert kinds == [PersistElectionState, PersistElectionState, Reply], "epoch, vote, answer"


def test_request_of_an_unknown_kind_is_ignored() -> None:
    small = Small()
    assert small.ask(MetadataRequest()) == []
    assert small.quorum.ignored[Ignored.UNEXPECTED_KIND] == 1


def test_a_fetch_that_is_refused_is_told_no_high_watermark() -> None:
    """`buildEmptyFetchResponse`: an error comes with `Optional.empty()`."""
    leading = Small((1, 5), (2, 3)).established()
    response = leading.reply(fetch_request(leading.quorum.epoch - 1, 8, 1, node_id=2))
    assert isinstance(response, FetchResponse)
    (partition,) = response.responses[0].partitions
    assert (partition.error_code, partition.high_watermark) == (E.FENCED_LEADER_EPOCH, -1)
