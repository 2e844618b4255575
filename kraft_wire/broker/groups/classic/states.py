"""The classic group's state machine: its states, its events, and the table that joins them.

`TRANSITIONS` holds all allowed changes of state; a missing key is a programming error. The other
two tables hold the answer to a well-formed request of a known member in each state. KIP-62, KIP-134
(initial delay) and KIP-345 (static members) describe what raises the events; `rebalance.py`,
`join.py`, `sync.py` and `leave.py` raise them.

Groups of the protocols of KIP-848 and KIP-932 have other state machines, which are not here.
"""

from enum import Enum
from typing import Final

from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = [
    "CAN_REBALANCE",
    "HEARTBEAT_ANSWERS",
    "TRANSITIONS",
    "GroupEvent",
    "GroupState",
    "next_state",
]


class GroupState(Enum):
    """A state, by the name that ListGroups and DescribeGroups show."""

    EMPTY = "Empty"
    """No members; offsets may be there, and members that hold an id but have not joined yet."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """JoinGroup requests are parked until every expected member has sent one."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """A generation exists; SyncGroup requests are parked until the leader brings the assignment."""
    STABLE = "Stable"
    """Every member can have its assignment."""
    DEAD = "Dead"
    """Deleted, or moved away with its partition."""


class GroupEvent(Enum):
    """The events that change a group's state."""

    REBALANCE_STARTED = "rebalance started"
    GENERATION_FORMED = "generation formed"
    LAST_MEMBER_LEFT = "last member left"
    ASSIGNMENT_STORED = "assignment stored"
    REMOVED = "removed"


TRANSITIONS: Final[dict[GroupState, dict[GroupEvent, GroupState]]] = {
    GroupState.EMPTY: {
        GroupEvent.REBALANCE_STARTED: GroupState.PREPARING_REBALANCE,
        GroupEvent.REMOVED: GroupState.DEAD,
    },
    GroupState.PREPARING_REBALANCE: {
        GroupEvent.GENERATION_FORMED: GroupState.COMPLETING_REBALANCE,
        GroupEvent.LAST_MEMBER_LEFT: GroupState.EMPTY,
        GroupEvent.REMOVED: GroupState.DEAD,
    },
    GroupState.COMPLETING_REBALANCE: {
        GroupEvent.ASSIGNMENT_STORED: GroupState.STABLE,
        GroupEvent.REBALANCE_STARTED: GroupState.PREPARING_REBALANCE,
        GroupEvent.REMOVED: GroupState.DEAD,
    },
    GroupState.STABLE: {
        GroupEvent.REBALANCE_STARTED: GroupState.PREPARING_REBALANCE,
        GroupEvent.REMOVED: GroupState.DEAD,
    },
    GroupState.DEAD: {},
}

CAN_REBALANCE: Final = tuple(
    state for state, events in TRANSITIONS.items() if GroupEvent.REBALANCE_STARTED in events
)
"""States in which a change of membership starts a rebalance instead of joining a running one."""

HEARTBEAT_ANSWERS: Final[dict[GroupState, ErrorCode]] = {
    GroupState.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    GroupState.PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
    GroupState.COMPLETING_REBALANCE: ErrorCode.NONE,
    GroupState.STABLE: ErrorCode.NONE,
    GroupState.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""The answer to a heartbeat of a known member, in its current generation."""


def next_state(state: GroupState, event: GroupEvent) -> GroupState:
    """Return the state that follows; an assert fires where the table has no entry."""
    events = TRANSITIONS[state]
    assert event in events, (state, event)
    return events[event]
