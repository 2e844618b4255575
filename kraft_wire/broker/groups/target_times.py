"""When the targets of a group may be computed again (KIP-1263)."""

__all__ = ["may_compute_targets"]


def may_compute_targets(computed_wall_ms: int, interval_ms: int, wall_ms: int) -> bool:
    """Whether the last targets are as old as the assignment interval; a stamp of 0 is."""
    return computed_wall_ms == 0 or interval_ms == 0 or wall_ms >= computed_wall_ms + interval_ms
