"""The states of a record in a share partition, and the only table of their transitions (KIP-932).

A `RecordState` belongs to a whole batch as long as all its records are in the same state. A change
that must be written first (`begin`) is visible at once, but final only when the write is confirmed
(`finish`); until then neither another change nor another member gets at the record.

Not here: what asks for a change (`acquire`, `acknowledge`), and what a batch is (`in_flight`).
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from kraft_wire.broker.share_fetch.locks import Lock

__all__ = [
    "ACKNOWLEDGED",
    "ACQUIRED",
    "ARCHIVED",
    "AVAILABLE",
    "FINAL_STATES",
    "NO_MEMBER",
    "STORED_STATES",
    "TRANSITIONS",
    "DeliveryState",
    "RecordState",
]

NO_MEMBER: Final = ""
"""The owner of a record that is not acquired; a member's id is not empty."""


class DeliveryState(IntEnum):
    """What became of a record; the numbers are those of the stored state."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


AVAILABLE: Final = DeliveryState.AVAILABLE
ACQUIRED: Final = DeliveryState.ACQUIRED
ACKNOWLEDGED: Final = DeliveryState.ACKNOWLEDGED
ARCHIVED: Final = DeliveryState.ARCHIVED

TRANSITIONS: Final[Mapping[DeliveryState, frozenset[DeliveryState]]] = {
    AVAILABLE: frozenset({ACQUIRED, ARCHIVED}),
    ACQUIRED: frozenset({AVAILABLE, ACKNOWLEDGED, ARCHIVED}),
    ACKNOWLEDGED: frozenset(),
    ARCHIVED: frozenset(),
}
"""The states that may follow each; what is not listed is refused."""

FINAL_STATES: Final = frozenset(state for state, after in TRANSITIONS.items() if not after)
"""The records in these are never delivered again."""

STORED_STATES: Final = frozenset({AVAILABLE, ACKNOWLEDGED, ARCHIVED})
"""ACQUIRED is not stored: a new leader does not know the locks of its predecessor."""


class _Before(NamedTuple):
    """What a refused write brings back."""

    state: DeliveryState
    member_id: str
    delivery_count_limit: int


class RecordState:
    """State, deliveries, owner and lock of one record, or of all records of a batch."""

    __slots__ = ("_before", "_is_archived", "delivery_count", "lock", "member_id", "state")

    def __init__(
        self, state: DeliveryState, delivery_count: int, member_id: str = NO_MEMBER
    ) -> None:
        self.state = state
        self.delivery_count = delivery_count
        """How often the record was acquired; it never falls."""
        self.member_id = member_id
        self.lock: Lock | None = None
        """The lock of an acquired record; kept until the write of its next state is confirmed."""
        self._before: _Before | None = None
        self._is_archived = False

    @property
    def is_changing(self) -> bool:
        """Whether a write of this state is not confirmed yet."""
        return self._before is not None

    @property
    def is_available(self) -> bool:
        """Whether a member may acquire the record."""
        return self.state is AVAILABLE and self._before is None

    @property
    def is_final(self) -> bool:
        """Whether the record is never delivered again, and its state is confirmed."""
        return self._before is None and self.state in FINAL_STATES

    def move(
        self,
        to: DeliveryState,
        member_id: str,
        delivery_count_limit: int,
        *,
        delivers: bool = False,
    ) -> bool:
        """Change the state at once; return whether the table allows it.

        A record that has been delivered as often as the limit allows is archived instead of
        becoming available again.
        """
        assert to is ACQUIRED or not delivers, to
        if self._before is not None:
            return False
        if to is AVAILABLE and self.delivery_count >= delivery_count_limit:
            to = ARCHIVED
        if to not in TRANSITIONS[self.state]:
            return False
        self.state, self.member_id = to, member_id
        if delivers:
            self.delivery_count += 1
        return True

    def begin(self, to: DeliveryState, delivery_count_limit: int) -> bool:
        """Change the state of an acquired record until `finish`; return whether that is allowed."""
        before = _Before(self.state, self.member_id, delivery_count_limit)
        if not self.move(to, NO_MEMBER, delivery_count_limit):
            return False
        self._before = before
        return True

    def finish(self, *, is_written: bool) -> None:
        """End the change that `begin` started: keep the state, or return to the one before.

        Where the lock ended meanwhile, the record is available or archived, not acquired.
        """
        before, self._before = self._before, None
        if is_written or self._is_archived or before is None:
            self.unlock()
        elif self.lock is not None and self.lock.has_ended:
            is_worn_out = self.delivery_count >= before.delivery_count_limit
            self.state = ARCHIVED if is_worn_out else AVAILABLE
            self.unlock()
        else:
            self.state, self.member_id = before.state, before.member_id

    def archive(self) -> None:
        """Give the record up for good: it is below the log's start, compacted away, or aborted."""
        assert self.state not in FINAL_STATES, self.state
        self.state, self.member_id = ARCHIVED, NO_MEMBER
        self._is_archived = True
        self.unlock()

    def unlock(self) -> None:
        """Cancel the lock, if there is one."""
        if self.lock is not None:
            self.lock.cancel()
            self.lock = None
