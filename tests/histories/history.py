"""What producers and consumers saw, as data: transactions, polls, and their times.

Every value that is sent is sent once, by one transaction. Times are seconds of one clock. A
partition is named ``topic-number``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

__all__ = ["History", "Outcome", "Poll", "Seen", "Sent", "Transaction"]


class Outcome(Enum):
    """What a producer was told of the end of its transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """An error that leaves open what became of it."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A record that was sent; the offset is None where it was not told."""

    partition: str
    value: str
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """A record that was polled."""

    partition: str
    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class Poll:
    """What one call handed out, those of a partition in their order."""

    records: tuple[Seen, ...]
    at: float
    is_anew: bool = False
    """Whether positions may have changed since the one before: assigned again, or rewound."""


@dataclass(slots=True)
class Transaction:
    """One transaction: what it sent, and what it polled and committed the offsets of."""

    producer: str
    number: int
    sent: list[Sent] = field(default_factory=list)
    moved: list[Seen] = field(default_factory=list)
    outcome: Outcome = Outcome.UNKNOWN
    ending_at: float = 0.0
    """When the client was told to end it; 0 if it never was."""

    @property
    def name(self) -> str:
        """In messages."""
        return f"{self.producer}/{self.number}"


@dataclass(slots=True)
class History:
    """All of a run. Consumers read at READ_COMMITTED; each list of polls is one consumer's."""

    transactions: list[Transaction] = field(default_factory=list)
    polls: dict[str, list[Poll]] = field(default_factory=dict)
    final: list[Seen] = field(default_factory=list)
    """What a reader finds in the end, when all is healed, from the beginning to the end."""
