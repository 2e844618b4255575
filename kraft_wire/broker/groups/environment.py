"""What every coordinator partition shares: settings, limits, log, chance, and where answers go."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kraft_wire.broker.context import ReplyTo
from kraft_wire.broker.groups.store import OffsetsStore
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.model import Chance
from kraft_wire.wire.message import Message

__all__ = ["GroupEnvironment", "GroupLimits"]


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """Bounds on memory that Kafka does not have; far above what its tests and users reach."""

    groups_per_partition_max: int = 10_000
    """Groups of one partition of `__consumer_offsets`; one more is refused POLICY_VIOLATION."""
    offsets_per_partition_max: int = 1_000_000
    """Committed offsets of one partition of `__consumer_offsets`, likewise."""
    group_bytes_max: int = 64 << 20
    """Metadata and assignments of one group's members; more answers GROUP_MAX_SIZE_REACHED."""
    pending_members_max: int = 10_000
    """Ids of one group that were given out and not used yet, likewise."""


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
