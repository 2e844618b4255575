"""Plans about membership: voters change, lose their disks and lag, and leaders are lost.

A plain seed draws few voter changes, because it leaves room for every other fault. Here they are
frequent, several disks may be lost one after the other, and a *double* repeats votes of candidates
from another directory. No plain seed has the same draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Final

from kraft_wire.sim.plans.plan import (
    CHAOS_US,
    Fault,
    Plan,
    drawn_fault,
    drawn_habits,
    drawn_setup,
    fault_times,
)
from kraft_wire.sim.scheduler import stream

__all__ = ["MEMBERSHIP_FAULTS", "drawn_membership_plan"]

_PER_SECOND: Final[Mapping[str, tuple[float, ...]]] = {
    "add-voter": (2, 5, 10),
    "remove-voter": (1, 3, 6),
    "wipe": (0, 0.5, 1, 2),
    "crash": (0, 0.5, 2),
    "stop": (0, 0, 0.5),
    "pause": (0, 0.5, 2),
    "cut": (0, 1, 3),
    "slow": (0, 1, 3),
    "slow-disk": (0, 1, 3),
    "reset": (0, 0, 1),
    "double": (0, 3, 10),
}
_STORY_SHARE: Final = 0.4
_STORY_US: Final = (2_500_000, 4_000_000)
"""When a story begins: mostly there is a leader."""
_BESIDE_A_STORY: Final = ("double", "slow-disk")
"""Faults that leave a story its stage."""
MEMBERSHIP_FAULTS: Final = tuple(_PER_SECOND)


def drawn_membership_plan(seed: int, *, nodes: int | None = None, events: int = 2_000) -> Plan:
    """Draw a run of a dynamic quorum with `nodes` voters; 0 lets the seed decide."""
    random = stream(seed, "membership")
    count = nodes or random.choice((2, 3, 3, 3, 4, 5))
    setup = replace(
        drawn_setup(random, count),
        observers=tuple(range(count + 1, count + 1 + random.choice((1, 1, 2)))),
        combined=(),
        is_dynamic=True,
        joins_by_itself=random.random() < 0.5,
        clients=1,
    )
    faults: list[Fault] = []
    for kind, rates in _PER_SECOND.items():
        rate = random.choice(rates)
        own = stream(seed, "membership", kind)
        if rate:
            faults += [_drawn(own, kind, at_us) for at_us in fault_times(own, rate, from_us=0)]
    chaos_us = CHAOS_US
    if random.random() < _STORY_SHARE:
        story = _lagging_addition(random, random.choice(setup.observers))
        chaos_us = story[-1].at_us + story[-1].span_us + random.choice((1_000, 1_000_000))
        faults = [fault for fault in faults if fault.kind in _BESIDE_A_STORY] + story
    faults.sort(key=lambda fault: fault.at_us)
    return Plan(
        seed=seed,
        setup=setup,
        habits=drawn_habits(random),
        faults=tuple(faults),
        events=events,
        chaos_us=chaos_us,
    )


def _drawn(random: Random, kind: str, at_us: int) -> Fault:
    fault = drawn_fault(random, kind, at_us)
    return replace(fault, other="again") if kind == "wipe" else fault


def _lagging_addition(random: Random, newcomer: int) -> list[Fault]:
    """Draw a new voter that lags behind its own addition when the leader is lost.

    No fault follows: later ones, especially restarts, would help the quorum to recover.
    """
    at_us = random.randrange(*_STORY_US)
    lag_us = random.choice((20_000, 80_000, 200_000))
    watched_us = 15 * lag_us
    return [
        Fault(
            at_us=at_us, kind="slow", target=str(newcomer), amount=lag_us, span_us=2 * watched_us
        ),
        Fault(
            at_us=at_us + 3 * lag_us,
            kind="add-voter",
            target="leader",
            amount=random.randrange(1 << 16),
        ),
        Fault(
            at_us=at_us + 3 * lag_us,
            kind="lose-leader",
            target="leader",
            other=random.choice(("wipe", "wipe", "crash", "pause")),
            amount=random.randrange(1_000, 3_000_000),
            span_us=watched_us,
        ),
    ]
