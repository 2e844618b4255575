"""The roles of a replica, as data; `transitions.py` says which may follow which.

One object per stay in a role: entering a role makes a new one, leaving it throws it away with its
timers and counts. What must survive a restart is not here but in `model.ElectionState`. "Observer"
is not a role: it is any replica whose key is not in the latest voter set; it is Unattached or
Follower, or gives up a leadership that it had as a voter.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Final, TypeAlias

from kraft_wire.frozen import slotted
from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch, ReplicaId, ReplicaKey
from kraft_wire.raft.membership import PendingChange
from kraft_wire.raft.voters import Address, VoterNode

__all__ = [
    "Candidate",
    "Endpoints",
    "Follower",
    "Leader",
    "Prospective",
    "ReplicaProgress",
    "Resigned",
    "Role",
    "SnapshotTransfer",
    "Unattached",
]

Endpoints: TypeAlias = Mapping[str, Address]
"""Where one replica can be reached, by listener name in upper case."""


_NEVER: Final = Offset(-1)


@slotted
class Unattached:
    """Knows an epoch, but no leader that it can reach."""

    election_deadline_ms: int | None
    """When it campaigns; None for an observer, which never does."""


@slotted
class Prospective:
    """Asks whether an election would be won, without raising the epoch (KIP-996)."""

    election_deadline_ms: int
    leader_endpoints: Endpoints
    """Where the leader that went silent was: the way back when the pre-vote is lost."""
    answers: dict[ReplicaId, bool] = field(default_factory=dict)
    """Who would vote for this replica, itself included."""
    stands_from_ms: int | None = None
    """When it may stand for election: later once it has told another one to go ahead."""
    rivals: set[ReplicaId] = field(default_factory=set)
    """Voters refused that miss the leader as well, and whose own refusal may be older than that."""


@slotted
class Candidate:
    """Stands for election in an epoch that it raised, having voted for itself."""

    election_deadline_ms: int
    answers: dict[ReplicaId, bool] = field(default_factory=dict)
    """Who voted for this replica, itself included."""


@slotted
class SnapshotTransfer:
    """A snapshot that is being fetched in chunks (KIP-630)."""

    snapshot_id: OffsetAndEpoch
    leader_id: ReplicaId
    leader_epoch: LeaderEpoch
    """Whose file it is: that of another leader has the same records, and may have other bytes."""
    received_bytes: int = 0

    def is_of(self, snapshot_id: OffsetAndEpoch, leader_id: ReplicaId, epoch: LeaderEpoch) -> bool:
        """Tell whether it is that file: a leader that restarts does not lead its epoch again."""
        found = (self.snapshot_id, self.leader_id, self.leader_epoch)
        return found == (snapshot_id, leader_id, epoch)


@slotted
class Follower:
    """Follows a leader of this epoch, whose address it knows."""

    leader_endpoints: Endpoints
    fetch_deadline_ms: int
    """Until when the leader must have answered; a voter campaigns then."""
    voter_update_deadline_ms: int
    """When it next tells the leader what changed about itself, or asks to join (KIP-853)."""
    has_fetched: bool = False
    """Whether this leader has answered a fetch: pre-votes are refused until it resigns."""
    has_updated: bool = False
    """Whether this leader took note of our endpoints, while kraft.version is 0."""
    leader_high_watermark: Offset | None = None
    """What the leader said last, after our logs had been found to agree."""
    transfer: SnapshotTransfer | None = None


@slotted
class ReplicaProgress:
    """What a leader knows of one voter or observer."""

    key: ReplicaKey
    end_offset: Offset | None = None
    """Its durable end: the offset of its last fetch; None before the first in this epoch."""
    last_fetch_ms: int | None = None
    last_caught_up_ms: int | None = None
    leader_end_at_last_fetch: Offset = _NEVER


@slotted
class Leader:
    """Leads this epoch; the only role that appends on request."""

    epoch_start_offset: Offset
    """Offset of this epoch's LeaderChange record."""
    check_quorum_deadline_ms: int
    """When it resigns unless a majority has fetched by then."""
    begin_quorum_deadline_ms: int
    """When it next announces itself to voters that do not fetch."""
    progress: dict[ReplicaKey, ReplicaProgress] = field(default_factory=dict)
    """Everybody who fetched, voter or not, by the key that the fetch carried."""
    endorsements: dict[ReplicaId, bool] = field(default_factory=dict)
    """Voters that answered BeginQuorumEpoch or fetched."""
    high_watermark: Offset | None = None
    """None until a record of this epoch is on a majority."""
    heard_since_check: dict[ReplicaId, bool] = field(default_factory=dict)
    """Voters heard in the present check-quorum period."""
    pending_change: PendingChange | None = None
    reported_nodes: dict[ReplicaId, VoterNode] = field(default_factory=dict)
    """What voters said of themselves while kraft.version is 0: needed to raise it."""


@slotted
class Resigned:
    """Led this epoch and gave up; tells the others until they know or an election is due."""

    election_deadline_ms: int
    preferred: list[ReplicaKey]
    """Successors, the most advanced first."""
    acknowledged: dict[ReplicaId, bool] = field(default_factory=dict)
    """Voters that have answered EndQuorumEpoch."""


Role: TypeAlias = Unattached | Prospective | Candidate | Follower | Leader | Resigned
