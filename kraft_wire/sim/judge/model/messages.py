"""Translates events, effects and messages of the product into messages of the model.

None means that the model has no message: for other requests, and for requests that are malformed or
for another cluster, which the receiver answers with an error and drops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kraft_wire.model import NO_REPLICA, ElectionState, FileSlice, ReplicaId, ReplicaKey, Uuid
from kraft_wire.raft.config import RaftConfig
from kraft_wire.raft.effects import (
    AppendControlRecords,
    AppendFetched,
    AppendRecords,
    Effect,
    InstallSnapshot,
    PersistElectionState,
    Reply,
    ReplyWithRecords,
    ReplyWithSnapshotSlice,
    TruncateLog,
)
from kraft_wire.raft.events import Event, RequestReceived
from kraft_wire.raft.voters import VoterSet
from kraft_wire.sim.judge.model.reading import key_of, voters_of
from kraft_wire.sim.quorum_model.states import (
    NOBODY,
    Answer,
    Append,
    Begin,
    Change,
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
    Take,
    Vote,
    Voted,
)
from kraft_wire.wire import message as wire
from kraft_wire.wire.generated.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from kraft_wire.wire.generated.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchRequest, FetchResponse
from kraft_wire.wire.generated.fetch import PartitionData as FetchData
from kraft_wire.wire.generated.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kraft_wire.wire.generated.update_raft_voter import (
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from kraft_wire.wire.generated.vote import VoteRequest, VoteResponse
from kraft_wire.wire.generated.voters_record import VotersRecord

__all__ = [
    "change_of",
    "contact_in",
    "durable_of",
    "lacks_pre_votes",
    "of_answer",
    "of_request",
    "of_response",
    "of_sent",
    "with_election",
]

_EPOCH_MAX: Final = (1 << 31) - 2
_TOPIC: Final = "__cluster_metadata"
_TOPIC_ID: Final = bytes(15) + b"\x01"
_NO_SNAPSHOT: Final = Point(-1, -1)


# -- requests --------------------------------------------------------------------------------------


def of_request(request: wire.Message, config: RaftConfig) -> Message | None:
    """Return a request that a replica received."""
    if getattr(request, "cluster_id", None) not in (None, config.cluster_id):
        return None
    found = of_sent(request, config.key.id)
    if found is None or found.epoch > _EPOCH_MAX:
        return None
    if isinstance(found, Fetch):
        is_own = found.source.id == config.key.id
        assert isinstance(request, FetchRequest)
        is_bad = min(found.last) < 0 or found.last.epoch > found.epoch or request.max_wait_ms < 0
        return None if is_own or is_bad else found
    if isinstance(found, Vote):
        epoch_max = found.epoch if found.is_pre else found.epoch - 1
        is_bad = min(found.last) < 0 or found.last.epoch > epoch_max or found.source.id < 0
        return None if is_bad else found
    if isinstance(found, Begin | End):
        return None if found.source < 0 else found
    return found


def of_sent(request: wire.Message, target: int) -> Message | None:
    """Return a request of the model, None for one that it does not know."""
    match request:
        case VoteRequest():
            return _vote(request)
        case BeginQuorumEpochRequest():
            begun = _sole(request.topics)
            return None if begun is None else Begin(begun.leader_id, target, begun.leader_epoch)
        case EndQuorumEpochRequest():
            ended = _sole(request.topics)
            return None if ended is None else End(ended.leader_id, target, ended.leader_epoch)
        case FetchRequest():
            return _fetch(request, target)
        case FetchSnapshotRequest():
            asked = _sole(request.topics)
            if asked is None:
                return None
            source = _key(request.replica_id, asked.replica_directory_id)
            wanted = Point(asked.snapshot_id.epoch, asked.snapshot_id.end_offset)
            return FetchSnapshot(source, target, asked.current_leader_epoch, wanted)
    return None


def _vote(request: VoteRequest) -> Vote | None:
    asked = _sole(request.topics)
    if asked is None:
        return None
    target = None
    if request.voter_id >= 0:
        target = _key(request.voter_id, asked.voter_directory_id)
    return Vote(
        _key(asked.replica_id, asked.replica_directory_id),
        target,
        asked.replica_epoch,
        Point(asked.last_offset_epoch, asked.last_offset),
        asked.pre_vote,
    )


def _fetch(request: FetchRequest, target: int) -> Fetch | None:
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    topic, asked = request.topics[0], request.topics[0].partitions[0]
    if topic.topic_id != _TOPIC_ID or asked.partition != 0:
        return None
    state = request.replica_state
    replica_id = state.replica_id if state is not None else request.replica_id
    source = _key(replica_id, asked.replica_directory_id)
    last = Point(asked.last_fetched_epoch, asked.fetch_offset)
    return Fetch(source, target, asked.current_leader_epoch, last)


def _key(replica_id: int, directory_id: bytes) -> Key:
    return key_of(ReplicaKey(ReplicaId(replica_id), Uuid(directory_id)))


def _sole(topics: Sequence[Any]) -> Any:
    """Return the metadata partition's entry, None unless it is the only one."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    topic, found = topics[0], topics[0].partitions[0]
    name = topic.name if hasattr(topic, "name") else topic.topic_name
    for field in ("partition", "partition_index", "index"):
        if getattr(found, field, 0) != 0:
            return None
    return found if name == _TOPIC else None


