"""The place of a finding on a report's map: at the damage, even if its offset is damaged.

A batch that was overwritten may claim any offset. Then the file and the position in it decide the
place, between the first offset of that segment and the first one of the next.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kraft_wire.audit.collector.tasks import Extent
from kraft_wire.audit.finding import Finding

__all__ = ["places_of"]

_LOG: Final = ".log"
_BEYOND_FACTOR: Final = 2
_BEYOND_OFFSETS: Final = 100
"""How far behind the end of a log an offset is plausible, as a factor and a number more."""


def places_of(findings: Sequence[Finding], extents: Iterable[Extent]) -> list[dict[str, int]]:
    """Return for each finding the offset at which each of its nodes' lanes shows it.

    A lane is left out if its place is unknown, as for a missing replica.
    """
    lanes = {(each.topic, each.partition, each.node): each for each in extents}
    places = []
    for finding in findings:
        own: dict[str, int] = {}
        for node in finding.nodes:
            lane = lanes.get((finding.topic, finding.partition, node))
            place = None if lane is None else _place(finding, lane)
            if place is not None:
                own[node] = place
        places.append(own)
    return places


def _place(finding: Finding, lane: Extent) -> int | None:
    at = _segment(finding.file, lane)
    if at is None:
        is_believed = finding.offset <= lane.log_end_offset * _BEYOND_FACTOR + _BEYOND_OFFSETS
        return finding.offset if finding.offset >= 0 and is_believed else None
    low, high = _bounds(at, lane)
    if low <= finding.offset <= high:
        return finding.offset
    if not finding.file.endswith(_LOG) or finding.position < 0 or at >= len(lane.segment_bytes):
        return low
    return low + (high - low) * finding.position // max(lane.segment_bytes[at], 1)


def _segment(file: str, lane: Extent) -> int | None:
    """Return which segment a file belongs to, by the offset that is its name."""
    name = file.rpartition("/")[2].partition(".")[0]
    if not name.isdecimal() or int(name) not in lane.segments:
        return None
    return lane.segments.index(int(name))


def _bounds(at: int, lane: Extent) -> tuple[int, int]:
    """Return the first offset of a segment and of the next one, or the log's end."""
    low = lane.segments[at]
    high = lane.segments[at + 1] if at + 1 < len(lane.segments) else lane.log_end_offset
    return low, max(low, high)
