"""The state of one replica and the messages of the quorum, as plain values.

Sources: KIP-595 (roles, quorum-state, messages), KIP-630 (snapshots), KIP-853 (voter keys and
voter sets in the log), KIP-996 (pre-votes). Time is absent: a timeout is an action that may happen.
Not modelled: addresses, sizes in bytes, chunks of a snapshot, and the time that anything takes.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol, TypeAlias

__all__ = [
    "ANY_DIRECTORY",
    "NOBODY",
    "ZERO",
    "Answer",
    "Append",
    "Begin",
    "Change",
    "Cut",
    "End",
    "Fetch",
    "FetchSnapshot",
    "Fetched",
    "FetchedSnapshot",
    "Install",
    "Key",
    "Log",
    "Message",
    "Point",
    "Replica",
    "Role",
    "Step",
    "Take",
    "Vote",
    "Voted",
    "Voters",
    "is_member",
    "matches",
]

NOBODY = -1
"""The id of no replica."""
ANY_DIRECTORY = 0
"""The directory of a key without a recorded directory: it matches every directory."""


class Key(NamedTuple):
    """A replica: its id, and the directory that holds its disk (KIP-853)."""

    id: int
    directory: int | bytes = ANY_DIRECTORY


class Point(NamedTuple):
    """A place in a log: the epoch of the record before it, and the offset. Ordered as logs are."""

    epoch: int
    offset: int


ZERO = Point(0, 0)
Voters: TypeAlias = frozenset[Key]
Role: TypeAlias = Literal[
    "unattached", "prospective", "candidate", "follower", "leader", "resigned"
]


def matches(stored: Key, key: Key) -> bool:
    """Return whether a recorded key matches a replica."""
    return stored.id == key.id and stored.directory in (ANY_DIRECTORY, key.directory)


def is_member(voters: Voters, key: Key) -> bool:
    """Return whether a replica is one of the voters."""
    return any(matches(voter, key) for voter in voters)


class Log(Protocol):
    """The parts of a log and its snapshots that the rules read."""

    @property
    def start(self) -> int:
        """First offset that the log holds."""

    @property
    def last(self) -> Point:
        """The log's end, with the epoch of its last record, or of its snapshot."""

    @property
    def flushed(self) -> int:
        """The end of the entries that survive loss of power."""

    @property
    def oldest_snapshot(self) -> Point | None:
        """The oldest snapshot on the disk."""

    @property
    def newest_snapshot(self) -> Point | None:
        """The newest snapshot on the disk."""

    def has(self, snapshot: Point) -> bool:
        """Return whether a snapshot is on the disk."""

    @property
    def voters(self) -> Voters:
        """The voters of the last voter set in the log, committed or not."""

    @property
    def voters_offset(self) -> int:
        """The offset of that set's record, -1 where it is not in the log."""

    def end_of(self, epoch: int) -> Point:
        """Return the largest known epoch that is at most `epoch`, and where it ends."""


class Replica(NamedTuple):
    """One replica. The second line of fields belongs to single roles, and is reset with them."""

    key: Key
    log: Log
    epoch: int = 0
    voted: Key | None = None
    leader: int = NOBODY
    role: Role = "unattached"
    watermark: int = 0
    """The high watermark, 0 until this process has heard of one."""
    has_ended: bool = False
    """Whether the leader of its epoch has sent EndQuorumEpoch to this process."""

    has_fetched: bool = False
    """Follower: whether the leader has answered a fetch since its last farewell."""
    is_overdue: bool = False
    """Follower: whether its fetch timeout has passed. A voter becomes prospective then."""
    leader_high_watermark: int = 0
    """Follower: the leader's high watermark, from its answers."""
    wanted: Point | None = None
    """Follower: the snapshot that it fetches instead of the log."""
    granted: frozenset[int] = frozenset()
    """Prospective, candidate: the voters that granted, including itself."""
    refused: frozenset[int] = frozenset()
    """Prospective, candidate: the voters that refused."""
    first: int = 0
    """Leader: the offset of the first record of its epoch."""
    commits: int = 0
    """Leader: its high watermark, 0 until a record of its epoch is committed."""
    ends: frozenset[tuple[Key, int]] = frozenset()
    """Leader: the durable end of each replica that fetched in this epoch."""

    @property
    def is_voter(self) -> bool:
        """Whether the last set in its log has it."""
        return is_member(self.log.voters, self.key)

    @property
    def is_only_voter(self) -> bool:
        """Whether it decides alone."""
        return self.is_voter and len(self.log.voters) == 1

    @property
    def majority(self) -> int:
        """How many voters decide."""
        return len(self.log.voters) // 2 + 1


class Vote(NamedTuple):
    """A candidate asks for a vote, or a prospective replica for a pre-vote."""

    source: Key
    target: Key | None
    """The voter of the request; None in versions without it."""
    epoch: int
    last: Point
    is_pre: bool


class Voted(NamedTuple):
    """The answer."""

    source: int
    target: int
    epoch: int
    leader: int
    is_pre: bool
    is_granted: bool


class Begin(NamedTuple):
    """A leader presents itself (BeginQuorumEpoch)."""

    source: int
    target: int
    epoch: int


class End(NamedTuple):
    """A leader announces that it resigned (EndQuorumEpoch)."""

    source: int
    target: int
    epoch: int


class Answer(NamedTuple):
    """An answer with only the epoch and leader that its sender knows: any error."""

    source: int
    target: int
    epoch: int
    leader: int


class Fetch(NamedTuple):
    """A replica fetches after its log, all of which is on its disk."""

    source: Key
    target: int
    epoch: int
    last: Point


class Fetched(NamedTuple):
    """A leader's answer: where the logs diverge, or a snapshot, or records."""

    source: int
    target: int
    epoch: int
    leader: int
    asked: Point
    watermark: int
    diverging: Point | None
    snapshot: Point | None
    records: tuple[object, ...] | None


class FetchSnapshot(NamedTuple):
    """A follower asks for a snapshot."""

    source: Key
    target: int
    epoch: int
    snapshot: Point


class FetchedSnapshot(NamedTuple):
    """The snapshot with its voters; None if the leader does not have it any more."""

    source: int
    target: int
    epoch: int
    leader: int
    snapshot: Point | None
    voters: Voters


Message: TypeAlias = (
    Vote | Voted | Begin | End | Answer | Fetch | Fetched | FetchSnapshot | FetchedSnapshot
)


class Append(NamedTuple):
    """A leader appends records of its epoch, one of them perhaps a voter set."""

    voters: Voters | None = None


class Take(NamedTuple):
    """A follower appends its leader's entries."""

    records: tuple[object, ...] | None


class Cut(NamedTuple):
    """A follower cuts its log at an offset."""

    offset: int


class Install(NamedTuple):
    """A snapshot replaces the log."""

    snapshot: Point
    voters: Voters


Change: TypeAlias = Append | Take | Cut | Install


class Step(NamedTuple):
    """An allowed step: the replica afterwards, an answer, a change of the log."""

    after: Replica
    answer: Message | None = None
    change: Change | None = None
