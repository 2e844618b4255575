"""The metadata quorum as a deterministic core: `RaftReplica` takes events and returns effects.

Read `replica`, then `roles` and `transitions`. `node.raft_io` hosts it; `effects` has its duties.
"""

from kraft_wire.raft.config import RaftConfig
from kraft_wire.raft.replica import RaftReplica
from kraft_wire.raft.timing import RaftTiming

__all__ = ["RaftConfig", "RaftReplica", "RaftTiming"]