# -- answers ---------------------------------------------------------------------------------------


def lacks_pre_votes(response: wire.Message) -> bool:
    """Return whether an answer shows that a voter does not know pre-votes."""
    unsupported = ErrorCode.UNSUPPORTED_VERSION
    return isinstance(response, VoteResponse) and response.error_code == unsupported


def of_response(response: wire.Message, asked: Message | None) -> Message | None:
    """Return the answer to a request; None too if the request is not known any more."""
    if asked is None:
        return _of_update(response)
    source = asked.target.id if isinstance(asked.target, Key) else asked.target
    own = asked.source.id if isinstance(asked.source, Key) else asked.source
    assert source is not None, asked
    return _of(response, source, own, asked)


def _of_update(response: wire.Message) -> Message | None:
    answered = response.current_leader if isinstance(response, UpdateRaftVoterResponse) else None
    return (
        None
        if answered is None
        else Answer(NOBODY, NOBODY, answered.leader_epoch, answered.leader_id)
    )


def of_answer(
    effect: Reply | ReplyWithRecords | ReplyWithSnapshotSlice, asked: Message | None, own_id: int
) -> Message | None:
    """Return a replica's answer to a request; None for a top-level error."""
    target = NOBODY
    if asked is not None:
        target = asked.source.id if isinstance(asked.source, Key) else asked.source
    return _of(effect.response, own_id, target, asked)


def _of(response: wire.Message, source: int, target: int, asked: Message | None) -> Message | None:
    if getattr(response, "error_code", 0) != ErrorCode.NONE:
        return None
    match response:
        case VoteResponse():
            answered = _sole(response.topics)
            if answered is None:
                return None
            if answered.error_code != ErrorCode.NONE:
                return Answer(source, target, answered.leader_epoch, answered.leader_id)
            is_pre = isinstance(asked, Vote) and asked.is_pre
            epoch, leader = answered.leader_epoch, answered.leader_id
            return Voted(source, target, epoch, leader, is_pre, answered.vote_granted)
        case BeginQuorumEpochResponse() | EndQuorumEpochResponse():
            answered = _sole(response.topics)
            if answered is None:
                return None
            return Answer(source, target, answered.leader_epoch, answered.leader_id)
        case FetchResponse():
            return _fetched(response, source, target, asked)
        case FetchSnapshotResponse():
            return _fetched_snapshot(response, source, target)
    return None


def _fetched(
    response: FetchResponse, source: int, target: int, asked: Message | None
) -> Message | None:
    if len(response.responses) != 1 or len(response.responses[0].partitions) != 1:
        return None
    topic, answered = response.responses[0], response.responses[0].partitions[0]
    if topic.topic_id != _TOPIC_ID or answered.partition_index != 0:
        return None
    leader, epoch = NOBODY, -1
    if answered.current_leader is not None:
        leader, epoch = answered.current_leader.leader_id, answered.current_leader.leader_epoch
    if answered.error_code != ErrorCode.NONE:
        return Answer(source, target, epoch, leader)
    at = asked.last if isinstance(asked, Fetch) else _NO_SNAPSHOT
    diverging, snapshot = _instead(answered)
    records = None if _size(answered.records) else ()
    mark = max(0, answered.high_watermark)
    return Fetched(source, target, epoch, leader, at, mark, diverging, snapshot, records)


