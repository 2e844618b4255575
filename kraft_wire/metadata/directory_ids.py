"""The ids of log directories that KIP-858 reserves."""

from typing import Final

from kraft_wire.model import ONE_UUID, ZERO_UUID, Uuid

__all__ = [
    "LOST_DIRECTORY",
    "MIGRATING_DIRECTORY",
    "RESERVED_DIRECTORIES",
    "UNASSIGNED_DIRECTORY",
]

MIGRATING_DIRECTORY: Final = ZERO_UUID
"""Not known: the broker has not reported it yet."""
UNASSIGNED_DIRECTORY: Final = ONE_UUID
"""To be chosen by the broker."""
LOST_DIRECTORY: Final = Uuid(bytes(15) + b"\x02")
"""A failed directory of unknown id."""
RESERVED_DIRECTORIES: Final = 100
"""Ids below this number are reserved."""
