"""Who runs as what, and how they may be hurt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.apache.jars import RELEASE
from tests.mixed.controller import OURS

APACHE = RELEASE


@dataclass(frozen=True)
class Layout:
    """The makes of controllers and brokers; a fault that stands twice comes twice as often."""

    controllers: tuple[str, ...]
    brokers: tuple[str, ...]
    faults: tuple[str, ...]
    hurts_controllers: bool
    cycles: int
    session_s: float
    """Of a broker; as long may a follower lag."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of all nodes, over the others."""
    needs_network: bool = False


KILLS = ("kill", "kill", "strand")
"""`strand` kills a leader whose followers stand still, so that it has records that nobody else
has."""

PATIENT = {
    "controller.quorum.election.timeout.ms": "5000",
    "controller.quorum.fetch.timeout.ms": "5000",
    "controller.quorum.request.timeout.ms": "5000",
}
"""Of controllers that are not hurt: five Java machines that share a few cores begin slowly."""

LAYOUTS = {
    "mixed": Layout((APACHE,) * 3, (APACHE, OURS, APACHE), KILLS, False, 100, 6.0, PATIENT),
    "ours": Layout(
        (OURS,) * 3,
        (OURS,) * 3,
        (*KILLS, "pause", "pause", "cut", "cut", "cut"),
        True,
        300,
        3.0,
        needs_network=True,
    ),
    "apache": Layout((APACHE,) * 3, (APACHE,) * 3, KILLS, False, 100, 6.0, PATIENT),
}
"""The last is Apache's alone: what fails there is a mistake of the harness."""
