"""A plan is everything that one run depends on: seed, cluster, habits of its machines, faults.

`drawn_plan` draws one from a seed, the mix of faults first: many rates
are zero, so that others can do their work. Faults are a list with times, so that a failing run can
be shortened by leaving some out; a plan file is its JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from random import Random
from typing import Any, Final

from kraft_wire.sim.scheduler import stream
from kraft_wire.sim.setup import Setup
from kraft_wire.sim.workload import Workload

__all__ = [
    "CHAOS_US",
    "FAULT_KINDS",
    "Fault",
    "Habits",
    "Plan",
    "drawn_fault",
    "drawn_habits",
    "drawn_plan",
    "drawn_setup",
    "fault_times",
    "plan_from_json",
    "plan_to_json",
]

CHAOS_US: Final = 40_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault, or an operator's action, at a time."""

    at_us: int
    kind: str
    target: str = "any:0"
    """A node id, or "leader", "candidate", "voted", "longest", "shortest", "any:N"."""
    other: str = ""
    """The other party: of a cut, the other side ("rest" or a target).

    Of a lost disk "again": one more disk, if all voters have theirs.
    """
    amount: int = 0
    span_us: int = 0
    """How long it lasts."""
    is_hard: bool = False
    """Of a crash: loss of power instead of a kill; of a cut: both directions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How machines and wires behave all the time."""

    delay_least_us: int = 200
    delay_most_us: int = 1_500
    late_us: int = 0
    """By how much timers are late at most."""
    flush_us: int = 300
    is_disk_ordered: bool = True
    clock_rates: tuple[int, ...] = ()
    """Per mille, by the order of the nodes; 1,000 where the list ends."""
    think_us: int = 20_000
    """Mean pause of a client."""
    leaning: str = ""
    """Which way the chance of all nodes leans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run."""

    seed: int
    setup: Setup
    habits: Habits = Habits()
    faults: tuple[Fault, ...] = ()
    events: int = 2_000
    """Length of the first phase, the one with faults."""
    chaos_us: int = CHAOS_US
    """The first phase ends here at the latest."""


# -- drawing ---------------------------------------------------------------------------------------

FAULT_KINDS: Final = (
    "crash",
    "stop",
    "pause",
    "cut",
    "flap",
    "slow",
    "slow-disk",
    "reset",
    "clock-rate",
    "wall-jump",
    "disk-error",
    "wipe",
    "add-voter",
    "remove-voter",
    "replay",
    "garble",
)

_PER_SECOND: Final[Mapping[str, tuple[float, ...]]] = {
    "crash": (0, 0, 0.3, 1, 3),
    "stop": (0, 0, 0, 0.3),
    "pause": (0, 0, 0, 0.5, 1),
    "cut": (0, 0, 0.5, 2),
    "flap": (0, 0, 0, 0.3),
    "slow": (0, 0, 0.5),
    "slow-disk": (0, 0, 0.5),
    "reset": (0, 0, 1, 5),
    "clock-rate": (0, 0, 0.3),
    "wall-jump": (0, 0, 0.5),
    "disk-error": (0, 0, 0, 0.3),
    "wipe": (0, 0, 0.1),
    "add-voter": (0, 0.3, 1),
    "remove-voter": (0, 0.3, 1),
    "replay": (0, 0, 2),
    "garble": (0, 0, 1),
}
_DYNAMIC_ONLY: Final = ("wipe", "add-voter", "remove-voter")
_TARGETS: Final = ("leader", "candidate", "voted", "longest", "shortest", "any", "any", "any")


def drawn_plan(seed: int, *, nodes: int | None = None, events: int = 2_000) -> Plan:
    """Draw a run."""
    random = stream(seed, "plan")
    setup = drawn_setup(random, nodes)
    faults: list[Fault] = []
    for kind in FAULT_KINDS:
        rate = random.choice(_PER_SECOND[kind])
        if rate and (setup.is_dynamic or kind not in _DYNAMIC_ONLY):
            # One random stream for each kind: leaving one out does not change the others.
            own = stream(seed, "faults", kind)
            faults += [drawn_fault(own, kind, at) for at in fault_times(own, rate, from_us=0)]
    faults.sort(key=lambda fault: fault.at_us)
    return Plan(
        seed=seed, setup=setup, habits=drawn_habits(random), faults=tuple(faults), events=events
    )


def drawn_setup(random: Random, nodes: int | None) -> Setup:
    """Draw the shape of a quorum; `nodes` voters, or as many as the draw says."""
    count = nodes or random.choice((1, 2, 3, 3, 3, 3, 4, 5, 5))
    voters = tuple(range(1, count + 1))
    is_dynamic = random.random() < 0.6
    extra = random.choice((0, 0, 1, 2)) if nodes is None and is_dynamic else 0
    observers = tuple(range(count + 1, count + 1 + extra))
    combined = voters[:1] if random.random() < 0.05 else ()
    election_timeout_ms = random.choice((100, 300, 1_000))
    return Setup(
        voters=voters,
        observers=observers,
        combined=combined,
        is_dynamic=is_dynamic,
        joins_by_itself=is_dynamic and random.random() < 0.4,
        election_timeout_ms=election_timeout_ms,
        fetch_timeout_ms=random.choice((800, 1_200, 2_000)),
        election_backoff_max_ms=random.choice((20, 100)),
        request_timeout_ms=random.choice((700, 1_000, 2_000)),
        retry_backoff_ms=random.choice((20, 50)),
        fetch_max_bytes=random.choice((1, 300, 1_048_576)),
        snapshot_max_bytes=random.choice((64, 500, 1_048_576)),
        snapshot_every_bytes=random.choice((300, 1_000, 5_000, 20_971_520)),
        retention_bytes=random.choice((0, 1_000, 104_857_600)),
        retention_ms=random.choice((1_000, 604_800_000)),
        idle_interval_ms=random.choice((0, 200, 500)),
        segment_bytes=random.choice((600, 3_000, 1_073_741_824)),
        clients=random.choice((1, 2, 3)),
        registers=random.choice((1, 2, 4)),
    )


