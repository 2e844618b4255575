"""A change of the voter set that is in progress (KIP-853): one at a time, as data.

An addition first asks the new voter for its versions (CHECKING), then waits for its record to be
committed under the *new* majority (COMMITTING); a removal starts with the second. Both end with the
leadership or at their deadline.
"""

from enum import Enum

from kraft_wire.frozen import slotted
from kraft_wire.model import Offset
from kraft_wire.raft.events import RequestReceived
from kraft_wire.raft.voters import VoterNode

__all__ = ["ChangeKind", "PendingChange"]


class ChangeKind(Enum):
    """What was asked for."""

    ADD = "AddRaftVoter"
    REMOVE = "RemoveRaftVoter"


@slotted
class PendingChange:
    """The one change that a leader works on."""

    kind: ChangeKind
    origin: RequestReceived
    deadline_ms: int
    node: VoterNode
    """The voter that comes or goes."""
    versions_request_id: int | None = None
    """The question to the new voter, None once it is answered."""
    record_offset: Offset | None = None
    """Offset of the VotersRecord, None before it is appended."""
    is_answered: bool = False
    """Whether the reply has left already (AckWhenCommitted = false)."""
