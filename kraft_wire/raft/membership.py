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
    """The kind of change."""

    ADD = "AddRaftVoter"
    REMOVE = "RemoveRaftVoter"


@slotted
class PendingChange:
    """The change in progress at a leader."""

    kind: ChangeKind
    origin: RequestReceived
    deadline_ms: int
    node: VoterNode
    """The voter to add or remove."""
    versions_request_id: int | None = None
    """The request to the new voter, None once it is answered."""
    record_offset: Offset | None = None
    """Offset of the VotersRecord, None before it is appended."""
    is_answered: bool = False
    """Whether the reply was sent already (AckWhenCommitted = false)."""
