"""The configuration of one replica and its quorum; the host makes it from properties."""

from collections.abc import Mapping
from dataclasses import field

from kraft_wire.frozen import frozen
from kraft_wire.model import ReplicaKey
from kraft_wire.raft.timing import RaftTiming
from kraft_wire.raft.voters import Address, VersionRange, VoterNode

__all__ = ["RaftConfig"]


@frozen
class RaftConfig:
    """Identity, addresses and settings of a replica."""

    key: ReplicaKey
    """`node.id` and the id of the metadata log's directory."""
    cluster_id: str
    listener: str = "CONTROLLER"
    """The first of `controller.listener.names`, in upper case: the listener between replicas."""
    endpoints: Mapping[str, Address] = field(default_factory=dict)
    """This replica's listeners; empty on a broker, to which no replica connects."""
    bootstrap_servers: tuple[Address, ...] = ()
    """`controller.quorum.bootstrap.servers`; empty: the static voters are used."""
    kraft_versions: VersionRange = field(default_factory=VersionRange)
    is_controller: bool = True
    """Whether `process.roles` has it: it may vote, and flushes what it appends (KIP-853)."""
    joins_by_itself: bool = False
    """`controller.quorum.auto.join.enable` (KIP-1186)."""
    timing: RaftTiming = field(default_factory=RaftTiming)

    def as_voter(self) -> VoterNode:
        """Return this replica's entry in a KRaftVoters record."""
        assert self.endpoints, "a voter can be reached"
        return VoterNode(self.key, self.endpoints, self.kraft_versions)
