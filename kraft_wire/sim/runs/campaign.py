"""Runs many seeds on all cores, and adds up their results.

Each seed is a separate run in one of several processes; results are returned as small values in any
order and are added up. A seed fails alone: the others continue, and every failure is kept.
"""

from __future__ import annotations

import gc
import hashlib
import multiprocessing
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from kraft_wire.sim.judge.invariants import kinds_of
from kraft_wire.sim.plans.cluster_plan import drawn_cluster_plan
from kraft_wire.sim.plans.directory_plan import with_directories
from kraft_wire.sim.plans.elr_plan import with_elr
from kraft_wire.sim.plans.group_plan import with_groups
from kraft_wire.sim.plans.membership_plan import drawn_membership_plan
from kraft_wire.sim.plans.metadata_upkeep_plan import with_metadata_upkeep
from kraft_wire.sim.plans.odd_answers_plan import with_odd_answers
from kraft_wire.sim.plans.plan import Plan, drawn_plan
from kraft_wire.sim.plans.tool_plan import with_tools
from kraft_wire.sim.plans.transaction_plan import with_transactions
from kraft_wire.sim.runs.rare_states import RARE_STATES, RARE_TRANSACTION_STATES
from kraft_wire.sim.runs.run import Failure, Result, run_plan

__all__ = ["Totals", "drawn", "results_of"]


_COLLECT_EVERY: Final = 8
_MORE_OF_CLUSTERS: Final[Mapping[str | None, Callable[[Plan], Plan]]] = {
    "directories": with_directories,
    "eligible-replicas": with_elr,
    "odd-answers": with_odd_answers,
    "tools": with_tools,
}
"""What a focus adds to the plan of a cluster."""


@dataclass(slots=True)
class Totals:
    """Sums over runs."""

    seeds: int = 0
    events: int = 0
    useful_events: int = 0
    virtual_us: int = 0
    busy_s: float = 0.0
    """Processor time of all runs, for the rate of one core."""
    committed: int = 0
    registers: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)
    looked: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, Failure]] = field(default_factory=list)
    hashes: dict[int, str] = field(default_factory=dict)
    """The trace's hash of each seed."""

    def add(self, result: Result, busy_s: float) -> None:
        """Take one run in."""
        self.seeds += 1
        self.events += result.events
        self.useful_events += result.useful_events
        self.virtual_us += result.virtual_us
        self.busy_s += busy_s
        self.committed += result.committed
        self.registers += result.registers
        self.faults += result.faults
        self.marks += result.marks
        self.looked += result.looked
        self.operations += result.operations
        self.hashes[result.seed] = result.trace_hash
        if result.failure is not None:
            self.failures.append((result.seed, result.failure))

    @property
    def events_per_core_second(self) -> float:
        """Events of one second of one core."""
        return self.events / self.busy_s if self.busy_s else 0.0

    @property
    def coverage(self) -> dict[str, int]:
        """How often each state was reached; for clusters also the rare states that were not."""
        rare = dict.fromkeys(RARE_STATES, 0) if self.marks["cluster settled"] else {}
        if self.looked["T04 CommitIsKept"]:
            rare |= dict.fromkeys(RARE_TRANSACTION_STATES, 0)
        return {**rare, **self.marks}

    @property
    def trace_hash(self) -> str:
        """One hash over the traces of all seeds, independent of their order."""
        digest = hashlib.blake2b(digest_size=16)
        for seed, trace_hash in sorted(self.hashes.items()):
            digest.update(f"{seed} {trace_hash}\n".encode())
        return digest.hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the figures for machines."""
        return {
            "seeds": self.seeds,
            "events": self.events,
            "useful_events": self.useful_events,
            "events_per_core_second": round(self.events_per_core_second),
            "trace_hash": self.trace_hash,
            "virtual_seconds": self.virtual_us // 1_000_000,
            "committed_records": self.committed,
            "histories_explained": self.registers,
            "faults": dict(sorted(self.faults.items())),
            "coverage": dict(sorted(self.coverage.items())),
            "invariants": dict(sorted(self.looked.items())),
            "operations": dict(sorted(self.operations.items())),
            "violations": [
                {
                    "seed": seed,
                    "invariant": failure.invariant,
                    "text": failure.text,
                    "events": failure.events,
                }
                for seed, failure in sorted(self.failures, key=lambda one: one[0])
            ],
        }


def drawn(
    seed: int, *, events: int, nodes: int | None, brokers: int | None, focus: str | None = None
) -> Plan:
    """Draw a seed's run: of a quorum, or with `brokers` of a cluster; 0 lets the seed decide.

    `nodes` is the number of voters of a quorum, by default from the seed. `focus` "membership"
    draws a quorum whose voters change, lag and lose their disks; "transactions" a cluster that has
    transactions; "groups" one that has a consumer group or a share group, and no transactions;
    "eligible-replicas" one whose controllers keep eligible leader replicas; "directories" one whose
    brokers have several log directories, between which replicas move; "odd-answers" one of either
    kind, whose nodes give each other responses that are odd in their shape; "tools" a cluster with
    clients that keep the offsets of their own groups by hand.
    """
    if focus == "membership":
        return drawn_membership_plan(seed, nodes=nodes, events=events)
    if brokers is None:
        plan = with_metadata_upkeep(drawn_plan(seed, nodes=nodes, events=events))
        return with_odd_answers(plan) if focus == "odd-answers" else plan
    plan = drawn_cluster_plan(seed, nodes=nodes, brokers=brokers or None, events=events)
    if focus == "groups":
        return with_metadata_upkeep(with_groups(plan))
    plan = with_metadata_upkeep(with_transactions(plan, always=focus == "transactions"))
    with_more = _MORE_OF_CLUSTERS.get(focus)
    return plan if with_more is None else with_more(plan)


def _one(
    seed: int,
    *,
    events: int,
    nodes: int | None,
    brokers: int | None,
    canary: bool,
    model: bool,
    focus: str | None,
) -> tuple[Result, float]:
    started = time.process_time()
    if seed % _COLLECT_EVERY == 0:
        gc.collect()  # a world that is over is a knot of references
    kinds = kinds_of(canary=canary, model=model)
    plan = drawn(seed, events=events, nodes=nodes, brokers=brokers, focus=focus)
    result = run_plan(plan, kinds=kinds)
    return result, time.process_time() - started


def _begin() -> None:
    """Collect garbage between runs only: a run makes little of it, and looking for it costs."""
    if sys.implementation.name == "cpython":  # elsewhere it is found in other ways
        gc.freeze()
        gc.disable()


def _begin_worker() -> None:
    """Leave ^C to the process that waits for this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _begin()


def results_of(
    seeds: Iterable[int],
    *,
    events: int = 2_000,
    nodes: int | None = None,
    brokers: int | None = None,
    canary: bool = False,
    model: bool = False,
    jobs: int = 1,
    focus: str | None = None,
) -> Iterator[tuple[Result, float]]:
    """Yield each seed's result with the processor time that it took."""
    run: Callable[[int], tuple[Result, float]]
    run = partial(
        _one,
        events=events,
        nodes=nodes,
        brokers=brokers,
        canary=canary,
        model=model,
        focus=focus,
    )
    if jobs <= 1:
        was_enabled = gc.isenabled()
        _begin()
        try:
            yield from map(run, seeds)
        finally:
            if was_enabled:
                gc.enable()
        return
    with multiprocessing.get_context("spawn").Pool(jobs, _begin_worker) as pool:
        yield from pool.imap_unordered(run, seeds, chunksize=4)
