"""Flat memory costs of the objects of a group, as measured on CPython and rounded up."""

from typing import Final

__all__ = [
    "GROUP_BYTES",
    "MEMBER_BYTES",
    "OFFSET_BYTES",
    "PARTITION_BYTES",
    "PENDING_MEMBER_BYTES",
]

GROUP_BYTES: Final = 1_024
MEMBER_BYTES: Final = 1_536
PENDING_MEMBER_BYTES: Final = 512
"""An id that was given out, with its deadline."""
OFFSET_BYTES: Final = 768
PARTITION_BYTES: Final = 256
"""One partition in a consumer group's assignment: the target's, a member's, or both."""
