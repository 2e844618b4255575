"""One replica with a log of numbers: for tables that ask it a single question."""

from __future__ import annotations

from kraft_wire.model import ZERO_UUID, ElectionState, Offset, ReplicaId, ReplicaKey
from kraft_wire.raft import RaftConfig, RaftReplica, RaftTiming
from kraft_wire.raft.effects import (
    AppendControlRecords,
    AppendRecords,
    Effect,
    FlushLog,
    Reply,
    ReplyWithRecords,
    SendRequest,
)
from kraft_wire.raft.events import (
    Event,
    LogFlushed,
    RequestReceived,
    ResponseReceived,
    Started,
    TimerFired,
)
from kraft_wire.raft.roles import Role
from kraft_wire.raft.voters import Address, VersionRange, VoterSet, VoterSetHistory
from kraft_wire.wire.generated.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    LeaderEndpoint,
)
from kraft_wire.wire.generated.begin_quorum_epoch import PartitionData as BeginPartition
from kraft_wire.wire.generated.begin_quorum_epoch import TopicData as BeginTopic
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraft_wire.wire.generated.vote import (
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
    TopicData,
    VoteRequest,
    VoteResponse,
)
from kraft_wire.wire.message import Message
from tests.raft.cluster import CLUSTER_ID, LISTENER, Drawn, address_of, directory_id, voter_node
from tests.raft.memory import Disk, Shelf

TOPIC = "__cluster_metadata"
TOPIC_ID = bytes(15) + b"\x01"
TIMING = RaftTiming(election_timeout_ms=100, fetch_timeout_ms=200, request_timeout_ms=100)


class Small:
    """Replica 1 of the voters 1, 2, 3; `has` is its log as (epoch, number of records)."""

    def __init__(
        self,
        *has: tuple[int, int],
        voters: tuple[int, ...] = (1, 2, 3),
        is_dynamic: bool = False,
        stored: ElectionState | None = None,
        node_id: int = 1,
        bootstrap: tuple[Address, ...] = (),
        joins_by_itself: bool = False,
    ) -> None:
        self.disk, self.shelf = Disk(None), Shelf()
        for epoch, count in has:
            values = (b"",) * count
            end = self.disk.log.log_end_offset
            self.disk.log.append(self.shelf.new_batch(end, epoch, values))
        self.disk.log.flush()
        directory = directory_id if is_dynamic else lambda _: ZERO_UUID
        members = VoterSet.of(voter_node(each, directory(each)) for each in voters)
        history = VoterSetHistory(None if is_dynamic else members)
        if is_dynamic:
            history.appended_version(Offset(-1), 1)
            history.appended_voters(Offset(-1), members)
        config = RaftConfig(
            ReplicaKey(ReplicaId(node_id), directory_id(node_id)),
            CLUSTER_ID,
            LISTENER,
            {LISTENER: address_of(node_id)},
            bootstrap,
            kraft_versions=VersionRange(0, 1),
            joins_by_itself=joins_by_itself,
            timing=TIMING,
        )
        self.replica = RaftReplica(
            config, self.disk.log, self.disk.snapshots, Drawn("small"), history
        )
        self.now_ms = 0
        self.effects: list[Effect] = []
        self.step(Started(stored))

    @property
    def quorum(self):  # type: ignore[no-untyped-def]  # a Quorum
        return self.replica.quorum

    @property
    def role(self) -> Role:
        return self.replica.quorum.role

    def step(self, event: Event) -> list[Effect]:
        """Take an event; appends and flushes of control batches are performed at once."""
        self.effects = self.replica.step(event, self.now_ms)
        for effect in list(self.effects):
            if isinstance(effect, AppendControlRecords | AppendRecords):
                values = getattr(effect, "values", ())
                controls = getattr(effect, "messages", ())
                batch = self.shelf.new_batch(
                    effect.base_offset, effect.leader_epoch, values, controls
                )
                self.disk.log.append(batch)
            elif isinstance(effect, FlushLog):
                self.disk.log.flush()
                self.effects += self.replica.step(LogFlushed(), self.now_ms)
        return self.effects

    def pass_ms(self, for_ms: int) -> list[Effect]:
        self.now_ms += for_ms
        return self.step(TimerFired())

    def ask(self, request: Message, version: int | None = None) -> list[Effect]:
        number = request.MAX_VERSION if version is None else version
        return self.step(RequestReceived("client", request, number, LISTENER))

    def reply(self, request: Message, version: int | None = None) -> Message:
        """The one answer that a request gets at once."""
        replies = [
            e.response
            for e in self.ask(request, version)
            if isinstance(e, Reply | ReplyWithRecords) and e.reply_to == "client"
        ]
        assert len(replies) == 1, self.effects
        return replies[0]

    def sent(self, kind: type[Message]) -> list[SendRequest]:
        return [
            e for e in self.effects if isinstance(e, SendRequest) and isinstance(e.request, kind)
        ]

    def answer(self, sent: SendRequest, response: Message) -> list[Effect]:
        return self.step(ResponseReceived(sent.request_id, response))

    # -- ways into a role ------------------------------------------------------------------------

    def prospective(self) -> Small:
        self.pass_ms(200)
        return self

    def candidate(self) -> Small:
        self.prospective()
        self.answer(self.sent(VoteRequest)[0], vote_response(self.quorum.epoch, granted=True))
        return self

    def leader(self) -> Small:
        self.candidate()
        self.answer(self.sent(VoteRequest)[0], vote_response(self.quorum.epoch, granted=True))
        return self

    def established(self) -> Small:
        """A leader whose epoch's first record is on a majority."""
        self.leader()
        self.ask(fetch_request(self.quorum.epoch, self.disk.log.log_end_offset, node_id=2))
        return self

    def follower(self, epoch: int = 3, leader_id: int = 2) -> Small:
        self.ask(begin_request(epoch, leader_id))
        return self

    def resigned(self) -> Small:
        self.leader()
        self.pass_ms(TIMING.check_quorum_timeout_ms)
        return self


