"""The roles of a replica, as data; `transitions.py` has the permitted changes.

One object per stay in a role: a new role has a new object, and the previous one is dropped with its
timers and counts. State that survives a restart is in `model.ElectionState`. "Observer" is not a
role: it is any replica whose key is not in the latest voter set; it is Unattached or Follower, or
gives up a leadership that it had as a voter.
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
"""Addresses of one replica, by listener name in upper case."""


_NEVER: Final = Offset(-1)


@slotted
class Unattached:
    """Knows an epoch, but no leader with an address."""

    election_deadline_ms: int | None
    """When it campaigns; None for an observer, which never does."""


@slotted
class Prospective:
    """Asks for pre-votes, without raising the epoch (KIP-996)."""

    election_deadline_ms: int
    leader_endpoints: Endpoints
    """Addresses of the previous leader, which is followed again if the pre-vote is lost."""
    answers: dict[ReplicaId, bool] = field(default_factory=dict)
    """Pre-votes by voter, including its own."""
    stands_from_ms: int | None = None
    """When it may campaign: later once it has granted another replica a pre-vote."""
    rivals: set[ReplicaId] = field(default_factory=set)
    """Refused voters that miss the leader too; their own refusals may be outdated."""


@slotted
class Candidate:
    """Campaigns in an epoch that it raised, having voted for itself."""

    election_deadline_ms: int
    answers: dict[ReplicaId, bool] = field(default_factory=dict)
    """Votes by voter, including its own."""


@slotted
class SnapshotTransfer:
    """A snapshot that is being fetched in chunks (KIP-630)."""

    snapshot_id: OffsetAndEpoch
    leader_id: ReplicaId
    leader_epoch: LeaderEpoch
    """The leader that sends it: another leader's file has the same records, perhaps other bytes."""
    received_bytes: int = 0

    def is_of(self, snapshot_id: OffsetAndEpoch, leader_id: ReplicaId, epoch: LeaderEpoch) -> bool:
        """Return whether it is the same file: a restarted leader does not lead its epoch again."""
        found = (self.snapshot_id, self.leader_id, self.leader_epoch)
        return found == (snapshot_id, leader_id, epoch)


@slotted
class Follower:
    """Follows a leader of this epoch with a known address."""

    leader_endpoints: Endpoints
    fetch_deadline_ms: int
    """Deadline for the leader's next answer; a voter campaigns then."""
    voter_update_deadline_ms: int
    """When it next updates its own voter entry at the leader, or asks to join (KIP-853)."""
    has_fetched: bool = False
    """Whether this leader has answered a fetch: pre-votes are refused until it resigns."""
    has_updated: bool = False
    """Whether this leader has recorded our endpoints, while kraft.version is 0."""
    leader_high_watermark: Offset | None = None
    """The leader's last high watermark, after both logs were found to agree."""
    transfer: SnapshotTransfer | None = None


@slotted
class ReplicaProgress:
    """A leader's record of one voter or observer."""

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
    """When it resigns unless a majority has fetched before."""
    begin_quorum_deadline_ms: int
    """When it next sends BeginQuorumEpoch to voters that do not fetch."""
    progress: dict[ReplicaKey, ReplicaProgress] = field(default_factory=dict)
    """Every replica that fetched, voter or not, by the key in its fetch."""
    endorsements: dict[ReplicaId, bool] = field(default_factory=dict)
    """Voters that answered BeginQuorumEpoch or fetched."""
    high_watermark: Offset | None = None
    """None until a record of this epoch is on a majority."""
    heard_since_check: dict[ReplicaId, bool] = field(default_factory=dict)
    """Voters that fetched in the current check-quorum period."""
    pending_change: PendingChange | None = None
    reported_nodes: dict[ReplicaId, VoterNode] = field(default_factory=dict)
    """Updates that voters sent while kraft.version is 0: needed to raise it."""


@slotted
class Resigned:
    """Led this epoch and resigned; sends EndQuorumEpoch until voters answer or it campaigns."""

    election_deadline_ms: int
    preferred: list[ReplicaKey]
    """Successors, the most advanced first."""
    acknowledged: dict[ReplicaId, bool] = field(default_factory=dict)
    """Voters that have answered EndQuorumEpoch."""


Role: TypeAlias = Unattached | Prospective | Candidate | Follower | Leader | Resigned
