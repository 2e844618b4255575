"""The rule for the high watermark (KIP-595 "Fetch", the extra condition on commitment).

A pure function of the voters' progress. An offset is committed once a majority of the voter set in
force has it durably *and* it is after the first record of the leader's own epoch. Without the
second condition a record of an older epoch could be counted as committed and still be overwritten
(figure 8 of the Raft paper).
"""

from collections.abc import Iterable

from kraft_wire.model import Offset

__all__ = ["majority_end_offset", "next_high_watermark"]

UNKNOWN = Offset(-1)


def majority_end_offset(durable_ends: Iterable[Offset | None]) -> Offset:
    """Return the largest end that a majority of the voters has reached, -1 if unknown.

    One entry per voter of the set, None where the voter has not fetched in this epoch. The leader
    is one of the entries only while it is a voter itself.
    """
    known_first = sorted((UNKNOWN if end is None else end for end in durable_ends), reverse=True)
    assert known_first, "a quorum has voters"
    return known_first[len(known_first) // 2]


def next_high_watermark(
    current: Offset | None, durable_ends: Iterable[Offset | None], epoch_start_offset: Offset
) -> Offset | None:
    """Return the high watermark after the voters' progress changed; it never falls.

    None until a record of the leader's own epoch is on a majority. A new voter may lower the
    majority's end; the high watermark then stays where it is.
    """
    reached = majority_end_offset(durable_ends)
    assert epoch_start_offset >= 0, epoch_start_offset
    if reached <= epoch_start_offset:
        return current
    if current is not None and reached <= current:
        return current
    return reached