def vote_request(
    epoch: int,
    candidate: int = 2,
    last: tuple[int, int] = (0, 0),
    *,
    pre_vote: bool = False,
    cluster_id: str | None = CLUSTER_ID,
    voter_id: int = 1,
    voter_directory: bytes = ZERO_UUID,
    directory: bytes | None = None,
) -> VoteRequest:
    """`last` is (epoch of the last record, end offset)."""
    partition = PartitionData(
        replica_epoch=epoch,
        replica_id=candidate,
        replica_directory_id=directory_id(max(0, candidate)) if directory is None else directory,  # type: ignore[arg-type]  # bytes will do
        voter_directory_id=voter_directory,  # type: ignore[arg-type]  # bytes will do
        last_offset_epoch=last[0],
        last_offset=last[1],
        pre_vote=pre_vote,
    )
    topics = [TopicData(topic_name=TOPIC, partitions=[partition])]
    return VoteRequest(cluster_id=cluster_id, voter_id=voter_id, topics=topics)


def vote_response(
    epoch: int, *, granted: bool = False, leader_id: int = -1, error: int = 0, top: int = 0
) -> VoteResponse:
    partition = ResponsePartitionData(
        error_code=error, leader_id=leader_id, leader_epoch=epoch, vote_granted=granted
    )
    topics = [ResponseTopicData(topic_name=TOPIC, partitions=[partition])]
    return VoteResponse(error_code=top, topics=topics)


def begin_request(
    epoch: int,
    leader_id: int = 2,
    *,
    voter_id: int = 1,
    cluster_id: str | None = CLUSTER_ID,
    endpoints: bool = True,
) -> BeginQuorumEpochRequest:
    address = address_of(max(0, leader_id))
    listed = [LeaderEndpoint(name=LISTENER, host=address.host, port=address.port)]
    partition = BeginPartition(leader_id=leader_id, leader_epoch=epoch)
    return BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=voter_id,
        topics=[BeginTopic(topic_name=TOPIC, partitions=[partition])],
        leader_endpoints=listed if endpoints else [],
    )


def fetch_request(
    epoch: int,
    offset: int,
    last_epoch: int | None = None,
    *,
    node_id: int = 2,
    max_wait_ms: int = 0,
    cluster_id: str | None = CLUSTER_ID,
    high_watermark: int = (1 << 63) - 1,
    topic_id: bytes = TOPIC_ID,
    max_bytes: int = (1 << 31) - 1,
) -> FetchRequest:
    partition = FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=epoch if last_epoch is None else last_epoch,
        replica_directory_id=directory_id(max(0, node_id)),
        high_watermark=high_watermark,
    )
    return FetchRequest(
        cluster_id=cluster_id,
        replica_state=ReplicaState(replica_id=node_id),
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic_id=topic_id, partitions=[partition])],  # type: ignore[arg-type]  # bytes will do
    )
