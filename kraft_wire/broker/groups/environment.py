"""What every coordinator partition shares: settings, limits, log, chance, and where answers go."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.groups.memory import MemoryUse
from kraft_wire.broker.groups.store import OffsetsStore
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.model import Chance
from kraft_wire.wire.message import Message

__all__ = ["GroupEnvironment", "GroupLimits"]


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """Bounds on memory that Kafka does not have; far above what its tests and users reach."""

    total_bytes_max: int = 256 << 20
    """All groups and offsets of this broker; what would be more is refused POLICY_VIOLATION."""
    group_bytes_max: int = 64 << 20
    """Members of one group, and ids given out; more answers GROUP_MAX_SIZE_REACHED."""


@dataclass(frozen=True, slots=True)
class GroupEnvironment:
    """The neighbours of a coordinator partition."""

    settings: Callable[[], BrokerSettings]
    """Read at each use: a dynamic change replaces the settings as a whole."""
    store: OffsetsStore
    chance: Chance
    complete: Callable[[ReplyTo, Message], None]
    """Answers a parked request; a connection that is gone makes it do nothing."""
    limits: GroupLimits = field(default_factory=GroupLimits)
    memory: MemoryUse = field(default_factory=MemoryUse)

    def has_memory_for(self, more_bytes: int) -> bool:
        """Whether the bound on all groups and offsets leaves room for some more."""
        return self.memory.total_bytes + more_bytes <= self.limits.total_bytes_max
