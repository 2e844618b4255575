"""A finding together with the offsets that it explains, so that one fault is reported once."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kraft_wire.audit.finding import Finding

__all__ = ["END_OF_LOG", "Fault", "explains"]

END_OF_LOG: Final = 1 << 63
"""As the end of a stretch: no upper bound."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A finding, and the stretch of the replica's offsets that it explains."""

    finding: Finding
    first_offset: int
    end_offset: int = END_OF_LOG
    """Exclusive."""


def explains(faults: Iterable[Fault], node: str, offset: int) -> bool:
    """Whether one of the faults is about this offset on this node."""
    return any(
        fault.first_offset <= offset < fault.end_offset and node in fault.finding.nodes
        for fault in faults
    )
