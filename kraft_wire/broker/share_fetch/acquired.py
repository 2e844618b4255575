"""What one fetch of a member acquired of one share partition."""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Acquired", "AcquiredRange"]


class AcquiredRange(NamedTuple):
    """Neighbouring records that a member has now, with equal delivery counts."""

    first_offset: int
    last_offset: int
    delivery_count: int


class Acquired(NamedTuple):
    """What one fetch acquired of one share partition."""

    ranges: Sequence[AcquiredRange] = ()
    records_count: int = 0
