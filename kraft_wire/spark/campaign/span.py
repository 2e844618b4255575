"""One task of a campaign: seeds that follow each other, or seeds that are run again."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kraft_wire.sim.runs.run import Result
from kraft_wire.spark.campaign.kinds import Kind, broken_result
from kraft_wire.spark.campaign.table import CampaignTable, Row

__all__ = ["Done", "Span", "run_span", "sample_of", "spans_of", "worker_name"]

_SEEDS_MIN: Final = 4
_SEEDS_MAX: Final = 256
_SPANS_PER_CORE: Final = 64


@dataclass(frozen=True, slots=True)
class Span:
    """Seeds for one task; rows are kept only of those that are run for the first time."""

    seeds: tuple[int, ...]
    is_repeat: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a task."""

    hashes: tuple[tuple[int, str], ...]
    """The trace hash of each seed."""
    events: int
    worker: str


def spans_of(seeds: Sequence[int], cores: int, size: int | None = None) -> list[Span]:
    """Cut ascending seeds into spans of `size`, or so that each core gets many of them."""
    if size is None:
        size = min(max(len(seeds) // (cores * _SPANS_PER_CORE), _SEEDS_MIN), _SEEDS_MAX)
    return [Span(tuple(seeds[at : at + size])) for at in range(0, len(seeds), size)]


def sample_of(seeds: Sequence[int], count: int) -> list[int]:
    """Return `count` of the seeds, spread evenly."""
    chosen = min(count, len(seeds))
    return [seeds[number * len(seeds) // chosen] for number in range(chosen)]


def run_span(span: Span, kind: Kind, table: CampaignTable, attempt: str) -> Done:
    """Run the seeds of a task and keep their rows."""
    worker = worker_name()
    rows = [Row(*found, worker, kind.replay(found[0].seed)) for found in _results(span.seeds, kind)]
    if not span.is_repeat:
        table.write(rows, attempt)
    hashes = tuple((row.result.seed, row.result.trace_hash) for row in rows)
    return Done(hashes, sum(row.result.events for row in rows), worker)


def _results(seeds: Iterable[int], kind: Kind) -> Iterator[tuple[Result, float]]:
    for seed in seeds:
        try:
            yield kind.result(seed)
        except Exception as error:  # noqa: BLE001  # a seed fails alone
            yield broken_result(seed, error), 0.0


def worker_name() -> str:
    """Return the host and the process that started this one: an executor's, on a cluster."""
    return f"{socket.gethostname()}/{os.getppid()}"