def drawn_habits(random: Random) -> Habits:
    """Draw how machines and wires behave all the time."""
    least_us, most_us = random.choice(((100, 500), (200, 2_000), (1_000, 5_000), (500, 30_000)))
    is_drifting = random.random() < 0.4
    rates = tuple(random.choice((500, 900, 990, 1_000, 1_010, 1_100, 2_000)) for _ in range(7))
    return Habits(
        delay_least_us=least_us,
        delay_most_us=most_us,
        late_us=random.choice((0, 0, 2_000, 20_000)),
        flush_us=random.choice((50, 300, 3_000)),
        is_disk_ordered=random.random() < 0.7,
        clock_rates=rates if is_drifting else (),
        think_us=random.choice((5_000, 20_000, 60_000)),
        leaning=random.choice(("", "", "", "", "", "", "low", "high")),
    )


def fault_times(random: Random, per_second: float, *, from_us: int) -> Iterator[int]:
    """Draw when faults of one kind come, from a moment on until chaos is over."""
    at_us = from_us
    while True:
        at_us += int(random.expovariate(per_second / 1_000_000)) + 1
        if at_us >= CHAOS_US:
            return
        yield at_us


def drawn_fault(random: Random, kind: str, at_us: int) -> Fault:
    """Draw one fault of a kind."""
    fault = Fault(at_us=at_us, kind=kind, target=_drawn_target(random))
    mean_us = random.choice((300_000, 900_000, 900_000, 6_000_000))
    span_us = int(random.expovariate(1 / mean_us)) + 1_000
    is_hard = random.random() < 0.6
    match kind:
        case "crash":
            armed = random.choice(("", "", "change", "output"))
            amount = random.randrange(12)
            down_us = int(random.expovariate(1 / random.choice((4_000, 40_000, 900_000)))) + 500
            return replace(fault, other=armed, amount=amount, span_us=down_us, is_hard=is_hard)
        case "cut":
            other = random.choice(("rest", "rest", "half", _drawn_target(random)))
            return replace(fault, other=other, span_us=span_us, is_hard=is_hard)
        case "flap":
            return replace(fault, other="rest", amount=random.randrange(2, 8), span_us=span_us)
        case "slow" | "slow-disk":
            return replace(fault, amount=random.choice((2_000, 20_000, 80_000)), span_us=span_us)
        case "clock-rate":
            return replace(fault, amount=random.choice((100, 500, 950, 1_050, 2_000, 10_000)))
        case "wall-jump":
            return replace(fault, amount=random.choice((-3_600_000, -1_000, 1_000, 3_600_000)))
        case "disk-error":
            return replace(
                fault, amount=random.randrange(10), other=random.choice(("EIO", "ENOSPC"))
            )
        case "replay" | "garble":
            return replace(fault, amount=random.randrange(1 << 16))
        case _:
            return replace(fault, span_us=span_us, amount=random.randrange(1 << 16))


def _drawn_target(random: Random) -> str:
    target = random.choice(_TARGETS)
    return f"any:{random.randrange(60)}" if target == "any" else target


# -- files -----------------------------------------------------------------------------------------


def plan_to_json(plan: Plan) -> str:
    """Return a plan as text, one fault on a line."""
    content = asdict(plan)
    faults = content.pop("faults")
    defaults = asdict(Fault(at_us=0, kind=""))
    lines = [
        json.dumps({key: value for key, value in one.items() if value != defaults[key]})
        for one in faults
    ]
    head = json.dumps(content, indent=1)[:-2]
    return head + ',\n "faults": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"


def plan_from_json(text: str) -> Plan:
    """Read a plan. Errors: ValueError if the text is not a plan."""
    content = json.loads(text)
    if not isinstance(content, dict) or "seed" not in content:
        raise ValueError("no plan: it has no seed")
    try:
        named = content.pop("setup", {})
        workload = Workload(**_tuples(named.pop("data", {})))
        setup = Setup(data=workload, **_tuples(named))
        habits = Habits(**_tuples(content.pop("habits", {})))
        faults = tuple(Fault(**{"at_us": 0, **one}) for one in content.pop("faults", []))
        known = {field.name for field in fields(Plan)}
        if not known >= content.keys():
            raise ValueError(f"unknown keys {sorted(content.keys() - known)}")
        return Plan(setup=setup, habits=habits, faults=faults, **content)
    except TypeError as error:
        raise ValueError(str(error)) from error


def _tuples(content: dict[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}
