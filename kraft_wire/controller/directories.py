"""Ids of log directories in the metadata (KIP-858): the reserved ones, and the first choice.

Not here: moves of replicas (`assign_replicas_to_dirs`), failures (`broker_changes`).
"""

from typing import Final

from kraft_wire.metadata.image import BrokerImage
from kraft_wire.model import ONE_UUID, ZERO_UUID, Uuid

__all__ = [
    "LOST_DIRECTORY",
    "MIGRATING_DIRECTORY",
    "RESERVED_DIRECTORIES",
    "UNASSIGNED_DIRECTORY",
    "default_directory",
]

MIGRATING_DIRECTORY: Final = ZERO_UUID
"""Not known: the broker has not reported it yet."""
UNASSIGNED_DIRECTORY: Final = ONE_UUID
"""To be chosen by the broker."""
LOST_DIRECTORY: Final = Uuid(bytes(15) + b"\x02")
"""A failed directory of unknown id."""
RESERVED_DIRECTORIES: Final = 100
"""Ids below this number are reserved."""


def default_directory(broker: BrokerImage) -> Uuid:
    """Return the log directory of a broker's new replica, as the controller assigns it.

    A single directory is assigned, cordoned or not; the broker chooses among several.
    """
    if not broker.log_dirs:
        return MIGRATING_DIRECTORY
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED_DIRECTORY
