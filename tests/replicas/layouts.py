"""Who runs as what, and how they may be hurt."""

from __future__ import annotations

from dataclasses import dataclass

from tests.mixed.controller import OURS

APACHE = "4.3.1"


@dataclass(frozen=True)
class Layout:
    """The makes of controllers and brokers; a fault that stands twice comes twice as often."""

    controllers: tuple[str, ...]
    brokers: tuple[str, ...]
    faults: tuple[str, ...]
    hurts_controllers: bool
    cycles: int
    needs_network: bool = False

    @property
    def needs_java(self) -> bool:
        """Whether somebody is Apache's."""
        return APACHE in self.controllers + self.brokers


KILLS = ("kill", "kill", "strand")
"""`strand` kills a leader whose followers stand still, so that it has records that nobody else
has."""

LAYOUTS = {
    "mixed": Layout((APACHE,) * 3, (APACHE, OURS, APACHE), KILLS, False, 100),
    "ours": Layout(
        (OURS,) * 3,
        (OURS,) * 3,
        (*KILLS, "pause", "pause", "cut", "cut", "cut"),
        True,
        300,
        needs_network=True,
    ),
    "apache": Layout((APACHE,) * 3, (APACHE,) * 3, KILLS, False, 100),
}
"""The last is Apache's alone: what fails there is a mistake of the harness."""