def _instead(answered: FetchData) -> tuple[Point | None, Point | None]:
    """Return the diverging point or the snapshot that is named instead of records."""
    if answered.diverging_epoch is not None and answered.diverging_epoch.epoch >= 0:
        return Point(answered.diverging_epoch.epoch, answered.diverging_epoch.end_offset), None
    named = answered.snapshot_id
    if named is None or max(named.epoch, named.end_offset) < 0:
        return None, None
    is_whole = min(named.epoch, named.end_offset) >= 0
    return None, Point(named.epoch, named.end_offset) if is_whole else _NO_SNAPSHOT


def _size(records: object) -> int:
    if records is None:
        return 0
    if isinstance(records, FileSlice):
        return records.size_bytes
    assert isinstance(records, bytes | bytearray | memoryview), records
    return len(records)


def _fetched_snapshot(response: FetchSnapshotResponse, source: int, target: int) -> Message | None:
    answered = _sole(response.topics)
    if answered is None or answered.current_leader is None:
        return None
    leader, epoch = answered.current_leader.leader_id, answered.current_leader.leader_epoch
    if answered.error_code not in (ErrorCode.NONE, ErrorCode.SNAPSHOT_NOT_FOUND):
        return Answer(source, target, epoch, leader)
    found = None
    if answered.error_code == ErrorCode.NONE:
        found = Point(answered.snapshot_id.epoch, answered.snapshot_id.end_offset)
    return FetchedSnapshot(source, target, epoch, leader, found, frozenset())


def contact_in(
    event: Event, received: Message | None, answer: Message | None, effects: list[Effect]
) -> Key | None:
    """Return the replica that showed a leader that it is there: by a fetch, or by its update."""
    match received, answer:
        case Fetch(), Fetched(diverging=None, snapshot=None):
            return received.source
        case FetchSnapshot(), FetchedSnapshot() if answer.snapshot is not None:
            return received.source
    asked = event.request if isinstance(event, RequestReceived) else None
    if not isinstance(asked, UpdateRaftVoterRequest):
        return None
    replies = [one.response for one in effects if isinstance(one, Reply)]
    is_taken = any(getattr(one, "error_code", -1) == ErrorCode.NONE for one in replies)
    return _key(asked.voter_id, asked.voter_directory_id) if is_taken else None


# -- disks -----------------------------------------------------------------------------------------


def change_of(effects: list[Effect]) -> Change | None:
    """Return the change of the log by the effects of one step."""
    for effect in effects:
        match effect:
            case AppendRecords():
                return Append()
            case AppendControlRecords():
                sets = [one for one in effect.messages if isinstance(one, VotersRecord)]
                return Append(voters_of(VoterSet.from_record(sets[-1])) if sets else None)
            case AppendFetched():
                return Take(None)
            case TruncateLog():
                return Cut(effect.end_offset)
            case InstallSnapshot():
                wanted = effect.snapshot_id
                return Install(Point(wanted.epoch, wanted.offset), frozenset())
    return None


def durable_of(effect: PersistElectionState) -> tuple[int, Key | None]:
    """Return epoch and vote as quorum-state has them from then on."""
    election = effect.election
    if election.voted_id == NO_REPLICA:
        return election.leader_epoch, None
    return election.leader_epoch, _key(election.voted_id, election.voted_directory_id)


def with_election(r: Replica, stored: ElectionState | None) -> Replica:
    """Return a replica with the content of quorum-state at the start of its process."""
    if stored is None:
        return r._replace(epoch=0, voted=None, leader=NOBODY)
    voted = None
    if stored.voted_id != NO_REPLICA:
        voted = _key(stored.voted_id, stored.voted_directory_id)
    return r._replace(epoch=stored.leader_epoch, voted=voted, leader=stored.leader_id)
