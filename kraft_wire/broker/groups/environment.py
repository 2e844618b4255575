"""What every coordinator partition shares: settings, log, memory, chance, and where answers go."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.groups.commit_waits import CommitWaits
from kraft_wire.broker.groups.memory import MemoryUse
from kraft_wire.broker.groups.store import OffsetsStore
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.model import Chance
from kraft_wire.wire.message import Message

__all__ = ["GroupEnvironment"]


@dataclass(frozen=True, slots=True)
class GroupEnvironment:
    """The neighbours of a coordinator partition."""

    settings: Callable[[], BrokerSettings]
    """Read at each use: a dynamic change replaces the settings as a whole."""
    store: OffsetsStore
    chance: Chance
    complete: Callable[[ReplyTo, Message], None]
    """Answers a parked request; a connection that is gone makes it do nothing."""
    commits: CommitWaits
    """What waits for the ISR, of clients and of the coordinator itself."""
    memory: MemoryUse = field(default_factory=MemoryUse)

    def has_memory_for(self, more_bytes: int) -> bool:
        """Whether `group.coordinator.memory.max.bytes` leaves room for some more.

        Kafka has no such bound; what it refuses is answered POLICY_VIOLATION.
        """
        bytes_max = self.settings().group_coordinator_memory_max_bytes
        return self.memory.total_bytes + more_bytes <= bytes_max
